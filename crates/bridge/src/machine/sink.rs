//! Where everything that an answer becomes is put: ids given out, events written, closed items, notes.

use wire::id::Ids;

use super::emit::Emitter;
use crate::note::{Action, Note};
use crate::reading::OfferedTool;

/// An answer that is odd in more ways than this is not described any further.
const MAX_NOTES: usize = 32;

#[derive(Debug, Clone)]
pub(super) struct Sink {
    pub(super) ids: Ids,
    pub(super) emitter: Emitter,
    pub(super) output: Output,
    pub(super) notes: Vec<Note>,
    /// The tools that were offered.
    pub(super) tools: Vec<OfferedTool>,
}

/// The closed items, comma between them, as the object shows them.
#[derive(Debug, Clone, Default)]
pub(super) struct Output {
    pub(super) items: Vec<u8>,
    pub(super) count: u32,
}

impl Output {
    pub(super) fn push(&mut self, item: &[u8]) {
        if self.count > 0 {
            self.items.push(b',');
        }
        self.items.extend_from_slice(item);
        self.count += 1;
    }
}

impl Sink {
    /// Notes an oddity, once.
    pub(super) fn note(&mut self, action: Action, path: &'static str, message: impl Into<String>) {
        let note = Note::new(action, path, message.into());
        if self.notes.len() < MAX_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
