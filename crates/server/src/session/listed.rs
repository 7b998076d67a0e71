//! An item as lists and conversations show it: the resource, with everything that the API promises of its kind.
//!
//! The store keeps what was sent, since that is what the next turn replays; what a client left out is added here, on
//! the way out. A field that is there stays as it is, known to us or not, and an item of an unknown kind gets its id.

use store::{Error, Item};
use wire::json::{Kind, ObjectWriter, Raw, Text};

use super::hidden;
use super::kinds::{self, Defaults, Field, ItemKind, Twin};
use super::object::stored_object;

/// What clients may send as null and no resource has so: null there is as good as nothing.
const NEVER_NULL: &[&str] = &[
    "status",
    "content",
    "summary",
    "call_id",
    "name",
    "namespace",
    "role",
    "tools",
    "queries",
    "execution",
    "pending_safety_checks",
    "acknowledged_safety_checks",
    "action",
    "actions",
    "created_by",
];

/// The same of content parts.
const NEVER_NULL_IN_PARTS: &[&str] =
    &["detail", "prompt_cache_breakpoint", "filename", "file_data", "file_url", "annotations", "logprobs"];

/// Writes the item.
///
/// # Errors
/// What was stored is no item any more.
pub(crate) fn write_listed(item: &Item, out: &mut Vec<u8>) -> Result<(), Error> {
    let parsed = |body| stored_object(body).ok_or_else(|| Error::Corrupt(format!("item {}", item.id).into()));
    let shown = hidden::shown(parsed(&item.body)?);
    write(&item.id, parsed(shown.as_deref().unwrap_or(&item.body))?, out);
    Ok(())
}

fn write(id: &str, raw: Raw<'_>, out: &mut Vec<u8>) {
    let name = kinds::shown_name(raw);
    let kind = ItemKind::named(&name);
    let mut object = ObjectWriter::new(out);
    object.text("id", id).text("type", &name);
    for (key, value) in raw.fields() {
        let name = key.decode();
        let nothing = kind.is_some() && value.is_null() && NEVER_NULL.contains(&&*name);
        if !nothing && name != "id" && name != "type" {
            field(kind.and_then(|kind| kind.field(&name)), raw, &name, value, &mut object);
        }
    }
    let Some(kind) = kind else { return object.end() };
    let has = |name: &str| raw.get(name).is_some_and(|value| !value.is_null());
    for (name, default) in kind.defaults {
        // A null that was sent where a resource may have one is written already.
        if !has(name) && (NEVER_NULL.contains(name) || raw.get(name).is_none()) {
            object.json(name, default.as_bytes());
        }
    }
    match kind.twin {
        Some(Twin::CallId) if !has("call_id") => {
            let sent = raw.get("id").and_then(Raw::text).map_or(id.into(), Text::decode);
            object.text("call_id", &sent);
        }
        Some(Twin::RequestId) if raw.get("request_id").is_none() => {
            object.raw_or_null("request_id", raw.get("approval_request_id"));
        }
        _ => {}
    }
    object.end();
}

/// Writes one field, with what its resource needs within it.
fn field(how: Option<Field>, item: Raw<'_>, name: &str, value: Raw<'_>, object: &mut ObjectWriter<'_>) {
    match how {
        Some(Field::Content) => {
            let by_model = item.get("role").and_then(Raw::text).is_some_and(|role| role.is("assistant"));
            parts(value, by_model, object.key(name));
        }
        Some(Field::Parts) if value.kind() == Kind::Array => parts(value, false, object.key(name)),
        Some(Field::Object(defaults)) if value.kind() == Kind::Object => with(value, defaults, object.key(name)),
        Some(Field::ScreenshotStatus) if value.text().is_some_and(|status| status.is("in_progress")) => {
            object.text(name, "incomplete");
        }
        _ => {
            object.raw(name, value);
        }
    }
}

/// Content as parts; a string is one part.
fn parts(content: Raw<'_>, by_model: bool, out: &mut Vec<u8>) {
    out.push(b'[');
    if content.text().is_some() {
        let mut part = ObjectWriter::new(out);
        part.text("type", if by_model { "output_text" } else { "input_text" }).raw("text", content);
        if by_model {
            part.json("annotations", b"[]").json("logprobs", b"[]");
        }
        part.end();
    }
    for (index, value) in content.elements().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        part(value, by_model, out);
    }
    out.push(b']');
}

/// One part. Text of the model is `output_text`, everybody else's is `input_text`, whatever it was sent as.
fn part(part: Raw<'_>, by_model: bool, out: &mut Vec<u8>) {
    let kind = part.get("type").and_then(Raw::text).map(Text::decode).unwrap_or_default();
    let kind = match &*kind {
        "input_text" | "output_text" | "text" if by_model => "output_text",
        "input_text" | "output_text" | "text" => "input_text",
        kind => kind,
    };
    let defaults: Defaults = match kind {
        "output_text" => &[("annotations", "[]"), ("logprobs", "[]")],
        "input_image" => &[("detail", r#""auto""#)],
        "input_text" | "input_file" => &[],
        _ => return out.extend_from_slice(part.as_str().as_bytes()),
    };
    let mut object = ObjectWriter::new(out);
    object.text("type", kind);
    for (key, value) in part.fields() {
        let name = key.decode();
        if name != "type" && !(value.is_null() && NEVER_NULL_IN_PARTS.contains(&&*name)) {
            object.raw(&name, value);
        }
    }
    let missing = defaults.iter().filter(|(name, _)| part.get(name).is_none_or(Raw::is_null));
    for (name, default) in missing {
        object.json(name, default.as_bytes());
    }
    object.end();
}

/// An object with what it lacks.
fn with(value: Raw<'_>, defaults: Defaults, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::new(out);
    for (key, value) in value.fields() {
        object.raw(&key.decode(), value);
    }
    let missing = defaults.iter().filter(|(name, _)| value.get(name).is_none());
    for (name, default) in missing {
        object.json(name, default.as_bytes());
    }
    object.end();
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
                r#"{"id":"at_1","type":"additional_tools","tools":[{"type":"mcp"}],"role":"developer"}"#,
            ),
            (
                "at_2",
                r#"{"type":"additional_tools","id":"at_2","tools":[{"type":"mcp","headers":{}}]}"#,
                r#"{"id":"at_2","type":"additional_tools","tools":[{"type":"mcp"}],"role":"developer"}"#,
            ),
            (
                "ws_1",
                r#"{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search"},"godex_output":{"output":"x"}}"#,
                r#"{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search"}}"#,
            ),
            (
                "mcp_1",
                r#"{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"f","arguments":"{}","godex_output":{"output":"x"},"output":"y"}"#,
                r#"{"id":"mcp_1","type":"mcp_call","server_label":"s","name":"f","arguments":"{}","output":"y"}"#,
            ),
            (
                "mcpr_1",
                r#"{"id":"mcpr_1","type":"mcp_approval_request","server_label":"s","name":"f","arguments":"{}","godex_output":{"call_id":"c"}}"#,
                r#"{"id":"mcpr_1","type":"mcp_approval_request","server_label":"s","name":"f","arguments":"{}"}"#,
            ),
            (
                "rs_1",
                r#"{"type":"reasoning","id":"rs_1", "summary":[],"encrypted_content":"g\u0041","content":null,"mine":null}"#,
                r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"g\u0041","mine":null}"#,
            ),
            (
                "msg_3",
                r#"{"id":"msg_3","type":"message","status":"incomplete","role":"assistant","content":[{"type":"refusal","refusal":"No","x":1e400}]}"#,
                r#"{"id":"msg_3","type":"message","status":"incomplete","role":"assistant","content":[{"type":"refusal","refusal":"No","x":1e400}]}"#,
            ),
            (
                "sh_1",
                r#"{"type":"shell_call","call_id":"c","action":{"commands":["ls"],"x":1},"environment":null}"#,
                r#"{"id":"sh_1","type":"shell_call","call_id":"c","action":{"commands":["ls"],"x":1,"timeout_ms":null,"max_output_length":null},"environment":null,"status":"completed"}"#,
            ),
            (
                "item_1",
                r#"{"type":"from_the_future","id":7,"status":null,"content":[{"type":"input_image"}]}"#,
                r#"{"id":"item_1","type":"from_the_future","status":null,"content":[{"type":"input_image"}]}"#,
            ),
        ] {
            let mut out = Vec::new();
            write_listed(&Item { id: id.to_owned(), body: body.into() }, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_damaged_is_not_listed() {
        for body in [&b"\xff\0\xff"[..], b"{\"role\":\"\0\"}", b"null", b""] {
            let item = Item { id: "msg_1".to_owned(), body: bytes::Bytes::from_static(body) };
            assert!(matches!(write_listed(&item, &mut Vec::new()), Err(Error::Corrupt(_))), "{body:?}");
        }
    }
}
