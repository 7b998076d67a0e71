//! Writes JSON straight into a buffer: no tree, no struct per event.

use super::{Raw, escape_into};

/// Appends `text` as a JSON string.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escape_into(out, text);
    out.push(b'"');
}

/// Writes one object, member by member; [`ObjectWriter::end`] closes it.
#[derive(Debug)]
#[must_use]
pub struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    empty: bool,
}

impl<'o> ObjectWriter<'o> {
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Starts a member; the caller writes its value into the buffer.
    pub fn key(&mut self, name: &str) -> &mut Vec<u8> {
        // Once for all that follows, and for a short value.
        self.out.reserve(name.len() + 32);
        self.out.extend_from_slice(if self.empty { b"\"" } else { b",\"" });
        self.empty = false;
        escape_into(self.out, name);
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub fn text(&mut self, name: &str, value: &str) -> &mut Self {
        write_text(self.key(name), value);
        self
    }

    pub fn raw(&mut self, name: &str, value: Raw<'_>) -> &mut Self {
        self.key(name).extend_from_slice(value.as_str().as_bytes());
        self
    }

    /// A value that is JSON already.
    pub fn json(&mut self, name: &str, value: &[u8]) -> &mut Self {
        self.key(name).extend_from_slice(value);
        self
    }

    pub fn bool(&mut self, name: &str, value: bool) -> &mut Self {
        self.json(name, if value { b"true" } else { b"false" })
    }

    pub fn int(&mut self, name: &str, value: impl itoa::Integer) -> &mut Self {
        let mut buffer = itoa::Buffer::new();
        self.json(name, buffer.format(value).as_bytes())
    }

    pub fn null(&mut self, name: &str) -> &mut Self {
        self.json(name, b"null")
    }

    pub fn raw_or_null(&mut self, name: &str, value: Option<Raw<'_>>) -> &mut Self {
        self.raw(name, value.unwrap_or(Raw::NULL))
    }

    pub fn end(self) {
        self.out.push(b'}');
    }
}
