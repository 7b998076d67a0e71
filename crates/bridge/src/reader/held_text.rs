//! Text of which the beginning may be a tag or a code fence: it is looked at, decoded, before it goes on.

mod fence;
mod think_tags;

use crate::dialect::ThinkTags;
use crate::escaped::{Escaped, Pieces};
use crate::response::PartKind;
use fence::Fence;
pub(super) use think_tags::TaggedText;
use think_tags::ThinkTagSplitter;

#[derive(Debug, Clone)]
pub(super) struct HeldText {
    think_tags: Option<ThinkTagSplitter>,
    fence: Option<Fence>,
    /// What those two are to look at next; between two pieces there is never more in it than half a surrogate pair.
    pieces: Pieces,
}

impl HeldText {
    pub(super) fn new(think_tags: ThinkTags, unfences: bool) -> Self {
        Self {
            think_tags: match think_tags {
                ThinkTags::Off => None,
                ThinkTags::Leading => Some(ThinkTagSplitter::leading()),
                ThinkTags::Opened => Some(ThinkTagSplitter::opened()),
            },
            fence: unfences.then(Fence::default),
            pieces: Pieces::default(),
        }
    }

    /// There is nothing left to look for: text goes on as it comes.
    pub(super) fn is_through(&self) -> bool {
        self.think_tags.as_ref().is_none_or(ThinkTagSplitter::is_through)
            && self.fence.as_ref().is_none_or(Fence::is_through)
            && self.pieces.is_empty()
    }

    /// Whether a fence was taken off.
    pub(super) fn found_fence(&self) -> bool {
        self.fence.as_ref().is_some_and(Fence::found)
    }

    /// More text; what of it may go on.
    pub(super) fn push(&mut self, text: Escaped<'_>) -> Vec<TaggedText> {
        self.pieces.push(text);
        let clean = self.pieces.take();
        let decoded = clean.get().decode();
        let mut texts = Vec::new();
        match &mut self.think_tags {
            Some(think_tags) => think_tags.push(&decoded, &mut texts),
            None => texts.push((PartKind::Text, decoded.into_owned())),
        }
        self.unfenced(texts)
    }

    /// Nothing more comes: what is held back was neither a tag nor a fence.
    pub(super) fn flush(&mut self) -> Vec<TaggedText> {
        let mut texts = Vec::new();
        if self.is_through() {
            return texts;
        }
        if let Some(think_tags) = &mut self.think_tags {
            think_tags.flush(&mut texts);
        }
        if self.pieces.finish() {
            texts.push((PartKind::Text, self.pieces.take().get().decode().into_owned()));
        }
        let mut texts = self.unfenced(texts);
        if let Some(fence) = &mut self.fence {
            texts.push((PartKind::Text, fence.flush()));
        }
        texts
    }

    fn unfenced(&mut self, mut texts: Vec<TaggedText>) -> Vec<TaggedText> {
        if let Some(fence) = &mut self.fence {
            for (_, text) in texts.iter_mut().filter(|(kind, _)| *kind == PartKind::Text) {
                *text = fence.push(text);
            }
        }
        texts
    }
}
