//! Marked content that says itself what it stands for (`ActualText`): ligatures, hyphens, letters that are drawn.

use hayro_syntax::object::{Dict, Object, String as PdfString};
use hayro_syntax::page::Resources;

/// Which marked content is open, and what it says.
#[derive(Debug, Default)]
pub(super) struct Marked {
    depth: usize,
    /// The outermost that says what it stands for, how deep it is.
    actual: Option<(usize, String)>,
}

impl Marked {
    pub(super) fn begin(&mut self, properties: Option<&Object<'_>>, resources: &Resources<'_>) {
        self.depth = self.depth.saturating_add(1);
        if self.actual.is_some() {
            return;
        }
        let text = match properties {
            Some(Object::Dict(dict)) => actual_text(dict),
            Some(Object::Name(name)) => resources.properties.get::<Dict<'_>>(name).and_then(|dict| actual_text(&dict)),
            _ => None,
        };
        self.actual = text.map(|text| (self.depth, text));
    }

    pub(super) fn end(&mut self) {
        if self.actual.as_ref().is_some_and(|(depth, _)| *depth >= self.depth) {
            self.actual = None;
        }
        self.depth = self.depth.saturating_sub(1);
    }

    /// What the next glyph stands for, where that was said for it: all of it for the first, nothing for the others.
    pub(super) fn actual(&mut self) -> Option<String> {
        let (_, text) = self.actual.as_mut()?;
        Some(std::mem::take(text))
    }
}

fn actual_text(dict: &Dict<'_>) -> Option<String> {
    let text = dict.get::<PdfString<'_>>("ActualText")?;
    Some(decoded(text.as_bytes()))
}

/// A text string: UTF-16 or UTF-8 with a mark before it, or else an encoding that is much like Latin-1.
fn decoded(bytes: &[u8]) -> String {
    if let Some(utf16) = bytes.strip_prefix(b"\xfe\xff") {
        let units = utf16.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        return char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    }
    if let Some(utf8) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return String::from_utf8_lossy(utf8).into_owned();
    }
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_strings_are_decoded() {
        for (bytes, expected) in [
            (&b"caf\xe9"[..], "café"),
            (b"\xfe\xff\x4e\x09\xd8\x3d\xde\x00", "三😀"),
            (b"\xfe\xff\xd8\x3d\x00", "\u{fffd}"),
            (b"\xef\xbb\xbf\xe4\xb8\x89", "三"),
            (b"", ""),
        ] {
            assert_eq!(decoded(bytes), expected);
        }
    }
}
