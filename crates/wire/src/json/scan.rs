//! Walks JSON that is known to be valid. On anything else it stops early; it never panics.

use memchr::memchr;

use super::{Kind, Raw, Text};

/// The members of an object.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    text: &'a str,
    at: usize,
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: if text.starts_with('{') { 1 } else { text.len() } }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Text<'a>, Raw<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key_start = skip_gap(self.text, self.at);
        let key_end = value_end(self.text, key_start)?;
        let start = skip_gap(self.text, key_end);
        let end = value_end(self.text, start)?;
        self.at = end;
        let key = Raw(self.text.get(key_start..key_end)?).text()?;
        Some((key, Raw(self.text.get(start..end)?)))
    }
}

impl<'a> Elements<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: if text.starts_with('[') { 1 } else { text.len() } }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = skip_gap(self.text, self.at);
        let end = value_end(self.text, start)?;
        self.at = end;
        self.text.get(start..end).map(Raw)
    }
}

/// A place in a document, for reading it in one sweep: each value is read in place, and its end is where
/// reading it stopped.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(raw: Raw<'a>) -> Self {
        Self { text: raw.as_str(), at: 0 }
    }

    /// Where the next value begins.
    pub fn start(&mut self) -> usize {
        self.at = skip_gap(self.text, self.at);
        self.at
    }

    /// What has been read since `start`.
    pub fn since(&self, start: usize) -> Raw<'a> {
        Raw(self.text.get(start..self.at).unwrap_or("null"))
    }

    /// What the next value is.
    pub fn kind(&mut self) -> Kind {
        let start = self.start();
        Raw(self.text.get(start..).unwrap_or_default()).kind()
    }

    /// The next value, whole.
    pub fn raw(&mut self) -> Raw<'a> {
        let start = self.start();
        match value_end(self.text, start) {
            Some(end) => {
                self.at = end;
                self.since(start)
            }
            None => Raw::NULL,
        }
    }

    /// Steps into an object or an array.
    pub fn enter(&mut self) {
        self.at = self.start() + 1;
    }

    /// Whether the container that was entered has more; steps out of it when not.
    pub fn more(&mut self) -> bool {
        let start = self.start();
        match self.text.as_bytes().get(start) {
            Some(b'}' | b']') => {
                self.at = start + 1;
                false
            }
            Some(_) => true,
            None => false,
        }
    }

    /// The next key of the object that was entered.
    pub fn key(&mut self) -> Option<Text<'a>> {
        if self.more() { self.raw().text() } else { None }
    }
}

/// Past white space, commas and colons: valid JSON has them only where we may step over them.
fn skip_gap(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let gap = |b: &u8| matches!(b, b' ' | b'\n' | b'\r' | b'\t' | b',' | b':');
    bytes[at.min(bytes.len())..].iter().position(|b| !gap(b)).map_or(bytes.len(), |n| at + n)
}

/// The end of the value that starts at `start`; `None` where there is none (a closing bracket, the end).
fn value_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes.get(start)? {
        b'"' => string_end(bytes, start),
        b'{' | b'[' => container_end(bytes, start),
        b'}' | b']' => None,
        _ => {
            let stop = |b: &u8| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
            Some(bytes[start..].iter().position(stop).map_or(bytes.len(), |n| start + n))
        }
    }
}

/// Past the closing quote of the string that opens at `start`.
///
/// Looks for quotes only and counts the backslashes before one: text of programs is full of `\n`, and stopping
/// at each of them costs three times as much.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        let quote = at + memchr(b'"', bytes.get(at..)?)?;
        let backslashes = bytes[at..quote].iter().rev().take_while(|&&byte| byte == b'\\').count();
        if backslashes % 2 == 0 {
            return Some(quote + 1);
        }
        at = quote + 1;
    }
}

fn container_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Whether containers nest deeper than `limit`.
pub(super) fn depth_exceeds(text: &str, limit: usize) -> bool {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => match string_end(bytes, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => return false,
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return true;
        }
        at += 1;
    }
    false
}
