//! What came with an upstream's reasoning and must return to it untouched.
//!
//! `{"reasoning_details": […], "extra_content": …, "calls": {CALL_ID: extra_content}}`, each member only
//! where there is something in it.

use wire::json::{Kind, ObjectWriter, Raw, Text};

use crate::escaped::{Escaped, EscapedBuf};
use crate::json::{bracketed, join};

#[derive(Debug, Clone, Default)]
pub(super) struct ReplayData {
    details: Vec<Detail>,
    extra_content: Option<String>,
    /// Call id, JSON.
    calls: Vec<(String, String)>,
    /// How much all of that is. What replaces something else counts like it.
    bytes: usize,
}

/// One block of reasoning. A stream brings it in pieces; it goes back whole.
#[derive(Debug, Clone)]
struct Detail {
    kind: String,
    index: String,
    /// The member that comes in pieces, and its text so far.
    text: Option<(&'static str, EscapedBuf)>,
    /// The other members: name and JSON, the last word on each.
    members: Vec<(String, String)>,
}

const TEXTS: [&str; 3] = ["text", "summary", "data"];

impl ReplayData {
    pub(super) fn is_empty(&self) -> bool {
        self.details.is_empty() && self.extra_content.is_none() && self.calls.is_empty()
    }

    pub(super) fn details(&mut self, details: Raw<'_>) {
        for detail in details.elements().filter(|detail| detail.kind() == Kind::Object) {
            self.detail(detail);
        }
    }

    fn detail(&mut self, raw: Raw<'_>) {
        let member = |name: &str| raw.get(name).map(|value| value.as_str().to_owned()).unwrap_or_default();
        let (kind, index) = (member("type"), member("index"));
        let goes_on = self.details.last().is_some_and(|last| last.kind == kind && last.index == index);
        // Encrypted blocks are whole; two of them are two.
        if !goes_on || kind.contains("encrypted") {
            self.bytes += size_of::<Detail>();
            self.details.push(Detail { kind, index, text: None, members: Vec::new() });
        }
        let Some(detail) = self.details.last_mut() else { return };
        for (name, value) in raw.fields().filter(|(_, value)| !value.is_null()) {
            self.bytes += detail.member(name, value);
        }
    }

    /// In bytes.
    pub(super) const fn held(&self) -> usize {
        self.bytes
    }

    pub(super) fn extra_content(&mut self, extra: Raw<'_>) {
        let known = self.extra_content.as_ref().map_or(0, String::len);
        self.bytes += extra.as_str().len().saturating_sub(known);
        self.extra_content = Some(extra.as_str().to_owned());
    }

    pub(super) fn call(&mut self, call_id: &str, extra: Raw<'_>) {
        self.bytes += call_id.len() + extra.as_str().len();
        self.calls.push((call_id.to_owned(), extra.as_str().to_owned()));
    }

    /// Takes what is inside, as JSON.
    pub(super) fn take(&mut self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        self.bytes = 0;
        let mut out = Vec::new();
        let mut data = ObjectWriter::new(&mut out);
        if !self.details.is_empty() {
            let mut details = Vec::new();
            for detail in self.details.drain(..) {
                join(&mut details, &detail.json());
            }
            bracketed(data.key("reasoning_details"), &details);
        }
        if let Some(extra) = self.extra_content.take() {
            data.json("extra_content", extra.as_bytes());
        }
        if !self.calls.is_empty() {
            let mut calls = ObjectWriter::new(data.key("calls"));
            for (call_id, extra) in self.calls.drain(..) {
                calls.json(&call_id, extra.as_bytes());
            }
            calls.end();
        }
        data.end();
        String::from_utf8(out).ok()
    }
}

impl Detail {
    /// Takes one member; says how many bytes it grew by.
    fn member(&mut self, name: Text<'_>, value: Raw<'_>) -> usize {
        let known = TEXTS.into_iter().find(|known| name.is(known));
        if let (Some(known), Some(text)) = (known, value.text()) {
            let (_, so_far) = self.text.get_or_insert_with(|| (known, EscapedBuf::default()));
            so_far.push(Escaped::of(text));
            return text.escaped().len();
        }
        let name = name.decode().into_owned();
        let value = value.as_str().to_owned();
        match self.members.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => {
                let grown = value.len().saturating_sub(known.len());
                *known = value;
                grown
            }
            None => {
                let grown = name.len() + value.len();
                self.members.push((name, value));
                grown
            }
        }
    }

    fn json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        for (name, value) in &self.members {
            object.json(name, value.as_bytes());
        }
        if let Some((name, text)) = &self.text {
            text.get().write(object.key(name));
        }
        object.end();
        out
    }
}

/// The text of reasoning blocks, in order, for servers that send it nowhere else.
pub(super) fn detail_texts(details: Raw<'_>) -> impl Iterator<Item = Text<'_>> {
    details.elements().filter_map(|detail| detail.get("text").or_else(|| detail.get("summary")).and_then(Raw::text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_blocks_again() {
        let mut data = ReplayData::default();
        for details in [
            r#"[{"type":"reasoning.text","text":"a","index":0,"format":"f"}]"#,
            r#"[{"type":"reasoning.text","text":"b\n","index":0,"signature":null}]"#,
            r#"[{"type":"reasoning.text","index":0,"signature":"s"}]"#,
            r#"[{"type":"reasoning.encrypted","data":"x","index":1},{"type":"reasoning.encrypted","data":"y","index":1},7]"#,
        ] {
            data.details(Raw::parse(details).unwrap());
        }
        data.call("c\"1", Raw::parse(r#"{"v":{"sig":"q"}}"#).unwrap());
        let expected = concat!(
            r#"{"reasoning_details":[{"type":"reasoning.text","index":0,"format":"f","signature":"s","text":"ab\n"},"#,
            r#"{"type":"reasoning.encrypted","index":1,"data":"x"},{"type":"reasoning.encrypted","index":1,"data":"y"}],"#,
            r#""calls":{"c\"1":{"v":{"sig":"q"}}}}"#
        );
        assert_eq!(data.take().as_deref(), Some(expected));
        assert!(data.is_empty() && data.take().is_none());
    }
}
