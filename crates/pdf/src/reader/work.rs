//! What a file may have done, over all of its pages and forms. The text that it shows is no measure of that: a form can draw
//! a form that draws a form, and glyphs can stand for nothing.

use std::cell::Cell;

/// What is paid for a form, beside what is in it: it is looked up and decoded each time that it is drawn.
const FORM: u64 = 100;
/// Bytes of a form's content that cost as much as one operator.
const BYTES_PER_STEP: u64 = 8;

/// The steps that are left.
#[derive(Debug)]
pub(super) struct Work(Cell<u64>);

impl Work {
    pub(super) const fn new(steps: u64) -> Self {
        Self(Cell::new(steps))
    }

    /// One operator, or one glyph.
    pub(super) fn step(&self) {
        self.spend(1);
    }

    /// A form of so many bytes.
    pub(super) fn form(&self, bytes: usize) {
        self.spend(FORM + bytes as u64 / BYTES_PER_STEP);
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.get() == 0
    }

    fn spend(&self, steps: u64) {
        self.0.set(self.0.get().saturating_sub(steps));
    }
}
