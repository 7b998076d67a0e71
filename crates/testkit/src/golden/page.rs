//! A case in one file, `CASE.golden`: what it is about, then sections under `=== NAME` lines. `request` and
//! `upstream STATUS TYPE` are given; the sections behind them are what must come out.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{Case, Output, Place, Upstream, first_difference, name};

const HEAD: &str = "=== ";
pub(super) const ENDING: &str = "golden";

pub(super) fn read(provider: &Path, file: &Path) -> Result<Case> {
    let text = fs::read_to_string(file).with_context(|| format!("{}: cannot be read", file.display()))?;
    let at = || file.display().to_string();
    let given = given(&text);
    ensure!(given.contains("source: "), "{}: says no `source:` before its first section", at());
    let request = section(given, |head| head == "request").with_context(|| format!("{}: no request", at()))?.1;
    let (head, body) =
        section(given, |head| head.starts_with("upstream ")).with_context(|| format!("{}: no upstream", at()))?;
    let mut words = head.split(' ').skip(1);
    let status = words.next().and_then(|word| word.parse().ok()).with_context(|| format!("{}: no status", at()))?;
    let body = body.as_bytes().to_vec();
    let upstream = if words.next() == Some("text/event-stream") { Upstream::Sse(body) } else { Upstream::Json(body) };
    let case = name(file).trim_end_matches(ENDING).trim_end_matches('.').to_owned();
    let place = Place::Page(file.to_owned());
    Ok(Case { provider: name(provider), name: case, request: request.into(), upstream, status, place })
}

/// Compares with, or writes, the sections that are to come out.
pub(super) fn settle(file: &Path, output: &Output, bless: bool) -> Result<()> {
    let text = fs::read_to_string(file)?;
    let mut produced = given(&text).to_owned();
    for (head, body) in &output.sections {
        produced.extend([HEAD, head, "\n", &String::from_utf8_lossy(body)]);
    }
    if bless {
        return Ok(fs::write(file, produced)?);
    }
    match first_difference(text.as_bytes(), produced.as_bytes()) {
        Some(difference) => anyhow::bail!("differs {difference}"),
        None => Ok(()),
    }
}

/// Everything up to the end of the upstream's section.
fn given(text: &str) -> &str {
    let start = text.find("=== upstream ").unwrap_or_default();
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
