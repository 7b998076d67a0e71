//! Small writers of JSON that [`ObjectWriter`](wire::json::ObjectWriter) has no word for.

use wire::json::sanitize_into;

/// JSON values with commas between, as an array.
pub(crate) fn bracketed(out: &mut Vec<u8>, values: &[u8]) {
    out.push(b'[');
    out.extend_from_slice(values);
    out.push(b']');
}

/// Appends JSON values to others, comma between.
pub(crate) fn join(list: &mut Vec<u8>, values: &[u8]) {
    if !list.is_empty() && !values.is_empty() {
        list.push(b',');
    }
    list.extend_from_slice(values);
}

/// Valid JSON without the white space between its tokens: a line end would break an event in two.
pub(crate) fn compact(json: &str, out: &mut Vec<u8>) {
    let mut rest = json;
    while let Some(at) = rest.find(['"', ' ', '\n', '\r', '\t']) {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        if !rest.starts_with('"') {
            rest = rest.trim_start();
            continue;
        }
        let end = string_end(rest);
        out.push(b'"');
        if !sanitize_into(out, rest.get(1..end).unwrap_or_default()).is_empty() {
            out.extend_from_slice(b"\\ufffd");
        }
        out.push(b'"');
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    out.extend_from_slice(rest.as_bytes());
}

/// The closing quote of the string at the start of `text`.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    end.map_or(text.len(), |at| at + 1)
}
