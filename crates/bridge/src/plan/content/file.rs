//! Files in messages: text goes inline, videos and others where the dialect has a part for them.

use std::borrow::Cow;

use wire::chat::{self, Str};
use wire::json::Text;
use wire::responses::InputFile;

use super::{ContentPiece, MemberPath, Renderer};

/// Names by which text is recognised when no media type says so.
const TEXT_NAMES: &[&str] = &[
    ".txt", ".md", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".csv", ".tsv", ".xml", ".html", ".css", ".js", ".ts",
    ".py", ".rs", ".go", ".java", ".c", ".h", ".cpp", ".sh", ".sql", ".log", ".ini", ".diff", ".patch",
];

const VIDEO_NAMES: &[&str] = &[".mp4", ".avi", ".mov", ".mkv", ".webm"];

impl Renderer<'_> {
    pub(super) fn file<'a>(&mut self, file: &InputFile<'a>, at: MemberPath) -> ContentPiece<'a> {
        let name = file.filename.map(Text::decode).unwrap_or_default();
        let data = file.file_data.map(Text::decode);
        let url = data.as_deref().and_then(DataUrl::parse);
        let media_type = url.map(|url| url.media_type).unwrap_or_default();
        let is_video = self.rules.video && (media_type.starts_with("video/") || is_video(file, &name));
        if let (true, Some(source)) = (is_video, file.file_url.or(file.file_data)) {
            return ContentPiece::Media(chat::Part::VideoUrl { url: source.into() });
        }
        if let (Some(data), true) = (&data, is_text(media_type, &name)) {
            let encoded = url.map_or(&**data, |url| url.data);
            if let Some(text) = base64(encoded).and_then(|bytes| String::from_utf8(bytes).ok()) {
                let name = if name.is_empty() { Cow::Borrowed("file") } else { name };
                return ContentPiece::Text(Str::Ours(format!("[{name}]\n{text}").into()));
            }
        }
        let given = file.file_data.or(file.file_url.filter(|_| self.rules.file_urls));
        match given.filter(|_| self.rules.files) {
            Some(data) => ContentPiece::Media(chat::Part::File { filename: file.filename, data: data.into() }),
            None if file.file_data.is_none() => self.lacking("file", "has no access to", at),
            None => self.lacking("file", "cannot read", at),
        }
    }
}

fn is_text(media_type: &str, name: &str) -> bool {
    let text = ["application/json", "application/xml", "application/yaml", "application/javascript"];
    let unsaid = media_type.is_empty() || media_type == "application/octet-stream";
    media_type.starts_with("text/") || text.contains(&media_type) || (unsaid && ends_with_any(name, TEXT_NAMES))
}

fn is_video(file: &InputFile<'_>, name: &str) -> bool {
    let url = file.file_url.map(Text::decode).unwrap_or_default();
    let path = url.split(['?', '#']).next().unwrap_or_default();
    ends_with_any(name, VIDEO_NAMES) || ends_with_any(path, VIDEO_NAMES)
}

fn ends_with_any(name: &str, endings: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    endings.iter().any(|ending| name.ends_with(ending))
}

/// `data:TYPE;base64,DATA`.
#[derive(Clone, Copy)]
struct DataUrl<'t> {
    media_type: &'t str,
    data: &'t str,
}

impl<'t> DataUrl<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        let (head, data) = text.strip_prefix("data:")?.split_once(',')?;
        let head = head.strip_suffix(";base64")?;
        Some(Self { media_type: head.split(';').next().unwrap_or_default(), data })
    }
}

/// Standard base64, with or without padding; `None` for anything else.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    };
    let text = text.trim_end_matches('=').as_bytes();
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    for group in text.chunks(4) {
        let mut bits = 0_u32;
        for byte in group {
            bits = bits << 6 | u32::from(digit(*byte)?);
        }
        bits <<= 6 * (4 - group.len());
        if group.len() == 1 {
            return None;
        }
        out.extend_from_slice(bits.to_be_bytes().get(1..group.len())?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        for (text, expected) in [("", ""), ("YQ==", "a"), ("YWI=", "ab"), ("YWJj", "abc"), ("YWJjZA", "abcd")] {
            assert_eq!(base64(text).as_deref(), Some(expected.as_bytes()), "{text}");
        }
        for text in ["Y", "Y!==", "ab\n"] {
            assert_eq!(base64(text), None, "{text}");
        }
    }
}
