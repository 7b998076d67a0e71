//! JSON as text: values are borrowed slices of what the client or the upstream wrote, still escaped.
//!
//! A request is validated once, by `serde_json`; after that [`Raw`] is walked by a scanner that trusts it, so
//! looking into a two-megabyte history costs a few `memchr` sweeps, and a string that only changes its place
//! is copied, never decoded. Numbers, key order and escapes therefore survive as they were.

mod code;
mod escape;
mod invalid;
mod scan;
mod write;

use std::borrow::Cow;

pub use code::InvalidCode;
pub use escape::{Append, escape_into, pair_surrogates, sanitize_into, unescape, unescape_into};
pub use invalid::{Invalid, Problem};
pub use scan::{Cursor, Elements, Fields};
pub use write::{ObjectWriter, write_text};

/// How deep arrays and objects may nest: as `serde_json` has it, and OpenAI's own limit is lower.
pub const MAX_DEPTH: usize = 128;

/// One valid JSON value as text, without white space around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw<'a>(&'a str);

/// What a [`Raw`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    /// As error messages say it.
    pub const fn article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// Why a text is not one JSON document.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NotJson {
    #[error("{message} at line {line} column {column}")]
    Syntax { message: String, line: usize, column: usize },
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

impl<'a> Raw<'a> {
    pub const NULL: Raw<'static> = Raw("null");

    /// Validates a whole document, once; everything below it may then be trusted.
    pub fn parse(text: &'a str) -> Result<Self, NotJson> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_matches([' ', '\t', '\n', '\r']);
        serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|error| NotJson::Syntax {
            message: strip_position(&error.to_string()).to_owned(),
            line: error.line(),
            column: error.column(),
        })?;
        if scan::depth_exceeds(text, MAX_DEPTH) {
            return Err(NotJson::TooDeep);
        }
        Ok(Self(text))
    }

    /// A document that we have written ourselves, and need not validate.
    pub const fn ours(text: &'a str) -> Self {
        Self(text)
    }

    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// Whether arrays and objects in it nest deeper than that.
    pub fn is_deeper_than(self, levels: usize) -> bool {
        scan::depth_exceeds(self.0, levels)
    }

    pub fn kind(self) -> Kind {
        match self.0.as_bytes().first() {
            Some(b'"') => Kind::String,
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    pub fn text(self) -> Option<Text<'a>> {
        (self.kind() == Kind::String).then_some(Text(self))
    }

    /// The members of an object, in order; empty for any other kind.
    pub fn fields(self) -> Fields<'a> {
        Fields::new(self.0)
    }

    /// The elements of an array, in order; empty for any other kind.
    pub fn elements(self) -> Elements<'a> {
        Elements::new(self.0)
    }

    /// The member of that name; the last one where a name is repeated, as everywhere in this crate.
    pub fn get(self, name: &str) -> Option<Self> {
        self.fields().filter(|(key, _)| key.is(name)).last().map(|(_, value)| value)
    }
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for Raw<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de serde_json::value::RawValue>::deserialize(deserializer).map(|raw| Self(raw.get()))
    }
}

/// A JSON string, quotes and escapes included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text<'a>(Raw<'a>);

impl<'a> Text<'a> {
    pub const fn raw(self) -> Raw<'a> {
        self.0
    }

    /// What is between the quotes, still escaped.
    pub fn escaped(self) -> &'a str {
        let text = self.0.as_str();
        text.get(1..text.len() - 1).unwrap_or_default()
    }

    /// The string itself. Lone surrogates become U+FFFD.
    pub fn decode(self) -> Cow<'a, str> {
        unescape(self.escaped())
    }

    pub fn is(self, other: &str) -> bool {
        let escaped = self.escaped();
        // What is written with escapes is longer than what it means.
        escaped == other || (escaped.len() > other.len() && escaped.contains('\\') && unescape(escaped) == other)
    }

    pub fn is_empty(self) -> bool {
        self.escaped().is_empty()
    }
}

/// A value that can be read out of a [`Raw`].
pub trait FromRaw<'a>: Sized {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid>;

    /// Reads the value at the cursor and leaves the cursor after it. Containers do this in one sweep.
    fn from_cursor(cursor: &mut Cursor<'a>) -> Result<Self, Invalid> {
        Self::from_raw(cursor.raw())
    }
}

impl<'a> FromRaw<'a> for Raw<'a> {
    fn from_raw(raw: Self) -> Result<Self, Invalid> {
        Ok(raw)
    }
}

impl<'a> FromRaw<'a> for Text<'a> {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        raw.text().ok_or_else(|| Invalid::expected("a string", raw))
    }
}

impl<'a> FromRaw<'a> for bool {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        match raw.as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Invalid::expected("a boolean", raw)),
        }
    }
}

impl<'a> FromRaw<'a> for i64 {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        raw.as_str().parse().map_err(|_| Invalid::integer(raw))
    }
}

/// A number as it was written, and what it is worth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Number<'a> {
    pub raw: Raw<'a>,
    pub value: f64,
}

impl<'a> FromRaw<'a> for Number<'a> {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        match (raw.kind(), raw.as_str().parse()) {
            (Kind::Number, Ok(value)) => Ok(Self { raw, value }),
            _ => Err(Invalid::expected("a number", raw)),
        }
    }
}

impl<'a, T: FromRaw<'a>> FromRaw<'a> for Vec<T> {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        Self::from_cursor(&mut Cursor::new(raw))
    }

    fn from_cursor(cursor: &mut Cursor<'a>) -> Result<Self, Invalid> {
        if cursor.kind() != Kind::Array {
            return Err(Invalid::expected("an array", cursor.raw()));
        }
        let mut list = Self::new();
        cursor.enter();
        while cursor.more() {
            list.push(T::from_cursor(cursor).map_err(|invalid| invalid.at_index(list.len()))?);
        }
        Ok(list)
    }
}

/// An object of which only the shape is known: metadata, schemas, whatever a client may put there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Object<'a>(pub Raw<'a>);

impl<'a> FromRaw<'a> for Object<'a> {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        match raw.kind() {
            Kind::Object => Ok(Self(raw)),
            _ => Err(Invalid::expected("an object", raw)),
        }
    }
}

/// A value, and the JSON it came in: what a store keeps, or an echo repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept<'a, T> {
    pub raw: Raw<'a>,
    pub value: T,
}

impl<'a, T: FromRaw<'a>> FromRaw<'a> for Kept<'a, T> {
    fn from_raw(raw: Raw<'a>) -> Result<Self, Invalid> {
        T::from_raw(raw).map(|value| Self { raw, value })
    }

    fn from_cursor(cursor: &mut Cursor<'a>) -> Result<Self, Invalid> {
        let start = cursor.start();
        let value = T::from_cursor(cursor)?;
        Ok(Self { raw: cursor.since(start), value })
    }
}

/// JSON without the byte order mark that some servers put before it.
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

fn strip_position(message: &str) -> &str {
    message.split(" at line ").next().unwrap_or(message)
}

#[cfg(test)]
#[path = "json/tests.rs"]
mod tests;
