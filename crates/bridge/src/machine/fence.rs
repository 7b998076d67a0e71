//! Takes JSON out of the code fence that a model has put around it, while it comes.
//!
//! ```text
//!  Lead ──```──▶ Info ──line ends──▶ Body ──value whole──▶ Over (the rest is dropped)
//!    └── anything else ──▶ Through
//! ```

use super::balance::Balance;

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
/// An answer that goes on like this has no fence.
const MAX_LEAD: usize = 64;

impl Fence {
    /// There is nothing left to do.
    pub(super) fn is_through(&self) -> bool {
        self.state == State::Through
    }

    /// Whether a fence was taken off.
    pub(super) const fn found(&self) -> bool {
        matches!(self.state, State::Info | State::Body | State::Over)
    }

    /// What of the text may go on.
    pub(super) fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        if self.state == State::Lead {
            let start = self.held.trim_start();
            if let Some(behind) = start.strip_prefix(MARK) {
                self.held = behind.to_owned();
                self.state = State::Info;
            } else if !MARK.starts_with(start) || self.held.len() > MAX_LEAD {
                self.state = State::Through;
            }
        }
        if self.state == State::Info {
            // `json`, a line end; or the value at once.
            let Some(at) = self.held.find(['\n', '{', '[']) else { return String::new() };
            self.held.drain(..at);
            self.state = State::Body;
        }
        match self.state {
            State::Lead | State::Info => String::new(),
            State::Through => std::mem::take(&mut self.held),
            State::Body => self.body(),
            State::Over => {
                self.held.clear();
                String::new()
            }
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

    /// What is held back, once nothing more comes.
    pub(super) fn flush(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        if self.state == State::Lead { held } else { String::new() }
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
        ] {
            for size in [1, 2, 3, 100] {
                let mut fence = Fence::default();
                let characters: Vec<char> = text.chars().collect();
                let pieces = characters.chunks(size).map(|piece| piece.iter().collect::<String>());
                let mut found: String = pieces.map(|piece| fence.push(&piece)).collect();
                found += &fence.flush();
                assert_eq!(found, json, "{text}");
            }
        }
    }
}
