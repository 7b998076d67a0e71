//! What a block says, written into items.

use wire::json::Text;
use wire::responses::Status;

use super::{MessagesReader, Place};
use crate::client::ReasoningChannel;
use crate::dialect::RefusalForm;
use crate::escaped::{Escaped, EscapedBuf};
use crate::events::Events;
use crate::failure::{Failure, FailureClass};
use crate::note::Action;
use crate::reader::Repair;
use crate::reader::held_text::TaggedText;
use crate::response::{PartKind, ResponseWriter, Slot, SlotKind};
use crate::seal::{PromptEnd, SealedReasoning, ThoughtPlace};

impl Place {
    /// Of reasoning that is the next item, after so many of the answer and so many calls.
    fn of_thought(&mut self, before: u32, calls: usize) -> ThoughtPlace {
        let Self { prompt_end, breaks } = std::mem::take(self);
        let began = usize::try_from(before).ok().filter(|_| prompt_end != PromptEnd::default());
        ThoughtPlace { began: began.map(|before| (before, prompt_end)), calls: Some(calls), breaks }
    }
}

impl MessagesReader {
    /// Output text. While its beginning may be a tag or a fence it is held back.
    pub(super) fn text(&mut self, text: Text<'_>, response: &mut ResponseWriter, out: &mut Events) {
        if self.held.is_through() {
            return self.say(PartKind::Text, Escaped::of(text), response, out);
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
        for (kind, text) in texts {
            self.say(*kind, EscapedBuf::of_plain(text).get(), response, out);
        }
    }

    /// The model's words about why it does not answer.
    pub(super) fn refuse(&mut self, words: Text<'_>, response: &mut ResponseWriter, out: &mut Events) {
        self.heard.refusal = true;
        let kind = match self.setup.dialect.refusal {
            RefusalForm::Refusal => response.shown_as(PartKind::Refusal),
            RefusalForm::Text => PartKind::Text,
        };
        self.release(response, out);
        self.say(kind, Escaped::of(words), response, out);
    }

    /// Text of any kind, as it comes.
    pub(super) fn say(&mut self, kind: PartKind, text: Escaped<'_>, response: &mut ResponseWriter, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        self.heard.anything = true;
        self.heard.volume.add(kind, text.len());
        if kind == PartKind::Text {
            self.promise.push(text);
        }
        if self.settle(response, out) {
            self.write(kind, text, response, out);
        }
    }

    /// Something else begins: calls and searches are over. Says whether the answer makes sense so far; arguments that were
    /// cut, and something after them, do not.
    pub(super) fn settle(&mut self, response: &mut ResponseWriter, out: &mut Events) -> bool {
        self.close_search(None, response, out);
        if self.calls.is_idle() {
            return true;
        }
        if self.calls.are_sound() {
            self.calls.close(Status::Completed, response, out);
            return true;
        }
        let message = "The provider's answer cannot be made sense of: the arguments of a tool call are not JSON.";
        self.report.failure.get_or_insert(Failure::new(FailureClass::Protocol, message));
        false
    }

    /// Writes text into the open item, or into a new one.
    fn write(&mut self, kind: PartKind, text: Escaped<'_>, response: &mut ResponseWriter, out: &mut Events) {
        let summary = self.reasoning_summary || response.forms().reasoning == ReasoningChannel::Summary;
        let kind = if kind == PartKind::Reasoning && summary { PartKind::Summary } else { kind };
        if self.open.as_ref().is_some_and(|slot| slot.kind() != kind.slot()) {
            self.close_slot(Status::Completed, response, out);
        }
        if self.open.is_none() {
            if kind.slot() == SlotKind::Message {
                self.write_kept(response, out);
                self.place.breaks.clear();
            }
            self.text_from = 0;
            self.open = Some(Slot::open(kind.slot(), response, out).citing(self.setup.sources.clone()));
        }
        if let Some(slot) = &mut self.open {
            slot.push(kind, text, &[], response, out);
        }
    }

    pub(super) fn close_slot(&mut self, status: Status, response: &mut ResponseWriter, out: &mut Events) {
        let Some(slot) = self.open.take() else { return };
        let (family, seal) = (&self.setup.dialect.family, &self.setup.seal);
        let is_reasoning = slot.kind() == SlotKind::Reasoning;
        let replay_data = if is_reasoning { self.kept.take() } else { None };
        let place = if is_reasoning {
            self.place.of_thought(response.items_of_answer(), self.calls.over())
        } else {
            ThoughtPlace::default()
        };
        let sealed = |text: Escaped<'_>| {
            let text = text.decode().into_owned();
            seal.seal(&SealedReasoning { family: family.clone(), text, replay_data, native: None, place }.encode())
        };
        slot.close(status, sealed, response, out);
    }

    /// What must return to the upstream and came without anything to read gets an item of its own. Without a seal there
    /// would be nothing in it.
    pub(super) fn write_kept(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        if self.open.is_some() || self.kept.is_empty() {
            return;
        }
        if !self.setup.seal.is_available() {
            self.kept.take();
            return;
        }
        self.open = Some(Slot::open(SlotKind::Reasoning, response, out));
        self.close_slot(Status::Completed, response, out);
    }

    /// Checks, and mends by writing on, text that was asked for as JSON.
    pub(super) fn keep_promise(&mut self, response: &mut ResponseWriter, out: &mut Events) -> Result<(), Failure> {
        if self.held.found_fence() {
            response.remark(Action::Repaired, "text.format", "the code fence around the answer was taken off");
        }
        // Only an open text can be written on.
        let repair = if self.open.as_ref().is_some_and(Slot::is_text) { self.setup.repair } else { Repair::Off };
        if let Some(closing) = self.promise.keep(repair, response)? {
            self.write(PartKind::Text, EscapedBuf::of_plain(&closing).get(), response, out);
        }
        Ok(())
    }
}
