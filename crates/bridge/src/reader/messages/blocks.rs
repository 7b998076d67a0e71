//! Blocks that must return to the upstream as they came: thoughts with their signatures, and what its own tools did. They
//! are kept as raw JSON, joined from their pieces without being written anew: a signature holds for these bytes.

use wire::json::{Kind, ObjectWriter, Raw, Text};

use crate::escaped::{Escaped, EscapedBuf, Pieces};
use crate::json::{bracketed, join};

/// Blocks in the order in which they came.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    blocks: Vec<Kept>,
    bytes: usize,
}

#[derive(Debug, Clone)]
struct Kept {
    json: String,
    pair: Pair,
}

/// What a block is nothing without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pair {
    /// It stands alone.
    None,
    /// The use of a tool by the upstream, of this id: a use without its result is refused.
    Use(String),
    Result(String),
}

impl Blocks {
    pub(super) fn push(&mut self, json: String, pair: Pair) {
        self.bytes += json.len();
        self.blocks.push(Kept { json, pair });
    }

    /// The same, where there is one.
    pub(super) fn keep(&mut self, block: Option<(String, Pair)>) {
        if let Some((json, pair)) = block {
            self.push(json, pair);
        }
    }

    /// In bytes.
    pub(super) const fn held(&self) -> usize {
        self.bytes
    }

    /// Nothing that could return.
    pub(super) fn is_empty(&self) -> bool {
        !self.blocks.iter().any(|block| self.is_whole(&block.pair))
    }

    fn is_whole(&self, pair: &Pair) -> bool {
        let other = match pair {
            Pair::None => return true,
            Pair::Use(id) => Pair::Result(id.clone()),
            Pair::Result(id) => Pair::Use(id.clone()),
        };
        self.blocks.iter().any(|block| block.pair == other)
    }

    /// Takes them, as a JSON array; without those that have lost their other half.
    pub(super) fn take(&mut self) -> Option<String> {
        if self.is_empty() {
            *self = Self::default();
            return None;
        }
        let mut list = Vec::with_capacity(self.bytes + self.blocks.len());
        for block in self.blocks.iter().filter(|block| self.is_whole(&block.pair)) {
            join(&mut list, block.json.as_bytes());
        }
        *self = Self::default();
        let mut out = Vec::with_capacity(list.len() + 2);
        bracketed(&mut out, &list);
        String::from_utf8(out).ok()
    }
}

/// A thought that is being read.
#[derive(Debug, Clone)]
pub(super) struct Thought {
    /// As it was announced.
    start: String,
    text: Pieces,
    signature: Option<EscapedBuf>,
}

impl Thought {
    pub(super) fn new(start: Raw<'_>) -> Self {
        let string = |name: &str| start.get(name).and_then(Raw::text).filter(|text| !text.is_empty()).map(Escaped::of);
        Self {
            start: start.as_str().to_owned(),
            text: string("thinking").map(Pieces::of).unwrap_or_default(),
            signature: string("signature").map(EscapedBuf::clean),
        }
    }

    pub(super) fn push(&mut self, text: Escaped<'_>) {
        self.text.push(text);
    }

    /// It comes once; some servers announce it, and say it again.
    pub(super) fn sign(&mut self, signature: Text<'_>) {
        if !signature.is_empty() {
            self.signature = Some(EscapedBuf::clean(Escaped::of(signature)));
        }
    }

    pub(super) fn held(&self) -> usize {
        self.start.len() + self.text.len() + self.signature.as_ref().map_or(0, |text| text.get().len())
    }

    /// The whole block; none where it says nothing.
    pub(super) fn finish(mut self) -> Option<String> {
        self.text.finish();
        if self.text.is_empty() && self.signature.is_none() {
            return None;
        }
        let mut out = Vec::with_capacity(self.held() + 64);
        let mut block = ObjectWriter::new(&mut out);
        block.text("type", "thinking");
        self.text.get().write(block.key("thinking"));
        if let Some(signature) = &self.signature {
            signature.get().write(block.key("signature"));
        }
        let start = Raw::parse(&self.start).ok().filter(|start| start.kind() == Kind::Object);
        let ours = ["type", "thinking", "signature"];
        for (name, value) in start.into_iter().flat_map(Raw::fields) {
            if !ours.iter().any(|our| name.is(our)) {
                block.raw(&name.decode(), value);
            }
        }
        block.end();
        String::from_utf8(out).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thought(start: &str, texts: &[&str], signature: Option<&str>) -> Option<String> {
        let mut thought = Thought::new(Raw::parse(start).unwrap());
        for text in texts {
            thought.push(Escaped::inside(text));
        }
        if let Some(signature) = signature {
            thought.sign(Raw::parse(signature).unwrap().text().unwrap());
        }
        thought.finish()
    }

    #[test]
    fn thoughts_are_joined_as_they_were_written() {
        let start = r#"{"type":"thinking","thinking":"","signature":""}"#;
        for (start, texts, signature, expected) in [
            (
                start,
                &["a\\n", "\\u00e9é"][..],
                Some(r#""sig/+==""#),
                Some(r#"{"type":"thinking","thinking":"a\n\u00e9é","signature":"sig/+=="}"#),
            ),
            (start, &["\\ud83d", "\\ude00"], None, Some(r#"{"type":"thinking","thinking":"\ud83d\ude00"}"#)),
            // Nothing to read, and yet it has to return.
            (start, &[], Some(r#""s""#), Some(r#"{"type":"thinking","thinking":"","signature":"s"}"#)),
            (start, &[], Some(r#""""#), None),
            (
                r#"{"type":"thinking","thinking":"x","signature":"s","more":[1, 2]}"#,
                &["y"],
                None,
                Some(r#"{"type":"thinking","thinking":"xy","signature":"s","more":[1, 2]}"#),
            ),
            (
                r#"{"type":"thinking","signature":"s"}"#,
                &[],
                Some(r#""s""#),
                Some(r#"{"type":"thinking","thinking":"","signature":"s"}"#),
            ),
        ] {
            assert_eq!(thought(start, texts, signature).as_deref(), expected, "{start} {texts:?}");
        }
    }

    #[test]
    fn what_a_tool_did_goes_with_its_use_or_not_at_all() {
        let mut blocks = Blocks::default();
        blocks.push("1".into(), Pair::Use("a".into()));
        blocks.push("2".into(), Pair::Use("b".into()));
        assert!(blocks.is_empty());
        blocks.push("3".into(), Pair::Result("b".into()));
        blocks.push("4".into(), Pair::None);
        blocks.push("5".into(), Pair::Result("c".into()));
        assert_eq!((blocks.held(), blocks.take().as_deref()), (5, Some("[2,3,4]")));
        assert_eq!((blocks.held(), blocks.take()), (0, None));
    }
}
