//! Whether text that comes in pieces can still become one JSON value. Stricter than [`super::super::balance`], and asked only
//! where it matters: when pieces could be read in two ways.

use super::super::balance::unescape;
use crate::escaped::Escaped;

#[derive(Debug, Clone)]
pub(super) struct Grammar {
    /// The brackets that are open.
    open: Vec<u8>,
    expects: Expects,
    string: Option<StringRole>,
    escaped: bool,
    /// Inside a number or a word.
    in_word: bool,
    is_broken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    Value,
    /// Right after `[`.
    ValueOrEnd,
    Key,
    /// Right after `{`.
    KeyOrEnd,
    Colon,
    CommaOrEnd,
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringRole {
    Key,
    Value,
}

impl Grammar {
    pub(super) const fn new() -> Self {
        Self {
            open: Vec::new(),
            expects: Expects::Value,
            string: None,
            escaped: false,
            in_word: false,
            is_broken: false,
        }
    }

    /// Reads on in the inside of a JSON string; says whether it can still become a value.
    pub(super) fn push(&mut self, text: Escaped<'_>) -> bool {
        let bytes = text.as_written().as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at).filter(|_| !self.is_broken) {
            let (byte, length) = if byte == b'\\' { unescape(&bytes[at..]) } else { (byte, 1) };
            at += length;
            self.is_broken = !self.step(byte);
        }
        !self.is_broken
    }

    fn step(&mut self, byte: u8) -> bool {
        if let Some(role) = self.string {
            if self.escaped || byte != b'"' {
                self.escaped = !self.escaped && byte == b'\\';
                return true;
            }
            self.string = None;
            self.expects = if role == StringRole::Key { Expects::Colon } else { self.after_value() };
            return true;
        }
        let is_word = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        if self.in_word && is_word {
            return true;
        }
        self.in_word = false;
        byte.is_ascii_whitespace() || self.token(byte, is_word)
    }

    fn token(&mut self, byte: u8, is_word: bool) -> bool {
        use Expects as E;
        match (self.expects, byte) {
            (E::Value | E::ValueOrEnd, b'{' | b'[') => {
                self.open.push(byte);
                self.expects = if byte == b'{' { E::KeyOrEnd } else { E::ValueOrEnd };
            }
            (E::Value | E::ValueOrEnd, b'"') => self.string = Some(StringRole::Value),
            (E::Value | E::ValueOrEnd, _) if is_word => {
                self.in_word = true;
                self.expects = self.after_value();
            }
            (E::Key | E::KeyOrEnd, b'"') => self.string = Some(StringRole::Key),
            (E::Colon, b':') => self.expects = E::Value,
            (E::CommaOrEnd, b',') => {
                self.expects = if self.open.last() == Some(&b'{') { E::Key } else { E::Value };
            }
            (E::KeyOrEnd | E::CommaOrEnd, b'}') if self.open.last() == Some(&b'{') => self.close(),
            (E::ValueOrEnd | E::CommaOrEnd, b']') if self.open.last() == Some(&b'[') => self.close(),
            _ => return false,
        }
        true
    }

    fn close(&mut self) {
        self.open.pop();
        self.expects = self.after_value();
    }

    /// What may come after a value here.
    fn after_value(&self) -> Expects {
        if self.open.is_empty() { Expects::Nothing } else { Expects::CommaOrEnd }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_of_values_are_told_from_the_rest() {
        for (pieces, possible) in [
            (&[r#"{\"a\":"#, r#"{\"a\":1}}"#][..], true),
            (&[r#"{\""#, r#"{\"a"#], false),
            (&["{", "{"], false),
            (&["[", "[[", "1, -2.5e+3, null"], true),
            (&[r#"{\"a\":\"x"#, r#"\\\"y\"}"#], true),
            (&[r#"{\"a\":1"#, r#"{\"a\":1"#], false),
            (&["{}", " "], true),
            (&["{}", "{}"], false),
            (&["{,"], false),
            (&["[1]]"], false),
            (&["[1}"], false),
            (&[r#"{\"a\" 1"#], false),
            (&[r#"{\"a\":1,}"#], false),
        ] {
            let mut grammar = Grammar::new();
            let last = pieces.iter().map(|piece| grammar.push(Escaped::inside(piece))).last();
            assert_eq!(last, Some(possible), "{pieces:?}");
        }
    }
}
