//! The inside of JSON strings: to text, from text, and from one string to another without decoding it.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memmem};

/// Decodes what is between the quotes. Lone surrogates become U+FFFD: a string must be a string.
pub fn unescape(escaped: &str) -> Cow<'_, str> {
    if memchr(b'\\', escaped.as_bytes()).is_none() {
        return Cow::Borrowed(escaped);
    }
    let mut out = String::with_capacity(escaped.len());
    unescape_into(&mut out, escaped);
    Cow::Owned(out)
}

/// The same, after what is there already.
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

/// Where text is appended: bytes that are being written, or a string.
pub trait Append {
    fn append(&mut self, text: &str);
}

impl Append for Vec<u8> {
    fn append(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
}

impl Append for String {
    fn append(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// Appends `text`, escaped, without quotes.
pub fn escape_into(out: &mut impl Append, text: &str) {
    let mut rest = text;
    while let Some(at) = first_special(rest.as_bytes()) {
        out.append(&rest[..at]);
        out.append(match rest.as_bytes()[at] {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            control => CONTROLS[usize::from(control) % CONTROLS.len()],
        });
        rest = &rest[at + 1..];
    }
    out.append(rest);
}

/// Where the first byte is that cannot be in a string as it is. Eight bytes are looked at together: most texts have none.
fn first_special(bytes: &[u8]) -> Option<usize> {
    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let (words, rest) = bytes.as_chunks::<8>();
    let position = |from: usize| bytes[from..].iter().position(special).map(|within| from + within);
    if let Some(at) = words.iter().position(|word| has_special(*word)) {
        return position(at * 8);
    }
    // The last eight bytes once more, or the only ones, filled up.
    let last = match bytes.last_chunk::<8>() {
        _ if rest.is_empty() => return None,
        Some(last) => *last,
        None => {
            let mut filled = [b' '; 8];
            filled[..rest.len()].copy_from_slice(rest);
            filled
        }
    };
    if has_special(last) { position(words.len() * 8) } else { None }
}

fn has_special(word: [u8; 8]) -> bool {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let word = u64::from_le_bytes(word);
    // The high bit of a byte is set in the end if the byte is below 0x20, or zero after the others are blotted out.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let quote = word ^ (ONES * u64::from(b'"'));
    let backslash = word ^ (ONES * u64::from(b'\\'));
    (below(word, 0x20) | below(quote, 1) | below(backslash, 1)) & HIGHS != 0
}

/// How each control character is written.
const CONTROLS: [&str; 32] = [
    "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007", "\\u0008", "\\t", "\\n",
    "\\u000b", "\\u000c", "\\r", "\\u000e", "\\u000f", "\\u0010", "\\u0011", "\\u0012", "\\u0013", "\\u0014",
    "\\u0015", "\\u0016", "\\u0017", "\\u0018", "\\u0019", "\\u001a", "\\u001b", "\\u001c", "\\u001d", "\\u001e",
    "\\u001f",
];

/// From this length on a text is worth a searcher.
const LONG: usize = 256;

/// Appends escaped text with lone surrogates replaced, and gives back a trailing high surrogate that the next
/// piece may complete: a pair is sometimes cut between two deltas, and half a pair breaks clients.
pub fn sanitize_into<'a>(out: &mut impl Append, escaped: &'a str) -> &'a str {
    if !may_have_surrogates(escaped.as_bytes()) {
        out.append(escaped);
        return "";
    }
    let mut rest = escaped;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        out.append(&rest[..at]);
        rest = &rest[at..];
        let used = match (unit_at(rest, 0), unit_at(rest, 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => copy(out, rest, 12),
            (Some(0xd800..=0xdbff), None) if rest.len() == 6 => return rest,
            (Some(0xd800..=0xdfff), _) => {
                out.append("\\ufffd");
                6
            }
            (Some(_), _) => copy(out, rest, 6),
            (None, _) => copy(out, rest, 1 + rest[1..].chars().next().map_or(0, char::len_utf8)),
        };
        rest = rest.get(used..).unwrap_or_default();
    }
    out.append(rest);
    ""
}

/// `\ud8` … `\udf`, in either case; nearly all text has none, and is copied whole.
fn may_have_surrogates(bytes: &[u8]) -> bool {
    let starts = |at: usize| matches!(bytes.get(at + 1..at + 3), Some([b'u', b'd' | b'D']));
    // A searcher takes a moment to make, and code has a backslash in every line.
    if bytes.len() < LONG {
        memchr_iter(b'\\', bytes).any(starts)
    } else {
        memmem::find(bytes, b"\\ud").is_some() || memmem::find(bytes, b"\\uD").is_some()
    }
}

/// Replaces lone surrogates in JSON that was written from what a client has sent: many parsers take none. Everything else
/// stays as it is, and where it is.
pub fn pair_surrogates(json: &mut [u8]) {
    for at in lone_surrogates(json) {
        if let Some(digits) = json.get_mut(at + 2..at + 6) {
            digits.copy_from_slice(b"fffd");
        }
    }
}

/// Where they begin.
fn lone_surrogates(json: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let Some(text) = may_have_surrogates(json).then(|| str::from_utf8(json).ok()).flatten() else { return found };
    let mut next = 0;
    while let Some(within) = text.get(next..).and_then(|rest| memchr(b'\\', rest.as_bytes())) {
        let at = next + within;
        next = match (unit_at(text, at), unit_at(text, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at + 12,
            (Some(0xd800..=0xdfff), _) => {
                found.push(at);
                at + 6
            }
            (Some(_), _) => at + 6,
            // In JSON what is escaped is one byte.
            (None, _) => at + 2,
        };
    }
    found
}

fn copy(out: &mut impl Append, from: &str, count: usize) -> usize {
    out.append(from.get(..count).unwrap_or(from));
    count
}
