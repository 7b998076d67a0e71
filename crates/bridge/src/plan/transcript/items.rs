//! One item after the other: each kind says what it is in a transcript.

use wire::chat::{Content, Part, Str};
use wire::json::{FromRaw, Invalid, InvalidCode, Raw};
use wire::responses::{self, Item};

use super::pairs::Link;
use super::{Builder, ToolResult};
use crate::plan::item_path::ItemPath;
use crate::plan::notes::code;

const ROLES: &[&str] = &["assistant", "system", "developer", "user"];

impl<'a> Builder<'_, 'a, '_> {
    pub(super) fn item(&mut self, index: usize, item: &Item<'a>, path: ItemPath) -> Result<(), Invalid> {
        if let Some(end) = self.recalled.starts.remove(&index) {
            self.begin_answer(end);
        }
        match item {
            Item::Message(message) => self.message(message, path)?,
            Item::Reasoning(reasoning) => {
                self.go_on();
                self.think(index, reasoning, path);
            }
            Item::FunctionCall(_)
            | Item::CustomToolCall(_)
            | Item::ShellCall(_)
            | Item::LocalShellCall(_)
            | Item::ApplyPatchCall(_)
            | Item::ToolSearchCall(_)
            | Item::ComputerCall(_)
            | Item::Program(_) => self.call(index, item, path)?,
            Item::FunctionCallOutput(_)
            | Item::CustomToolCallOutput(_)
            | Item::ShellCallOutput(_)
            | Item::LocalShellCallOutput(_)
            | Item::ApplyPatchCallOutput(_)
            | Item::ToolSearchOutput(_)
            | Item::ComputerCallOutput(_)
            | Item::ProgramOutput(_) => self.output(index, item, path)?,
            Item::McpCall(_)
            | Item::WebSearchCall(_)
            | Item::FileSearchCall(_)
            | Item::CodeInterpreterCall(_)
            | Item::ImageGenerationCall(_) => self.hosted_call(index, item, path),
            Item::McpApprovalRequest(request) => self.approval_request(index, request, path),
            Item::McpApprovalResponse(response) => self.approval(response, path)?,
            // Ours has been replaced with what it holds.
            Item::Compaction(_) => {
                let why = "this summary was not made here: what it stands for is lost";
                self.notes.ignored(code::ITEM_IGNORED, path, why);
            }
            Item::AgentMessage(message) => self.agent_message(message, path),
            // Their tools are in the catalogue.
            Item::AdditionalTools(_) => {}
            Item::McpListTools(list) if self.catalog.asks(list.server_label) => {}
            Item::McpListTools(_) => self.skip(path, "the tools of a server that is not offered here"),
            Item::CompactionTrigger(_) => self.skip(path, "nothing is compacted in this request"),
            Item::ConfigurationUpdate(_) => self.skip(path, "only the request's own settings count"),
            Item::ItemReference(_) => self.skip(path, "what it refers to is not here"),
            Item::Other { raw, .. } => self.unknown(*raw, path),
        }
        Ok(())
    }

    fn skip(&mut self, path: ItemPath, why: &'static str) {
        self.notes.skipped(code::ITEM_IGNORED, path, why);
    }

    fn message(&mut self, message: &responses::Message<'a>, path: ItemPath) -> Result<(), Invalid> {
        let Some(content) = &message.content else { return self.demand("content", path) };
        let Some(role) = message.role else {
            self.demand("role", path)?;
            let content = self.renderer().message(content, path);
            self.plain("user", content);
            return Ok(());
        };
        if role.is("assistant") {
            self.go_on();
            let texts = self.renderer().texts(content, path);
            self.say(texts);
            return Ok(());
        }
        let content = self.renderer().message(content, path);
        match &*role.decode() {
            "user" => self.plain("user", content),
            "system" => self.plain("system", content),
            "developer" => self.instruct(content),
            _ if self.mends(path) => {
                self.notes.repaired(path.member("role"), "no such role: user");
                self.plain("user", content);
            }
            other => return Err(path.locate(Invalid::value(other, ROLES).at("role"))),
        }
        Ok(())
    }

    /// An output: it is written after its call already, or says where it comes from.
    fn output(&mut self, index: usize, item: &Item<'a>, path: ItemPath) -> Result<(), Invalid> {
        self.check_output(item, path)?;
        match self.pairs.link(index) {
            Link::Result { .. } => {
                // The batch is over; what follows is the next message.
                if !self.open.calls.is_empty() {
                    self.close();
                } else if !self.at_results {
                    self.notes.repaired(path, "put directly after its call");
                }
            }
            Link::Extra => {
                self.notes.repaired(path, "its call has a result already: sent as text");
                let label = format!("[Another result of the call {}]", call_id(item));
                self.labelled(label, index);
            }
            Link::Late => {
                self.notes.repaired(path, "the model has gone on without it: sent as text");
                let label = format!("[Late result of the call {}]", call_id(item));
                self.labelled(label, index);
            }
            Link::Orphan => self.orphan(index, item, path)?,
            Link::Neither | Link::Answered { .. } | Link::Unanswered { .. } | Link::Repeated => {}
        }
        Ok(())
    }

    /// An output of no call: an event by name, or an error as on OpenAI's API.
    fn orphan(&mut self, index: usize, item: &Item<'a>, path: ItemPath) -> Result<(), Invalid> {
        let id = call_id(item);
        if let Item::FunctionCallOutput(output) = item
            && let (true, Some(name)) = (id.is_empty(), output.name)
        {
            self.labelled(format!("[Event from {}]", name.decode()), index);
            return Ok(());
        }
        if !self.mends(path) && !self.items.summarised {
            if id.is_empty() {
                return Err(path.locate(Invalid::missing().at("call_id")));
            }
            let kind = if matches!(item, Item::CustomToolCallOutput(_)) { "custom tool" } else { "function" };
            let message = format!("No tool call found for {kind} call output with call_id {id}.");
            return Err(Invalid::sentence(InvalidCode::UnknownCall, message).at("input"));
        }
        self.notes.repaired(path, "its call is not in this conversation: sent as a message");
        self.labelled(format!("[Result of a tool call that is not in this conversation: {id}]"), index);
        Ok(())
    }

    /// A result as a message of the user, told what it is.
    fn labelled(&mut self, label: String, index: usize) {
        let ToolResult { mut texts, media } = self.result(index);
        texts.insert(0, Str::Ours(label.into()));
        let content = if media.is_empty() {
            Content::Text(texts)
        } else {
            Content::Parts(texts.into_iter().map(Part::Text).chain(media).collect())
        };
        self.plain("user", content);
    }

    fn agent_message(&mut self, message: &responses::AgentMessage<'a>, path: ItemPath) {
        let name = |raw: Option<Raw<'a>>| match raw.and_then(Raw::text) {
            Some(name) => name.decode().into_owned(),
            None => raw.map(|raw| raw.as_str().to_owned()).unwrap_or_default(),
        };
        let label = format!("[Message from {} to {}]", name(message.author), name(message.recipient));
        let content = message.content.as_ref().map(|content| self.renderer().message(content, path));
        let content = match content {
            Some(Content::Parts(mut parts)) => {
                parts.insert(0, Part::Text(Str::Ours(label.into())));
                Content::Parts(parts)
            }
            Some(Content::Text(mut texts)) => {
                texts.insert(0, Str::Ours(label.into()));
                Content::Text(texts)
            }
            None => Content::Text(vec![Str::Ours(label.into())]),
        };
        self.notes.lowered(code::ITEM_DEGRADED, path, "sent as a message of the user");
        self.plain("user", content);
    }

    /// A kind from the future: if it speaks like a message, it is one.
    fn unknown(&mut self, raw: Raw<'a>, path: ItemPath) {
        if let Ok(message) = responses::Message::from_raw(raw) {
            let known = message.role.is_some_and(|role| ROLES.iter().any(|name| role.is(name)));
            if known && message.content.is_some() && self.message(&message, path).is_ok() {
                return self.notes.degraded(code::ITEM_DEGRADED, path, "this kind of item is not known: a message");
            }
        }
        self.notes.ignored(code::ITEM_IGNORED, path, "this kind of item is not known");
    }
}

/// The id by which an output names its call.
fn call_id(item: &Item<'_>) -> String {
    let id = match item {
        Item::FunctionCallOutput(output) => output.call_id,
        Item::CustomToolCallOutput(output) => output.call_id,
        Item::ShellCallOutput(output) => output.call_id,
        Item::LocalShellCallOutput(output) => output.call_id.or(output.id),
        Item::ApplyPatchCallOutput(output) => output.call_id,
        Item::ToolSearchOutput(output) => output.call_id,
        Item::ComputerCallOutput(output) => output.call_id,
        Item::ProgramOutput(output) => output.call_id,
        _ => None,
    };
    id.map(|id| id.decode().chars().take(128).collect()).unwrap_or_default()
}
