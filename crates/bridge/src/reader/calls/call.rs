//! One tool call on its way out, as an item of the kind that the client declared.
//!
//! ```text
//! Waiting ──name and arguments begin──▶ Function    arguments stream as they come
//!                                     ▶ Custom      the input inside of them streams
//!                                     ▶ Held        written at the close, when it is known what they are
//! ```
//!
//! A call of a hosted tool is held, too, and never written: it is given to whoever runs it. What the client is to run
//! after it is not written here either, but given along, so that items keep the model's order.

use wire::json::{Kind, ObjectWriter, Raw};
use wire::responses::Status;

use super::super::input::{CheckedInput, InputVerdict, Inputs};
use super::super::{HeldCall, HostedCall, RejectedCall};
use super::arguments::Arguments;
use super::custom::{CustomInput, meant};
use super::restore::{Restored, restore};
use crate::context::{OfferedTool, RenamedKeys, ToolKind};
use crate::escaped::{Escaped, EscapedBuf};
use crate::events::Events;
use crate::keys;
use crate::note::{Action, Note, code};
use crate::response::{CUSTOM, CallForm, CallItem, CallKind, ClientCall, FUNCTION, Named, ResponseWriter};

#[derive(Debug, Clone)]
pub(in crate::reader) struct Call {
    /// The upstream's index and id, which tell whose arguments a delta has.
    pub(in crate::reader) index: Option<i64>,
    pub(in crate::reader) upstream_id: EscapedBuf,
    /// What the client sees.
    pub(in crate::reader) call_id: EscapedBuf,
    pub(in crate::reader) name: EscapedBuf,
    pub(in crate::reader) arguments: Arguments,
    /// Called as a custom tool: the arguments are its input, and any text may be one.
    pub(in crate::reader) is_plain: bool,
    /// A delta of it came under another id than its own.
    pub(in crate::reader) had_other_id: bool,
    state: CallState,
}

#[derive(Debug, Clone)]
enum CallState {
    Waiting,
    /// Announced, unless it waits for hosted calls.
    Function(Option<CallItem>),
    Custom(CustomState),
    Held,
}

#[derive(Debug, Clone, Default)]
struct CustomState {
    input: CustomInput,
    /// How much of the arguments the input was taken out of.
    read: usize,
    /// Whether the input fits, where it has to.
    check: Option<Box<CheckedInput>>,
    item: Option<CallItem>,
}

/// Whether a call may be shown while it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reader) enum Showing {
    Now,
    /// A hosted call goes before it.
    Later,
}

/// The tools that were offered, and what their inputs have to fit.
#[derive(Debug, Clone, Default)]
pub(in crate::reader) struct Offered {
    pub(in crate::reader) tools: Vec<OfferedTool>,
    pub(in crate::reader) inputs: Inputs,
    renamed: Vec<RenamedKeys>,
}

impl Offered {
    /// Whether a call that does not fit can be asked for once more, as long as nothing of it was sent.
    const fn may_ask_again(&self) -> bool {
        self.inputs.asks_again
    }

    /// Whether parameters of that tool have other names there: its arguments have to be whole to be read.
    fn renames(&self, name: Escaped<'_>) -> bool {
        self.renamed_of(name).is_some()
    }

    /// The arguments under the names that the client knows; none where they are the same.
    fn own_arguments(&self, name: Escaped<'_>, arguments: &str) -> Option<String> {
        keys::own(arguments, &self.renamed_of(name)?.keys)
    }

    fn renamed_of(&self, name: Escaped<'_>) -> Option<&RenamedKeys> {
        if self.renamed.is_empty() {
            return None;
        }
        let tool = find(name, &self.tools)?;
        self.renamed.iter().find(|renamed| renamed.provider_name == tool.provider_name)
    }
}

impl Call {
    /// How many bytes it has.
    pub(in crate::reader) fn held(&self) -> usize {
        self.name.get().len() + self.arguments.held()
    }

    pub(in crate::reader) fn new(index: Option<i64>, upstream_id: EscapedBuf, call_id: EscapedBuf) -> Self {
        Self {
            index,
            upstream_id,
            call_id,
            name: EscapedBuf::default(),
            arguments: Arguments::default(),
            is_plain: false,
            had_other_id: false,
            state: CallState::Waiting,
        }
    }

    /// Whether a client has seen it.
    pub(in crate::reader) const fn is_announced(&self) -> bool {
        matches!(self.state, CallState::Function(Some(_)) | CallState::Custom(CustomState { item: Some(_), .. }))
    }

    pub(in crate::reader) const fn has_arguments(&self) -> bool {
        self.arguments.first().is_some()
    }

    /// Whether the arguments can be all there is: JSON, or nothing, or the plain text of a custom tool.
    pub(in crate::reader) fn is_sound(&self, tools: &[OfferedTool]) -> bool {
        match self.arguments.first() {
            None => true,
            Some(first) if self.kind(tools) == ToolKind::Custom && !matches!(first, b'{' | b'"') => true,
            Some(_) => Raw::parse(&self.arguments.text().decode()).is_ok(),
        }
    }

    /// Whether the arguments of a custom tool broke off in its input, whatever the answer says about its end.
    pub(in crate::reader) fn is_cut(&self, tools: &[OfferedTool]) -> bool {
        let is_json = matches!(self.arguments.first(), Some(b'{' | b'"'));
        if self.is_plain || !is_json || self.arguments.is_whole() || self.kind(tools) != ToolKind::Custom {
            return false;
        }
        let mut input = CustomInput::default();
        input.push(self.arguments.text());
        input.is_cut()
    }

    pub(in crate::reader) fn kind(&self, tools: &[OfferedTool]) -> ToolKind {
        let own = if self.is_plain { ToolKind::Custom } else { ToolKind::Function };
        find(self.name.get(), tools).map_or(own, |tool| tool.kind)
    }

    /// The tool's name, as the client declared it.
    pub(in crate::reader) fn client_name(&self, tools: &[OfferedTool]) -> String {
        named(self.name.get(), &self.call_id, tools).name.get().decode().into_owned()
    }

    /// Sends what can be sent of it.
    pub(in crate::reader) fn advance(
        &mut self,
        offered: &Offered,
        showing: Showing,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) {
        if matches!(self.state, CallState::Waiting) {
            self.begin(offered);
        }
        match &mut self.state {
            CallState::Function(item) if showing == Showing::Now => {
                let (name, call_id) = (self.name.get(), &self.call_id);
                let item =
                    item.get_or_insert_with(|| open(&FUNCTION, &named(name, call_id, &offered.tools), response, out));
                // An empty object may be no more than a place for the real one.
                if !self.arguments.is_blank() {
                    item.send(self.arguments.text(), response, out);
                }
            }
            CallState::Custom(CustomState { input, read, check, item }) => {
                let arguments = self.arguments.text();
                input.push(arguments.after(*read));
                *read = arguments.len();
                let asks = check.is_some() && offered.may_ask_again();
                let sendable = match check {
                    Some(check) => check.sendable(input.text(), asks),
                    None => input.text().len(),
                };
                // What may be asked for once more is not shown before it fits; where nobody watches, not before the end.
                let shows = showing == Showing::Now && (!asks || sendable > 0 && !out.is_silent());
                if item.is_none() && input.has_begun() && shows {
                    let named = named(self.name.get(), &self.call_id, &offered.tools);
                    *item = Some(open(&CUSTOM, &named, response, out));
                }
                if let Some(item) = item {
                    item.send(input.text().up_to(sendable), response, out);
                }
            }
            CallState::Function(_) | CallState::Waiting | CallState::Held => {}
        }
    }

    /// The name is whole once the arguments begin; and their first character tells whether they are an object.
    fn begin(&mut self, offered: &Offered) {
        let tools = &*offered.tools;
        let plain = || self.arguments.text().as_written().bytes().next().filter(|_| self.is_plain);
        let Some(first) = self.arguments.first().or_else(plain) else { return };
        if self.name.is_empty() {
            return;
        }
        let check =
            || find(self.name.get(), tools).and_then(|tool| offered.inputs.begin(&tool.provider_name)).map(Box::new);
        self.state = match self.kind(tools) {
            ToolKind::Function if first == b'{' && !offered.renames(self.name.get()) => CallState::Function(None),
            ToolKind::Custom if self.is_plain => {
                let input = CustomInput::plain();
                CallState::Custom(CustomState { input, check: check(), ..CustomState::default() })
            }
            ToolKind::Custom if self.arguments.is_blank() => return,
            ToolKind::Custom => CallState::Custom(CustomState { check: check(), ..CustomState::default() }),
            _ => CallState::Held,
        };
    }

    /// Closes the item and puts it into the output. A hosted call is given back instead, unless it was cut; so is what
    /// may be shown only later.
    pub(in crate::reader) fn close(
        mut self,
        status: Status,
        offered: &Offered,
        showing: Showing,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) -> Option<HeldCall> {
        self.arguments.release();
        let tools = &*offered.tools;
        let tool = find(self.name.get(), tools);
        if let Some(tool) = tool.filter(|tool| tool.kind.is_hosted()) {
            return (status == Status::Completed).then(|| HeldCall::Hosted(self.hosted(tool, offered)));
        }
        self.advance(offered, showing, response, out);
        if tool.is_none() {
            let name: String = self.name.get().decode().chars().take(64).collect();
            response.remark(Action::Degraded, "tool_calls", format!("the tool '{name}' was not offered"));
        }
        let named = named(self.name.get(), &self.call_id, tools);
        let (item, form) = match std::mem::replace(&mut self.state, CallState::Held) {
            CallState::Function(item) => (item, of_text(&FUNCTION, named, self.arguments.text(), status)),
            CallState::Custom(CustomState { mut input, item, check, .. }) if item.is_some() || input.has_begun() => {
                input.finish();
                let sent = item.as_ref().map_or(0, CallItem::sent);
                // Of what was cut nobody knows what it was going to be.
                let check = check.filter(|_| status == Status::Completed);
                let name = named.name.get().decode().into_owned();
                let ends = offered.inputs.ends;
                let mended = check.and_then(|check| check.conclude(input.text(), sent, &name, ends, response));
                let text = match mended.as_ref() {
                    Some(mended) => mended.get(),
                    // There are clients that carry out what is not whole: they get it as it came, which is nothing else.
                    None if status != Status::Completed && sent == 0 && input.is_cut() => self.arguments.text(),
                    None => input.text(),
                };
                (item, of_text(&CUSTOM, named, text, status))
            }
            CallState::Custom(_) | CallState::Waiting | CallState::Held => {
                (None, self.whole(named, offered, status, response))
            }
        };
        if showing == Showing::Later {
            return Some(HeldCall::Client(ClientCall(form)));
        }
        form.write(item, response, out);
        None
    }

    /// The call, if its input is whole and does not fit, and nothing of it was sent.
    pub(in crate::reader) fn reject(
        &mut self,
        offered: &Offered,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) -> Option<RejectedCall> {
        self.arguments.release();
        self.advance(offered, Showing::Now, response, out);
        let CallState::Custom(CustomState { input, check: Some(check), item: None, .. }) = &mut self.state else {
            return None;
        };
        input.finish();
        let meant = (!input.has_begun()).then(|| EscapedBuf::of_plain(&meant(&self.arguments.text().decode())));
        let input = meant.as_ref().map_or(input.text(), EscapedBuf::get);
        let InputVerdict::Misfit(problem) = check.verdict(input, 0) else { return None };
        let problem = problem.clone();
        let Named { call_id, name, namespace, .. } = named(self.name.get(), &self.call_id, &offered.tools);
        let [call_id, name, input] =
            [call_id.get(), name.get(), input].map(|text: Escaped<'_>| text.decode().into_owned());
        Some(RejectedCall { call_id, name, namespace, input, problem })
    }

    fn hosted(&self, tool: &OfferedTool, offered: &Offered) -> HostedCall {
        let text = self.arguments.text().decode();
        let inner = double_encoded(&text);
        let arguments = match inner.as_deref().unwrap_or(&text).trim() {
            "" | "null" => "{}",
            arguments => arguments,
        };
        let arguments = offered.own_arguments(self.name.get(), arguments).unwrap_or_else(|| arguments.to_owned());
        let mut tool = tool.clone();
        if tool.provider_name == UNKNOWN {
            tool.provider_name = self.name.get().decode().into_owned();
            tool.name.clone_from(&tool.provider_name);
        }
        HostedCall { call_id: self.call_id.get().decode().into_owned(), tool, arguments }
    }

    /// A call of which nothing was sent yet.
    fn whole(&self, named: Named, offered: &Offered, status: Status, response: &mut ResponseWriter) -> CallForm {
        let kind = self.kind(&offered.tools);
        if kind == ToolKind::Custom {
            return self.odd(named, offered, status, response);
        }
        let text = self.arguments.text().decode();
        let mut inner = double_encoded(&text);
        if let Some(own) = offered.own_arguments(self.name.get(), inner.as_deref().unwrap_or(&text)) {
            inner = Some(own);
        }
        let arguments = inner.as_deref().unwrap_or(&text);
        if let Some(restored) = restore(kind, arguments) {
            return self.restored(restored, status, response);
        }
        if kind != ToolKind::Function {
            let message = "arguments that do not fit the declared tool came back as a function call";
            response.remark(Action::Repaired, "tool_calls", message);
        }
        let mended = match arguments.trim() {
            // A tool without parameters; of a call that was cut nobody knows.
            "" | "null" if status == Status::Completed => Some(EscapedBuf::of_plain("{}")),
            _ => inner.as_deref().map(EscapedBuf::of_plain),
        };
        let arguments = mended.as_ref().map_or(self.arguments.text(), EscapedBuf::get);
        of_text(&FUNCTION, named, arguments, status)
    }

    /// A call of a custom tool whose arguments have no input: its client knows no other call of it.
    fn odd(&self, named: Named, offered: &Offered, status: Status, response: &mut ResponseWriter) -> CallForm {
        if !self.has_arguments() || status != Status::Completed {
            return of_text(&CUSTOM, named, self.arguments.text(), status);
        }
        let name = named.name.get().decode().into_owned();
        let message = format!("the arguments of {name} are not the text that it takes");
        response.note(Note::new(Action::Repaired, "tool_calls", message).coded(code::TOOL_INPUT));
        let input = EscapedBuf::of_plain(&meant(&self.arguments.text().decode()));
        let tool = find(self.name.get(), &offered.tools);
        let check = tool.and_then(|tool| offered.inputs.begin(&tool.provider_name));
        let ends = offered.inputs.ends;
        let mended = check.and_then(|check| check.conclude(input.get(), 0, &name, ends, response));
        of_text(&CUSTOM, named, mended.unwrap_or(input).get(), status)
    }

    fn restored(&self, restored: Restored, status: Status, response: &mut ResponseWriter) -> CallForm {
        let id = response.make_id(restored.id_kind);
        let write = |status: Status, doing: &[u8]| {
            let mut out = Vec::with_capacity(doing.len() + 256);
            let mut item = ObjectWriter::new(&mut out);
            item.text("id", id.as_str()).text("type", restored.item_type).text("status", status.name());
            self.call_id.get().write(item.key("call_id"));
            item.json(restored.member, doing);
            if let Some((name, json)) = restored.constant {
                item.json(name, json);
            }
            item.end();
            out
        };
        let added = write(Status::InProgress, &restored.begun);
        let status = if restored.may_be_incomplete { status } else { Status::Completed };
        let done = write(status, &restored.whole);
        CallForm::Whole { added, done, commands: restored.commands }
    }
}

/// A call that is a text.
fn of_text(kind: &'static CallKind, named: Named, text: Escaped<'_>, status: Status) -> CallForm {
    CallForm::Text { id: None, kind, named, text: text.into(), status }
}

/// The call as the client knows it: under the name by which it declared the tool.
fn named(name: Escaped<'_>, call_id: &EscapedBuf, tools: &[OfferedTool]) -> Named {
    let call_id = call_id.clone();
    match find(name, tools) {
        Some(tool) => {
            let (name, namespace) = (EscapedBuf::of_plain(&tool.name), tool.namespace.clone());
            Named { call_id, name, namespace, more: Vec::new() }
        }
        None => Named { call_id, name: name.into(), ..Named::default() },
    }
}

fn open(kind: &'static CallKind, named: &Named, response: &mut ResponseWriter, out: &mut Events) -> CallItem {
    CallItem::open(response.make_id(kind.id_kind), kind, named, response, out)
}

/// The tool as the client declared it. Some models put a prefix of their training before the name.
fn find<'t>(name: Escaped<'_>, tools: &'t [OfferedTool]) -> Option<&'t OfferedTool> {
    let name = name.decode();
    let of = |name: &str| tools.iter().find(|tool| tool.provider_name == name);
    of(&name).or_else(|| of(name.strip_prefix("functions.")?)).or_else(|| unknown(&name, tools))
}

/// The name of no tool: stands for all that were not offered beside tools that godex runs.
const UNKNOWN: &str = "\0";

impl Offered {
    /// What was offered. A model that makes up a tool of a server is told that there is none; the client could not be.
    pub(in crate::reader) fn new(mut tools: Vec<OfferedTool>, inputs: Inputs, renamed: Vec<RenamedKeys>) -> Self {
        if tools.iter().any(|tool| tool.kind.is_hosted()) {
            let (provider_name, name) = (UNKNOWN.to_owned(), String::new());
            tools.push(OfferedTool { provider_name, kind: ToolKind::Mcp, name, namespace: None });
        }
        Self { tools, inputs, renamed }
    }
}

/// Whether a name that was not offered can only be meant for us: it is one of a server's, or the client has no tools.
fn unknown<'t>(name: &str, tools: &'t [OfferedTool]) -> Option<&'t OfferedTool> {
    let unknown = tools.last().filter(|tool| tool.provider_name == UNKNOWN && !name.is_empty())?;
    let hosted = |tool: &OfferedTool| tool.kind.is_hosted();
    let of_server = |tool: &OfferedTool| {
        let label = tool.namespace.as_deref().filter(|_| tool.kind == ToolKind::Mcp);
        label.is_some_and(|label| name.strip_prefix(label).is_some_and(|rest| rest.starts_with("__")))
    };
    (tools.iter().all(hosted) || tools.iter().any(of_server)).then_some(unknown)
}

/// The object inside of a JSON string.
fn double_encoded(arguments: &str) -> Option<String> {
    let inner = Raw::parse(arguments).ok()?.text()?.decode().into_owned();
    let is_object = Raw::parse(&inner).is_ok_and(|raw| raw.kind() == Kind::Object);
    is_object.then_some(inner)
}
