//! The response object, taken apart for the store and put together again: what clients repeat with every turn is kept
//! once, output items are kept as items, and `GET` returns the very bytes of the terminal event.

use bytes::Bytes;
use store::{Item, StoredResponse};
use wire::json::{Kind, ObjectWriter, Raw, Text};

use super::hidden;

/// What clients send again with every turn, and what takes its place in the head.
const SETTINGS: [(&str, &str); 2] = [("instructions", "null"), ("tools", "[]")];

/// A response object as the store keeps it.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) head: Bytes,
    pub(crate) settings: Option<Bytes>,
    pub(crate) output: Vec<Item>,
}

/// What is to be kept beside an item of the output, and never shown: the item's id, and the JSON.
pub(crate) type Beside = (String, String);

/// Takes an object of ours apart. The head is the object with blanks in the place of what is kept elsewhere, so it is
/// copied in a few pieces, and not member by member.
pub(crate) fn split(object: &Bytes, kept: &[Beside]) -> Parts {
    let mut parts = Parts { head: Bytes::new(), settings: None, output: Vec::new() };
    let Ok(text) = str::from_utf8(object) else { return parts };
    let (mut head, mut settings) = (Vec::with_capacity(text.len()), Vec::new());
    let mut settings_writer = ObjectWriter::new(&mut settings);
    let (mut particular, mut copied) = (false, 0);
    for (key, value) in Raw::ours(text).fields() {
        // We write no escapes in names.
        let name = key.escaped();
        let blank = if name == "output" {
            parts.output = value.elements().map(|item| output_item(item, object, kept)).collect();
            "[]"
        } else if let Some((_, blank)) = SETTINGS.iter().find(|(setting, _)| *setting == name) {
            particular |= value.as_str() != *blank;
            settings_writer.raw(name, value);
            blank
        } else {
            continue;
        };
        let start = value.as_str().as_ptr().addr() - text.as_ptr().addr();
        head.extend_from_slice(text.get(copied..start).unwrap_or_default().as_bytes());
        head.extend_from_slice(blank.as_bytes());
        copied = start + value.as_str().len();
    }
    head.extend_from_slice(text.get(copied..).unwrap_or_default().as_bytes());
    settings_writer.end();
    parts.head = head.into();
    parts.settings = particular.then(|| settings.into());
    parts
}

fn output_item(item: Raw<'_>, object: &Bytes, kept: &[Beside]) -> Item {
    let id = item.get("id").and_then(Raw::text).map(Text::decode).unwrap_or_default().into_owned();
    let body = match kept.iter().find(|(of, _)| *of == id) {
        Some((_, kept)) => hidden::beside(item, kept),
        None => object.slice_ref(item.as_str().as_bytes()),
    };
    Item { id, body }
}

/// About how long the object is.
pub(crate) fn joined_length(stored: &StoredResponse) -> usize {
    let length = stored.head.len() + stored.settings.as_ref().map_or(0, Bytes::len);
    length + stored.output.iter().map(|item| item.body.len() + 1).sum::<usize>()
}

/// Writes the object again; None if what was stored is no object.
pub(crate) fn join(stored: &StoredResponse, out: &mut Vec<u8>) -> Option<()> {
    let head = stored_object(&stored.head)?;
    let settings = match &stored.settings {
        Some(settings) => Some(stored_object(settings)?),
        None => None,
    };
    let mut object = ObjectWriter::new(out);
    for (key, value) in head.fields() {
        let name = key.decode();
        let value = settings.and_then(|settings| settings.get(&name)).unwrap_or(value);
        match &*name {
            "output" => array(&stored.output, object.key(&name))?,
            // A turn that runs is advanced without its object being written anew.
            "status" if !stored.status.is_final() => drop(object.text(&name, &stored.status.to_string())),
            // Earlier versions kept the keys in them.
            "tools" => bridge::shown_tools(value, object.key(&name)),
            "tool_choice" => bridge::shown_tool(value, object.key(&name)),
            _ => drop(object.raw(&name, value)),
        }
    }
    object.end();
    Some(())
}

/// What was stored as an object; None if it is none any more, for what is on a disk may be anything.
pub(super) fn stored_object(body: &[u8]) -> Option<Raw<'_>> {
    let raw = Raw::parse(str::from_utf8(body).ok()?).ok()?;
    (raw.kind() == Kind::Object).then_some(raw)
}

fn array(items: &[Item], out: &mut Vec<u8>) -> Option<()> {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let raw = stored_object(&item.body)?;
        // Only what may have something to hide is worth a look.
        let hides = |raw: &Raw<'_>| raw.as_str().contains("\"tools\"") || hidden::may_be_in(raw.as_str());
        match Some(raw).filter(hides).and_then(hidden::shown) {
            Some(shown) => out.extend_from_slice(&shown),
            None => out.extend_from_slice(&item.body),
        }
    }
    out.push(b']');
    Some(())
}

/// The instructions among a turn's settings, as a JSON string.
pub(super) fn instructions(settings: &[u8]) -> Option<&str> {
    let settings = Raw::parse(str::from_utf8(settings).ok()?).ok()?;
    let instructions = settings.get("instructions")?.text()?;
    (!instructions.is_empty()).then_some(instructions.raw().as_str())
}

#[cfg(test)]
mod tests {
    use store::Status;

    use super::*;

    #[test]
    fn an_object_comes_back_byte_for_byte() {
        for object in [
            r#"{"id":"resp_1","status":"completed","output":[],"instructions":null,"tools":[],"store":true}"#,
            r#"{"id":"r","output":[{"id":"msg_1","type":"message"},{"id":"fc_1","arguments":"{\"a\":1}"}],"usage":null,"instructions":"Be brief\n.","previous_response_id":null,"tools":[{"type":"function","name":"f"}],"metadata":{"instructions":"x"}}"#,
        ] {
            let Parts { head, settings, output } = split(&Bytes::from_static(object.as_bytes()), &[]);
            assert_eq!(joined(&stored(head, settings, output)), object);
        }
    }

    #[test]
    fn what_is_kept_beside_an_item_is_stored_and_does_not_come_back() {
        let object = r#"{"id":"r","output":[{"id":"mcp_1","type":"mcp_call"},{"id":"msg_1","content":[{"text":"godex_output"}]},{"id":"ws_1","type":"web_search_call"}],"tools":[]}"#;
        let kept = [("ws_1", r#"{"output":"found"}"#), ("mcp_1", r#"{"call_id":"c"}"#), ("gone", "{}")];
        let kept = kept.map(|(id, kept)| (id.to_owned(), kept.to_owned()));
        let Parts { head, settings, output } = split(&Bytes::from_static(object.as_bytes()), &kept);
        let bodies: Vec<&[u8]> = output.iter().map(|item| &*item.body).collect();
        assert_eq!(bodies[0], br#"{"id":"mcp_1","type":"mcp_call","godex_output":{"call_id":"c"}}"#);
        assert_eq!(bodies[1], br#"{"id":"msg_1","content":[{"text":"godex_output"}]}"#);
        assert_eq!(bodies[2], br#"{"id":"ws_1","type":"web_search_call","godex_output":{"output":"found"}}"#);
        assert_eq!(joined(&stored(head, settings, output)), object);
    }

    #[test]
    fn what_is_damaged_is_not_given_out() {
        let item = |body: &'static [u8]| vec![Item { id: "msg_1".to_owned(), body: Bytes::from_static(body) }];
        let head = Bytes::from_static(br#"{"id":"r","output":[],"instructions":null}"#);
        let settings = |body: &'static [u8]| Some(Bytes::from_static(body));
        for damaged in [
            stored(head.clone(), None, item(b"\xff\0\xff")),
            stored(head.clone(), None, item(b"{\"a\":\"\0\0\"}")),
            stored(head.clone(), None, item(b"7")),
            stored(head.clone(), settings(b"{\"instructions\":"), Vec::new()),
            stored(head.clone(), settings(b"[]"), Vec::new()),
            stored(Bytes::from_static(b"7"), None, Vec::new()),
            stored(Bytes::from_static(b"\xff\0\xff"), None, Vec::new()),
        ] {
            assert_eq!(join(&damaged, &mut Vec::new()), None, "{damaged:?}");
        }
    }

    /// Databases of earlier versions have them.
    #[test]
    fn what_was_stored_with_keys_comes_back_without() {
        let object = r#"{"id":"r","output":[{"type":"tool_search_output","tools":[{"type":"mcp","headers":{"a":"KEY"}}]}],"tool_choice":{"type":"allowed_tools","tools":[{"type":"mcp","authorization":"KEY"}]},"tools":[{"type":"function","name":"f"},{"type":"mcp","server_label":"s","authorization":"KEY"}]}"#;
        let Parts { head, settings, output } = split(&Bytes::from_static(object.as_bytes()), &[]);
        let stored = joined(&stored(head, settings, output));
        assert_eq!(
            stored,
            r#"{"id":"r","output":[{"type":"tool_search_output","tools":[{"type":"mcp"}]}],"tool_choice":{"type":"allowed_tools","tools":[{"type":"mcp"}]},"tools":[{"type":"function","name":"f"},{"type":"mcp","server_label":"s"}]}"#
        );
    }

    #[test]
    fn a_turn_that_runs_shows_how_far_it_is() {
        let head = Bytes::from_static(br#"{"id":"r","status":"queued","output":[]}"#);
        for (status, shown) in
            [(Status::Queued, "queued"), (Status::InProgress, "in_progress"), (Status::Completed, "queued")]
        {
            let stored = StoredResponse { status, ..stored(head.clone(), None, Vec::new()) };
            assert_eq!(joined(&stored), format!(r#"{{"id":"r","status":"{shown}","output":[]}}"#));
        }
    }

    fn joined(stored: &StoredResponse) -> String {
        let mut out = Vec::new();
        join(stored, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn stored(head: Bytes, settings: Option<Bytes>, output: Vec<Item>) -> StoredResponse {
        StoredResponse {
            id: String::new(),
            previous_response_id: None,
            conversation_id: None,
            status: Status::Completed,
            created_at: 0,
            expires_at: None,
            head,
            settings,
            output,
        }
    }

    #[test]
    fn only_particular_settings_are_kept_apart() {
        let plain = split(&Bytes::from_static(br#"{"output":[],"instructions":null,"tools":[]}"#), &[]);
        assert_eq!(plain.settings, None);
        let settings = split(&Bytes::from_static(br#"{"instructions":"Hi","tools":[]}"#), &[]).settings.unwrap();
        assert_eq!(instructions(&settings), Some("\"Hi\""));
    }
}
