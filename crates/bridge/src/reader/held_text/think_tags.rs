//! Takes reasoning out of text that begins with `<think>`.
//!
//! ```text
//!  Lead ──<think>──▶ Opening ──▶ Inside ──</think>──▶ After ──▶ Through     (white space at ──▶ is dropped)
//!    └── anything else ─────────────────────────────────────────────▲
//! ```
//!
//! Only the beginning of an answer is looked at: a tag in the middle, in code or in a quotation, stays text.
//! What is held back is never longer than a tag and the white space before it.

use crate::response::PartKind;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// White space before the tag; more than that is an answer.
const MAX_LEAD: usize = 64;

#[derive(Debug, Clone)]
pub(super) struct ThinkTagSplitter {
    state: State,
    held: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Lead,
    Opening,
    Inside,
    After,
    Through,
}

/// A piece of text and what kind it turned out to be.
pub(in crate::reader) type TaggedText = (PartKind, String);

impl ThinkTagSplitter {
    pub(super) const fn leading() -> Self {
        Self { state: State::Lead, held: String::new() }
    }

    /// The tag is open already.
    pub(super) const fn opened() -> Self {
        Self { state: State::Opening, held: String::new() }
    }

    /// There is nothing left to do.
    pub(super) fn is_through(&self) -> bool {
        self.state == State::Through
    }

    pub(super) fn push(&mut self, text: &str, pieces: &mut Vec<TaggedText>) {
        self.held.push_str(text);
        if self.state == State::Lead {
            self.lead();
        }
        self.skip_blank(State::Opening, State::Inside);
        if self.state == State::Inside {
            self.inside(pieces);
        }
        self.skip_blank(State::After, State::Through);
        if self.state == State::Through {
            give(PartKind::Text, std::mem::take(&mut self.held), pieces);
        }
    }

    /// What is held back has no tag after it any more.
    pub(super) fn flush(&mut self, pieces: &mut Vec<TaggedText>) {
        let kind = if self.state == State::Inside { PartKind::Reasoning } else { PartKind::Text };
        give(kind, std::mem::take(&mut self.held), pieces);
        if self.state != State::Inside {
            self.state = State::Through;
        }
    }

    /// Drops white space until there is something else.
    fn skip_blank(&mut self, at: State, next: State) {
        if self.state == at {
            let blank = self.held.len() - self.held.trim_start().len();
            self.held.drain(..blank);
            if !self.held.is_empty() {
                self.state = next;
            }
        }
    }

    fn lead(&mut self) {
        let start = self.held.trim_start();
        if self.held.len() - start.len() > MAX_LEAD {
            self.state = State::Through;
        } else if let Some(after) = start.strip_prefix(OPEN) {
            self.held = after.to_owned();
            self.state = State::Opening;
        } else if !OPEN.starts_with(start) {
            self.state = State::Through;
        }
    }

    fn inside(&mut self, pieces: &mut Vec<TaggedText>) {
        let (end, after) = match self.held.find(CLOSE) {
            Some(at) => (at, at + CLOSE.len()),
            None => (self.held.len() - tail(&self.held), self.held.len()),
        };
        let closed = after - end == CLOSE.len() && self.held[end..].starts_with(CLOSE);
        let rest = if closed { self.held.split_off(after) } else { self.held.split_off(end) };
        self.held.truncate(end);
        give(PartKind::Reasoning, std::mem::replace(&mut self.held, rest), pieces);
        if closed {
            self.state = State::After;
        }
    }
}

/// How many bytes at the end may be the beginning of the closing tag.
fn tail(text: &str) -> usize {
    (1..CLOSE.len()).rev().find(|&length| text.ends_with(&CLOSE[..length])).unwrap_or(0)
}

fn give(kind: PartKind, text: String, pieces: &mut Vec<TaggedText>) {
    if !text.is_empty() {
        pieces.push((kind, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_wherever_they_are_split() {
        for (opened, text, thought, answer) in [
            (false, "<think>hm</think>Hi", "hm", "Hi"),
            (
                false,
                "\n<think>\na < b </ </thin </think>\n\nHi <think>x</think>",
                "a < b </ </thin ",
                "Hi <think>x</think>",
            ),
            (false, "Use `<think>` so", "", "Use `<think>` so"),
            (false, "<thin ice", "", "<thin ice"),
            (false, "<think>never closed </thi", "never closed </thi", ""),
            (false, "<think></think>Hi", "", "Hi"),
            (true, "hm</think>Hi", "hm", "Hi"),
            (false, "  ", "", "  "),
            (false, "é", "", "é"),
        ] {
            for size in [1, 2, 3, 100] {
                let mut think = if opened { ThinkTagSplitter::opened() } else { ThinkTagSplitter::leading() };
                let mut pieces = Vec::new();
                let characters: Vec<char> = text.chars().collect();
                for piece in characters.chunks(size) {
                    think.push(&piece.iter().collect::<String>(), &mut pieces);
                    assert!(think.held.len() <= MAX_LEAD + CLOSE.len(), "{text}: holds {}", think.held);
                }
                think.flush(&mut pieces);
                let of = |wanted: PartKind| -> String {
                    pieces.iter().filter(|(kind, _)| *kind == wanted).map(|(_, text)| text.as_str()).collect()
                };
                assert_eq!(
                    (of(PartKind::Reasoning).as_str(), of(PartKind::Text).as_str()),
                    (thought, answer),
                    "{text}"
                );
            }
        }
    }
}
