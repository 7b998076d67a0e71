//! Follows the outline of one JSON value through text that comes in pieces: enough to know when the value is
//! whole, at a constant price per byte. It checks brackets and strings, not syntax.

use crate::escaped::Escaped;

#[derive(Debug, Default, Clone)]
pub(super) struct Balance {
    /// The first byte that is not white space; 0 before it.
    first: u8,
    depth: u32,
    in_string: bool,
    /// The byte before was a backslash inside a string.
    escaped: bool,
    whole: bool,
}

impl Balance {
    pub(super) const fn first(&self) -> Option<u8> {
        if self.first == 0 { None } else { Some(self.first) }
    }

    /// An object, an array or a string that has ended. Of numbers and words nobody knows it before the end.
    pub(super) const fn is_whole(&self) -> bool {
        self.whole
    }

    /// Reads on in the inside of a JSON string; says where the value ended, if it did in this piece.
    pub(super) fn push(&mut self, text: Escaped<'_>) -> Option<usize> {
        let bytes = text.as_written().as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let (byte, length) = if byte == b'\\' { unescape(&bytes[at..]) } else { (byte, 1) };
            at += length;
            if self.step(byte) {
                return Some(at.min(bytes.len()));
            }
        }
        None
    }

    /// Reads one byte of the value itself; true when it made the value whole.
    pub(super) const fn step(&mut self, byte: u8) -> bool {
        if self.whole {
            return false;
        }
        if self.first == 0 && !byte.is_ascii_whitespace() {
            self.first = byte;
        }
        if self.in_string {
            self.in_string = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
            self.whole = !self.in_string && self.depth == 0;
            return self.whole;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' if self.depth > 0 => {
                self.depth -= 1;
                self.whole = self.depth == 0;
            }
            _ => {}
        }
        self.whole
    }
}

/// The byte that an escape means, as far as it matters here, and the escape's length.
pub(super) fn unescape(bytes: &[u8]) -> (u8, usize) {
    match bytes.get(1) {
        Some(&byte @ (b'"' | b'\\' | b'/')) => (byte, 2),
        Some(b'u') => {
            let code = bytes.get(2..6).and_then(|hex| str::from_utf8(hex).ok());
            let code = code.and_then(|hex| u8::from_str_radix(hex, 16).ok());
            (code.filter(u8::is_ascii).unwrap_or(b'x'), 6)
        }
        Some(b'n' | b't' | b'r') => (b' ', 2),
        _ => (b'x', 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_value_is_found() {
        for (pieces, whole) in [
            (&[r#"{\"a\":1}"#][..], true),
            (&[r"{\u0022a\u0022", ":[1,{}]", "}"], true),
            (&[r#"{\"a\":\"}"#], false),
            (&[r#"{\"a\":\"\\\"}"#, r#"\"}"#], true),
            (&[r#"\"x"#, r#"\""#], true),
            (&["1"], false),
            (&["", " "], false),
            (&["}"], false),
        ] {
            let mut balance = Balance::default();
            for piece in pieces {
                balance.push(Escaped::inside(piece));
            }
            assert_eq!(balance.is_whole(), whole, "{pieces:?}");
        }
        assert_eq!(Balance::default().push(Escaped::inside(r#"{\"a\":1} {}"#)), Some(9));
    }
}
