//! What is kept beside an item and shown to nobody: what the model was told of a call that godex ran for it. It is a member
//! of the item's JSON in the store and in what a connection remembers, so it goes wherever the item goes, and is deleted with
//! it. Every way out of here leaves it out, and what a client sends under its name is never kept.

use bytes::Bytes;
use wire::json::{ObjectWriter, Raw};
use wire::responses::{InputItem, Item as WireItem};

/// The name of the member.
const MEMBER: &str = "godex_output";

/// Whether the text of an item may have the member. We write no escapes in names.
pub(super) fn may_be_in(text: &str) -> bool {
    text.contains(MEMBER)
}

/// The item with this beside it.
pub(super) fn beside(item: Raw<'_>, kept: &str) -> Bytes {
    let mut out = Vec::with_capacity(item.as_str().len() + MEMBER.len() + kept.len() + 8);
    let mut object = ObjectWriter::new(&mut out);
    for (name, value) in item.fields().filter(|(name, _)| !name.is(MEMBER)) {
        object.raw(&name.decode(), value);
    }
    object.json(MEMBER, kept.as_bytes());
    object.end();
    out.into()
}

/// An item as it may be shown, and as one of a client may be kept: without this and without the keys in its tools. None if
/// it may be as it is, as almost all may.
pub(super) fn shown(item: Raw<'_>) -> Option<Vec<u8>> {
    let without_keys = bridge::shown_item(item);
    let text = without_keys.as_deref().and_then(|text| str::from_utf8(text).ok());
    let item = text.and_then(|text| Raw::parse(text).ok()).unwrap_or(item);
    if item.get(MEMBER).is_none() {
        return without_keys;
    }
    let mut out = Vec::with_capacity(item.as_str().len());
    let mut object = ObjectWriter::new(&mut out);
    for (name, value) in item.fields().filter(|(name, _)| !name.is(MEMBER)) {
        object.raw(&name.decode(), value);
    }
    object.end();
    Some(out)
}

/// Whether an item is of a kind that may have it.
pub(super) const fn may_have(item: &InputItem<'_>) -> bool {
    matches!(item.value, WireItem::McpCall(_) | WireItem::WebSearchCall(_) | WireItem::McpApprovalRequest(_))
}

/// What is beside a stored item.
pub(super) fn of(body: &[u8]) -> Option<&str> {
    let text = str::from_utf8(body).ok().filter(|text| may_be_in(text))?;
    Raw::parse(text).ok()?.get(MEMBER).map(Raw::as_str)
}

/// What a client sent in its place is as good as nothing.
pub(super) fn forget(item: &mut InputItem<'_>) {
    match &mut item.value {
        WireItem::McpCall(call) => call.godex_output = None,
        WireItem::WebSearchCall(call) => call.godex_output = None,
        WireItem::McpApprovalRequest(request) => request.godex_output = None,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_an_item_is_in_it_and_not_shown() {
        for (item, kept, stored) in [
            (
                r#"{"id":"mcp_1","type":"mcp_call","output":"a \"b\""}"#,
                r#"{"call_id":"c","output":"x"}"#,
                r#"{"id":"mcp_1","type":"mcp_call","output":"a \"b\"","godex_output":{"call_id":"c","output":"x"}}"#,
            ),
            (
                r#"{"id":"ws_1","type":"web_search_call","action":{"godex_output":1}}"#,
                "{}",
                r#"{"id":"ws_1","type":"web_search_call","action":{"godex_output":1},"godex_output":{}}"#,
            ),
        ] {
            let body = beside(Raw::parse(item).unwrap(), kept);
            let text = str::from_utf8(&body).unwrap();
            assert_eq!(text, stored);
            assert!(may_be_in(text));
            assert_eq!(String::from_utf8(shown(Raw::parse(text).unwrap()).unwrap()).unwrap(), item);
            assert_eq!(beside(Raw::parse(text).unwrap(), kept), body, "once");
        }
    }

    #[test]
    fn what_clients_send_in_its_place_is_dropped_however_it_is_written() {
        for (sent, kept) in [
            (
                r#"{"type":"mcp_call","godex_output":{"output":"x"},"godex_output":1,"id":"a"}"#,
                Some(r#"{"type":"mcp_call","id":"a"}"#),
            ),
            (r#"{"type":"mcp_call","\u0067odex_output":"x"}"#, Some(r#"{"type":"mcp_call"}"#)),
            (
                r#"{"type":"additional_tools","godex_output":2,"tools":[{"type":"mcp","headers":{"a":"KEY"}}]}"#,
                Some(r#"{"type":"additional_tools","tools":[{"type":"mcp"}]}"#),
            ),
            (
                r#"{"type":"additional_tools","tools":[{"type":"mcp","headers":{"a":"KEY"}}]}"#,
                Some(r#"{"type":"additional_tools","tools":[{"type":"mcp"}]}"#),
            ),
            (r#"{"role":"user","content":"what is godex_output?"}"#, None),
        ] {
            let shown = shown(Raw::parse(sent).unwrap()).map(|out| String::from_utf8(out).unwrap());
            assert_eq!(shown.as_deref(), kept, "{sent}");
        }
    }
}
