//! The questions for a summary. All of the conversation in one question, if that fits; else piece by piece: a summary of the
//! first piece, then of that summary and the next piece, and so on. How large a piece may be is what the model is known
//! to take, or found out: one that is refused for its length is halved.
//!
//! There is an end to it: so many questions, and then none.

use std::fmt::Write as _;

use bridge::{Failure, FailureClass, SealedSummary};
use wire::json::{ObjectWriter, Raw};
use wire::responses::{CreateResponse, Usage};

use super::history::{Entry, History, Role};
use super::{shorten, size, units};
use crate::ask::{NoAnswer, OwnAnswer, ask};
use crate::items;
use crate::request::RequestContext;
use crate::upstream::Failover;

/// What is asked.
const PROMPT: &str = include_str!("prompt.md");

/// Questions for one summary, also those that were refused for their length.
const MOST_QUESTIONS: usize = 32;

/// A piece is never smaller than this, in tokens.
const LEAST_PIECE: u64 = 256;

/// What one text in the conversation may have, in bytes; more of a tool's output says little in a summary.
const LONGEST_TEXT: usize = 32 << 10;

/// A summary is no longer than this, in bytes, whatever the model writes.
const LONGEST_SUMMARY: usize = 256 << 10;

/// A summary of little may be longer than that, up to this many bytes.
const SHORT_SUMMARY: usize = 4 << 10;

/// What a model may write for a summary, in tokens, where anything is said about it. What it thinks counts, too.
const OUTPUT: (u64, u64) = (4096, 32_768);

pub(super) struct Fold<'r, 'a> {
    context: &'r RequestContext,
    failover: &'r mut Failover,
    request: &'r CreateResponse<'a>,
    entries: Vec<Entry>,
    /// How many tokens the model takes.
    window: Option<u64>,
    /// How many tokens the context should stay below.
    limit: Option<u64>,
    /// How many tokens a summary takes the place of.
    replaced: u64,
    /// The last one broke off: a shorter one is asked for.
    again: bool,
    /// How many tokens of conversation go into one question.
    piece: u64,
    usage: Option<Usage>,
}

/// What came of it.
pub(super) struct Summary {
    pub(super) text: String,
    pub(super) usage: Option<Usage>,
    /// The model wrote more than there is room for: the middle is left out.
    pub(super) cut: bool,
}

impl<'r, 'a> Fold<'r, 'a> {
    pub(super) fn new(
        context: &'r RequestContext,
        failover: &'r mut Failover,
        request: &'r CreateResponse<'a>,
        history: History,
        window: Option<u64>,
        limit: Option<u64>,
    ) -> Self {
        // The other half is for the prompt, an earlier summary, the answer, and for our being wrong about sizes.
        let piece = window.map_or(u64::MAX, |window| (window / 2).max(LEAST_PIECE));
        let entries = history.into_said();
        let replaced = units::weight(&entries);
        Self { context, failover, request, entries, window, limit, replaced, again: false, piece, usage: None }
    }

    /// The summary, and what it took.
    pub(super) async fn run(mut self, accepted: &(dyn Fn() + Send + Sync)) -> Result<Summary, NoAnswer> {
        let mut summary: Option<String> = None;
        let (mut questions, mut cut) = (0, false);
        self.shorten(LONGEST_TEXT, false);
        while !self.entries.is_empty() {
            if questions == MOST_QUESTIONS {
                let message = "The conversation is too long to be summarised.";
                return Err(Failure::new(FailureClass::ContextOverflow, message).into());
            }
            self.fit(MOST_QUESTIONS - questions, summary.as_deref());
            let (count, weight) = self.next_piece();
            questions += 1;
            let request = self.question(count, summary.as_deref());
            match ask(self.context, self.failover, request, accepted).await {
                Ok(OwnAnswer { text, usage, whole }) => {
                    if let Some(usage) = usage {
                        self.usage = Some(self.usage.unwrap_or_default().plus(usage));
                    }
                    if !whole {
                        self.ask_again()?;
                        continue;
                    }
                    let longest = self.longest_summary();
                    cut = text.trim().len() > longest;
                    summary = Some(shorten::text(text.trim(), longest));
                    self.entries.drain(..count);
                    self.again = false;
                }
                Err(NoAnswer { failure, .. })
                    if failure.class == FailureClass::ContextOverflow && weight > LEAST_PIECE =>
                {
                    self.piece = (weight / 2).max(LEAST_PIECE);
                }
                Err(no_answer) => return Err(no_answer),
            }
        }
        match summary {
            Some(text) => Ok(Summary { text, usage: self.usage, cut }),
            None => Err(Failure::new(FailureClass::Empty, "There is nothing to summarise.").into()),
        }
    }

    /// What the model did not write to its end is no summary: what comes last in it is what is done next. Once, a shorter
    /// one is asked for.
    fn ask_again(&mut self) -> Result<(), NoAnswer> {
        if self.again {
            let message = "The model did not write the summary to its end.";
            return Err(Failure::new(FailureClass::Truncated, message).into());
        }
        self.again = true;
        Ok(())
    }

    /// A summary must leave room for what follows it, and is no longer than what it takes the place of.
    fn longest_summary(&self) -> usize {
        let of = |share: Option<u64>| share.map_or(LONGEST_SUMMARY, size::bytes_of);
        let replaced = size::bytes_of(self.replaced).max(SHORT_SUMMARY);
        let room = of(self.window.map(|window| window / 3)).min(of(self.limit.map(|limit| limit / 2)));
        room.min(replaced).min(LONGEST_SUMMARY)
    }

    /// What the context should stay below, as far as anybody knows.
    fn least(&self) -> Option<u64> {
        self.window.into_iter().chain(self.limit).min()
    }

    /// If all of it does not go into one question, or not into those that are left: what nobody needs for a summary goes,
    /// and then texts get shorter until it does.
    fn fit(&mut self, questions: usize, summary: Option<&str>) {
        let total: u64 = self.entries.iter().map(|entry| entry.weight).sum();
        if total <= self.piece {
            return;
        }
        // One piece is smaller than what the rest of the budget would hold: some are not full.
        let room = self.piece.saturating_mul(questions as u64) / 2;
        if summary.is_none() {
            self.entries.retain(|entry| entry.role != Role::Instruction);
        }
        let mut longest = size::bytes_of(self.piece / 2).min(LONGEST_TEXT);
        loop {
            self.shorten(longest, true);
            let total: u64 = self.entries.iter().map(|entry| entry.weight).sum();
            if total <= room || longest <= 64 {
                return;
            }
            longest /= 2;
        }
    }

    fn shorten(&mut self, longest: usize, bare: bool) {
        for entry in &mut self.entries {
            if entry.json.len() <= longest {
                continue;
            }
            if let Ok(raw) = Raw::parse(&entry.json) {
                let short = shorten::item(raw, longest, bare);
                entry.weight = Raw::parse(&short).map_or(entry.weight, size::weight);
                entry.json = short;
            }
        }
    }

    /// How many items go into the next question, and what they weigh. At least one. Calls and their outputs go together; if
    /// they are too much for one question, they are shortened.
    fn next_piece(&mut self) -> (usize, u64) {
        let (mut count, mut total) = (0, 0);
        for unit in units::of(&self.entries) {
            let entries = &mut self.entries[unit.clone()];
            if count == 0 {
                units::shorten(entries, self.piece);
            }
            let weight = units::weight(entries);
            if total + weight > self.piece {
                break;
            }
            count = unit.end;
            total += weight;
        }
        if count > 0 { (count, total) } else { self.part_of_unit() }
    }

    /// The same of calls that are too many for one question, however short they are.
    fn part_of_unit(&self) -> (usize, u64) {
        let (mut count, mut total) = (0, 0);
        for entry in &self.entries {
            if count > 0 && total + entry.weight > self.piece {
                break;
            }
            count += 1;
            total += entry.weight;
        }
        (count, total)
    }

    /// The body of a request for a summary of that many items, and of what was summarised before.
    fn question(&self, count: usize, summary: Option<&str>) -> Vec<u8> {
        let whole = summary.is_none() && count == self.entries.len();
        let mut out = Vec::new();
        let mut object = ObjectWriter::new(&mut out);
        object.text("model", self.failover.model()).bool("stream", true).bool("store", false);
        if let Some(least) = self.least() {
            object.int("max_output_tokens", (least / 4).clamp(OUTPUT.0, OUTPUT.1));
        }
        let request = self.request;
        let carried = [
            ("prompt_cache_key", request.prompt_cache_key),
            ("service_tier", request.service_tier),
            ("safety_identifier", request.safety_identifier),
            ("user", request.user),
        ];
        for (name, value) in carried {
            if let Some(value) = value {
                object.raw(name, value.raw());
            }
        }
        if let Some(instructions) = request.instructions.filter(|text| whole && !text.is_empty()) {
            object.raw("instructions", instructions.raw());
        }
        let input = object.key("input");
        input.push(b'[');
        if let Some(summary) = summary {
            input.extend_from_slice(SealedSummary::message(summary).as_bytes());
            input.push(b',');
        }
        for entry in &self.entries[..count] {
            input.extend_from_slice(entry.json.as_bytes());
            input.push(b',');
        }
        input.extend_from_slice(items::message("user", "input_text", &self.prompt(whole)).as_bytes());
        input.push(b']');
        object.end();
        out
    }

    fn prompt(&self, whole: bool) -> String {
        let mut prompt = PROMPT.to_owned();
        if !whole {
            prompt.push_str("\nThe conversation comes in pieces. The summary so far, if there is one, stands first: take over everything in it that may still matter.\n");
        }
        // A token is about three quarters of a word.
        let words = self.least().map(|least| (least / 8).clamp(150, 3000));
        let words = if self.again { Some(words.map_or(500, |words| words / 2)) } else { words };
        if let Some(words) = words {
            let _ = writeln!(prompt, "\nWrite at most {words} words.");
        }
        prompt
    }
}
