//! Goldens: cases that are data, `tests/golden/<provider>/<case>/`. A case holds what comes in
//! (`request.json`, and `upstream.sse` or `upstream.json`) and what must go out (`chat.json`, `response.sse`,
//! `response.json`, `notes.txt`). Adding a case is adding a folder; a file of another name is an error, so
//! that no case is forgotten under a misspelt name.
//!
//! A case that shows a provider's manners is one page, `<provider>/<case>.golden`, with the sections in it that a
//! person wants to read: what was asked, answered and sent, and the gist of what came out.
//!
//! `GODEX_BLESS=1` in the environment rewrites the expected files instead of comparing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::place;

mod page;

const INPUTS: [&str; 3] = ["request.json", "upstream.sse", "upstream.json"];
const OUTPUTS: [&str; 4] = ["chat.json", "response.sse", "response.json", "notes.txt"];

/// What comes in.
#[derive(Debug, Clone)]
pub struct Case {
    /// The folder above the case: the name of a spec.
    pub provider: String,
    pub name: String,
    pub request: Vec<u8>,
    pub upstream: Upstream,
    pub status: u16,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    Folder(PathBuf),
    Page(PathBuf),
}

impl Case {
    /// Whether the case is one page.
    pub fn is_page(&self) -> bool {
        matches!(self.place, Place::Page(_))
    }
}

/// What the provider answered.
#[derive(Debug, Clone)]
pub enum Upstream {
    Sse(Vec<u8>),
    Json(Vec<u8>),
}

/// What goes out. `None`: this case must not have such a file.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// The request that goes to the provider.
    pub chat_json: Option<Vec<u8>>,
    pub response_sse: Option<Vec<u8>>,
    pub response_json: Option<Vec<u8>>,
    pub notes: Option<Vec<u8>>,
    /// What a page shows: heads and bodies.
    pub sections: Vec<(String, Vec<u8>)>,
}

/// Runs every case of the project through `translate` and compares, or blesses. The error lists every case
/// that differs.
pub fn run(translate: impl FnMut(&Case) -> Result<Output>) -> Result<()> {
    let bless = std::env::var("GODEX_BLESS").is_ok_and(|value| value == "1");
    run_in(&place::root().join("tests/golden"), bless, translate)
}

/// Every case below `root`, sorted by provider and name. No folder, no cases.
pub fn cases(root: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for provider in folders(root)? {
        for entry in entries(&provider)? {
            let is_page = entry.extension().is_some_and(|ending| ending == page::ENDING);
            cases.push(if is_page { page::read(&provider, &entry)? } else { read(&provider, &entry)? });
        }
    }
    Ok(cases)
}

fn run_in(root: &Path, bless: bool, mut translate: impl FnMut(&Case) -> Result<Output>) -> Result<()> {
    let mut differences = Vec::new();
    for case in cases(root)? {
        let label = format!("{}/{}", case.provider, case.name);
        let outcome = translate(&case).and_then(|output| settle(&case, &output, bless));
        if let Err(problem) = outcome {
            differences.push(format!("{label}: {problem:#}"));
        }
    }
    ensure!(differences.is_empty(), "{}\n(GODEX_BLESS=1 accepts what is there now)", differences.join("\n"));
    Ok(())
}

fn read(provider: &Path, folder: &Path) -> Result<Case> {
    let file = |name: &str| fs::read(folder.join(name)).ok();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        let known = INPUTS.contains(&name.as_str()) || OUTPUTS.contains(&name.as_str());
        ensure!(known, "{}: a case has no file of this name", folder.join(name).display());
    }
    let upstream = match (file("upstream.sse"), file("upstream.json")) {
        (Some(sse), None) => Upstream::Sse(sse),
        (None, Some(json)) => Upstream::Json(json),
        _ => bail!("{}: one of upstream.sse and upstream.json", folder.display()),
    };
    let request = file("request.json").with_context(|| format!("{}: no request.json", folder.display()))?;
    let place = Place::Folder(folder.to_owned());
    Ok(Case { provider: name(provider), name: name(folder), request, upstream, status: 200, place })
}

/// Compares with, or writes, the expected files of one case.
fn settle(case: &Case, output: &Output, bless: bool) -> Result<()> {
    let folder = match &case.place {
        Place::Folder(folder) => folder,
        Place::Page(file) => return page::settle(file, output, bless),
    };
    let produced = [&output.chat_json, &output.response_sse, &output.response_json, &output.notes];
    for (file, produced) in OUTPUTS.iter().zip(produced) {
        let path = folder.join(file);
        match produced {
            Some(bytes) if bless => fs::write(&path, bytes)?,
            None if bless && path.exists() => fs::remove_file(&path)?,
            None if !path.exists() => {}
            None => bail!("{file} is there, but nothing was produced for it"),
            Some(bytes) => {
                let expected = fs::read(&path).with_context(|| format!("no {file}"))?;
                if let Some(difference) = first_difference(&expected, bytes) {
                    bail!("{file} differs {difference}");
                }
            }
        }
    }
    Ok(())
}

fn first_difference(expected: &[u8], produced: &[u8]) -> Option<String> {
    if expected == produced {
        return None;
    }
    let (expected, produced) = (String::from_utf8_lossy(expected), String::from_utf8_lossy(produced));
    let (mut left, mut right) = (expected.split('\n'), produced.split('\n'));
    let mut number = 1;
    loop {
        match (left.next(), right.next()) {
            (Some(a), Some(b)) if a == b => number += 1,
            (a, b) => {
                let show = |line: Option<&str>| line.unwrap_or("(end)").to_owned();
                return Some(format!("in line {number}\n  expected: {}\n  produced: {}", show(a), show(b)));
            }
        }
    }
}

fn folders(parent: &Path) -> Result<Vec<PathBuf>> {
    let folders = entries(parent)?;
    if let Some(file) = folders.iter().find(|path| !path.is_dir()) {
        bail!("{}: only folders belong here", file.display());
    }
    Ok(folders)
}

/// Folders and pages.
fn entries(parent: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(parent) else { return Ok(Vec::new()) };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_case = path.is_dir() || path.extension().is_some_and(|ending| ending == page::ENDING);
        ensure!(is_case, "{}: only folders and pages belong here", path.display());
        paths.push(path);
    }
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
