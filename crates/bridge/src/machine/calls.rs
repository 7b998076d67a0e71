//! Tool calls. They may arrive side by side; they leave one after another, in the order of their first delta.
//!
//! The first unfinished call is live: its arguments stream. Others wait until it has finished, which is known
//! when its arguments are whole JSON and another call begins, or at the end.

use wire::chat::ToolCallDelta;
use wire::id::{Id, IdKind, Ids};
use wire::json::{Kind, ObjectWriter, Raw, Text, escape_into, sanitize_into, unescape};
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
    /// The upstream's index and the id of each closed call: what comes late for them has no place any more.
    closed: Vec<(Option<i64>, String)>,
    /// What had to be left out.
    lost: Lost,
}

/// Parts of calls that could not be kept.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) nameless: bool,
    pub(super) late: bool,
    pub(super) too_many: bool,
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
    /// Nothing that a client could be shown.
    pub(super) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.waiting.iter().all(|call| call.name.is_empty())
    }

    pub(super) const fn lost(&self) -> Lost {
        self.lost
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
        let id = delta.id.and_then(Raw::text).filter(|id| !id.is_empty()).map(Text::escaped);
        let index = delta.index.and_then(|index| index.as_str().parse().ok());
        let function = delta.function.unwrap_or_default();
        let name = function.name.and_then(Raw::text).filter(|name| !name.is_empty());
        let Some(mut position) = self.find(id, index, name.is_some(), ids) else { return };
        let call = &mut self.waiting[position];
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            let _ = sanitize_into(&mut call.name, name.escaped());
        }
        call.extend(function.arguments);
        while position > 0 && self.waiting[0].is_whole() {
            self.close_first(Status::Completed, emitter, output, out);
            position -= 1;
        }
        self.stream(emitter, output, out);
    }

    /// Whose delta this is: the id tells, else the index, else it goes on with the last call.
    fn find(&mut self, id: Option<&str>, index: Option<i64>, named: bool, ids: &mut Ids) -> Option<usize> {
        let known = match (id, index) {
            (Some(id), _) => self.waiting.iter().position(|call| call.call_id == id),
            (None, Some(index)) => self.waiting.iter().rposition(|call| call.index == Some(index)),
            (None, None) => self.waiting.len().checked_sub(1),
        };
        if known.is_some() {
            return known;
        }
        let late = self.closed.iter().any(|(closed_index, closed_id)| match id {
            Some(id) => closed_id == id,
            None => !named && index.is_some() && *closed_index == index,
        });
        let too_many = self.waiting.len() + self.closed.len() >= MAX_CALLS;
        self.lost.late |= late;
        self.lost.too_many |= too_many;
        (!late && !too_many).then(|| self.begin(id, index, ids))
    }

    fn begin(&mut self, id: Option<&str>, index: Option<i64>, ids: &mut Ids) -> usize {
        let mut call_id = String::new();
        match id {
            Some(id) => {
                let mut clean = Vec::new();
                let _ = sanitize_into(&mut clean, id);
                call_id.push_str(str::from_utf8(&clean).unwrap_or_default());
            }
            None => call_id.push_str(ids.make(IdKind::Call).as_str()),
        }
        self.waiting.push(Call {
            index,
            item_id: ids.make(IdKind::FunctionCall),
            call_id,
            name: Vec::new(),
            arguments: Vec::new(),
            delta_head: None,
            sent: 0,
        });
        self.waiting.len() - 1
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
        if call.name.is_empty() {
            self.lost.nameless = true;
            return;
        }
        call.stream(output.count, emitter, out);
        self.closed.push((call.index, call.call_id.clone()));
        let item = call.close(status, output.count, emitter, out);
        output.push(&item);
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
                let escaped = raw.text().map(Text::escaped).unwrap_or_default();
                let held = sanitize_into(&mut self.arguments, escaped);
                self.arguments.extend_from_slice(held.as_bytes());
            }
            Some((Kind::Object, raw)) => escape_into(&mut self.arguments, raw.as_str()),
            _ => {}
        }
    }

    fn is_whole(&self) -> bool {
        let escaped = str::from_utf8(&self.arguments).unwrap_or_default();
        Raw::parse(&unescape(escaped)).is_ok()
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
