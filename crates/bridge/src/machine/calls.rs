//! Tool calls. They may arrive side by side; they leave one after another, in the order of their first delta.
//!
//! The first unfinished call is live: its arguments stream. Others wait until it has finished, which is known
//! when its arguments are whole JSON and another call begins, or at the end.

use wire::chat::ToolCallDelta;
use wire::id::{Id, IdKind, Ids};
use wire::json::{Kind, ObjectWriter, Raw, sanitize_into};
use wire::responses::{EventKind, Status};

use super::Output;
use super::emit::Emitter;
use super::part::quoted;

/// More parallel calls than any model makes; beyond it an upstream is up to no good.
const MAX_CALLS: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Open and waiting calls, in order; the first is live.
    waiting: Vec<Call>,
    /// How many were closed.
    closed: usize,
}

#[derive(Debug)]
struct Call {
    /// The upstream's index, which tells whose arguments a delta has.
    index: Option<i64>,
    item_id: Id,
    /// The upstream's id, escaped; ours where it sent none.
    call_id: String,
    name: Vec<u8>,
    arguments: Vec<u8>,
    /// The head of its delta events, once it is announced.
    delta_head: Option<Vec<u8>>,
    /// How much of the arguments has been sent.
    sent: usize,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.closed == 0
    }

    pub(super) fn delta(
        &mut self,
        raw: Raw<'_>,
        ids: &mut Ids,
        emitter: &mut Emitter,
        output: &mut Output,
        out: &mut Vec<u8>,
    ) {
        let Ok(delta) = serde_json::from_str::<ToolCallDelta<'_>>(raw.as_str()) else { return };
        let id = delta.id.and_then(Raw::text).filter(|id| !id.is_empty()).map(wire::json::Text::escaped);
        let index = delta.index.and_then(|index| index.as_str().parse().ok());
        let Some(position) = self.find(id, index, ids) else { return };
        let call = &mut self.waiting[position];
        if let Some(function) = &delta.function {
            if let Some(name) = function.name.and_then(Raw::text)
                && call.name.is_empty()
            {
                sanitize_into(&mut call.name, name.escaped());
            }
            call.extend(function.arguments);
        }
        while self.waiting.len() > 1 && position > 0 && self.waiting[0].is_whole() {
            self.close_first(Status::Completed, emitter, output, out);
            return self.stream(emitter, output, out);
        }
        self.stream(emitter, output, out);
    }

    /// Whose delta this is: the id tells, else the index, else it goes on with the last call.
    fn find(&mut self, id: Option<&str>, index: Option<i64>, ids: &mut Ids) -> Option<usize> {
        let known = match (id, index) {
            (Some(id), _) if self.waiting.iter().any(|call| call.call_id == id) => {
                self.waiting.iter().position(|call| call.call_id == id)
            }
            (Some(_), _) => None,
            (None, Some(index)) => self.waiting.iter().rposition(|call| call.index == Some(index)),
            (None, None) => self.waiting.len().checked_sub(1),
        };
        if known.is_some() {
            return known;
        }
        if self.waiting.len() + self.closed >= MAX_CALLS {
            return None;
        }
        let call_id = id.map_or_else(|| ids.make(IdKind::Call).to_string(), str::to_owned);
        self.waiting.push(Call {
            index,
            item_id: ids.make(IdKind::FunctionCall),
            call_id,
            name: Vec::new(),
            arguments: Vec::new(),
            delta_head: None,
            sent: 0,
        });
        Some(self.waiting.len() - 1)
    }

    /// Sends what the live call has and has not sent.
    fn stream(&mut self, emitter: &mut Emitter, output: &Output, out: &mut Vec<u8>) {
        if let Some(call) = self.waiting.first_mut()
            && !call.name.is_empty()
        {
            call.stream(output.count, emitter, out);
        }
    }

    fn close_first(&mut self, status: Status, emitter: &mut Emitter, output: &mut Output, out: &mut Vec<u8>) {
        let mut call = self.waiting.remove(0);
        call.stream(output.count, emitter, out);
        let item = call.close(status, output.count, emitter, out);
        output.push(&item);
        self.closed += 1;
    }

    /// Closes all; where the answer broke off, the last one is the unfinished one.
    pub(super) fn close(&mut self, last: Status, emitter: &mut Emitter, output: &mut Output, out: &mut Vec<u8>) {
        while !self.waiting.is_empty() {
            let status = if self.waiting.len() == 1 { last } else { Status::Completed };
            self.close_first(status, emitter, output, out);
        }
    }
}

impl Call {
    /// Arguments come as (pieces of) a string; some servers send the object itself.
    fn extend(&mut self, arguments: Option<Raw<'_>>) {
        match arguments.map(|raw| (raw.kind(), raw)) {
            Some((Kind::String, raw)) => {
                let escaped = raw.text().map(wire::json::Text::escaped).unwrap_or_default();
                let held = sanitize_into(&mut self.arguments, escaped);
                self.arguments.extend_from_slice(held.as_bytes());
            }
            Some((Kind::Object, raw)) => wire::json::escape_into(&mut self.arguments, raw.as_str()),
            _ => {}
        }
    }

    fn is_whole(&self) -> bool {
        let escaped = str::from_utf8(&self.arguments).unwrap_or_default();
        Raw::parse(&wire::json::unescape(escaped)).is_ok()
    }

    fn stream(&mut self, output_index: u32, emitter: &mut Emitter, out: &mut Vec<u8>) {
        if self.delta_head.is_none() {
            emitter.event(EventKind::OutputItemAdded, out, |event| {
                event.int("output_index", output_index);
                self.write(Status::InProgress, b"", event.key("item"));
            });
            let head = emitter.delta_head(EventKind::FunctionCallArgumentsDelta, |event| {
                event.text("item_id", self.item_id.as_str()).int("output_index", output_index);
            });
            self.delta_head = Some(head);
        }
        if let Some(head) = &self.delta_head
            && self.arguments.len() > self.sent
        {
            emitter.delta(head, &self.arguments[self.sent..], out);
            self.sent = self.arguments.len();
        }
    }

    fn close(self, status: Status, output_index: u32, emitter: &mut Emitter, out: &mut Vec<u8>) -> Vec<u8> {
        emitter.event(EventKind::FunctionCallArgumentsDone, out, |event| {
            event.text("item_id", self.item_id.as_str()).int("output_index", output_index);
            quoted(event.key("name"), &self.name);
            quoted(event.key("arguments"), &self.arguments);
        });
        let mut item = Vec::with_capacity(self.arguments.len() + 256);
        self.write(status, &self.arguments, &mut item);
        emitter.event(EventKind::OutputItemDone, out, |event| {
            event.int("output_index", output_index).json("item", &item);
        });
        item
    }

    fn write(&self, status: Status, arguments: &[u8], out: &mut Vec<u8>) {
        let mut item = ObjectWriter::new(out);
        item.text("id", self.item_id.as_str()).text("type", "function_call").text("status", status.name());
        quoted(item.key("call_id"), self.call_id.as_bytes());
        quoted(item.key("name"), &self.name);
        quoted(item.key("arguments"), arguments);
        item.end();
    }
}
