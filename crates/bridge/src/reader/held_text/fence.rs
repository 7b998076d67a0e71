//! Takes JSON out of the code fence that a model has put around it, while it comes.
//!
//! ```text
//!  Lead ──```──▶ Info ──line ends──▶ Body ──value whole──▶ Over (the rest is dropped)
//!    └── anything else ──▶ Through ◀── a long line ── Info
//! ```

use super::super::balance::Balance;

#[derive(Debug, Clone, Default)]
pub(super) struct Fence {
    state: State,
    held: String,
    value: Balance,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Lead,
    Info,
    Body,
    Over,
    Through,
}

const MARK: &str = "```";
/// White space before the fence, and what may come after its mark; more than that is an answer.
const MAX_LEAD: usize = 64;

impl Fence {
    /// There is nothing left to do.
    pub(super) fn is_through(&self) -> bool {
        self.state == State::Through
    }

    /// Whether a fence was taken off.
    pub(super) const fn found(&self) -> bool {
        matches!(self.state, State::Body | State::Over)
    }

    /// What of the text may go on. What is held back is never longer than this text and a fence's first line, so a
    /// piece costs what it is long.
    pub(super) fn push(&mut self, text: &str) -> String {
        if self.state == State::Over {
            return String::new();
        }
        self.held.push_str(text);
        if self.state == State::Lead {
            self.lead();
        }
        if self.state == State::Info {
            self.info();
        }
        match self.state {
            State::Lead | State::Info | State::Over => String::new(),
            State::Through => std::mem::take(&mut self.held),
            State::Body => self.body(),
        }
    }

    fn lead(&mut self) {
        let start = self.held.trim_start();
        if self.held.len() - start.len() > MAX_LEAD {
            self.state = State::Through;
        } else if start.starts_with(MARK) {
            self.state = State::Info;
        } else if !MARK.starts_with(start) {
            self.state = State::Through;
        }
    }

    /// `json`, a line end; or the value at once. A mark with a long line after it is no fence, and stays.
    fn info(&mut self) {
        let line = self.held.trim_start().strip_prefix(MARK).unwrap_or_default();
        match line.find(['\n', '{', '[']) {
            Some(at) if at <= MAX_LEAD => {
                let from = self.held.len() - line.len() + at;
                self.held.drain(..from);
                self.state = State::Body;
            }
            _ if line.len() > MAX_LEAD => self.state = State::Through,
            _ => {}
        }
    }

    fn body(&mut self) -> String {
        let mut body = std::mem::take(&mut self.held);
        if self.value.first().is_none() {
            body = body.trim_start().to_owned();
        }
        let end = body.bytes().position(|byte| self.value.step(byte));
        if let Some(last) = end {
            self.state = State::Over;
            body.truncate(last + 1);
        }
        body
    }

    /// What is held back, once nothing more of it comes: it was no fence. Where no text came at all, it is still to begin.
    pub(super) fn flush(&mut self) -> String {
        let has_begun = self.state == State::Info || self.state == State::Lead && !self.held.trim_start().is_empty();
        if has_begun {
            self.state = State::Through;
        }
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_come_off_in_every_split() {
        for (text, json) in [
            ("```json\n{\"a\":\"```\"}\n```\nThere you are.", "{\"a\":\"```\"}"),
            ("\n``` \n[1]\n```", "[1]"),
            ("```{\"a\":1}```", "{\"a\":1}"),
            ("{\"a\":1}", "{\"a\":1}"),
            ("``", "``"),
            ("`code`", "`code`"),
            ("```json\n{\"a\":", "{\"a\":"),
            ("```json", "```json"),
            (&"`".repeat(70), &"`".repeat(70)),
            (&format!("```{}\n{{}}", "x".repeat(64)), "\n{}"),
            (&format!("```{}\n{{}}", "x".repeat(65)), &format!("```{}\n{{}}", "x".repeat(65))),
            (&format!("{}```\n1", " ".repeat(65)), &format!("{}```\n1", " ".repeat(65))),
        ] {
            for size in [1, 2, 3, 100] {
                let mut fence = Fence::default();
                let characters: Vec<char> = text.chars().collect();
                let pieces = characters.chunks(size).map(|piece| piece.iter().collect::<String>());
                let mut found: String = pieces.map(|piece| fence.push(&piece)).collect();
                found += &fence.flush();
                assert_eq!(found.trim_start_matches('\n'), json.trim_start_matches('\n'), "{text}");
            }
        }
    }

    /// What is kept from piece to piece is looked at again with each.
    #[test]
    fn an_answer_of_backticks_does_not_pile_up() {
        let mut fence = Fence::default();
        let (mut most, mut given) = (0, 0);
        for _ in 0..1000 {
            given += fence.push("`").len();
            most = most.max(fence.held.len());
        }
        assert!(most <= 2 * MAX_LEAD && given == 1000, "{most} {given}");
    }
}
