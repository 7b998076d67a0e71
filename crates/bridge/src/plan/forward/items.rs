//! The items: byte for byte, but for ids that mean nothing there, for roles that it does not know, and for
//! reasoning, which goes back to nobody but those who thought it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;

use wire::chat::Str;
use wire::json::{ObjectWriter, Raw, Text};
use wire::responses::{
    CreateResponse, HostedOutput, Input, InputItem, Item, McpApprovalRequest, Message, Reasoning, WebSearchCall,
};

use super::super::compaction::{Sent, Unfolded};
use super::super::hosted::{Approvals, Outcome, Searched, shown_result, shown_search};
use super::super::item_path::{ItemPath, Items, each};
use super::super::links::Source;
use super::super::notes::{Notes, code};
use super::super::transcript::{CallRole, call_role};
use super::PlanTarget;
use super::hosted::{HostedTools, Pair, PairOutput};
use crate::context::ToolKind;
use crate::dialect::{DeveloperRole, ItemIds, Replay};
use crate::seal::{Encrypted, SealedReasoning};

/// Where kept outputs are in an item. Nobody else gets to see them.
const KEPT: &str = "godex_output";

/// What is known of all items.
pub(super) struct Context<'c, 'a> {
    pub(super) unfolded: &'c [Unfolded<'a>],
    pub(super) hosted: &'c HostedTools<'a>,
    pub(super) approvals: Approvals<'a>,
    pub(super) all: &'c Items<'c, 'a>,
}

pub(super) fn write<'a>(
    request: &CreateResponse<'a>,
    past: &[InputItem<'a>],
    target: PlanTarget<'_>,
    context: Context<'_, 'a>,
    out: &mut Vec<u8>,
    notes: &mut Notes,
) {
    let unfolded = context.unfolded;
    let (ids, told) = (BTreeSet::new(), BTreeSet::new());
    let mut list = List { target, context, ids, told, out, notes, written: 0 };
    list.out.push(b'[');
    each(request, past, unfolded, |item, path, sent| match sent {
        Sent::Whole | Sent::Summary => list.linked(path, |list| list.item(item, path)),
        Sent::Tools => list.linked(path, |list| list.declare(item, path)),
        Sent::Nothing => {}
    });
    if let Some(Input::Text(text)) = &request.input {
        let mut message = ObjectWriter::new(list.next());
        message.text("type", "message").text("role", "user").raw("content", text.raw());
        message.end();
        let index = list.written - 1;
        if let Some(links) = list.notes.links() {
            links.item(Source::Text, index);
        }
    }
    list.out.push(b']');
}

struct List<'t, 'o, 'c, 'a> {
    target: PlanTarget<'t>,
    context: Context<'c, 'a>,
    /// The ids of calls so far.
    ids: BTreeSet<String>,
    /// The requests for approvals that are written as calls.
    told: BTreeSet<String>,
    out: &'o mut Vec<u8>,
    notes: &'o mut Notes,
    /// How many items there are.
    written: usize,
}

impl<'a> List<'_, '_, '_, 'a> {
    /// The place of the next item.
    fn next(&mut self) -> &mut Vec<u8> {
        if self.written > 0 {
            self.out.push(b',');
        }
        self.written += 1;
        self.out
    }

    /// Whatever is written for that item is linked to it.
    fn linked(&mut self, path: ItemPath, write: impl FnOnce(&mut Self)) {
        let before = self.written;
        write(self);
        let written = before..self.written;
        if let Some(links) = self.notes.links() {
            written.for_each(|index| links.item(path, index));
        }
    }

    fn item(&mut self, item: &InputItem<'a>, path: ItemPath) {
        if self.hosted(item) {
            return;
        }
        if let CallRole::Call(Some(id)) = call_role(&item.value) {
            self.ids.insert(id.decode().into_owned());
        }
        match &item.value {
            Item::Reasoning(reasoning) => self.reasoning(reasoning, item.raw, path),
            // It may be the provider's own.
            Item::Compaction(_) => {
                self.notes.lowered(code::ITEM_DEGRADED, path, "this summary was not made here: passed on as it is");
                self.copy(item.raw, &[]);
            }
            Item::Message(message) => {
                let role = self.role(message);
                self.copy(item.raw, &[("role", role)]);
            }
            _ => self.copy(item.raw, &[]),
        }
    }

    /// The tools of an item whose place a summary has taken.
    fn declare(&mut self, item: &InputItem<'_>, path: ItemPath) {
        match &item.value {
            Item::ToolSearchOutput(_) => {}
            // What is declared of a server's tools is declared; the provider asks its own servers again.
            Item::McpListTools(_) => return,
            _ => return self.copy(item.raw, &[]),
        }
        let Some(tools) = item.raw.get("tools") else { return };
        self.notes.lowered(code::ITEM_DEGRADED, path, "what was searched for is summarised: its tools are declared");
        let mut object = ObjectWriter::new(self.next());
        object.text("type", "additional_tools").text("role", "developer").raw("tools", tools);
        object.end();
    }

    /// The role that the provider knows instead of this message's.
    fn role(&self, message: &Message<'_>) -> Option<&'static str> {
        let role = self.target.dialect.developer_role;
        let is_developer = message.role.is_some_and(|role| role.is("developer"));
        (is_developer && role != DeveloperRole::Developer).then_some(role.name())
    }

    /// An item with these members replaced. What need not change is copied.
    fn copy(&mut self, raw: Raw<'_>, replaced: &[(&str, Option<&'static str>)]) {
        let keeps_ids = self.target.dialect.request.native.item_ids == ItemIds::Theirs;
        let id_goes = !keeps_ids && raw.get("id").is_some();
        let hides = raw.get(KEPT).is_some();
        if !id_goes && !hides && replaced.iter().all(|(_, value)| value.is_none()) {
            return self.next().extend_from_slice(raw.as_str().as_bytes());
        }
        let mut object = ObjectWriter::new(self.next());
        for (key, value) in raw.fields().filter(|(key, _)| !(id_goes && key.is("id") || key.is(KEPT))) {
            match replaced.iter().find_map(|(name, value)| value.filter(|_| key.is(name))) {
                Some(value) => object.text(&key.decode(), value),
                None => object.raw(&key.decode(), value),
            };
        }
        object.end();
    }

    fn reasoning(&mut self, reasoning: &Reasoning<'_>, raw: Raw<'_>, path: ItemPath) {
        let dialect = self.target.dialect;
        let sealed = reasoning.encrypted_content.filter(|sealed| !sealed.is_empty());
        let thought = match sealed.map(|sealed| self.target.seal.open(&sealed.decode())) {
            None => None,
            Some(opened) => match opened.and_then(|plain| SealedReasoning::decode(&plain)) {
                Some(thought) if thought.family == dialect.family() => Some(thought),
                Some(_) => return self.notes.ignored(code::REASONING_IGNORED, path, "another model's reasoning"),
                None => {
                    let message = "not sealed here, or broken";
                    self.notes.ignored(code::REASONING_IGNORED, path.member("encrypted_content"), message);
                    None
                }
            },
        };
        if let Some(SealedReasoning { native: Some(native), .. }) = thought {
            return self.encrypted(raw, &native);
        }
        let says = raw.get("content").is_some_and(|content| content.elements().next().is_some());
        if says && dialect.request.reasoning.replay != Replay::Never {
            return self.plain(raw);
        }
        self.notes.skipped(code::REASONING_IGNORED, path, "this provider does not take it back");
    }

    /// As the provider sealed it, under the id for which it did.
    fn encrypted(&mut self, raw: Raw<'_>, native: &Encrypted) {
        let mut object = ObjectWriter::new(self.next());
        object.text("type", "reasoning");
        if !native.id.is_empty() {
            object.text("id", &native.id);
        }
        object.json("summary", raw.get("summary").map_or("[]", Raw::as_str).as_bytes());
        object.text("encrypted_content", &native.content);
        object.end();
    }

    /// In words, under any id: servers that take these insist on one.
    fn plain(&mut self, raw: Raw<'_>) {
        let mut object = ObjectWriter::new(self.next());
        for (key, value) in raw.fields().filter(|(key, _)| !key.is("encrypted_content")) {
            object.raw(&key.decode(), value);
        }
        object.end();
    }
}

/// Items of tools that godex runs, or ran: pairs of calls and outputs.
impl<'a> List<'_, '_, '_, 'a> {
    /// Whether the item was one, and is written.
    fn hosted(&mut self, item: &InputItem<'a>) -> bool {
        let catalog = &self.context.hosted.catalog;
        match &item.value {
            Item::McpListTools(list) => catalog.asks(list.server_label),
            Item::McpCall(call) if call.godex_output.is_some() || catalog.asks(call.server_label) => {
                let request = call.approval_request_id.map(Text::decode).unwrap_or_default();
                if !self.told.contains(&*request) {
                    let kept = call.godex_output.as_ref();
                    let named = (self.mcp_name(call.server_label, call.name), arguments(call.arguments));
                    self.pair(call.id, kept, named, output_of(kept, || shown_result(call)));
                }
                true
            }
            Item::WebSearchCall(call) if call.godex_output.is_some() || !catalog.of_search().is_empty() => {
                self.search(call);
                true
            }
            Item::McpApprovalRequest(request)
                if request.godex_output.is_some() || catalog.asks(request.server_label) =>
            {
                self.approval(request);
                true
            }
            Item::McpApprovalResponse(response) => {
                let id = response.approval_request_id.map(Text::decode).unwrap_or_default();
                self.told.contains(&*id)
            }
            _ => false,
        }
    }

    fn search(&mut self, call: &WebSearchCall<'a>) {
        let Searched { kind, arguments } = Searched::of(call.action);
        let name = self.context.hosted.catalog.fixed_name(kind, kind.name());
        let kept = call.godex_output.as_ref();
        self.pair(call.id, kept, (name, arguments.into()), output_of(kept, || shown_search(call)));
    }

    fn approval(&mut self, request: &McpApprovalRequest<'a>) {
        let output = match self.context.approvals.outcome(request.id) {
            Outcome::Not(texts) => PairOutput::Words(joined(&texts)),
            Outcome::Called(at) => match self.context.all.sent.get(at) {
                Some((Item::McpCall(call), _)) => output_of(call.godex_output.as_ref(), || shown_result(call)),
                _ => PairOutput::Words(String::new()),
            },
        };
        self.told.extend(request.id.map(|id| id.decode().into_owned()).filter(|id| !id.is_empty()));
        let named = (self.mcp_name(request.server_label, request.name), arguments(request.arguments));
        self.pair(request.id, request.godex_output.as_ref(), named, output);
    }

    fn mcp_name(&self, label: Option<Text<'a>>, name: Option<Text<'a>>) -> Str<'a> {
        let label = label.filter(|label| !label.is_empty());
        match name.filter(|name| !name.is_empty()) {
            Some(name) => self.context.hosted.catalog.call_name(ToolKind::Mcp, label, name),
            None => "mcp".into(),
        }
    }

    fn pair(
        &mut self,
        id: Option<Text<'a>>,
        kept: Option<&HostedOutput<'a>>,
        (name, arguments): (Str<'a>, Cow<'a, str>),
        output: PairOutput<'_>,
    ) {
        let its = kept.and_then(|kept| kept.call_id).filter(|id| !id.is_empty());
        let mut call_id = its.or(id).map_or_else(|| "call".to_owned(), |id| id.decode().into_owned());
        while !self.ids.insert(call_id.clone()) {
            let _ = write!(call_id, "_{}", self.ids.len());
        }
        let pair = Pair { call_id, name: name.decode(), arguments, output };
        pair.write_call(self.next());
        pair.write_output(self.next());
    }
}

fn arguments(arguments: Option<Text<'_>>) -> Cow<'_, str> {
    arguments.map(Text::decode).unwrap_or_default()
}

/// What the model was told, if that is kept; else what the item says.
fn output_of<'p>(kept: Option<&HostedOutput<'p>>, shown: impl FnOnce() -> Vec<Str<'p>>) -> PairOutput<'p> {
    match kept.and_then(|kept| kept.output.as_ref()) {
        Some(output) => PairOutput::Kept(output.raw),
        None => PairOutput::Words(joined(&shown())),
    }
}

fn joined(texts: &[Str<'_>]) -> String {
    texts.iter().map(Str::decode).collect::<Vec<_>>().join("\n")
}
