//! The prefix cache: what is before a mark is kept, and a later request with the same beginning reads it. A mark looks
//! back twenty blocks for what an earlier one has kept.

use std::collections::BTreeSet;

use serde_json::Value;

use super::signed::{hash, without_marks};

/// How far a mark looks back.
const LOOK_BACK: usize = 20;

/// How a request used the cache, in blocks: tools, blocks of the system prompt, blocks of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheUse {
    pub blocks: usize,
    pub read: usize,
    pub written: usize,
}

/// The hashes of all beginnings that are kept.
#[derive(Debug, Default)]
pub(super) struct PrefixCache(BTreeSet<u64>);

impl PrefixCache {
    pub(super) fn use_for(&mut self, request: &Value) -> CacheUse {
        let blocks = blocks(request);
        let mut beginnings = Vec::with_capacity(blocks.len());
        let mut so_far = String::new();
        for (text, _) in &blocks {
            so_far.push_str(text);
            beginnings.push(hash(&so_far));
        }
        let marks: Vec<usize> =
            blocks.iter().enumerate().filter(|(_, (_, marked))| *marked).map(|(at, _)| at).collect();
        let found = marks.iter().rev().find_map(|mark| {
            let first = mark.saturating_sub(LOOK_BACK);
            (first..=*mark).rev().find(|at| self.0.contains(&beginnings[*at]))
        });
        let read = found.map_or(0, |at| at + 1);
        let kept = marks.last().map_or(0, |at| at + 1);
        self.0.extend(marks.iter().map(|at| beginnings[*at]));
        CacheUse { blocks: blocks.len(), read, written: kept.saturating_sub(read) }
    }
}

/// Each block in the order in which the model reads it, without its mark, and whether it has one.
fn blocks(request: &Value) -> Vec<(String, bool)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut all: Vec<Value> = list(&request["tools"]);
    all.extend(list(&request["system"]));
    for message in list(&request["messages"]) {
        let content = list(&message["content"]);
        all.extend(if content.is_empty() { vec![message["content"].clone()] } else { content });
    }
    // An automatic mark is on the last block.
    if request.get("cache_control").is_some()
        && let Some(Value::Object(last)) = all.last_mut()
    {
        last.insert("cache_control".to_owned(), request["cache_control"].clone());
    }
    let read = |mut block: Value| {
        let marked = block.get("cache_control").is_some();
        without_marks(&mut block);
        (block.to_string(), marked)
    };
    all.into_iter().map(read).collect()
}
