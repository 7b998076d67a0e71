//! What makes two spellings the same item.
//!
//! Clients that resend a session send our own items back, and most spell them anew: members in another order, empty
//! ones left out, other escapes. Told apart by their bytes, every answer would be stored twice. An item that has an id is
//! therefore told by its meaning; the bytes that are kept are those that came first.

use std::borrow::Cow;

use wire::json::{Kind, Raw, Text, write_text};

/// What the hash of an item is made of. Items without an id of their own are a client's, which spells them alike.
pub(crate) fn key(body: &[u8]) -> Cow<'_, [u8]> {
    let named = memchr::memmem::find(body, b"\"id\"").is_some();
    let raw = if named { str::from_utf8(body).ok().and_then(|text| Raw::parse(text).ok()) } else { None };
    match raw.filter(|raw| raw.get("id").is_some_and(|id| id.kind() == Kind::String)) {
        Some(raw) => {
            let mut out = Vec::with_capacity(body.len());
            object(raw, &["status"], &mut out);
            Cow::Owned(out)
        }
        None => Cow::Borrowed(body),
    }
}

fn value(raw: Raw<'_>, out: &mut Vec<u8>) {
    match raw.kind() {
        Kind::Object => object(raw, &[], out),
        Kind::Array => {
            out.push(b'[');
            for element in raw.elements() {
                value(element, out);
                out.push(b',');
            }
            out.push(b']');
        }
        Kind::String => write_text(out, &raw.text().map(Text::decode).unwrap_or_default()),
        Kind::Null | Kind::Bool | Kind::Number => out.extend_from_slice(raw.as_str().as_bytes()),
    }
}

/// Members by name, without those that say nothing.
fn object(raw: Raw<'_>, except: &[&str], out: &mut Vec<u8>) {
    let says_something = |raw: Raw<'_>| match raw.kind() {
        Kind::Null => false,
        Kind::Array => raw.elements().next().is_some(),
        Kind::Object => raw.fields().next().is_some(),
        Kind::Bool | Kind::Number | Kind::String => true,
    };
    let members = raw.fields().filter(|(_, value)| says_something(*value)).map(|(key, value)| (key.decode(), value));
    let mut members: Vec<_> = members.filter(|(key, _)| !except.contains(&key.as_ref())).collect();
    // Stable, so of a repeated name the last one stays the last.
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    out.push(b'{');
    for (key, member) in members {
        write_text(out, &key);
        value(member, out);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_item_are_the_same() {
        let ours = r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Grüße"}]}"#;
        for spelling in [
            ours,
            r#"{"type":"message", "role":"assistant", "id":"msg_1", "content":[{"text":"Gr\u00fc\u00dfe","type":"output_text"}]}"#,
            r#"{"content":[{"text":"Grüße","type":"output_text","annotations":null}],"id":"msg_1","phase":null,"role":"assistant","type":"message"}"#,
        ] {
            assert_eq!(key(spelling.as_bytes()), key(ours.as_bytes()), "{spelling}");
        }
        for other in [
            r#"{"id":"msg_2","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Grüße"}]}"#,
            r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Grüsse"}]}"#,
            r#"{"id":"msg_1","type":"message","role":"user","content":[{"type":"output_text","text":"Grüße"}]}"#,
            r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Grüße"},{"type":"output_text","text":""}]}"#,
        ] {
            assert_ne!(key(other.as_bytes()), key(ours.as_bytes()), "{other}");
        }
    }

    #[test]
    fn what_has_no_id_is_told_by_its_bytes() {
        for body in [r#"{"role":"user","content":"an \"id\""}"#, r#"{"id":5}"#, r#"{"x":{"id":"y"}}"#, "{\"id\":", ""] {
            assert_eq!(key(body.as_bytes()), body.as_bytes());
        }
    }
}
