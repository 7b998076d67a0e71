//! Goldens: cases that are data, one page each, `tests/golden/SPEC/CASE.golden`. A page says what it is about and
//! where its answer is from, then come sections under `=== NAME` lines: `request` and `upstream STATUS TYPE` are
//! given, the sections after them are what must come out.
//!
//! The head is a sentence and lines `NAME: VALUE`: `source`, `hand-made …` or `recorded from SERVER VERSION …`, and
//! `shows: bytes` for a page that shows everything that comes out as it is; the others show the gist of it.
//!
//! Adding a case is adding a page; a file of another name is an error, so that no case is forgotten under a misspelt
//! name. `GODEX_BLESS=1` in the environment rewrites what must come out instead of comparing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::place;

mod compact;
mod pretty;

pub use compact::compact;
pub use pretty::pretty;

const HEAD: &str = "=== ";
const ENDING: &str = "golden";

/// A page that was found, not yet read.
#[derive(Debug, Clone)]
pub struct Page {
    /// The folder above the page: the name of a spec.
    pub provider: String,
    pub name: String,
    file: PathBuf,
}

/// What comes in.
#[derive(Debug, Clone)]
pub struct Case {
    pub page: Page,
    pub request: Vec<u8>,
    pub upstream: UpstreamAnswer,
    pub status: u16,
    pub shows: Shows,
    /// The page up to where what must come out begins.
    given: String,
}

/// What the provider answered.
#[derive(Debug, Clone)]
pub enum UpstreamAnswer {
    Sse(Vec<u8>),
    Json(Vec<u8>),
}

/// How much of what comes out is on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// What a person wants to read.
    Gist,
    /// Everything, byte for byte.
    Bytes,
}

/// A section of a page: its head and its body.
pub type Section = (String, Vec<u8>);

/// Every page of the project, sorted by spec and name.
pub fn pages() -> Result<Vec<Page>> {
    pages_in(&place::root().join("tests/golden"))
}

fn pages_in(root: &Path) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    for folder in entries(root)? {
        ensure!(folder.is_dir(), "{}: only folders belong here", folder.display());
        for file in entries(&folder)? {
            let is_page = file.is_file() && file.extension().is_some_and(|ending| ending == ENDING);
            ensure!(is_page, "{}: only pages belong here", file.display());
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            pages.push(Page { provider: name(&folder), name: stem, file });
        }
    }
    Ok(pages)
}

impl Page {
    /// `SPEC/CASE`.
    pub fn label(&self) -> String {
        format!("{}/{}", self.provider, self.name)
    }

    pub fn read(&self) -> Result<Case> {
        read(self.clone()).with_context(|| self.file.display().to_string())
    }
}

impl Case {
    /// Compares the page with these sections after what is given, or writes them.
    pub fn settle(&self, sections: &[Section]) -> Result<()> {
        let bless = std::env::var("GODEX_BLESS").is_ok_and(|value| value == "1");
        settle(self, sections, bless)
    }
}

fn read(page: Page) -> Result<Case> {
    let text = fs::read_to_string(&page.file)?;
    let given = given(&text);
    let head = &given[..given.find(HEAD).unwrap_or(given.len())];
    let line = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let source = line("source").context("says no `source:` before its first section")?;
    let known = source.starts_with("hand-made") || source.starts_with("recorded from ");
    ensure!(known, "its source is neither `hand-made …` nor `recorded from …`");
    let shows = match line("shows") {
        None => Shows::Gist,
        Some("bytes") => Shows::Bytes,
        Some(other) => bail!("`shows: {other}` is not known"),
    };
    let request = section(given, |head| head == "request").context("no request")?.1.into();
    let (head, body) = section(given, |head| head.starts_with("upstream ")).context("no upstream")?;
    let mut words = head.split(' ').skip(1);
    let status = words.next().and_then(|word| word.parse().ok()).context("no status")?;
    let body = body.as_bytes().to_vec();
    let upstream =
        if words.next() == Some("text/event-stream") { UpstreamAnswer::Sse(body) } else { UpstreamAnswer::Json(body) };
    Ok(Case { page, request, upstream, status, shows, given: given.to_owned() })
}

fn settle(case: &Case, sections: &[Section], bless: bool) -> Result<()> {
    let mut produced = case.given.clone();
    for (head, body) in sections {
        produced.extend([HEAD, head, "\n", &String::from_utf8_lossy(body)]);
    }
    if bless {
        return Ok(fs::write(&case.page.file, produced)?);
    }
    match first_difference(&fs::read_to_string(&case.page.file)?, &produced) {
        Some(difference) => bail!("the page differs {difference}\n(GODEX_BLESS=1 accepts what is there now)"),
        None => Ok(()),
    }
}

/// Everything up to the end of the upstream's section.
fn given(text: &str) -> &str {
    let Some(start) = text.find("=== upstream ") else { return text };
    let end = text[start..].match_indices(HEAD).map(|(at, _)| start + at).find(|at| *at > start && line(text, *at));
    &text[..end.unwrap_or(text.len())]
}

/// Whether a line begins here.
fn line(text: &str, at: usize) -> bool {
    at == 0 || text[..at].ends_with('\n')
}

/// A section's head and body.
fn section(text: &str, is: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let heads = text.match_indices(HEAD).map(|(at, _)| at).filter(|at| line(text, *at));
    let starts: Vec<usize> = heads.chain([text.len()]).collect();
    starts.windows(2).find_map(|pair| {
        let (head, body) = text[pair[0] + HEAD.len()..pair[1]].split_once('\n')?;
        is(head).then_some((head, body))
    })
}

fn first_difference(expected: &str, produced: &str) -> Option<String> {
    if expected == produced {
        return None;
    }
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

/// Sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
