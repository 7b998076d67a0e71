//! What a tenant has, for taking it elsewhere: a line of JSON for each response and each conversation, as their clients
//! are shown them. Nothing that is hidden from clients leaves here either.

use bytes::Bytes;
use store::{Error, Exported, Item};
use wire::json::{ObjectWriter, Raw};

use super::listed::write_listed;
use super::object::join;

/// One thing, as a line without its end.
pub(crate) fn exported(found: &Exported) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let mut line = ObjectWriter::new(&mut out);
    match found {
        Exported::Response { holding, response, input } => {
            line.text("object", "response");
            join(response, line.key("response")).ok_or_else(|| damaged(&holding.id))?;
            items(input, line.key("input"))?;
        }
        Exported::Conversation { holding, metadata, items: held } => {
            line.text("object", "conversation");
            let mut conversation = ObjectWriter::new(line.key("conversation"));
            conversation.text("id", &holding.id).text("object", "conversation");
            conversation.int("created_at", u64::try_from(holding.created_at / 1000).unwrap_or_default());
            conversation.raw("metadata", parsed(metadata).ok_or_else(|| damaged(&holding.id))?);
            conversation.end();
            items(held, line.key("items"))?;
        }
    }
    line.end();
    Ok(out)
}

fn items(items: &[Item], out: &mut Vec<u8>) -> Result<(), Error> {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_listed(item, out)?;
    }
    out.push(b']');
    Ok(())
}

fn parsed(bytes: &Bytes) -> Option<Raw<'_>> {
    Raw::parse(str::from_utf8(bytes).ok()?).ok()
}

fn damaged(id: &str) -> Error {
    Error::Corrupt(id.into())
}

#[cfg(test)]
mod tests {
    use store::{Holding, Status, StoredResponse};

    use super::*;

    #[test]
    fn a_line_is_what_clients_are_shown() {
        let hidden =
            r#"{"id":"ws_1","type":"web_search_call","status":"completed","godex_output":{"output":"CANARY"}}"#;
        let item = |id: &str, body: &str| Item { id: id.to_owned(), body: Bytes::copy_from_slice(body.as_bytes()) };
        let holding = |id: &str| Holding {
            id: id.to_owned(),
            created_at: 7000,
            expires_at: None,
            status: None,
            previous_response: None,
            conversation: None,
        };
        let response = StoredResponse {
            id: "resp_1".to_owned(),
            previous_response_id: None,
            conversation_id: None,
            status: Status::Completed,
            created_at: 7000,
            expires_at: None,
            head: Bytes::from_static(
                br#"{"id":"resp_1","output":[],"tools":[{"type":"mcp","authorization":"CANARY"}]}"#,
            ),
            settings: None,
            output: vec![item("ws_1", hidden)],
        };
        let input = vec![item("msg_1", r#"{"role":"user","content":"Hi"}"#)];
        for (found, expected) in [
            (
                Exported::Response { holding: holding("resp_1"), response, input },
                r#"{"object":"response","response":{"id":"resp_1","output":[{"id":"ws_1","type":"web_search_call","status":"completed"}],"tools":[{"type":"mcp"}]},"input":[{"id":"msg_1","type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}],"status":"completed"}]}"#,
            ),
            (
                Exported::Conversation {
                    holding: holding("conv_1"),
                    metadata: Bytes::from_static(b"{\"a\":\"b\"}"),
                    items: vec![item("ws_1", hidden)],
                },
                r#"{"object":"conversation","conversation":{"id":"conv_1","object":"conversation","created_at":7,"metadata":{"a":"b"}},"items":[{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"","queries":[]}}]}"#,
            ),
        ] {
            assert_eq!(String::from_utf8(exported(&found).unwrap()).unwrap(), expected);
        }
    }
}
