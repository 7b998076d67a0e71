//! Walks JSON that is known to be valid. On anything else it stops early; it never panics.

use memchr::memchr2;

use super::{Raw, Text};

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
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        let hit = at + memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[hit] == b'"' {
            return Some(hit + 1);
        }
        at = hit + 2;
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
