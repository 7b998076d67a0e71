//! A call whose text streams: a function call, or the call of a custom tool.

use wire::id::{Id, IdKind};
use wire::json::ObjectWriter;
use wire::responses::{EventKind, Status};

use super::ResponseWriter;
use crate::escaped::{Escaped, EscapedBuf};
use crate::events::{DeltaHead, Events};

/// An announced call.
#[derive(Debug, Clone)]
pub(crate) struct CallItem {
    kind: &'static CallKind,
    id: Id,
    output_index: u32,
    delta_head: DeltaHead,
    /// How much of the text was sent.
    sent: usize,
}

/// The names of a kind of call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallKind {
    pub(crate) item_type: &'static str,
    pub(crate) id_kind: IdKind,
    /// The member that holds the text.
    pub(crate) member: &'static str,
    pub(crate) delta: EventKind,
    pub(crate) done: EventKind,
}

impl CallKind {
    /// The kind of call that an item of this type is.
    pub(crate) fn of(item_type: &str) -> Option<&'static Self> {
        [&FUNCTION, &CUSTOM].into_iter().find(|kind| kind.item_type == item_type)
    }

    /// What the event says that ends the text of a call.
    pub(crate) fn done_members(
        &self,
        item_id: &str,
        output_index: u32,
        name: Escaped<'_>,
        text: Escaped<'_>,
        event: &mut ObjectWriter<'_>,
    ) {
        event.text("item_id", item_id).int("output_index", output_index);
        if self.done == EventKind::FunctionCallArgumentsDone {
            name.write(event.key("name"));
        }
        text.write(event.key(self.member));
    }
}

pub(crate) static FUNCTION: CallKind = CallKind {
    item_type: "function_call",
    id_kind: IdKind::FunctionCall,
    member: "arguments",
    delta: EventKind::FunctionCallArgumentsDelta,
    done: EventKind::FunctionCallArgumentsDone,
};

pub(crate) static CUSTOM: CallKind = CallKind {
    item_type: "custom_tool_call",
    id_kind: IdKind::CustomToolCall,
    member: "input",
    delta: EventKind::CustomToolCallInputDelta,
    done: EventKind::CustomToolCallInputDone,
};

/// What is called, and by which id: as the client knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Named {
    pub(crate) call_id: EscapedBuf,
    pub(crate) name: EscapedBuf,
    pub(crate) namespace: Option<String>,
    /// Members that a native call has beside the usual ones: name and JSON.
    pub(crate) more: Vec<(String, String)>,
}

impl CallItem {
    /// Announces the item.
    pub(crate) fn open(
        id: Id,
        kind: &'static CallKind,
        named: &Named,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) -> Self {
        let output_index = response.output_index();
        response.event(EventKind::OutputItemAdded, out, |event| {
            event.int("output_index", output_index);
            write(&id, kind, Status::InProgress, Escaped::default(), named, event.key("item"));
        });
        let delta_head = out.delta_head(kind.delta, |event| {
            event.text("item_id", id.as_str()).int("output_index", output_index);
        });
        Self { kind, id, output_index, delta_head, sent: 0 }
    }

    /// How much of the text was sent.
    pub(crate) const fn sent(&self) -> usize {
        self.sent
    }

    /// Sends what was not sent yet of the text so far.
    pub(crate) fn send(&mut self, text: Escaped<'_>, response: &mut ResponseWriter, out: &mut Events) {
        if text.len() > self.sent {
            response.delta(&self.delta_head, text.after(self.sent), out);
            self.sent = text.len();
        }
    }

    /// Sends the rest of the text, closes the item and puts it into the output.
    pub(crate) fn close(
        mut self,
        text: Escaped<'_>,
        named: &Named,
        status: Status,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) {
        self.send(text, response, out);
        response.event(self.kind.done, out, |event| {
            self.kind.done_members(self.id.as_str(), self.output_index, named.name.get(), text, event);
        });
        let mut item = Vec::with_capacity(text.len() + 256);
        write(&self.id, self.kind, status, text, named, &mut item);
        response.close_item(self.output_index, &item, out);
    }
}

fn write(id: &Id, kind: &CallKind, status: Status, text: Escaped<'_>, named: &Named, out: &mut Vec<u8>) {
    let mut item = ObjectWriter::new(out);
    item.text("id", id.as_str()).text("type", kind.item_type).text("status", status.name());
    named.call_id.get().write(item.key("call_id"));
    if let Some(namespace) = &named.namespace {
        item.text("namespace", namespace);
    }
    named.name.get().write(item.key("name"));
    text.write(item.key(kind.member));
    for (name, json) in &named.more {
        item.json(name, json.as_bytes());
    }
    item.end();
}
