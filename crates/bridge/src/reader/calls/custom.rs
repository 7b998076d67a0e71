//! The input of a custom tool, taken out of the arguments of the function that it was offered as, while they come.
//!
//! ```text
//! Start ─{─▶ Object ─"─▶ Key ─"─▶ Colon ─:─▶ Value ─"─▶ Input ─"─▶ Closed
//!   │ ─"─▶ Input            ▲                  └──other member──▶ Skip ┐
//!   └─other─▶ Plain         └──────────────────────────────────────────┘
//! ```
//!
//! `{"input": …}`, `{"patch": …}`, a bare JSON string and plain text are all understood. What is inside the string is
//! escaped just as our events need it: it is copied, not decoded.

use memchr::{memchr, memchr2};
use wire::json::{Kind, Raw, Text, unescape_into};

use super::super::balance::Balance;
use crate::escaped::{Escaped, EscapedBuf, Pieces};

/// How deep an input may be inside of objects.
const MOST_NESTED: usize = 4;

#[derive(Debug, Clone, Default)]
pub(super) struct CustomInput {
    state: State,
    key: String,
    skipped: Balance,
    /// An escape that is not whole yet.
    escape: String,
    /// This piece of the arguments. Kept for its memory.
    arguments: String,
    /// The input so far.
    text: Pieces,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Object,
    Key,
    Colon,
    Value,
    Skip,
    Input,
    Closed,
    /// No JSON at all: every byte is input.
    Plain,
    /// An object without the member.
    Broken,
}

impl CustomInput {
    /// The arguments are the input, whatever they look like.
    pub(super) fn plain() -> Self {
        Self { state: State::Plain, ..Self::default() }
    }

    /// Whether the input has begun: the call can be announced as what it is.
    pub(super) const fn has_begun(&self) -> bool {
        matches!(self.state, State::Input | State::Closed | State::Plain)
    }

    /// Whether arguments that end here broke off before the input did. What is no JSON has no end that could be missed.
    pub(super) const fn is_cut(&self) -> bool {
        !matches!(self.state, State::Closed | State::Plain | State::Broken)
    }

    /// The input so far.
    pub(super) fn text(&self) -> Escaped<'_> {
        self.text.get()
    }

    /// Reads on in the arguments.
    pub(super) fn push(&mut self, arguments: Escaped<'_>) {
        if memchr(b'\\', arguments.as_written().as_bytes()).is_none() {
            return self.read(arguments.as_written());
        }
        let mut plain = std::mem::take(&mut self.arguments);
        plain.clear();
        unescape_into(&mut plain, arguments.as_written());
        self.read(&plain);
        self.arguments = plain;
    }

    fn read(&mut self, arguments: &str) {
        let mut rest = arguments;
        while let Some(first) = rest.chars().next() {
            let used = match self.state {
                State::Input => self.input(rest),
                State::Plain => {
                    self.text.push_plain(rest);
                    rest.len()
                }
                State::Closed | State::Broken => return,
                _ => {
                    self.outside(first);
                    // Plain text takes the character that showed it to be plain.
                    if self.state == State::Plain { 0 } else { first.len_utf8() }
                }
            };
            rest = rest.get(used..).unwrap_or_default();
        }
    }

    /// The end: half an escape is dropped, half a pair replaced.
    pub(super) fn finish(&mut self) {
        self.text.finish();
    }

    /// One character outside of the input.
    fn outside(&mut self, c: char) {
        self.state = match (self.state, c) {
            (state @ (State::Start | State::Object | State::Colon | State::Value), ' ' | '\n' | '\r' | '\t') => state,
            (State::Start, '{') | (State::Object, ',') => State::Object,
            (State::Start, '"') => State::Input,
            (State::Start, _) => State::Plain,
            (State::Object, '"') => {
                self.key.clear();
                State::Key
            }
            (State::Key, '"') => State::Colon,
            (State::Key, c) if self.key.len() < 64 => {
                self.key.push(c);
                State::Key
            }
            (State::Key, _) => State::Key,
            (State::Colon, ':') => State::Value,
            (State::Value, '"') if self.key == "input" || self.key == "patch" => State::Input,
            (State::Value, c) => {
                self.skipped = Balance::default();
                self.skip(c)
            }
            (State::Skip, c) => self.skip(c),
            _ => State::Broken,
        };
    }

    /// One character of a member that is not the input.
    fn skip(&mut self, c: char) -> State {
        let scalar = !matches!(self.skipped.first(), None | Some(b'{' | b'[' | b'"'));
        match c {
            ',' if scalar => State::Object,
            '}' if scalar => State::Broken,
            _ if self.skipped.step(u8::try_from(c).unwrap_or(b'x')) => State::Object,
            _ => State::Skip,
        }
    }

    /// Text inside the string; how much of it was used.
    fn input(&mut self, rest: &str) -> usize {
        if !self.escape.is_empty() {
            return self.escape_on(rest);
        }
        let stop = memchr2(b'"', b'\\', rest.as_bytes()).unwrap_or(rest.len());
        self.copy(&rest[..stop]);
        match rest.as_bytes().get(stop) {
            Some(b'"') => self.state = State::Closed,
            Some(_) => self.escape.push('\\'),
            None => return stop,
        }
        stop + 1
    }

    /// JSON has no control characters in its strings, but models put them there.
    fn copy(&mut self, text: &str) {
        if text.bytes().all(|byte| byte >= 0x20) {
            self.text.push(Escaped::inside(text));
        } else {
            self.text.push(EscapedBuf::of_plain(text).get());
        }
    }

    /// Goes on with an escape that began before.
    fn escape_on(&mut self, rest: &str) -> usize {
        let Some(c) = rest.chars().next() else { return 0 };
        let is_whole = match (self.escape.len(), c) {
            (1, '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => true,
            (1, 'u') => false,
            (length @ 2.., c) if c.is_ascii_hexdigit() => length == 5,
            // No escape that JSON knows: the backslash was meant as one.
            _ => {
                self.escape.insert(0, '\\');
                self.take_escape();
                return 0;
            }
        };
        self.escape.push(c);
        if is_whole {
            self.take_escape();
        }
        1
    }

    fn take_escape(&mut self) {
        self.text.push(Escaped::inside(&self.escape));
        self.escape.clear();
    }
}

/// The input that arguments were meant to have, where it is not the string that it should be: the lines of a list, or
/// what an object inside of the object has; else the arguments themselves.
pub(super) fn meant(arguments: &str) -> String {
    fn input(raw: Raw<'_>) -> Option<Raw<'_>> {
        raw.get("input").or_else(|| raw.get("patch"))
    }
    let mut found = Raw::parse(arguments).ok().and_then(input);
    for _ in 0..MOST_NESTED {
        let Some(raw) = found else { break };
        if let Some(text) = raw.text() {
            return text.decode().into_owned();
        }
        if raw.kind() == Kind::Array {
            let lines: Option<Vec<_>> = raw.elements().map(|line| line.text().map(Text::decode)).collect();
            return lines.map_or_else(|| arguments.to_owned(), |lines| lines.join("\n"));
        }
        found = input(raw);
    }
    arguments.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_in_every_split() {
        for (arguments, input) in [
            (r#"{"input":"a b"}"#, Some("a b")),
            (r#" { "input" : "line\nline\t\"x\" \u00e9 \\d" } "#, Some(r#"line\nline\t\"x\" \u00e9 \\d"#)),
            (r#"{"patch":"*** Begin"}"#, Some("*** Begin")),
            (r#"{"why":{"a":["}"]},"n":1,"input":"x"}"#, Some("x")),
            (r#"{"why":"so","input":""}"#, Some("")),
            (r#""bare""#, Some("bare")),
            ("plain é\ntext", Some(r"plain é\ntext")),
            (r#"{"input":"\ud83d\ude00\ud83d"}"#, Some(r"\ud83d\ude00\ufffd")),
            (r#"{"input":"bad \d escape"}"#, Some(r"bad \\d escape")),
            ("{\"input\":\"raw\nline\"}", Some(r"raw\nline")),
            (r#"{"input":"cut"#, Some("cut")),
            (r#"{"other":1}"#, None),
            (r#"{"input":{"a":1}}"#, None),
            ("[1]", Some("[1]")),
            ("{}", None),
        ] {
            for size in [1, 2, 3, 5, 100] {
                let mut custom = CustomInput::default();
                let characters: Vec<char> = arguments.chars().collect();
                for piece in characters.chunks(size) {
                    custom.read(&piece.iter().collect::<String>());
                }
                custom.finish();
                let found = custom.has_begun().then(|| custom.text().as_written());
                assert_eq!(found, input, "{arguments} by {size}");
            }
        }
    }

    #[test]
    fn what_was_meant_is_found() {
        for (arguments, input) in [
            ("{}", "{}"),
            (r#"{"input":null}"#, r#"{"input":null}"#),
            (r#"{"input":5}"#, r#"{"input":5}"#),
            (r#"{"input":["a","b\tc",""]}"#, "a\nb\tc\n"),
            (r#"{"input":["a",1]}"#, r#"{"input":["a",1]}"#),
            (r#"{"input":{"input":"a\nb"}}"#, "a\nb"),
            (r#"{"input":{"patch":["a","b"]}}"#, "a\nb"),
            (r#"{"input":{"x":"a"}}"#, r#"{"input":{"x":"a"}}"#),
            (r#"{"other":"a"}"#, r#"{"other":"a"}"#),
            (r#"{"inp"#, r#"{"inp"#),
        ] {
            assert_eq!(meant(arguments), input, "{arguments}");
        }
    }
}
