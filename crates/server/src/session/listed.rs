//! An item as lists and conversations show it: with its id, its kind and its status, content as parts.

use store::Item;
use wire::json::{ObjectWriter, Raw, Text};

/// Kinds that OpenAI shows with a status, which clients may leave out.
const WITH_STATUS: [&str; 4] = ["message", "function_call", "function_call_output", "custom_tool_call"];

/// Writes the item. One of ours is whole already; a client's is completed.
pub(crate) fn write_listed(item: &Item, out: &mut Vec<u8>) {
    let parsed = |body| str::from_utf8(body).ok().and_then(|text| Raw::parse(text).ok()).unwrap_or(Raw::NULL);
    let shown = bridge::shown_item(parsed(&item.body));
    let raw = parsed(shown.as_deref().unwrap_or(&item.body));
    let text = |name| raw.get(name).and_then(Raw::text);
    let kind = text("type").map_or("message".into(), Text::decode);
    let plain = if kind == "message" { text("content") } else { None };
    let lacks_status = WITH_STATUS.contains(&&*kind) && text("status").is_none();
    let named = text("id").is_some_and(|id| id.is(&item.id)) && text("type").is_some();
    if named && plain.is_none() && !lacks_status {
        return out.extend_from_slice(raw.as_str().as_bytes());
    }
    let mut object = ObjectWriter::new(out);
    object.text("id", &item.id).text("type", &kind);
    for (key, value) in raw.fields() {
        match &*key.decode() {
            "id" | "type" => {}
            "status" if lacks_status => {}
            "content" if plain.is_some() => {
                let by_model = text("role").is_some_and(|role| role.is("assistant"));
                part(value, by_model, object.key("content"));
            }
            name => drop(object.raw(name, value)),
        }
    }
    if lacks_status {
        object.text("status", "completed");
    }
    object.end();
}

/// A message's text as its one part.
fn part(text: Raw<'_>, by_model: bool, out: &mut Vec<u8>) {
    out.push(b'[');
    let mut part = ObjectWriter::new(out);
    part.text("type", if by_model { "output_text" } else { "input_text" }).raw("text", text);
    if by_model {
        part.json("annotations", b"[]").json("logprobs", b"[]");
    }
    part.end();
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_listed_in_full() {
        for (id, body, expected) in [
            (
                "msg_1",
                r#"{"role":"user","content":"Hi"}"#,
                r#"{"id":"msg_1","type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}],"status":"completed"}"#,
            ),
            (
                "msg_2",
                r#"{"content":"Ho","role":"assistant","id":"not usable","status":null}"#,
                r#"{"id":"msg_2","type":"message","content":[{"type":"output_text","text":"Ho","annotations":[],"logprobs":[]}],"role":"assistant","status":"completed"}"#,
            ),
            (
                "fco_1",
                r#"{"type":"function_call_output","call_id":"c","output":"1"}"#,
                r#"{"id":"fco_1","type":"function_call_output","call_id":"c","output":"1","status":"completed"}"#,
            ),
            (
                "at_1",
                r#"{"type":"additional_tools","tools":[{"type":"mcp","authorization":"KEY"}]}"#,
                r#"{"id":"at_1","type":"additional_tools","tools":[{"type":"mcp"}]}"#,
            ),
            (
                "at_2",
                r#"{"type":"additional_tools","id":"at_2","tools":[{"type":"mcp","headers":{}}]}"#,
                r#"{"type":"additional_tools","id":"at_2","tools":[{"type":"mcp"}]}"#,
            ),
            (
                "rs_1",
                r#"{"type":"reasoning","id":"rs_1", "summary":[]}"#,
                r#"{"type":"reasoning","id":"rs_1", "summary":[]}"#,
            ),
            (
                "msg_3",
                r#"{"id":"msg_3","type":"message","status":"incomplete","role":"assistant","content":[]}"#,
                r#"{"id":"msg_3","type":"message","status":"incomplete","role":"assistant","content":[]}"#,
            ),
        ] {
            let mut out = Vec::new();
            write_listed(&Item { id: id.to_owned(), body: body.into() }, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
