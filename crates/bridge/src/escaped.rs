//! The inside of JSON strings as it is on the wire: escaped. Most text only changes its place on the way through, so it
//! is copied as it was escaped and never decoded. These types keep it apart from plain text: whoever wants to look at
//! what a text says must decode it, and whoever has plain text must escape it.

use std::borrow::Cow;

use wire::json::{Text, escape_into, sanitize_into, unescape};

/// Escaped text, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Escaped<'a>(&'a str);

impl<'a> Escaped<'a> {
    /// What is between the quotes of a string.
    pub(crate) fn of(text: Text<'a>) -> Self {
        Self(text.escaped())
    }

    /// What is known to be (a piece of) the inside of a JSON string.
    pub(crate) const fn inside(string: &'a str) -> Self {
        Self(string)
    }

    /// The text as it is written, with its escapes.
    pub(crate) const fn as_written(self) -> &'a str {
        self.0
    }

    pub(crate) fn decode(self) -> Cow<'a, str> {
        unescape(self.0)
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// In bytes, escaped.
    pub(crate) const fn len(self) -> usize {
        self.0.len()
    }

    /// What comes after the first `start` bytes.
    pub(crate) fn after(self, start: usize) -> Self {
        Self(self.0.get(start..).unwrap_or_default())
    }

    /// The first `end` bytes.
    pub(crate) fn up_to(self, end: usize) -> Self {
        Self(self.0.get(..end).unwrap_or(self.0))
    }

    pub(crate) fn starts_with(self, other: Escaped<'_>) -> bool {
        self.0.starts_with(other.0)
    }

    pub(crate) fn strip_prefix(self, prefix: Escaped<'_>) -> Option<Self> {
        self.0.strip_prefix(prefix.0).map(Self)
    }

    /// Writes it as a JSON string.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.push(b'"');
        out.extend_from_slice(self.0.as_bytes());
        out.push(b'"');
    }
}

/// Escaped text of our own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EscapedBuf(String);

impl EscapedBuf {
    pub(crate) fn of_plain(plain: &str) -> Self {
        let mut text = String::with_capacity(plain.len() + 8);
        escape_into(&mut text, plain);
        Self(text)
    }

    /// A whole text with surrogates in pairs only.
    pub(crate) fn clean(text: Escaped<'_>) -> Self {
        let mut pieces = Pieces::of(text);
        pieces.finish();
        pieces.text
    }

    pub(crate) fn get(&self) -> Escaped<'_> {
        Escaped(&self.0)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, text: Escaped<'_>) {
        self.0.push_str(text.0);
    }

    pub(crate) fn push_plain(&mut self, plain: &str) {
        escape_into(&mut self.0, plain);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl From<Escaped<'_>> for EscapedBuf {
    fn from(text: Escaped<'_>) -> Self {
        Self(text.0.to_owned())
    }
}

/// Escaped text that comes in pieces. A surrogate pair may be cut between two of them, and half a pair breaks clients:
/// the first half waits for the other one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pieces {
    text: EscapedBuf,
    half: EscapedBuf,
}

impl Pieces {
    pub(crate) fn of(piece: Escaped<'_>) -> Self {
        let mut pieces = Self::default();
        pieces.push(piece);
        pieces
    }

    /// What has come, without the half that waits.
    pub(crate) fn get(&self) -> Escaped<'_> {
        self.text.get()
    }

    /// The half that waits.
    pub(crate) fn half(&self) -> Escaped<'_> {
        self.half.get()
    }

    pub(crate) const fn len(&self) -> usize {
        self.text.0.len()
    }

    /// Nothing has come.
    pub(crate) const fn is_empty(&self) -> bool {
        self.text.is_empty() && self.half.is_empty()
    }

    pub(crate) fn push(&mut self, piece: Escaped<'_>) {
        if self.half.is_empty() {
            self.half.0.push_str(sanitize_into(&mut self.text.0, piece.0));
        } else {
            let joined = std::mem::take(&mut self.half).0 + piece.0;
            self.half.0.push_str(sanitize_into(&mut self.text.0, &joined));
        }
    }

    /// The half that waits will not be needed: the whole is known.
    pub(crate) fn forget_half(&mut self) {
        self.half.clear();
    }

    pub(crate) fn push_plain(&mut self, plain: &str) {
        self.text.push_plain(plain);
    }

    /// Nothing more comes: half a pair becomes U+FFFD. Says whether there was one.
    pub(crate) fn finish(&mut self) -> bool {
        let cut = !self.half.is_empty();
        if cut {
            self.half.clear();
            self.text.0.push_str("\\ufffd");
        }
        cut
    }

    /// Takes the text, and leaves the half.
    pub(crate) fn take(&mut self) -> EscapedBuf {
        std::mem::take(&mut self.text)
    }

    /// What comes after the text so far in the whole of it, if that begins with it.
    pub(crate) fn rest_of<'w>(&self, whole: &'w str) -> Option<&'w str> {
        // No escape is longer than six bytes: a short text is not held against a long one, however often it comes.
        if self.len() > 6 * whole.len() {
            return None;
        }
        whole.strip_prefix(&*self.get().decode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_find_each_other() {
        for (pieces, text) in [
            (&[r"a\ud83d", r"\ude00b"][..], r"a\ud83d\ude00b"),
            (&[r"\ud83d", "x"], r"\ufffdx"),
            (&[r"\ud83d"], r"\ufffd"),
            (&[r"\ude00"], r"\ufffd"),
            (&[r"\uD83D", r"\uDE00"], r"\uD83D\uDE00"),
            (&[r"\\ud83d", "x"], r"\\ud83dx"),
        ] {
            let mut found = Pieces::default();
            for piece in pieces {
                found.push(Escaped(piece));
            }
            found.finish();
            assert_eq!(found.get().as_written(), text, "{pieces:?}");
        }
    }

    #[test]
    fn a_whole_goes_on_where_its_pieces_ended() {
        let mut pieces = Pieces::default();
        pieces.push(Escaped(r"a\n"));
        assert_eq!(pieces.rest_of("a\nb"), Some("b"));
        assert_eq!(pieces.rest_of("b"), None);
        pieces.push_plain("\"");
        assert_eq!(pieces.get().as_written(), r#"a\n\""#);
    }
}
