//! What one delta says, sorted into the channels of a Responses answer.

use wire::chat::{Choice, Delta};
use wire::json::{Kind, Raw, Text};
use wire::responses::Status;

use super::super::cite;
use super::super::held_text::TaggedText;
use super::ChatReader;
use super::calls::EntryForm;
use super::replay_data::detail_texts;
use crate::client::ReasoningChannel;
use crate::dialect::RefusalForm;
use crate::escaped::{Escaped, EscapedBuf};
use crate::events::Events;
use crate::failure::{Failure, FailureClass};
use crate::json::join;
use crate::note::Action;
use crate::response::{PartKind, ResponseWriter, Slot, SlotKind};
use crate::seal::{SealedReasoning, ThoughtPlace};

impl ChatReader {
    pub(super) fn choice(&mut self, choice: &Choice<'_>, response: &mut ResponseWriter, out: &mut Events) {
        if self.wanted.logprobs
            && let Some(logprobs) = choice.logprobs.filter(|raw| raw.kind() == Kind::Object)
        {
            join(&mut self.attached.logprobs, &cite::logprobs(logprobs));
        }
        match (&choice.delta, &choice.message) {
            (Some(delta), _) => self.delta(delta, EntryForm::Delta, response, out),
            // A whole message after its own deltas says everything twice.
            (None, Some(message)) if !self.heard.anything => self.delta(message, EntryForm::Whole, response, out),
            _ => {}
        }
    }

    fn delta(&mut self, delta: &Delta<'_>, form: EntryForm, response: &mut ResponseWriter, out: &mut Events) {
        self.reasoning(delta, response, out);
        if let Some(content) = delta.content {
            self.content(content, response, out);
        }
        if let Some(refusal) = delta.refusal.and_then(Raw::text) {
            self.refusal(refusal, response, out);
        }
        // What was said aloud is text, too.
        if let Some(spoken) = delta.audio.and_then(|audio| audio.get("transcript")).and_then(Raw::text) {
            self.text(spoken, response, out);
        }
        for annotation in delta.annotations.into_iter().flat_map(Raw::elements) {
            if let Some(annotation) = cite::annotation(annotation) {
                self.attached.annotation_bytes += annotation.len();
                self.attached.annotations.push(annotation);
            }
        }
        self.annotate(response, out);
        for call in delta.tool_calls.into_iter().flat_map(Raw::elements) {
            self.heard.tool_calls = true;
            self.tool_call(call, Some(form), response, out);
        }
        if let Some(call) = delta.function_call.filter(|call| call.kind() == Kind::Object && !self.heard.tool_calls) {
            self.tool_call(call, None, response, out);
        }
    }

    /// Reasoning, under the first of its names that has any; blocks are kept for replay as well.
    fn reasoning(&mut self, delta: &Delta<'_>, response: &mut ResponseWriter, out: &mut Events) {
        if let Some(extra) = delta.extra_content.filter(|extra| extra.kind() == Kind::Object) {
            self.replay_data.extra_content(extra);
        }
        let details = delta.reasoning_details.filter(|details| details.kind() == Kind::Array);
        if let Some(details) = details {
            self.replay_data.details(details);
        }
        let names = [delta.reasoning_content, delta.reasoning, delta.thinking];
        let text = names.into_iter().flatten().filter_map(Raw::text).find(|text| !text.is_empty());
        match (text, details) {
            (Some(text), _) => self.say(PartKind::Reasoning, Escaped::of(text), response, out),
            (None, Some(details)) => {
                for text in detail_texts(details) {
                    self.say(PartKind::Reasoning, Escaped::of(text), response, out);
                }
            }
            (None, None) => {}
        }
    }

    /// Content is a string, or parts: text, thinking, a refusal.
    fn content(&mut self, content: Raw<'_>, response: &mut ResponseWriter, out: &mut Events) {
        if let Some(text) = content.text() {
            return self.text(text, response, out);
        }
        for part in content.elements() {
            if let Some(thinking) = part.get("thinking") {
                self.thinking(thinking, response, out);
            } else if let Some(text) = part.get("text").and_then(Raw::text) {
                self.text(text, response, out);
            } else if let Some(refusal) = part.get("refusal").and_then(Raw::text) {
                self.refusal(refusal, response, out);
            }
        }
    }

    /// A string, or parts with text.
    fn thinking(&mut self, thinking: Raw<'_>, response: &mut ResponseWriter, out: &mut Events) {
        let parts = thinking.elements().filter_map(|part| part.get("text")).filter_map(Raw::text);
        for text in thinking.text().into_iter().chain(parts) {
            self.say(PartKind::Reasoning, Escaped::of(text), response, out);
        }
    }

    fn refusal(&mut self, refusal: Text<'_>, response: &mut ResponseWriter, out: &mut Events) {
        if refusal.is_empty() {
            return;
        }
        self.heard.refusal = true;
        let kind = match self.setup.dialect.refusal {
            RefusalForm::Refusal => response.shown_as(PartKind::Refusal),
            RefusalForm::Text => PartKind::Text,
        };
        self.say(kind, Escaped::of(refusal), response, out);
    }

    /// Output text. While its beginning may be a tag or a fence it is held back.
    fn text(&mut self, text: Text<'_>, response: &mut ResponseWriter, out: &mut Events) {
        if self.held.is_through() {
            return self.say(PartKind::Text, Escaped::of(text), response, out);
        }
        if !text.is_empty() {
            self.note_late(response);
        }
        let texts = self.held.push(Escaped::of(text));
        self.say_all(&texts, response, out);
    }

    /// What is held back has no more to wait for.
    pub(super) fn release(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        let texts = self.held.flush();
        self.say_all(&texts, response, out);
    }

    fn say_all(&mut self, texts: &[TaggedText], response: &mut ResponseWriter, out: &mut Events) {
        for (kind, text) in texts.iter().filter(|(_, text)| !text.is_empty()) {
            self.pass_on(*kind, EscapedBuf::of_plain(text).get(), response, out);
        }
    }

    /// Text of any kind, as it comes.
    fn say(&mut self, kind: PartKind, text: Escaped<'_>, response: &mut ResponseWriter, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        self.note_late(response);
        self.pass_on(kind, text, response, out);
    }

    /// The same, which may have been held back. While a call may still get arguments it waits: items never interleave.
    fn pass_on(&mut self, kind: PartKind, text: Escaped<'_>, response: &mut ResponseWriter, out: &mut Events) {
        self.heard.anything = true;
        self.heard.volume.add(kind, text.len());
        if kind == PartKind::Text {
            self.promise.push(text);
        }
        if self.calls.is_busy() {
            self.pending_bytes += text.len();
            match self.pending.last_mut().filter(|(last, _)| *last == kind) {
                Some((_, pending)) => pending.push(text),
                None => {
                    self.pending_bytes += size_of::<(PartKind, EscapedBuf)>();
                    self.pending.push((kind, text.into()));
                }
            }
            return;
        }
        self.close_calls(Status::Completed, response, out);
        self.write(kind, text, response, out);
    }

    /// Writes text into the open item, or into a new one.
    pub(super) fn write(&mut self, kind: PartKind, text: Escaped<'_>, response: &mut ResponseWriter, out: &mut Events) {
        let summary = self.wanted.reasoning_summary || response.forms().reasoning == ReasoningChannel::Summary;
        let kind = if kind == PartKind::Reasoning && summary { PartKind::Summary } else { kind };
        if self.open.as_ref().is_some_and(|slot| slot.kind() != kind.slot()) {
            self.close_slot(Status::Completed, response, out);
        }
        if self.open.is_none() {
            if kind.slot() == SlotKind::Message {
                self.write_replay_data(response, out);
            }
            self.open = Some(Slot::open(kind.slot(), response, out).citing(self.setup.sources.clone()));
        }
        let logprobs = if kind == PartKind::Text { std::mem::take(&mut self.attached.logprobs) } else { Vec::new() };
        if let Some(slot) = &mut self.open {
            slot.push(kind, text, &logprobs, response, out);
        }
        if kind == PartKind::Text {
            self.annotate(response, out);
        }
    }

    /// Puts citations to the text that they belong to, once there is one.
    fn annotate(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        if self.attached.annotations.is_empty() {
            return;
        }
        if let Some(slot) = self.open.as_mut().filter(|slot| slot.is_text()) {
            self.attached.annotation_bytes = 0;
            for annotation in self.attached.annotations.drain(..) {
                slot.annotate(&annotation, response, out);
            }
        }
    }

    /// Deltas after the finish reason are kept: the last reason counts.
    fn note_late(&self, response: &mut ResponseWriter) {
        if self.report.finish.is_some() {
            response.remark(Action::Repaired, "finish_reason", "more of the answer came after it");
        }
    }

    /// One entry of `tool_calls`, or (without a form) the old `function_call`.
    fn tool_call(&mut self, call: Raw<'_>, form: Option<EntryForm>, response: &mut ResponseWriter, out: &mut Events) {
        self.note_late(response);
        self.heard.anything = true;
        self.release(response, out);
        match form {
            Some(form) => self.calls.accept(call, form, &mut self.replay_data, response),
            None => self.calls.accept_function(call, response),
        }
        if self.check_calls() {
            return;
        }
        self.close_slot(Status::Completed, response, out);
        self.calls.close_finished(response, out);
        if !self.calls.is_live() {
            self.write_replay_data(response, out);
        }
        self.calls.stream(response, out);
    }

    /// Whether a call came that makes no sense: then the turn has failed.
    pub(super) fn check_calls(&mut self) -> bool {
        let Some(nonsense) = self.calls.nonsense() else { return false };
        let message = format!("The provider's answer cannot be made sense of: {nonsense}.");
        self.report.failure.get_or_insert(Failure::new(FailureClass::Protocol, message));
        true
    }

    /// Closes all calls, then writes what waited for them.
    pub(super) fn close_calls(&mut self, last: Status, response: &mut ResponseWriter, out: &mut Events) {
        self.calls.close(last, response, out);
        self.pending_bytes = 0;
        for (kind, text) in std::mem::take(&mut self.pending) {
            self.write(kind, text.get(), response, out);
        }
    }

    pub(super) fn close_slot(&mut self, status: Status, response: &mut ResponseWriter, out: &mut Events) {
        if let Some(slot) = self.open.take() {
            let (family, seal) = (&self.setup.dialect.family, &self.setup.seal);
            let replay_data = if slot.kind() == SlotKind::Reasoning { self.replay_data.take() } else { None };
            let sealed = |text: Escaped<'_>| {
                let text = text.decode().into_owned();
                seal.seal(
                    &SealedReasoning {
                        family: family.clone(),
                        text,
                        replay_data,
                        native: None,
                        place: ThoughtPlace::default(),
                    }
                    .encode(),
                )
            };
            slot.close(status, sealed, response, out);
        }
    }

    /// What must return to the upstream and came without reasoning gets an item of its own: signatures come
    /// with calls, and after the text. Without a seal there would be nothing in it.
    pub(super) fn write_replay_data(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        if self.replay_data.is_empty() || self.open.is_some() || !self.setup.seal.is_available() {
            return;
        }
        self.open = Some(Slot::open(SlotKind::Reasoning, response, out));
        self.close_slot(Status::Completed, response, out);
    }
}
