//! Calls that somebody else than the client ran: each is a call of the model and its result, at the place where the model
//! made it. What the model did with the results is its next message.

use wire::chat::{Call, Str};
use wire::json::{Invalid, InvalidCode, Text};
use wire::responses::{HostedOutput, Item, McpApprovalRequest, McpApprovalResponse, McpCall, WebSearchCall};

use super::calls::{text_of, wrapped};
use super::{Builder, Pending, ToolResult};
use crate::context::ToolKind;
use crate::plan::hosted::{Outcome, Searched, shown_result, shown_search};
use crate::plan::item_path::ItemPath;
use crate::plan::links::Source;
use crate::plan::notes::code;

impl<'a> Builder<'_, 'a, '_> {
    pub(super) fn hosted_call(&mut self, index: usize, item: &Item<'a>, path: ItemPath) {
        match item {
            Item::McpCall(call) => self.mcp_call(index, call, path),
            Item::WebSearchCall(call) => self.search_call(index, call, path),
            Item::FileSearchCall(call) => {
                let queries = wrapped("{\"queries\":", call.queries, "[]");
                self.elsewhere(index, call.id, "file_search", queries, text_of(call.results), path);
            }
            Item::CodeInterpreterCall(call) => {
                let code = wrapped("{\"code\":", call.code.map(Text::raw), "\"\"");
                self.elsewhere(index, call.id, "code_interpreter", code, text_of(call.outputs), path);
            }
            Item::ImageGenerationCall(call) => {
                let result = self.generated(call.result);
                self.elsewhere(index, call.id, "image_generation", "{}".into(), result, path);
            }
            _ => {}
        }
    }

    /// The model has read the results: what it says now is another message.
    pub(super) fn go_on(&mut self) {
        if self.open.ran {
            self.close();
        }
    }

    fn elsewhere(
        &mut self,
        index: usize,
        id: Option<Text<'a>>,
        name: &'static str,
        arguments: Str<'a>,
        result: ToolResult<'a>,
        path: ItemPath,
    ) {
        self.notes.lowered(code::ITEM_DEGRADED, path, "sent as a call and its result");
        let id = self.own_id(id, index);
        self.push_ran(id, name.into(), arguments, result);
    }

    fn push_ran(&mut self, id: Str<'a>, name: Str<'a>, arguments: Str<'a>, result: ToolResult<'a>) {
        if self.notes.is_linking() {
            self.open.sources.said.push(self.at);
            self.open.sources.results.push(vec![self.at]);
        }
        self.open.calls.push(Call { id, name, arguments, is_custom: false, extra_content: None });
        self.open.results.push(Pending::Inline(result));
        self.open.ran = true;
    }

    /// The same, under the id by which the model made the call, if that is kept. The model may have been asked again
    /// after it.
    fn push_kept(
        &mut self,
        (index, id): (usize, Option<Text<'a>>),
        (name, arguments): (Str<'a>, Str<'a>),
        result: ToolResult<'a>,
        kept: Option<&HostedOutput<'a>>,
        path: ItemPath,
        told_with: Vec<Source>,
    ) {
        if kept.is_none() {
            self.notes.lowered(code::ITEM_DEGRADED, path, "sent as a call and its result");
        }
        let its = kept.and_then(|kept| kept.call_id).filter(|id| !id.is_empty());
        let id = self.own_id(its.or(id), index);
        self.push_ran(id, name, arguments, result);
        if let Some(sources) = self.open.sources.results.last_mut() {
            sources.extend(told_with);
        }
        if kept.is_some_and(|kept| kept.ends_round == Some(true)) {
            self.close();
        }
    }

    /// What the model was told, if that is kept.
    fn told(&mut self, kept: Option<&HostedOutput<'a>>, path: ItemPath) -> Option<ToolResult<'a>> {
        let output = kept?.output.as_ref()?;
        Some(self.renderer().output(&output.value, path))
    }

    /// The name and the arguments by which the provider knows a call.
    fn mcp_called(
        &mut self,
        label: Option<Text<'a>>,
        name: Option<Text<'a>>,
        arguments: Option<Text<'a>>,
        path: ItemPath,
    ) -> (Str<'a>, Str<'a>) {
        let arguments = self.arguments(arguments, path);
        (self.mcp_name(label, name), self.renamed(ToolKind::Mcp, label, name, arguments))
    }

    fn mcp_name(&self, label: Option<Text<'a>>, name: Option<Text<'a>>) -> Str<'a> {
        let label = label.filter(|label| !label.is_empty());
        match name.filter(|name| !name.is_empty()) {
            Some(name) => self.catalog.call_name(ToolKind::Mcp, label, name),
            None => "mcp".into(),
        }
    }

    fn mcp_call(&mut self, index: usize, call: &McpCall<'a>, path: ItemPath) {
        if self.approvals.has_moved(index) {
            return;
        }
        let named = self.mcp_called(call.server_label, call.name, call.arguments, path);
        let result = self.mcp_result(call, path);
        self.push_kept((index, call.id), named, result, call.godex_output.as_ref(), path, Vec::new());
    }

    fn mcp_result(&mut self, call: &McpCall<'a>, path: ItemPath) -> ToolResult<'a> {
        let told = self.told(call.godex_output.as_ref(), path);
        told.unwrap_or_else(|| ToolResult { texts: shown_result(call), media: Vec::new() })
    }

    fn search_call(&mut self, index: usize, call: &WebSearchCall<'a>, path: ItemPath) {
        let kept = call.godex_output.as_ref();
        if kept.is_none() && self.recalled.searched.contains(&index) {
            return self.thought();
        }
        if kept.is_none() && (call.action.is_none() || self.catalog.searches_natively()) {
            return self.notes.skipped(code::ITEM_IGNORED, path, "a search that has run, without its results");
        }
        let Searched { kind, arguments } = Searched::of(call.action);
        let name = self.catalog.fixed_name(kind, kind.name());
        let told = self.told(kept, path);
        let result = told.unwrap_or_else(|| ToolResult { texts: shown_search(call), media: Vec::new() });
        self.push_kept((index, call.id), (name, Str::Ours(arguments.into())), result, kept, path, Vec::new());
    }

    /// A call that somebody had to approve: it is the model's call, and what came of it is its result.
    pub(super) fn approval_request(&mut self, index: usize, request: &McpApprovalRequest<'a>, path: ItemPath) {
        let named = self.mcp_called(request.server_label, request.name, request.arguments, path);
        let result = match self.approvals.outcome(request.id) {
            Outcome::Not(texts) => ToolResult { texts, media: Vec::new() },
            Outcome::Called(at) => match self.items.sent.get(at).copied() {
                Some((Item::McpCall(call), path)) => self.mcp_result(call, path),
                _ => ToolResult::default(),
            },
        };
        let kept = request.godex_output.as_ref();
        let told_with = if self.notes.is_linking() { self.told_with(request.id) } else { Vec::new() };
        self.push_kept((index, request.id), named, result, kept, path, told_with);
    }

    /// Where the user's word is, and the call that was made upon it: both are told with what was asked for.
    fn told_with(&self, id: Option<Text<'a>>) -> Vec<Source> {
        let is = |other: Option<Text<'a>>| id.is_some() && other.map(Text::decode) == id.map(Text::decode);
        let called = match self.approvals.outcome(id) {
            Outcome::Called(at) => Some(at),
            Outcome::Not(_) => None,
        };
        let belongs = |(place, (item, _)): &(usize, &(&Item<'a>, ItemPath))| match item {
            Item::McpApprovalResponse(response) => is(response.approval_request_id),
            Item::McpCall(_) => called == Some(*place),
            _ => false,
        };
        let found = self.items.sent.iter().enumerate().filter(belongs);
        found.map(|(_, (_, path))| Source::Item(*path)).collect()
    }

    /// What the user said is in the result of the call.
    pub(super) fn approval(&mut self, response: &McpApprovalResponse<'a>, path: ItemPath) -> Result<(), Invalid> {
        let Some(id) = response.approval_request_id.filter(|id| !id.is_empty()) else {
            return self.demand("approval_request_id", path);
        };
        if self.approvals.has(id) {
            self.go_on();
            return Ok(());
        }
        let id: String = id.decode().chars().take(128).collect();
        if self.mends(path) || self.items.summarised {
            self.notes.repaired(path, "its approval request is not in this conversation: left out");
            return Ok(());
        }
        let message = format!("The approval request '{id}' of this MCP approval response was not found.");
        Err(Invalid::sentence(InvalidCode::UnknownCall, message).at("input"))
    }
}
