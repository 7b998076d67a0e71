//! One tool call on its way out, as an item of the kind that the client declared.
//!
//! ```text
//! Waiting ──name and arguments begin──▶ Function    arguments stream as they come
//!                                     ▶ Custom      the input inside of them streams
//!                                     ▶ Held        written at the close, when it is known what they are
//! ```

use wire::id::{Id, IdKind};
use wire::json::{Kind, ObjectWriter, Raw, unescape};
use wire::responses::{EventKind, Status};

use super::arguments::Arguments;
use super::custom::CustomInput;
use super::part::quoted;
use super::restore::{Restored, restore};
use super::sink::Sink;
use crate::note::Action;
use crate::reading::{OfferedTool, ToolKind};

#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The upstream's index and id, which tell whose arguments a delta has.
    pub(super) index: Option<i64>,
    pub(super) upstream_id: String,
    /// What the client sees, escaped.
    pub(super) call_id: String,
    /// Escaped.
    pub(super) name: Vec<u8>,
    pub(super) arguments: Arguments,
    /// Called as a custom tool: the arguments are its input, and any text may be one.
    pub(super) is_plain: bool,
    /// A delta of it came under another id than its own.
    pub(super) had_other_id: bool,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    Waiting,
    Function(Outlet),
    /// `read`: how much of the arguments the input was taken out of.
    Custom {
        input: CustomInput,
        read: usize,
        outlet: Option<Outlet>,
    },
    Held,
}

/// An announced item whose text streams.
#[derive(Debug, Clone)]
pub(super) struct Outlet {
    streamed: &'static Streamed,
    item_id: Id,
    output_index: u32,
    delta_head: Vec<u8>,
    sent: usize,
}

/// The names of a kind of call that streams.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Streamed {
    pub(super) item_type: &'static str,
    pub(super) id_kind: IdKind,
    pub(super) member: &'static str,
    delta: EventKind,
    done: EventKind,
}

pub(super) static FUNCTION: Streamed = Streamed {
    item_type: "function_call",
    id_kind: IdKind::FunctionCall,
    member: "arguments",
    delta: EventKind::FunctionCallArgumentsDelta,
    done: EventKind::FunctionCallArgumentsDone,
};

pub(super) static CUSTOM: Streamed = Streamed {
    item_type: "custom_tool_call",
    id_kind: IdKind::CustomToolCall,
    member: "input",
    delta: EventKind::CustomToolCallInputDelta,
    done: EventKind::CustomToolCallInputDone,
};

impl Call {
    pub(super) fn new(index: Option<i64>, upstream_id: String, call_id: String) -> Self {
        let (name, arguments) = (Vec::new(), Arguments::default());
        Self { index, upstream_id, call_id, name, arguments, is_plain: false, had_other_id: false, form: Form::Waiting }
    }

    /// Whether a client has seen it.
    pub(super) const fn is_announced(&self) -> bool {
        matches!(self.form, Form::Function(_) | Form::Custom { outlet: Some(_), .. })
    }

    pub(super) const fn has_arguments(&self) -> bool {
        self.arguments.first().is_some()
    }

    /// Whether the arguments can be all there is: JSON, or nothing, or the plain text of a custom tool.
    pub(super) fn is_sound(&self, tools: &[OfferedTool]) -> bool {
        match self.arguments.first() {
            None => true,
            Some(first) if self.kind(tools) == ToolKind::Custom && !matches!(first, b'{' | b'"') => true,
            Some(_) => Raw::parse(&unescape(self.arguments.text())).is_ok(),
        }
    }

    pub(super) fn kind(&self, tools: &[OfferedTool]) -> ToolKind {
        let own = if self.is_plain { ToolKind::Custom } else { ToolKind::Function };
        offered(&self.name, tools).map_or(own, |tool| tool.kind)
    }

    /// Sends what can be sent of it.
    pub(super) fn advance(&mut self, sink: &mut Sink, out: &mut Vec<u8>) {
        if matches!(self.form, Form::Waiting) {
            self.begin(sink, out);
        }
        match &mut self.form {
            // An empty object may be no more than a place for the real one.
            Form::Function(outlet) if !self.arguments.is_blank() => {
                outlet.send(self.arguments.bytes(), sink, out);
            }
            Form::Custom { input, read, outlet } => {
                let text = self.arguments.bytes();
                input.push_escaped(str::from_utf8(&text[*read..]).unwrap_or_default());
                *read = text.len();
                if outlet.is_none() && input.has_begun() {
                    let named = Named::of(&self.name, &sink.tools);
                    *outlet = Some(Outlet::open(&CUSTOM, &named, &self.call_id, sink, out));
                }
                if let Some(outlet) = outlet {
                    outlet.send(input.text(), sink, out);
                }
            }
            Form::Function(_) | Form::Waiting | Form::Held => {}
        }
    }

    /// The name is whole once the arguments begin; and their first character tells whether they are an object.
    fn begin(&mut self, sink: &mut Sink, out: &mut Vec<u8>) {
        let plain = self.arguments.text().bytes().next().filter(|_| self.is_plain);
        let Some(first) = self.arguments.first().or(plain) else { return };
        if self.name.is_empty() {
            return;
        }
        self.form = match self.kind(&sink.tools) {
            ToolKind::Function if first == b'{' => {
                let named = Named::of(&self.name, &sink.tools);
                Form::Function(Outlet::open(&FUNCTION, &named, &self.call_id, sink, out))
            }
            ToolKind::Custom if self.is_plain => Form::Custom { input: CustomInput::plain(), read: 0, outlet: None },
            ToolKind::Custom if self.arguments.is_blank() => return,
            ToolKind::Custom => Form::Custom { input: CustomInput::default(), read: 0, outlet: None },
            _ => Form::Held,
        };
    }

    /// Closes the item and puts it into the output.
    pub(super) fn close(mut self, status: Status, sink: &mut Sink, out: &mut Vec<u8>) {
        self.arguments.release();
        self.advance(sink, out);
        if offered(&self.name, &sink.tools).is_none() {
            let name: String = unescape(str::from_utf8(&self.name).unwrap_or_default()).chars().take(64).collect();
            sink.note(Action::Degraded, "tool_calls", format!("the tool '{name}' was not offered"));
        }
        let named = Named::of(&self.name, &sink.tools);
        match std::mem::replace(&mut self.form, Form::Held) {
            Form::Function(mut outlet) => {
                let text = self.arguments.bytes();
                outlet.send(text, sink, out);
                outlet.close(text, &named, &self.call_id, status, sink, out);
            }
            Form::Custom { mut input, outlet: Some(mut outlet), .. } => {
                input.finish();
                outlet.send(input.text(), sink, out);
                outlet.close(input.text(), &named, &self.call_id, status, sink, out);
            }
            Form::Custom { outlet: None, .. } | Form::Waiting | Form::Held => {
                self.close_held(&named, status, sink, out);
            }
        }
    }

    /// A call of which nothing was sent yet.
    fn close_held(&self, named: &Named, status: Status, sink: &mut Sink, out: &mut Vec<u8>) {
        let kind = self.kind(&sink.tools);
        let text = unescape(self.arguments.text());
        let inner = double_encoded(&text);
        let arguments = inner.as_deref().unwrap_or(&text);
        if let Some(restored) = restore(kind, arguments) {
            return self.close_restored(&restored, status, sink, out);
        }
        if kind == ToolKind::Custom && !self.has_arguments() {
            let outlet = Outlet::open(&CUSTOM, named, &self.call_id, sink, out);
            return outlet.close(b"", named, &self.call_id, status, sink, out);
        }
        if kind != ToolKind::Function {
            let message = "arguments that do not fit the declared tool came back as a function call";
            sink.note(Action::Repaired, "tool_calls", message);
        }
        let mut escaped = Vec::new();
        match arguments.trim() {
            // A tool without parameters; of a call that was cut nobody knows.
            "" | "null" if status == Status::Completed => escaped.extend_from_slice(b"{}"),
            _ if inner.is_some() => wire::json::escape_into(&mut escaped, arguments),
            _ => escaped.extend_from_slice(self.arguments.bytes()),
        }
        let mut outlet = Outlet::open(&FUNCTION, named, &self.call_id, sink, out);
        outlet.send(&escaped, sink, out);
        outlet.close(&escaped, named, &self.call_id, status, sink, out);
    }

    fn close_restored(&self, restored: &Restored, status: Status, sink: &mut Sink, out: &mut Vec<u8>) {
        let id = sink.ids.make(restored.id_kind);
        let output_index = sink.output.count;
        let write = |status: Status, doing: &[u8], out: &mut Vec<u8>| {
            let mut item = ObjectWriter::new(out);
            item.text("id", id.as_str()).text("type", restored.item_type).text("status", status.name());
            quoted(item.key("call_id"), self.call_id.as_bytes());
            item.json(restored.member, doing);
            if let Some((name, json)) = restored.constant {
                item.json(name, json);
            }
            item.end();
        };
        sink.emitter.event(EventKind::OutputItemAdded, out, |event| {
            event.int("output_index", output_index);
            write(Status::InProgress, &restored.begun, event.key("item"));
        });
        for (index, command) in restored.commands.iter().enumerate() {
            for (kind, member, text) in [
                (EventKind::ShellCallCommandAdded, "command", b"".as_slice()),
                (EventKind::ShellCallCommandDelta, "delta", command),
                (EventKind::ShellCallCommandDone, "command", command),
            ] {
                sink.emitter.event(kind, out, |event| {
                    event.int("output_index", output_index).int("command_index", index);
                    quoted(event.key(member), text);
                });
            }
        }
        let status = if restored.may_be_incomplete { status } else { Status::Completed };
        let mut item = Vec::with_capacity(restored.whole.len() + 256);
        write(status, &restored.whole, &mut item);
        sink.emitter.event(EventKind::OutputItemDone, out, |event| {
            event.int("output_index", output_index).json("item", &item);
        });
        sink.output.push(&item);
    }
}

/// The client's name for a tool, escaped, and its namespace.
#[derive(Debug, Clone, Default)]
pub(super) struct Named {
    pub(super) name: Vec<u8>,
    pub(super) namespace: Option<String>,
    /// Members that a native call has beside the usual ones: name and JSON.
    pub(super) more: Vec<(String, String)>,
}

impl Named {
    fn of(name: &[u8], tools: &[OfferedTool]) -> Self {
        let Some(tool) = offered(name, tools) else { return Self { name: name.to_vec(), ..Self::default() } };
        let mut escaped = Vec::with_capacity(tool.name.len());
        wire::json::escape_into(&mut escaped, &tool.name);
        Self { name: escaped, namespace: tool.namespace.clone(), more: Vec::new() }
    }
}

/// The tool as the client declared it. Some models put a prefix of their training before the name.
fn offered<'t>(name: &[u8], tools: &'t [OfferedTool]) -> Option<&'t OfferedTool> {
    let name = unescape(str::from_utf8(name).unwrap_or_default());
    let of = |name: &str| tools.iter().find(|tool| tool.provider_name == name);
    of(&name).or_else(|| of(name.strip_prefix("functions.")?))
}

impl Outlet {
    /// Announces the item.
    fn open(streamed: &'static Streamed, named: &Named, call_id: &str, sink: &mut Sink, out: &mut Vec<u8>) -> Self {
        let item_id = sink.ids.make(streamed.id_kind);
        Self::open_as(item_id, streamed, named, call_id, sink, out)
    }

    /// The same under a given id.
    pub(super) fn open_as(
        item_id: Id,
        streamed: &'static Streamed,
        named: &Named,
        call_id: &str,
        sink: &mut Sink,
        out: &mut Vec<u8>,
    ) -> Self {
        let output_index = sink.output.count;
        let mut outlet = Self { streamed, item_id, output_index, delta_head: Vec::new(), sent: 0 };
        sink.emitter.event(EventKind::OutputItemAdded, out, |event| {
            event.int("output_index", output_index);
            outlet.write(Status::InProgress, b"", named, call_id, event.key("item"));
        });
        outlet.delta_head = sink.emitter.delta_head(streamed.delta, |event| {
            event.text("item_id", outlet.item_id.as_str()).int("output_index", output_index);
        });
        outlet
    }

    /// Sends what was not sent yet of the text so far.
    pub(super) fn send(&mut self, text: &[u8], sink: &mut Sink, out: &mut Vec<u8>) {
        if text.len() > self.sent {
            sink.emitter.delta(&self.delta_head, &text[self.sent..], out);
            self.sent = text.len();
        }
    }

    pub(super) fn close(
        self,
        text: &[u8],
        named: &Named,
        call_id: &str,
        status: Status,
        sink: &mut Sink,
        out: &mut Vec<u8>,
    ) {
        sink.emitter.event(self.streamed.done, out, |event| {
            event.text("item_id", self.item_id.as_str()).int("output_index", self.output_index);
            if self.streamed.done == EventKind::FunctionCallArgumentsDone {
                quoted(event.key("name"), &named.name);
            }
            quoted(event.key(self.streamed.member), text);
        });
        let mut item = Vec::with_capacity(text.len() + 256);
        self.write(status, text, named, call_id, &mut item);
        sink.emitter.event(EventKind::OutputItemDone, out, |event| {
            event.int("output_index", self.output_index).json("item", &item);
        });
        sink.output.push(&item);
    }

    fn write(&self, status: Status, text: &[u8], named: &Named, call_id: &str, out: &mut Vec<u8>) {
        let mut item = ObjectWriter::new(out);
        item.text("id", self.item_id.as_str()).text("type", self.streamed.item_type).text("status", status.name());
        quoted(item.key("call_id"), call_id.as_bytes());
        if let Some(namespace) = &named.namespace {
            item.text("namespace", namespace);
        }
        quoted(item.key("name"), &named.name);
        quoted(item.key(self.streamed.member), text);
        for (name, json) in &named.more {
            item.json(name, json.as_bytes());
        }
        item.end();
    }
}

/// The object inside of a JSON string.
fn double_encoded(arguments: &str) -> Option<String> {
    let inner = Raw::parse(arguments).ok()?.text()?.decode().into_owned();
    let is_object = Raw::parse(&inner).is_ok_and(|raw| raw.kind() == Kind::Object);
    is_object.then_some(inner)
}
