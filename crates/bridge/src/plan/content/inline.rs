//! A file that is in the request itself: which kind it is, by its bytes rather than its name, and what they are.

use std::borrow::Cow;

use memchr::memmem;

use crate::plan::PdfUnread;

/// Names by which text is recognised when no media type says so.
const TEXT_NAMES: &[&str] = &[
    ".txt", ".md", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".csv", ".tsv", ".xml", ".html", ".css", ".js", ".ts",
    ".py", ".rs", ".go", ".java", ".c", ".h", ".cpp", ".sh", ".sql", ".log", ".ini", ".diff", ".patch",
];

const TEXT_TYPES: &[&str] = &["application/json", "application/xml", "application/yaml", "application/javascript"];

const VIDEO_NAMES: &[&str] = &[".mp4", ".avi", ".mov", ".mkv", ".webm"];

/// How images begin that models see.
const IMAGES: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

const PDF: &str = "application/pdf";
const PDF_MAGIC: &[u8] = b"%PDF-";

/// Digits of base64 that are enough to know a kind by.
const HEAD: usize = 64;
/// Those among which a PDF says that it is one, whatever may be before that: 1,024 bytes.
const PDF_HEAD: usize = 1366;
/// Those at its end that say where its parts are: 8 KiB.
const PDF_TAIL: usize = 10_924;

/// A file with what its part says of it.
#[derive(Debug, Clone, Copy)]
pub struct InlineFile<'t> {
    name: &'t str,
    media_type: &'t str,
    data: &'t str,
    encoding: Encoding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Base64,
    /// `%20` and the like, in a URL that is not base64.
    Percent,
}

/// What the bytes of a text are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileText {
    Utf8(String),
    /// Of another encoding; and its name.
    Converted(String, &'static str),
}

impl<'t> InlineFile<'t> {
    /// `data` is a data URL, or base64 alone.
    pub fn new(name: &'t str, data: &'t str) -> Self {
        let bare = Self { name, media_type: "", data, encoding: Encoding::Base64 };
        let url = after(data.trim_ascii_start(), "data:");
        let Some((head, data)) = url.and_then(|url| url.split_once(',')) else { return bare };
        let (head, encoding) = match head.rsplit_once(';') {
            Some((head, name)) if name.trim_ascii().eq_ignore_ascii_case("base64") => (head, Encoding::Base64),
            _ => (head, Encoding::Percent),
        };
        Self { name, media_type: head.split(';').next().unwrap_or_default(), data, encoding }
    }

    /// What it has, as the request encodes it.
    pub const fn data(&self) -> &'t str {
        self.data
    }

    /// All of it; None: it is not encoded as it says.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self.encoding {
            Encoding::Base64 => base64(self.data),
            Encoding::Percent => percent(self.data),
        }
    }

    /// A PDF's data, as they are in the request. Its bytes say so, or somebody does whose word they do not belie.
    pub fn pdf(&self) -> Option<&'t str> {
        let is_pdf = || self.head(HEAD).trim_ascii_start().starts_with(PDF_MAGIC);
        let may_be = || self.says_pdf() || !self.is_plainly_text();
        (is_pdf() || self.is_called_pdf() && may_be()).then_some(self.data)
    }

    /// Whether its bytes say that it is a PDF, where all who read them look for that.
    fn says_pdf(&self) -> bool {
        self.head(PDF_HEAD).windows(PDF_MAGIC.len()).any(|bytes| bytes == PDF_MAGIC)
    }

    /// The media type of a PDF that its bytes say it is, for those who read it themselves.
    pub(crate) fn pdf_type(&self) -> Option<&'static str> {
        (self.encoding == Encoding::Base64 && self.pdf().is_some() && self.says_pdf()).then_some(PDF)
    }

    /// Why nobody else could read a PDF either, as far as its end says that.
    pub(super) fn pdf_trouble(&self) -> Option<PdfUnread> {
        let end = self.tail(PDF_TAIL)?;
        let has = |words: &[u8]| memmem::find(&end, words).is_some();
        if has(b"/Encrypt") {
            return Some(PdfUnread::Encrypted);
        }
        (!has(b"%%EOF") && !has(b"startxref")).then_some(PdfUnread::Damaged)
    }

    /// The media type of an image, where it is of a kind that models see.
    pub(crate) fn image_type(&self) -> Option<&'static str> {
        let head = self.head(HEAD);
        let is_webp = head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP");
        let known = IMAGES.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, media_type)| *media_type);
        known.or(is_webp.then_some("image/webp"))
    }

    /// Its data URL with this type; None if it has that, in the one form that everybody reads.
    pub(super) fn data_url(&self, media_type: &str) -> Option<String> {
        let data = standard(self.data).unwrap_or(Cow::Borrowed(self.data));
        let is_so = self.media_type == media_type && matches!(data, Cow::Borrowed(_));
        (!is_so).then(|| format!("data:{media_type};base64,{data}"))
    }

    /// Whether somebody has said that it is a PDF.
    pub(super) fn is_called_pdf(&self) -> bool {
        self.media_type == PDF || (self.is_unsaid() && ends_with_any(self.name, &[".pdf"]))
    }

    fn is_plainly_text(&self) -> bool {
        self.utf8().is_some_and(|text| !text.trim().is_empty() && is_written(&text))
    }

    /// An image's data URL, where it is of a kind that models see.
    pub fn image_url(&self) -> Option<String> {
        let media_type = self.image_type()?;
        Some(format!("data:{media_type};base64,{}", standard(self.data)?))
    }

    pub(super) fn is_video(&self, url: &str) -> bool {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        self.media_type.starts_with("video/") || [self.name, path].iter().any(|name| ends_with_any(name, VIDEO_NAMES))
    }

    /// Whether somebody has said that it is text.
    pub(super) fn is_called_text(&self) -> bool {
        self.media_type.starts_with("text/")
            || TEXT_TYPES.contains(&self.media_type)
            || (self.is_unsaid() && ends_with_any(self.name, TEXT_NAMES))
    }

    /// Its text, if it is UTF-8. Zeros are no text: UTF-16 of English is UTF-8 with a zero after each letter.
    pub(super) fn utf8(&self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok().filter(|text| !text.contains('\0')).map(without_mark)
    }

    /// Its text, if it looks like any, whatever it is called.
    pub(super) fn text(&self) -> Option<FileText> {
        let bytes = self.bytes()?;
        let utf16 = match bytes.as_slice() {
            [0xff, 0xfe, utf16 @ ..] => Some(utf16_text(utf16, u16::from_le_bytes)?),
            [0xfe, 0xff, utf16 @ ..] => Some(utf16_text(utf16, u16::from_be_bytes)?),
            unmarked => unmarked_utf16(unmarked),
        };
        if let Some(text) = utf16 {
            return is_written(&text).then_some(FileText::Converted(text, "UTF-16"));
        }
        let is_called_text = self.is_called_text();
        match String::from_utf8(bytes) {
            Ok(text) => is_written(&text).then(|| FileText::Utf8(without_mark(text))),
            Err(other) if is_called_text => {
                let text: String = other.into_bytes().into_iter().map(char::from).collect();
                is_written(&text).then_some(FileText::Converted(text, "Latin-1"))
            }
            Err(_) => None,
        }
    }

    fn is_unsaid(&self) -> bool {
        self.media_type.is_empty() || self.media_type == "application/octet-stream"
    }

    /// How it ends: what is in so many digits, a multiple of four. None where that takes reading all of it.
    fn tail(&self, digits: usize) -> Option<Vec<u8>> {
        let data = standard(self.data.trim_ascii_end()).and_then(|data| match data {
            Cow::Borrowed(data) if self.encoding == Encoding::Base64 => Some(data),
            _ => None,
        })?;
        base64(data.get(data.len().saturating_sub(digits)..)?)
    }

    /// How it begins: what is in so many digits.
    fn head(&self, digits: usize) -> Vec<u8> {
        let end = self.data.floor_char_boundary(digits);
        let head = self.data.get(..end).unwrap_or_default();
        match self.encoding {
            Encoding::Base64 => base64(head).unwrap_or_default(),
            Encoding::Percent => Vec::new(),
        }
    }
}

/// The mark before a text says how it is encoded, and is no part of it.
fn without_mark(mut text: String) -> String {
    const MARK: char = '\u{feff}';
    if text.starts_with(MARK) {
        text.drain(..MARK.len_utf8());
    }
    text
}

fn ends_with_any(name: &str, endings: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    endings.iter().any(|ending| name.ends_with(ending))
}

/// Whether somebody could have written it: texts have no control characters but those of a typewriter and a terminal.
fn is_written(text: &str) -> bool {
    text.chars().all(|character| !character.is_control() || matches!(character, '\t'..='\r' | '\u{1b}' | '\u{85}'))
}

fn utf16_text(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let text = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect::<Result<String, _>>().ok()?;
    rest.is_empty().then_some(text)
}

/// UTF-16 without a mark: more than half of its units are of Latin-1, which have a zero in always the same place.
fn unmarked_utf16(bytes: &[u8]) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let zeros = |at: usize| pairs.iter().filter(|pair| pair[at] == 0).count();
    let unit = match (zeros(0), zeros(1)) {
        _ if !rest.is_empty() || pairs.len() < 2 => return None,
        (0, high) if high * 2 > pairs.len() => u16::from_le_bytes,
        (high, 0) if high * 2 > pairs.len() => u16::from_be_bytes,
        _ => return None,
    };
    utf16_text(bytes, unit)
}

/// What a digit of base64 stands for.
pub(super) const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

/// What comes after a scheme, however that is written.
fn after<'t>(url: &'t str, scheme: &str) -> Option<&'t str> {
    let (start, rest) = url.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Base64 of any kind as the one that everybody reads: without line breaks, and padded.
pub(crate) fn standard(text: &str) -> Option<Cow<'_, str>> {
    let text = text.trim_ascii_end();
    let digits = text.trim_end_matches('=');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    if text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && digits.bytes().all(is_plain) {
        return Some(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len() + 3);
    for byte in digits.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        digit(byte)?;
        out.push(match byte {
            b'-' => '+',
            b'_' => '/',
            byte => char::from(byte),
        });
    }
    match out.len() % 4 {
        0 => {}
        1 => return None,
        over => out.push_str(if over == 2 { "==" } else { "=" }),
    }
    Some(Cow::Owned(out))
}

/// Standard base64 or that of URLs, with or without padding and line breaks; `None` for anything else.
fn base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_ascii_end().trim_end_matches('=').as_bytes();
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut digits) = (0_u32, 0_usize);
    for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        bits = bits << 6 | u32::from(digit(*byte)?);
        digits += 1;
        if digits == 4 {
            out.extend_from_slice(bits.to_be_bytes().get(1..)?);
            (bits, digits) = (0, 0);
        }
    }
    if digits > 0 {
        let bytes = (bits << (6 * (4 - digits))).to_be_bytes();
        out.extend_from_slice(bytes.get(1..digits).filter(|bytes| !bytes.is_empty())?);
    }
    Some(out)
}

fn percent(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            digit()? << 4 | digit()?
        } else {
            byte
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        for (text, expected) in
            [("", ""), ("YQ==", "a"), ("YWI=", "ab"), ("YWJj", "abc"), ("YWJjZA", "abcd"), ("YWJj\r\nZA==\n", "abcd")]
        {
            assert_eq!(base64(text).as_deref(), Some(expected.as_bytes()), "{text}");
        }
        for text in ["Y", "Y!==", "YWJjZ", "YW=j"] {
            assert_eq!(base64(text), None, "{text}");
        }
    }

    #[test]
    fn any_base64_becomes_the_one_that_all_read() {
        for (text, expected) in [
            ("", Some("")),
            ("YQ==", Some("YQ==")),
            ("YWJjZA", Some("YWJjZA==")),
            ("YWI", Some("YWI=")),
            ("YWJj\r\nZA==\n", Some("YWJjZA==")),
            ("-_-_", Some("+/+/")),
            ("Y", None),
            ("YW=j", None),
            ("YQ===", Some("YQ==")),
            ("YQ\r\n", Some("YQ==")),
            ("YWI\n", Some("YWI=")),
            ("YQ=\n", Some("YQ==")),
            ("YWJj\n", Some("YWJj")),
            ("é", None),
        ] {
            assert_eq!(standard(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn kinds_are_known_by_their_bytes() {
        let png = "data:application/octet-stream;base64,iVBORw0KGgoAAAANSUhEUg==";
        for (name, data, is_pdf, image) in [
            ("a.pdf", "AA==", true, None),
            ("a", "data:application/pdf;base64,AA==", true, None),
            ("a.bin", "JVBERi0xLjcK", true, None),
            ("a.bin", "data:application/octet-stream;base64,CiVQREYtMS43Cg==", true, None),
            ("a.pdf", "data:text/plain;base64,YQ==", false, None),
            // All of it is ASCII, and yet it is no text; and the other way round.
            ("a.txt", "data:text/plain;base64,JVBERi0xLjcK", true, None),
            ("a.txt", "JVBERi0xLjcK", true, None),
            ("a.txt", "data:text/plain;base64,U2VlICVQREYtMS43", false, None),
            ("a.pdf", "data:application/pdf;base64,PGh0bWw+", false, None),
            ("a.pdf", "PGh0bWw+", false, None),
            ("a.pdf", "data:application/pdf;base64,eAolUERGLTEuNw==", true, None),
            ("a.pdf", "data:application/pdf;base64,", true, None),
            ("a.pdf", png, true, Some("data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==")),
            ("a.jpg", "/9j/4AAQ", false, Some("data:image/jpeg;base64,/9j/4AAQ")),
            ("a", " data:image/png; base64,/9j/4AAQ", false, Some("data:image/jpeg;base64,/9j/4AAQ")),
            ("a", "DATA:image/png;BASE64,_9j_4AA", false, Some("data:image/jpeg;base64,/9j/4AA=")),
            ("a", "R0lGODlhAQABAAAA", false, Some("data:image/gif;base64,R0lGODlhAQABAAAA")),
            ("a", "UklGRiQAAABXRUJQVlA4", false, Some("data:image/webp;base64,UklGRiQAAABXRUJQVlA4")),
            ("a.png", "YQ==", false, None),
            ("a.png", "data:image/png,%89PNG", false, None),
            ("a", "data:", false, None),
            ("a", "", false, None),
            ("a", "日本語日本語日本語日本語日本語日本語日本語日本語", false, None),
        ] {
            let file = InlineFile::new(name, data);
            assert_eq!((file.pdf().is_some(), file.image_url().as_deref()), (is_pdf, image), "{name} {data}");
        }
    }

    #[test]
    fn text_is_known_by_what_is_in_it() {
        let utf8 = |text: &str| Some(FileText::Utf8(text.to_owned()));
        for (name, data, expected) in [
            ("Makefile", "YWxsOgo=", utf8("all:\n")),
            ("a.kt", "data:application/x-kotlin;base64,w6k=", utf8("é")),
            ("a.kt", "data:application/x-kotlin;base64,77u/w6k=", utf8("é")),
            ("a.svg", "data:image/svg+xml,%3Csvg%2F%3E", utf8("<svg/>")),
            ("a.bin", "AAEC", None),
            ("a.bin", "/w==", None),
            ("a.txt", "6Q==", Some(FileText::Converted("é".into(), "Latin-1"))),
            ("a.txt", "6QA=", None),
            ("a.bin", "//5oAGkA", Some(FileText::Converted("hi".into(), "UTF-16"))),
            ("a.bin", "/v8AaABp", Some(FileText::Converted("hi".into(), "UTF-16"))),
            ("a.txt", "//5oAGkAAA==", None),
            ("a.txt", "aABpAA==", Some(FileText::Converted("hi".into(), "UTF-16"))),
            ("a.bin", "AGgAaQ==", Some(FileText::Converted("hi".into(), "UTF-16"))),
            ("a.txt", "aABpAAA=", None),
            ("a.bin", "AQACAA==", None),
            ("a.bin", "AAAAAA==", None),
            ("a", "data:,%4", None),
            ("a", "!", None),
        ] {
            assert_eq!(InlineFile::new(name, data).text(), expected, "{name} {data}");
        }
        assert_eq!(InlineFile::new("a.txt", "aABpAA==").utf8(), None, "it has zeros");
        assert_eq!(InlineFile::new("a.txt", "aGk=").utf8().as_deref(), Some("hi"));
        assert_eq!(InlineFile::new("a.txt", "77u/aGk=").utf8().as_deref(), Some("hi"));
    }
}
