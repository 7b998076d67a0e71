//! An item of any other kind: what a hosted tool did, and what is not known yet. Passed on as it is, under our id; where
//! its kind has events in a set order, these are written in that order, whatever the upstream sent of them.

use wire::id::{Id, IdKind};
use wire::json::{ObjectWriter, Raw};
use wire::responses::{EventKind, Incoming, Status};

use super::super::HeldCall;
use super::event::{Op, own_of};
use super::{Ctx, fits, string};
use crate::escaped::EscapedBuf;
use crate::json::{bracketed, compact, join};
use crate::note::Action;
use crate::response::{CallForm, ClientCall, HostedKind};
use crate::shown::shown_item;

/// Items that are there or not.
const STATELESS: [&str; 3] = ["mcp_list_tools", "mcp_approval_request", "compaction"];

/// Members of what an MCP server did that are known when it begins.
const FIXED: [&str; 3] = ["server_label", "name", "approval_request_id"];

#[derive(Debug, Clone)]
pub(super) struct OtherItem {
    item_type: String,
    upstream_id: String,
    /// The item as it was announced.
    item: String,
    /// Our id and place, once it was announced to the client.
    shown: Option<(Id, u32)>,
    /// It is a call that the upstream has run, and is counted as one.
    is_counted: bool,
}

impl OtherItem {
    pub(super) const fn new(item_type: String, upstream_id: String) -> Self {
        Self { item_type, upstream_id, item: String::new(), shown: None, is_counted: false }
    }

    pub(super) const fn held(&self) -> usize {
        self.item.len()
    }

    pub(super) fn apply(&mut self, op: Op, event: &Incoming<'_>, ctx: &mut Ctx<'_>) {
        match op {
            Op::Added => {
                if let Some(item) = event.item.filter(|item| self.shown.is_none() && fits(*item)) {
                    item.as_str().clone_into(&mut self.item);
                    if !self.waits(item, ctx) {
                        self.announce(item, ctx);
                    }
                }
            }
            Op::Own(kind) if own_of(kind, &self.item_type) && HostedKind::of(&self.item_type).is_none() => {
                self.pass(kind, event, ctx);
            }
            _ => {}
        }
    }

    fn announce(&mut self, item: Raw<'_>, ctx: &mut Ctx<'_>) {
        if self.shown.is_some() {
            return;
        }
        self.count(item, ctx);
        let id = ctx.id(&self.upstream_id, id_kind(&self.item_type));
        let output_index = ctx.response.output_index();
        let mut added = Vec::with_capacity(item.as_str().len() + 64);
        write(item, &id, Status::InProgress, None, &mut added);
        let hosted = HostedKind::of(&self.item_type);
        if let Some((kind, item)) = hosted.zip(parsed(&added)) {
            let mut begun = Vec::with_capacity(added.len());
            kind.announced(item, &mut begun);
            added = begun;
        }
        ctx.event(EventKind::OutputItemAdded, |event| {
            event.int("output_index", output_index).json("item", &added);
        });
        for kind in hosted.into_iter().flat_map(|kind| kind.begun) {
            ctx.event(*kind, |event| {
                event.int("output_index", output_index).text("item_id", id.as_str());
            });
        }
        self.shown = Some((id, output_index));
    }

    /// Counts what the upstream runs itself, once.
    fn count(&mut self, item: Raw<'_>, ctx: &mut Ctx<'_>) {
        let tool = self.item_type.strip_suffix("_call").filter(|_| !is_clients(&self.item_type, item));
        if let Some(tool) = tool.filter(|_| !self.is_counted) {
            ctx.ran.add(tool);
            self.is_counted = true;
        }
    }

    /// Whether it is for the client to run, and a hosted call goes before it.
    fn waits(&self, item: Raw<'_>, ctx: &Ctx<'_>) -> bool {
        self.shown.is_none() && ctx.tally.holds() && is_clients(&self.item_type, item)
    }

    /// The call as it will be shown.
    fn clients(&self, item: Raw<'_>, status: Status, ctx: &mut Ctx<'_>) -> ClientCall {
        let id = ctx.id(&self.upstream_id, id_kind(&self.item_type));
        let [added, done] = [Status::InProgress, status].map(|status| {
            let mut out = Vec::with_capacity(item.as_str().len() + 64);
            write(item, &id, status, None, &mut out);
            out
        });
        let commands = item.get("action").filter(|_| self.item_type == "shell_call");
        let commands = commands.and_then(|action| action.get("commands")).into_iter().flat_map(Raw::elements);
        let commands = commands.filter_map(Raw::text).map(|text| EscapedBuf::of_plain(&text.decode())).collect();
        ClientCall(CallForm::Whole { added, done, commands })
    }

    /// An event of its own.
    fn pass(&self, kind: EventKind, event: &Incoming<'_>, ctx: &mut Ctx<'_>) {
        let Some((id, output_index)) = &self.shown else { return };
        let Some(raw) = Raw::parse(event.source).ok().filter(|raw| fits(*raw)) else { return };
        ctx.event(kind, |object| {
            if event.item_id.is_some() {
                object.text("item_id", id.as_str());
            }
            object.int("output_index", *output_index);
            let ours = ["type", "sequence_number", "item_id", "output_index", "obfuscation"];
            for (key, value) in raw.fields().filter(|(key, _)| !ours.iter().any(|name| key.is(name))) {
                compact(value.as_str(), object.key(&key.decode()));
            }
        });
    }

    pub(super) fn close(mut self, last: Option<Raw<'_>>, status: Status, ctx: &mut Ctx<'_>) {
        let added = std::mem::take(&mut self.item);
        let added = Raw::parse(&added).ok();
        // A request for an approval is whole from the beginning.
        let is_request = self.item_type == "mcp_approval_request";
        let last = last.filter(|item| fits(*item) && !(is_request && added.is_some()));
        let item = last.or(added);
        let Some(item) = item.filter(|item| string(item.get("type")).is_some()) else {
            return ctx.response.remark(Action::Ignored, "output", "an item that cannot be read was left out");
        };
        let has_error = item.get("error").is_some_and(|error| !error.is_null());
        let status = if has_error && self.item_type == "mcp_call" { Status::Failed } else { status };
        ctx.tally.client += usize::from(is_clients(&self.item_type, item));
        if self.waits(item, ctx) {
            let call = self.clients(item, status, ctx);
            ctx.tally.others += 1;
            ctx.tally.volume.answered += call.held();
            return ctx.tally.held.push(HeldCall::Client(call));
        }
        self.announce(item, ctx);
        // Where it runs may be said at its end only.
        self.count(item, ctx);
        let Some((id, output_index)) = self.shown else { return };
        let mut whole = Vec::with_capacity(item.as_str().len() + 64);
        write(item, &id, status, added, &mut whole);
        let hosted = HostedKind::of(&self.item_type).zip(parsed(&whole));
        for (kind, member) in hosted.into_iter().flat_map(|(kind, item)| kind.rest(item)) {
            ctx.event(kind, |event| {
                event.int("output_index", output_index).text("item_id", id.as_str());
                if let Some((name, text)) = member {
                    text.write(event.key(name));
                }
            });
        }
        ctx.response.close_item(output_index, &whole, ctx.out);
        ctx.tally.others += 1;
        ctx.tally.volume.answered += whole.len();
    }
}

/// `added`: the item as it was announced, where it was. What a client has seen does not change any more.
fn write(item: Raw<'_>, id: &Id, status: Status, added: Option<Raw<'_>>, out: &mut Vec<u8>) {
    let shown = shown_item(item);
    let item = shown.as_deref().and_then(parsed).unwrap_or(item);
    let kind = item.get("type").unwrap_or(Raw::NULL);
    let is = |name: &str| kind.text().is_some_and(|kind| kind.is(name));
    let mut object = ObjectWriter::new(out);
    object.text("id", id.as_str());
    compact(kind.as_str(), object.key("type"));
    if !STATELESS.iter().any(|name| is(name)) {
        object.text("status", status.name());
    }
    if let Some(call_id) = added.unwrap_or(item).get("call_id") {
        compact(call_id.as_str(), object.key("call_id"));
    }
    let fixed = |name: &str| kind.text().is_some_and(|kind| kind.decode().starts_with("mcp_")) && FIXED.contains(&name);
    let ours = ["id", "type", "status", "call_id"];
    for (key, value) in item.fields().filter(|(key, _)| !ours.iter().any(|name| key.is(name))) {
        let name = key.decode();
        let value = added.filter(|_| fixed(&name)).and_then(|added| added.get(&name)).unwrap_or(value);
        match &*name {
            "error" if value.is_null() && is("mcp_list_tools") => {}
            "tools" if is("mcp_list_tools") => write_tools(value, object.key(&name)),
            name => compact(value.as_str(), object.key(name)),
        }
    }
    object.end();
}

/// The tools of a list. Some clients take no null in them, where there is no description or no annotation.
fn write_tools(tools: Raw<'_>, out: &mut Vec<u8>) {
    let mut list = Vec::new();
    for tool in tools.elements() {
        let mut written = Vec::with_capacity(tool.as_str().len());
        let mut object = ObjectWriter::new(&mut written);
        for (key, value) in tool.fields().filter(|(_, value)| !value.is_null()) {
            compact(value.as_str(), object.key(&key.decode()));
        }
        object.end();
        join(&mut list, &written);
    }
    bracketed(out, &list);
}

fn parsed(json: &[u8]) -> Option<Raw<'_>> {
    Raw::parse(str::from_utf8(json).ok()?).ok()
}

/// Whether the client has to act on it: it is a call, and nobody else runs it.
fn is_clients(item_type: &str, item: Raw<'_>) -> bool {
    let is = |member: Option<Raw<'_>>, name: &str| string(member).is_some_and(|text| text.decode().starts_with(name));
    match item_type {
        "local_shell_call" | "apply_patch_call" | "computer_call" => true,
        "shell_call" => !is(item.get("environment").and_then(|place| place.get("type")), "container"),
        "tool_search_call" => !is(item.get("execution"), "server"),
        _ => false,
    }
}

fn id_kind(item_type: &str) -> IdKind {
    match item_type {
        "shell_call" => IdKind::ShellCall,
        "local_shell_call" => IdKind::LocalShellCall,
        "apply_patch_call" => IdKind::ApplyPatchCall,
        "tool_search_call" => IdKind::ToolSearchCall,
        "mcp_list_tools" => IdKind::McpListTools,
        "mcp_call" => IdKind::McpCall,
        "mcp_approval_request" => IdKind::McpApprovalRequest,
        "web_search_call" => IdKind::WebSearchCall,
        _ => IdKind::Item,
    }
}
