//! Bytes as text: UTF-8, UTF-16 and the character set that Western pages had before. Of what is written in another one,
//! what is ASCII comes through.

use std::borrow::Cow;

/// How far into a page its own word on its character set is looked for.
const LOOKED_AT: usize = 2048;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    Utf8,
    Utf16 { big_endian: bool },
    Windows1252,
}

/// The text of a page. `named`: the character set in its `Content-Type`.
pub fn decoded<'b>(bytes: &'b [u8], named: Option<&str>) -> Cow<'b, str> {
    let (marked, rest) = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => (Some(Charset::Utf8), rest),
        [0xff, 0xfe, rest @ ..] => (Some(Charset::Utf16 { big_endian: false }), rest),
        [0xfe, 0xff, rest @ ..] => (Some(Charset::Utf16 { big_endian: true }), rest),
        rest => (None, rest),
    };
    let charset = marked.or_else(|| named.map(by_name)).or_else(|| in_page(bytes).map(by_name));
    match charset {
        // Those that say nothing are old, or UTF-8.
        None => match str::from_utf8(rest) {
            Ok(text) => text.into(),
            // What was cut may end in mid-character.
            Err(error) if error.error_len().is_none() && !rest[..error.valid_up_to()].is_ascii() => {
                String::from_utf8_lossy(rest)
            }
            Err(_) => rest.iter().map(|byte| windows(*byte)).collect::<String>().into(),
        },
        Some(Charset::Utf8) => String::from_utf8_lossy(rest),
        Some(Charset::Windows1252) => rest.iter().map(|byte| windows(*byte)).collect::<String>().into(),
        Some(Charset::Utf16 { big_endian }) => {
            let unit = if big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
            let units = rest.as_chunks::<2>().0.iter().map(|pair| unit(*pair));
            let text = char::decode_utf16(units).map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER));
            text.collect::<String>().into()
        }
    }
}

fn by_name(name: &str) -> Charset {
    match name.trim().trim_matches(['"', '\'']).to_ascii_lowercase().as_str() {
        "iso-8859-1" | "iso8859-1" | "iso_8859-1" | "latin1" | "l1" | "windows-1252" | "cp1252" | "x-cp1252"
        | "ascii" | "us-ascii" | "iso-8859-15" => Charset::Windows1252,
        "utf-16" | "utf-16le" => Charset::Utf16 { big_endian: false },
        "utf-16be" => Charset::Utf16 { big_endian: true },
        _ => Charset::Utf8,
    }
}

/// `<meta charset=x>`, `<meta content="text/html; charset=x">`, `<?xml encoding="x"?>`.
fn in_page(bytes: &[u8]) -> Option<&str> {
    let head = &bytes[..bytes.len().min(LOOKED_AT)];
    let ascii = head.iter().position(|byte| *byte == 0).map_or(head, |end| &head[..end]);
    ["charset=", "encoding="].iter().find_map(|word| {
        let at = ascii.windows(word.len()).position(|found| found.eq_ignore_ascii_case(word.as_bytes()))?;
        let value = ascii.get(at + word.len()..)?.trim_ascii_start();
        let value = value.strip_prefix(b"\"").or_else(|| value.strip_prefix(b"'")).unwrap_or(value);
        let end = value.iter().position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')))?;
        // Whatever is written in ASCII is not UTF-16.
        str::from_utf8(&value[..end]).ok().filter(|name| !name.is_empty() && !name.to_lowercase().starts_with("utf-16"))
    })
}

/// A byte in windows-1252, which is also what pages mean that say Latin-1.
pub(super) fn windows(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        byte => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_its_page_says() {
        let meta = b"<meta charset=\"iso-8859-1\">caf\xe9".as_slice();
        let old = b"<META HTTP-EQUIV=x CONTENT='text/html; charset=windows-1252'>\x93x\x94";
        let lying = "<meta charset=utf-16>é".as_bytes();
        for (bytes, named, expected) in [
            ("é€".as_bytes(), None, "é€"),
            ("é€".as_bytes(), Some("UTF-8"), "é€"),
            (b"caf\xe9", None, "café"),
            (b"caf\xe9", Some("latin1"), "café"),
            (b"caf\xe9!", Some("utf-8"), "caf\u{fffd}!"),
            (b"\x80", Some("\"windows-1252\""), "€"),
            (b"caf\xc3\xa9 \xc3", None, "café \u{fffd}"),
            (meta, None, "<meta charset=\"iso-8859-1\">café"),
            (old, None, "<META HTTP-EQUIV=x CONTENT='text/html; charset=windows-1252'>“x”"),
            (lying, None, "<meta charset=utf-16>é"),
            (b"\xef\xbb\xbf\xc3\xa9", Some("latin1"), "é"),
            (b"\xff\xfeA\0\xe9\0", None, "Aé"),
            (b"\xfe\xff\0A\0\xe9\0", None, "Aé"),
            (b"\xd8\0\0A", Some("utf-16be"), "\u{fffd}A"),
            (b"\x83A abc", Some("shift_jis"), "\u{fffd}A abc"),
            (b"", None, ""),
        ] {
            assert_eq!(decoded(bytes, named), expected, "{bytes:?} {named:?}");
        }
    }
}
