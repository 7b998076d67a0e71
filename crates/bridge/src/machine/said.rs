//! What one delta says, sorted into the channels of a Responses answer.

use wire::chat::{Choice, Delta};
use wire::json::{Kind, Raw, Text, escape_into, sanitize_into, unescape};
use wire::responses::Status;

use super::Machine;
use super::calls::Form;
use super::cite;
use super::part::PartKind;
use super::slot::{Slot, SlotKind};
use super::think::Piece;
use super::thought::detail_texts;
use crate::dialect::RefusalForm;
use crate::failure::{Failure, FailureClass};
use crate::note::Action;
use crate::reading::OutputContract;
use crate::seal::Thought;

impl Machine {
    pub(super) fn choice(&mut self, choice: &Choice<'_>, out: &mut Vec<u8>) {
        if self.reading.logprobs
            && let Some(logprobs) = choice.logprobs.filter(|raw| raw.kind() == Kind::Object)
        {
            super::part::join(&mut self.logprobs, &cite::logprobs(logprobs));
        }
        match (&choice.delta, &choice.message) {
            (Some(delta), _) => self.delta(delta, Form::Delta, out),
            // A whole message behind its own deltas says everything twice.
            (None, Some(message)) if !self.has_spoken => self.delta(message, Form::Whole, out),
            _ => {}
        }
    }

    fn delta(&mut self, delta: &Delta<'_>, form: Form, out: &mut Vec<u8>) {
        self.reasoning(delta, out);
        if let Some(content) = delta.content {
            self.content(content, out);
        }
        if let Some(refusal) = delta.refusal.and_then(Raw::text) {
            self.refusal(refusal, out);
        }
        // What was said aloud is text, too.
        if let Some(spoken) = delta.audio.and_then(|audio| audio.get("transcript")).and_then(Raw::text) {
            self.text(spoken, out);
        }
        for annotation in delta.annotations.into_iter().flat_map(Raw::elements) {
            self.annotations.extend(cite::annotation(annotation));
        }
        self.annotate(out);
        for call in delta.tool_calls.into_iter().flat_map(Raw::elements) {
            self.has_tool_calls = true;
            self.tool_call(call, Some(form), out);
        }
        if let Some(call) = delta.function_call.filter(|call| call.kind() == Kind::Object && !self.has_tool_calls) {
            self.tool_call(call, None, out);
        }
    }

    /// Reasoning, under the first of its names that has any; blocks go into the bag as well.
    fn reasoning(&mut self, delta: &Delta<'_>, out: &mut Vec<u8>) {
        if let Some(extra) = delta.extra_content.filter(|extra| extra.kind() == Kind::Object) {
            self.bag.extra_content(extra);
        }
        let details = delta.reasoning_details.filter(|details| details.kind() == Kind::Array);
        if let Some(details) = details {
            self.bag.details(details);
        }
        let names = [delta.reasoning_content, delta.reasoning, delta.thinking];
        let text = names.into_iter().flatten().filter_map(Raw::text).find(|text| !text.is_empty());
        match (text, details) {
            (Some(text), _) => self.say(PartKind::Reasoning, text.escaped(), out),
            (None, Some(details)) => {
                for text in detail_texts(details) {
                    self.say(PartKind::Reasoning, text.escaped(), out);
                }
            }
            (None, None) => {}
        }
    }

    /// Content is a string, or parts: text, thinking, a refusal.
    fn content(&mut self, content: Raw<'_>, out: &mut Vec<u8>) {
        if let Some(text) = content.text() {
            return self.text(text, out);
        }
        for part in content.elements() {
            if let Some(thinking) = part.get("thinking") {
                self.thinking(thinking, out);
            } else if let Some(text) = part.get("text").and_then(Raw::text) {
                self.text(text, out);
            } else if let Some(refusal) = part.get("refusal").and_then(Raw::text) {
                self.refusal(refusal, out);
            }
        }
    }

    /// A string, or parts with text.
    fn thinking(&mut self, thinking: Raw<'_>, out: &mut Vec<u8>) {
        let parts = thinking.elements().filter_map(|part| part.get("text")).filter_map(Raw::text);
        for text in thinking.text().into_iter().chain(parts) {
            self.say(PartKind::Reasoning, text.escaped(), out);
        }
    }

    fn refusal(&mut self, refusal: Text<'_>, out: &mut Vec<u8>) {
        let kind = match self.setup.dialect.refusal {
            RefusalForm::Refusal => PartKind::Refusal,
            RefusalForm::Text => PartKind::Text,
        };
        self.refused |= !refusal.is_empty();
        self.say(kind, refusal.escaped(), out);
    }

    /// Output text. While its beginning may be a tag or a fence it takes the long way.
    fn text(&mut self, text: Text<'_>, out: &mut Vec<u8>) {
        let through = self.think.as_ref().is_none_or(super::think::Think::is_through)
            && self.fence.as_ref().is_none_or(super::fence::Fence::is_through);
        if through && self.half.is_empty() {
            return self.say(PartKind::Text, text.escaped(), out);
        }
        if !text.is_empty() {
            self.note_late();
        }
        let joined = std::mem::take(&mut self.half) + text.escaped();
        let mut clean = Vec::with_capacity(joined.len());
        sanitize_into(&mut clean, &joined).clone_into(&mut self.half);
        let decoded = unescape(str::from_utf8(&clean).unwrap_or_default());
        let mut pieces = Vec::new();
        match &mut self.think {
            Some(think) => think.push(&decoded, &mut pieces),
            None => pieces.push((PartKind::Text, decoded.into_owned())),
        }
        self.pieces(pieces, out);
    }

    /// What is held back has no more to wait for.
    pub(super) fn release(&mut self, out: &mut Vec<u8>) {
        let mut pieces = Vec::new();
        if let Some(think) = &mut self.think {
            think.flush(&mut pieces);
        }
        if !std::mem::take(&mut self.half).is_empty() {
            pieces.push((PartKind::Text, "\u{fffd}".to_owned()));
        }
        self.pieces(pieces, out);
        let held = self.fence.as_mut().map(super::fence::Fence::flush).unwrap_or_default();
        self.say_decoded(PartKind::Text, &held, out);
    }

    fn pieces(&mut self, pieces: Vec<Piece>, out: &mut Vec<u8>) {
        for (kind, text) in pieces {
            match &mut self.fence {
                Some(fence) if kind == PartKind::Text => {
                    let text = fence.push(&text);
                    self.say_decoded(kind, &text, out);
                }
                _ => self.say_decoded(kind, &text, out),
            }
        }
    }

    fn say_decoded(&mut self, kind: PartKind, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        let mut escaped = Vec::with_capacity(text.len() + 8);
        escape_into(&mut escaped, text);
        self.pass_on(kind, str::from_utf8(&escaped).unwrap_or_default(), out);
    }

    /// Text of any kind, escaped, as it comes.
    fn say(&mut self, kind: PartKind, escaped: &str, out: &mut Vec<u8>) {
        if escaped.is_empty() {
            return;
        }
        self.note_late();
        self.pass_on(kind, escaped, out);
    }

    /// The same, which may have been held back. While a call may still get arguments it waits: items never interleave.
    fn pass_on(&mut self, kind: PartKind, escaped: &str, out: &mut Vec<u8>) {
        self.has_spoken = true;
        match kind {
            PartKind::Reasoning | PartKind::Summary => self.reasoned_bytes += escaped.len(),
            PartKind::Text | PartKind::Refusal => self.answered_bytes += escaped.len(),
        }
        if self.reading.output != OutputContract::Text && kind == PartKind::Text {
            self.promised.extend_from_slice(escaped.as_bytes());
        }
        if self.calls.is_busy() {
            match self.pending.last_mut().filter(|(last, _)| *last == kind) {
                Some((_, text)) => text.push_str(escaped),
                None => self.pending.push((kind, escaped.to_owned())),
            }
            return;
        }
        self.close_calls(Status::Completed, out);
        self.write(kind, escaped, out);
    }

    /// Writes text into the open item, or into a new one.
    pub(super) fn write(&mut self, kind: PartKind, escaped: &str, out: &mut Vec<u8>) {
        let kind = if kind == PartKind::Reasoning && self.reading.reasoning_summary { PartKind::Summary } else { kind };
        if self.open.as_ref().is_some_and(|slot| slot.kind() != kind.slot()) {
            self.close_slot(Status::Completed, out);
        }
        if self.open.is_none() {
            if kind.slot() == SlotKind::Message {
                self.settle(out);
            }
            self.open = Some(Slot::open(kind.slot(), &mut self.sink, out));
        }
        let logprobs = if kind == PartKind::Text { std::mem::take(&mut self.logprobs) } else { Vec::new() };
        if let Some(slot) = &mut self.open {
            slot.push(kind, escaped, &logprobs, &mut self.sink, out);
        }
        if kind == PartKind::Text {
            self.annotate(out);
        }
    }

    /// Puts citations to the text that they belong to, once there is one.
    fn annotate(&mut self, out: &mut Vec<u8>) {
        if self.annotations.is_empty() {
            return;
        }
        if let Some(slot) = self.open.as_mut().filter(|slot| slot.is_text()) {
            for annotation in self.annotations.drain(..) {
                slot.annotate(&annotation, &mut self.sink, out);
            }
        }
    }

    /// Deltas behind the finish reason are kept: the last reason counts.
    fn note_late(&mut self) {
        if self.finish.is_some() {
            self.sink.note(Action::Repaired, "finish_reason", "more of the answer came after it");
        }
    }

    /// One entry of `tool_calls`, or (without a form) the old `function_call`.
    fn tool_call(&mut self, call: Raw<'_>, form: Option<Form>, out: &mut Vec<u8>) {
        self.note_late();
        self.has_spoken = true;
        self.release(out);
        match form {
            Some(form) => self.calls.accept(call, form, &mut self.bag, &mut self.sink),
            None => self.calls.accept_function(call, &mut self.sink),
        }
        if self.check_calls() {
            return;
        }
        self.close_slot(Status::Completed, out);
        self.calls.close_finished(&mut self.sink, out);
        if !self.calls.is_live() {
            self.settle(out);
        }
        self.calls.stream(&mut self.sink, out);
    }

    /// Whether a call came that makes no sense: then the turn has failed.
    pub(super) fn check_calls(&mut self) -> bool {
        let Some(nonsense) = self.calls.nonsense() else { return false };
        let message = format!("The provider's answer cannot be made sense of: {nonsense}.");
        self.failure.get_or_insert(Failure::new(FailureClass::Protocol, message));
        true
    }

    /// Closes all calls, then writes what waited for them.
    pub(super) fn close_calls(&mut self, last: Status, out: &mut Vec<u8>) {
        self.calls.close(last, &mut self.sink, out);
        for (kind, text) in std::mem::take(&mut self.pending) {
            self.write(kind, &text, out);
        }
    }

    pub(super) fn close_slot(&mut self, status: Status, out: &mut Vec<u8>) {
        if let Some(slot) = self.open.take() {
            let (family, seal) = (&self.setup.dialect.family, &self.setup.seal);
            let bag = if slot.kind() == SlotKind::Reasoning { self.bag.take() } else { None };
            let sealed = |text: &str| {
                let text = unescape(text).into_owned();
                seal.seal(&Thought { family: family.clone(), text, bag, native: None }.encode())
            };
            slot.close(status, sealed, &mut self.sink, out);
        }
    }

    /// What must return to the upstream and came without reasoning gets an item of its own: signatures come
    /// with calls, and behind the text. Without a seal there would be nothing in it.
    pub(super) fn settle(&mut self, out: &mut Vec<u8>) {
        if self.bag.is_empty() || self.open.is_some() || self.setup.seal.seal(b"{}").is_empty() {
            return;
        }
        self.open = Some(Slot::open(SlotKind::Reasoning, &mut self.sink, out));
        self.close_slot(Status::Completed, out);
    }
}
