//! Recorded exchanges of real model servers, byte for byte, from the shared folder beside the clone.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{place, skipped};

/// One exchange.
#[derive(Debug, Clone)]
pub struct Fixture {
    /// Server and case.
    pub name: String,
    /// What was asked; null where it was no JSON.
    pub request: Value,
    pub status: u16,
    pub streamed: bool,
    /// The answer's body.
    pub body: Vec<u8>,
}

/// All chat exchanges that have an answer, in the order of their names; `None`, and the test is reported as skipped,
/// when they are not beside this clone.
pub fn fixtures() -> Option<Vec<Fixture>> {
    all("/chat/completions")
}

/// The same of servers that speak the Responses API themselves.
pub fn native_fixtures() -> Option<Vec<Fixture>> {
    all("/responses")
}

fn all(endpoint: &str) -> Option<Vec<Fixture>> {
    let Some(recorded) = place::shared("fixtures/llm") else {
        skipped("../shared/fixtures/llm");
        return None;
    };
    let servers = folders(&recorded);
    Some(servers.iter().flat_map(|server| folders(server)).filter_map(|case| read(&case, endpoint)).collect())
}

fn folders(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn read(case: &Path, endpoint: &str) -> Option<Fixture> {
    let meta: Value = serde_json::from_slice(&fs::read(case.join("meta.json")).ok()?).ok()?;
    if !meta["path"].as_str()?.ends_with(endpoint) {
        return None;
    }
    let status = u16::try_from(meta["status"].as_u64()?).ok()?;
    let streamed = case.join("response.sse").is_file();
    let body = fs::read(case.join(if streamed { "response.sse" } else { "response.json" })).ok()?;
    let name = format!("{}/{}", case.parent()?.file_name()?.to_string_lossy(), case.file_name()?.to_string_lossy());
    let request = fs::read(case.join("request.json")).ok();
    let request = request.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or(Value::Null);
    Some(Fixture { name, request, status, streamed, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_kinds() {
        let Some(fixtures) = fixtures() else { return };
        assert!(fixtures.len() > 350, "{}", fixtures.len());
        assert!(fixtures.iter().any(|fixture| fixture.streamed && fixture.body.starts_with(b"data: ")));
        assert!(fixtures.iter().any(|fixture| !fixture.streamed && fixture.body.starts_with(b"{")));
        let native = native_fixtures().unwrap();
        assert!(native.len() > 90, "{}", native.len());
        assert!(native.iter().any(|fixture| fixture.streamed && fixture.body.starts_with(b"event: ")));
    }
}
