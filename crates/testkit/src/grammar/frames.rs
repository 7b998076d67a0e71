//! Framing: `event: TYPE\ndata: JSON\n\n`, LF only, comments allowed, `data: [DONE]\n\n` last.

use serde_json::Value;

const DONE: &str = "data: [DONE]\n\n";

pub(super) fn parse(sse: &[u8]) -> Result<Vec<(String, Value)>, String> {
    let text = std::str::from_utf8(sse).map_err(|error| format!("not UTF-8: {error}"))?;
    if text.contains('\r') {
        return Err("a carriage return in the framing".to_owned());
    }
    let Some(text) = text.strip_suffix(DONE) else {
        let tail: String = text.chars().rev().take(80).collect::<Vec<_>>().into_iter().rev().collect();
        return Err(format!("the stream does not end with [DONE] but with {tail:?}"));
    };
    let mut events = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (block, after) = rest.split_once("\n\n").ok_or_else(|| format!("unfinished frame {rest:?}"))?;
        events.extend(frame(block)?);
        rest = after;
    }
    Ok(events)
}

fn frame(block: &str) -> Result<Option<(String, Value)>, String> {
    let lines: Vec<&str> = block.split('\n').filter(|line| !line.starts_with(':')).collect();
    let (event, data) = match lines[..] {
        [] => return Ok(None),
        [event, data] => (event, data),
        _ => return Err(format!("a frame is one event line and one data line, not {block:?}")),
    };
    let name = event.strip_prefix("event: ").ok_or_else(|| format!("no event line in {block:?}"))?;
    let json = data.strip_prefix("data: ").ok_or_else(|| format!("no data line in {block:?}"))?;
    let json: Value = serde_json::from_str(json).map_err(|error| format!("{error} in {json}"))?;
    if json["type"] != name {
        return Err(format!("event line says {name:?}, the JSON says {}", json["type"]));
    }
    Ok(Some((name.to_owned(), json)))
}
