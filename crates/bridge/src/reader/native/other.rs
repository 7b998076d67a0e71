//! An item of any other kind: what a hosted tool did, and what is not known yet. Passed on as it is, under our id.

use wire::id::{Id, IdKind};
use wire::json::{ObjectWriter, Raw};
use wire::responses::{EventKind, Incoming, Status};

use super::event::{Op, own_of};
use super::{Ctx, fits, string};
use crate::json::compact;
use crate::note::Action;
use crate::shown::shown_item;

#[derive(Debug, Clone)]
pub(super) struct OtherItem {
    item_type: String,
    upstream_id: String,
    /// The item as it was announced.
    item: String,
    /// Our id and place, once it was announced to the client.
    shown: Option<(Id, u32)>,
}

impl OtherItem {
    pub(super) const fn new(item_type: String, upstream_id: String) -> Self {
        Self { item_type, upstream_id, item: String::new(), shown: None }
    }

    pub(super) const fn held(&self) -> usize {
        self.item.len()
    }

    pub(super) fn apply(&mut self, op: Op, event: &Incoming<'_>, ctx: &mut Ctx<'_>) {
        match op {
            Op::Added => {
                if let Some(item) = event.item.filter(|item| self.shown.is_none() && fits(*item)) {
                    item.as_str().clone_into(&mut self.item);
                    self.announce(item, ctx);
                }
            }
            Op::Own(kind) if own_of(kind, &self.item_type) => self.pass(kind, event, ctx),
            _ => {}
        }
    }

    fn announce(&mut self, item: Raw<'_>, ctx: &mut Ctx<'_>) {
        if self.shown.is_some() {
            return;
        }
        let id = ctx.id(&self.upstream_id, id_kind(&self.item_type));
        let output_index = ctx.response.output_index();
        ctx.event(EventKind::OutputItemAdded, |event| {
            event.int("output_index", output_index);
            write(item, &id, Status::InProgress, item.get("call_id"), event.key("item"));
        });
        self.shown = Some((id, output_index));
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
        let item = last.filter(|item| fits(*item)).or(added);
        let Some(item) = item.filter(|item| string(item.get("type")).is_some()) else {
            return ctx.response.remark(Action::Ignored, "output", "an item that cannot be read was left out");
        };
        self.announce(item, ctx);
        let Some((id, output_index)) = self.shown else { return };
        let mut whole = Vec::with_capacity(item.as_str().len() + 64);
        // What a client has seen does not change any more.
        let call_id = added.unwrap_or(item).get("call_id");
        write(item, &id, status, call_id, &mut whole);
        ctx.response.close_item(output_index, &whole, ctx.out);
        ctx.tally.others += 1;
        ctx.tally.volume.answered += whole.len();
    }
}

fn write(item: Raw<'_>, id: &Id, status: Status, call_id: Option<Raw<'_>>, out: &mut Vec<u8>) {
    let shown = shown_item(item);
    let shown = shown.as_deref().and_then(|shown| Raw::parse(str::from_utf8(shown).ok()?).ok());
    let item = shown.unwrap_or(item);
    let mut object = ObjectWriter::new(out);
    object.text("id", id.as_str());
    compact(item.get("type").unwrap_or(Raw::NULL).as_str(), object.key("type"));
    object.text("status", status.name());
    if let Some(call_id) = call_id {
        compact(call_id.as_str(), object.key("call_id"));
    }
    for (key, value) in
        item.fields().filter(|(key, _)| !["id", "type", "status", "call_id"].iter().any(|name| key.is(name)))
    {
        compact(value.as_str(), object.key(&key.decode()));
    }
    object.end();
}

fn id_kind(item_type: &str) -> IdKind {
    match item_type {
        "shell_call" => IdKind::ShellCall,
        "local_shell_call" => IdKind::LocalShellCall,
        "apply_patch_call" => IdKind::ApplyPatchCall,
        "tool_search_call" => IdKind::ToolSearchCall,
        _ => IdKind::Item,
    }
}
