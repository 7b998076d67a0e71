//! The inside of JSON strings: to text, from text, and from one string to another without decoding it.

use std::borrow::Cow;

use memchr::{memchr, memmem};

/// Decodes what stands between the quotes. Lone surrogates become U+FFFD: a string must be a string.
pub fn unescape(escaped: &str) -> Cow<'_, str> {
    if memchr(b'\\', escaped.as_bytes()).is_none() {
        return Cow::Borrowed(escaped);
    }
    let mut out = String::with_capacity(escaped.len());
    unescape_into(&mut out, escaped);
    Cow::Owned(out)
}

/// The same, behind what is there already.
pub fn unescape_into(out: &mut String, escaped: &str) {
    let mut rest = escaped;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let (character, used) = unescape_one(&rest[at..]);
        out.push(character);
        rest = &rest[at + used..];
    }
    out.push_str(rest);
}

/// One escape sequence at the start of `text`: the character, and how many bytes it took.
fn unescape_one(text: &str) -> (char, usize) {
    let simple = match text.as_bytes().get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return unescape_unicode(text),
        Some(&other) if other.is_ascii() => char::from(other),
        _ => return ('\u{fffd}', 1),
    };
    (simple, 2)
}

fn unescape_unicode(text: &str) -> (char, usize) {
    let Some(unit) = unit_at(text, 0) else { return ('\u{fffd}', 2) };
    match unit {
        0xd800..=0xdbff => match unit_at(text, 6) {
            Some(low @ 0xdc00..=0xdfff) => {
                let code = 0x1_0000 + ((u32::from(unit) - 0xd800) << 10) + (u32::from(low) - 0xdc00);
                (char::from_u32(code).unwrap_or('\u{fffd}'), 12)
            }
            _ => ('\u{fffd}', 6),
        },
        _ => (char::from_u32(u32::from(unit)).unwrap_or('\u{fffd}'), 6),
    }
}

/// The `\uXXXX` that starts at `at`, if one does.
fn unit_at(text: &str, at: usize) -> Option<u16> {
    let sequence = text.get(at..at + 6)?;
    let hex = sequence.strip_prefix("\\u")?;
    hex.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u16::from_str_radix(hex, 16).ok())?
}

/// Appends `text`, escaped, without quotes.
pub fn escape_into(out: &mut Vec<u8>, text: &str) {
    let mut from = 0;
    for (at, &byte) in text.as_bytes().iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[from..at]);
        from = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(control >> 4)]);
                out.push(HEX[usize::from(control & 15)]);
            }
        }
    }
    out.extend_from_slice(&text.as_bytes()[from..]);
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends escaped text with lone surrogates replaced, and gives back a trailing high surrogate that the next
/// piece may complete: a pair is sometimes cut between two deltas, and half a pair breaks clients.
pub fn sanitize_into<'a>(out: &mut Vec<u8>, escaped: &'a str) -> &'a str {
    // `\ud8` … `\udf`, in either case; nearly all text has none, and is copied whole.
    let bytes = escaped.as_bytes();
    let suspicious = memmem::find(bytes, b"\\ud").is_some() || memmem::find(bytes, b"\\uD").is_some();
    if !suspicious {
        out.extend_from_slice(bytes);
        return "";
    }
    let mut rest = escaped;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at..];
        let used = match (unit_at(rest, 0), unit_at(rest, 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => copy(out, rest, 12),
            (Some(0xd800..=0xdbff), None) if rest.len() == 6 => return rest,
            (Some(0xd800..=0xdfff), _) => {
                out.extend_from_slice(b"\\ufffd");
                6
            }
            (Some(_), _) => copy(out, rest, 6),
            (None, _) => copy(out, rest, 2),
        };
        rest = rest.get(used..).unwrap_or_default();
    }
    out.extend_from_slice(rest.as_bytes());
    ""
}

fn copy(out: &mut Vec<u8>, from: &str, count: usize) -> usize {
    let count = count.min(from.len());
    out.extend_from_slice(&from.as_bytes()[..count]);
    count
}
