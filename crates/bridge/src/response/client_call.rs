//! A call of one of the client's tools that is known to its end: it is shown at once, or waits until the hosted calls
//! before it have run.

use wire::id::Id;
use wire::responses::{EventKind, Status};

use super::ResponseWriter;
use super::call_item::{CallItem, CallKind, Named};
use crate::escaped::{Escaped, EscapedBuf};
use crate::events::Events;

/// A call of the client that waits for its turn; written with [`ResponseWriter::client_call`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCall(pub(crate) CallForm);

/// What is written of a call, by its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallForm {
    /// The text of a function call, or of a custom tool's: it has events of its own.
    Text {
        /// None for a new one.
        id: Option<Id>,
        kind: &'static CallKind,
        named: Named,
        text: EscapedBuf,
        status: Status,
    },
    /// The item of a built-in tool, as JSON: as it is announced, and as it is when it is done.
    Whole {
        added: Vec<u8>,
        done: Vec<u8>,
        /// Shell commands: they have events of their own.
        commands: Vec<EscapedBuf>,
    },
}

impl ClientCall {
    /// How many bytes it has.
    pub(crate) fn held(&self) -> usize {
        match &self.0 {
            CallForm::Text { text, .. } => text.get().len(),
            CallForm::Whole { added, done, .. } => added.len() + done.len(),
        }
    }
}

impl CallForm {
    /// Writes all of it, or the rest of what was announced.
    pub(crate) fn write(&self, announced: Option<CallItem>, response: &mut ResponseWriter, out: &mut Events) {
        match self {
            Self::Text { id, kind, named, text, status } => {
                let item = announced.unwrap_or_else(|| {
                    let id = id.clone().unwrap_or_else(|| response.make_id(kind.id_kind));
                    CallItem::open(id, kind, named, response, out)
                });
                item.close(text.get(), named, *status, response, out);
            }
            Self::Whole { added, done, commands } => write_whole(added, done, commands, response, out),
        }
    }
}

fn write_whole(added: &[u8], done: &[u8], commands: &[EscapedBuf], response: &mut ResponseWriter, out: &mut Events) {
    let output_index = response.output_index();
    response.event(EventKind::OutputItemAdded, out, |event| {
        event.int("output_index", output_index).json("item", added);
    });
    for (index, command) in commands.iter().map(EscapedBuf::get).enumerate() {
        for (kind, member, text) in [
            (EventKind::ShellCallCommandAdded, "command", Escaped::default()),
            (EventKind::ShellCallCommandDelta, "delta", command),
            (EventKind::ShellCallCommandDone, "command", command),
        ] {
            response.event(kind, out, |event| {
                event.int("output_index", output_index).int("command_index", index);
                text.write(event.key(member));
            });
        }
    }
    response.close_item(output_index, done, out);
}
