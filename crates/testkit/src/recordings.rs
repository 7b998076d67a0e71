//! Recorded Chat Completions exchanges of real providers, from the shared folder beside the clone.

use std::fs::File;
use std::io::{BufRead, BufReader};

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::{place, skipped};

/// One exchange.
#[derive(Debug, Clone)]
pub struct Recording {
    pub provider: String,
    pub request: Value,
    pub answer: Recorded,
}

#[derive(Debug, Clone)]
pub enum Recorded {
    Sync(Value),
    Chunks(Vec<Value>),
}

/// All exchanges that have an answer; `None`, and the test is reported as skipped, when they are not beside this
/// clone.
pub fn recordings() -> Option<Vec<Recording>> {
    let Some(path) = place::shared("fixtures/recordings/chat-completions.jsonl.gz") else {
        skipped("../shared/fixtures/recordings");
        return None;
    };
    let file = File::open(path).ok()?;
    BufReader::new(GzDecoder::new(file))
        .lines()
        .filter_map(|line| line.map(|line| read(&line)).transpose())
        .collect::<Result<_, _>>()
        .ok()
}

/// `None` for an exchange that was recorded without its answer.
fn read(line: &str) -> Option<Recording> {
    let mut value: Value = serde_json::from_str(line).ok()?;
    let answer = match (value["response"].take(), value["chunks"].take()) {
        (_, Value::Array(chunks)) => Recorded::Chunks(chunks),
        (Value::Null, _) => return None,
        (response, _) => Recorded::Sync(response),
    };
    Some(Recording { provider: value["provider"].as_str()?.to_owned(), request: value["request"].take(), answer })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_kinds() {
        let Some(recordings) = recordings() else { return };
        assert!(recordings.len() > 250, "{}", recordings.len());
        assert!(recordings.iter().any(|recording| matches!(recording.answer, Recorded::Sync(_))));
        assert!(recordings.iter().any(|recording| matches!(&recording.answer, Recorded::Chunks(c) if c.len() > 1)));
        assert!(recordings.iter().all(|recording| recording.request["messages"].is_array()));
    }
}
