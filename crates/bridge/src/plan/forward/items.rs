//! The items: byte for byte, but for ids that mean nothing there, for roles that it does not know, and for
//! reasoning, which goes back to nobody but those who thought it.

use wire::json::{ObjectWriter, Raw};
use wire::responses::{CreateResponse, Input, InputItem, Item, Message, Reasoning};

use super::super::compaction::{self, Sent};
use super::super::item_path::{ItemPath, each};
use super::super::notes::{Notes, code};
use super::PlanTarget;
use crate::dialect::{DeveloperRole, ItemIds, Replay};
use crate::seal::{Encrypted, SealedReasoning};

pub(super) fn write(
    request: &CreateResponse<'_>,
    past: &[InputItem<'_>],
    target: PlanTarget<'_>,
    out: &mut Vec<u8>,
    notes: &mut Notes,
) {
    let opened = compaction::open(request, past, target.seal);
    let unfolded = compaction::unfold(&opened);
    let mut list = List { target, out, notes, empty: true };
    list.out.push(b'[');
    each(request, past, &unfolded, |item, path, sent| match sent {
        Sent::Whole | Sent::Summary => list.item(item, path),
        Sent::Tools => list.declare(item, path),
        Sent::Nothing => {}
    });
    if let Some(Input::Text(text)) = &request.input {
        let mut message = ObjectWriter::new(list.next());
        message.text("type", "message").text("role", "user").raw("content", text.raw());
        message.end();
    }
    list.out.push(b']');
}

struct List<'t, 'o> {
    target: PlanTarget<'t>,
    out: &'o mut Vec<u8>,
    notes: &'o mut Notes,
    empty: bool,
}

impl List<'_, '_> {
    /// The place of the next item.
    fn next(&mut self) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out
    }

    fn item(&mut self, item: &InputItem<'_>, path: ItemPath) {
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
        let Item::ToolSearchOutput(_) = &item.value else { return self.copy(item.raw, &[]) };
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
        if !id_goes && replaced.iter().all(|(_, value)| value.is_none()) {
            return self.next().extend_from_slice(raw.as_str().as_bytes());
        }
        let mut object = ObjectWriter::new(self.next());
        for (key, value) in raw.fields().filter(|(key, _)| !(id_goes && key.is("id"))) {
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
