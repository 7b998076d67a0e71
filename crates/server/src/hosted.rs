//! Tools that godex runs itself: the model's call is not the client's business, its result goes back to the model in another
//! round of the same response. This is what is known of them for one response: the servers and the search that its request
//! names, with the operator's policy over them. In which order they run and are shown is decided by `turn::tools`.

pub(crate) mod allowed;
pub(crate) mod approval;
pub(crate) mod mcp;
pub(crate) mod pages;
pub(crate) mod search;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bridge::{HostedCall, HostedEnd, Hosting, Round, Source, Sources, ToolKind};
use providers::Wire;
use wire::json::{InvalidCode, Kind, ObjectWriter, Raw, Text};
use wire::responses::{CreateResponse, HostedOutput as Kept, Input, InputItem, Item, McpTool, Tool, ToolChoice};

use crate::error::{ApiError, clip};
use crate::request::RequestContext;
use crate::upstream::Failover;
use approval::Approved;
use mcp::{Listed, McpServers, NotListed};
use search::WebSearch;

/// Something that runs by itself when it is waited for, and is stopped when it is dropped.
pub(crate) type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostedOutput {
    /// How its item ends.
    pub(crate) end: HostedEnd,
    /// What the model is told.
    pub(crate) text: String,
    /// What it is shown beside that, as data URLs.
    pub(crate) images: Vec<String>,
    /// The addresses that it is told: it may cite and open them.
    pub(crate) sources: Vec<Source>,
}

/// The hosted tools of one response.
#[derive(Debug)]
pub(crate) struct Hosted {
    mcp: McpServers,
    /// The labels of its servers, in the request's order.
    labels: Vec<String>,
    /// Whether the model may call anything at all.
    may_call: bool,
    search: Option<WebSearch>,
    /// `max_tool_calls`.
    pub(crate) max_calls: Option<u64>,
    /// `max_output_tokens`, of all rounds.
    pub(crate) max_output_tokens: Option<u64>,
    /// Whether calls may run side by side.
    pub(crate) parallel: bool,
    known: Mutex<Known>,
}

/// What the conversation has shown so far.
#[derive(Debug, Default)]
struct Known {
    /// The latest list of each server's tools, as JSON.
    tools: HashMap<String, String>,
    sources: Sources,
}

impl Hosted {
    /// The hosted tools that the request asks for; none where it asks for none, or the provider runs them itself. What the
    /// operator does not allow is refused.
    pub(crate) fn of(
        request: &CreateResponse<'_>,
        failover: &Failover,
        context: &RequestContext,
    ) -> Result<Option<Arc<Self>>, ApiError> {
        let tools = || request.tools.iter().flatten().map(|tool| &tool.value).enumerate();
        allowed::check(request, failover, context)?;
        let mut servers: Vec<(usize, &McpTool<'_>)> = tools()
            .filter_map(|(index, tool)| if let Tool::Mcp(tool) = tool { Some((index, tool)) } else { None })
            .collect();
        let search = tools().find_map(|(index, tool)| match tool {
            Tool::WebSearch(tool) => Some((index, tool)),
            _ => None,
        });
        if servers.is_empty() && search.is_none() {
            return Ok(None);
        }
        let dialect = failover.dialect();
        let runs = |kind| failover.wire() == Wire::Responses || dialect.request.tools.runs(kind);
        // Only godex reaches the operator's servers; all others the provider calls itself, if it can.
        if runs(bridge::Hosted::Mcp) && !servers.iter().all(|(_, tool)| is_declared(tool, context)) {
            servers.clear();
        }
        let includes = |name: &str| request.include.iter().flatten().any(|include| include.is(name));
        let search = match search.filter(|_| !runs(bridge::Hosted::WebSearch)) {
            Some((index, tool)) => WebSearch::of(index, tool, includes("web_search_call.action.sources"), context)?,
            None => None,
        };
        if servers.is_empty() && search.is_none() {
            return Ok(None);
        }
        let count = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        Ok(Some(Arc::new(Self {
            mcp: McpServers::of(&servers, context)?,
            labels: servers.iter().filter_map(|(_, tool)| label(tool)).collect(),
            may_call: !matches!(request.tool_choice, Some(ToolChoice::None)),
            search,
            max_calls: count(request.max_tool_calls),
            max_output_tokens: count(request.max_output_tokens),
            parallel: request.parallel_tool_calls.unwrap_or(true),
            known: Mutex::default(),
        })))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what the request continues, and at its input.
    pub(crate) fn look_at(&self, past: &[InputItem<'_>], request: &CreateResponse<'_>) {
        let input = match &request.input {
            Some(Input::Items(items)) => items.as_slice(),
            Some(Input::Text(text)) => {
                if let Some(search) = &self.search {
                    search.shown(&text.decode());
                }
                &[]
            }
            None => &[],
        };
        if let (Some(search), Some(instructions)) = (&self.search, request.instructions) {
            search.shown(&instructions.decode());
        }
        let mut known = self.known();
        for item in past.iter().chain(input) {
            match &item.value {
                Item::McpListTools(list) => known.listed(list.server_label, list.tools, list.error),
                Item::WebSearchCall(call) => {
                    let action = call.action.and_then(|action| action.get("sources"));
                    known.shown(action);
                    known.shown(call.godex_output.as_ref().and_then(|kept: &Kept<'_>| kept.sources));
                }
                _ => {}
            }
            if let (Some(search), Some(text)) = (&self.search, shows(item)) {
                each_text(text, &mut |text| search.shown(text));
            }
        }
    }

    /// The servers whose tools are not known yet.
    pub(crate) fn unlisted(&self) -> Vec<String> {
        let known = self.known();
        let labels = self.labels.iter().filter(|label| self.may_call && !known.tools.contains_key(*label));
        labels.cloned().collect()
    }

    /// What a plan has to know.
    pub(crate) fn hosting(&self, round: Round, answered_tokens: u64, lists_pending: bool) -> Hosting {
        let web_search = self.search.as_ref().map(WebSearch::functions);
        Hosting {
            mcp: !self.labels.is_empty(),
            lists_pending,
            web_search,
            round,
            answered_tokens,
            ..Hosting::default()
        }
    }

    /// What an answer may cite; none where nothing is searched.
    pub(crate) fn sources(&self) -> Option<Arc<Sources>> {
        self.search.as_ref()?;
        Some(self.known().sources.clone()).filter(|sources| !sources.is_empty()).map(Arc::new)
    }

    pub(crate) fn list(&self, label: &str) -> Running<Result<Listed, NotListed>> {
        self.mcp.list(label)
    }

    /// A server has these tools.
    pub(crate) fn listed(&self, label: &str, tools: String) {
        self.known().tools.insert(label.to_owned(), tools);
    }

    /// The model was told this.
    pub(crate) fn told(&self, output: &HostedOutput) {
        let mut known = self.known();
        output.sources.iter().for_each(|source| known.sources.add(source));
    }

    /// Whether somebody has to approve of the call first.
    pub(crate) fn needs_approval(&self, call: &HostedCall) -> bool {
        let Some(label) = server(call) else { return false };
        let (known, tool) = (self.known(), &*call.tool.name);
        let annotations = known.annotations(label, tool);
        self.mcp.allows(label, tool, annotations) && self.mcp.needs_approval(label, tool, annotations)
    }

    /// Refuses an approval of a call that this request does not let be made: it can be used by one that does.
    pub(crate) fn check_approved(&self, approved: &Approved) -> Result<(), ApiError> {
        let Approved { server_label, name, .. } = approved;
        if !self.labels.contains(server_label) {
            return Err(unusable(server_label, "is not among the request's 'tools'"));
        }
        // What it says of its tools may not be known yet.
        let known = self.known();
        let is_listed = known.tools.contains_key(server_label);
        if is_listed && !self.mcp.allows(server_label, name, known.annotations(server_label, name)) {
            return Err(unusable(server_label, "does not let this tool be called in this request"));
        }
        Ok(())
    }

    /// Runs the call. What goes wrong is for the model to read.
    pub(crate) fn call(&self, call: &HostedCall) -> Running<HostedOutput> {
        let HostedCall { tool, arguments, .. } = call;
        if let Some(label) = server(call) {
            let may_be_called = {
                let known = self.known();
                self.mcp.allows(label, &tool.name, known.annotations(label, &tool.name))
            };
            if may_be_called {
                return self.mcp.call(label, &tool.name, arguments);
            }
            return Box::pin(std::future::ready(HostedOutput::not_allowed(&tool.name)));
        }
        match &self.search {
            Some(search) => search.call(tool.kind, arguments),
            None => Box::pin(std::future::ready(HostedOutput::not_allowed(&tool.name))),
        }
    }
}

impl Known {
    fn listed(&mut self, label: Option<Text<'_>>, tools: Option<Raw<'_>>, error: Option<Raw<'_>>) {
        let failed = error.is_some_and(|error| !error.is_null());
        if let (Some(label), Some(tools), false) = (label, tools, failed) {
            self.tools.insert(label.decode().into_owned(), tools.as_str().to_owned());
        }
    }

    fn shown(&mut self, sources: Option<Raw<'_>>) {
        for source in sources.into_iter().flat_map(Raw::elements) {
            let text = |name| source.get(name).and_then(Raw::text).map(Text::decode).unwrap_or_default().into_owned();
            self.sources.add(&Source { url: text("url"), title: text("title") });
        }
    }

    /// What a server says of one of its tools.
    fn annotations(&self, label: &str, tool: &str) -> Option<Raw<'_>> {
        let tools = Raw::ours(self.tools.get(label)?);
        let named = |listed: &Raw<'_>| listed.get("name").and_then(Raw::text).is_some_and(|name| name.is(tool));
        tools.elements().find(named)?.get("annotations")
    }
}

impl HostedOutput {
    /// A call that is not made.
    fn not_allowed(tool: &str) -> Self {
        let text = format!("The tool {tool} may not be called in this response.");
        let mut error = Vec::new();
        let mut object = ObjectWriter::new(&mut error);
        object.text("type", "mcp_protocol_error").int("code", -32602).text("message", &text);
        object.end();
        let end = HostedEnd::Failed { error: String::from_utf8(error).unwrap_or_default() };
        Self { end, text, images: Vec::new(), sources: Vec::new() }
    }
}

/// What of an item may name addresses that a model may open: what people say, and what searches and pages have shown. Not
/// what the model says itself, nor what any other tool says: either may have been told by a page where to carry things.
fn shows<'a>(item: &InputItem<'a>) -> Option<Raw<'a>> {
    match &item.value {
        Item::Message(message) if message.role.is_some_and(|role| !role.is("assistant")) => item.raw.get("content"),
        Item::WebSearchCall(_) => {
            let (kept, action) = (item.raw.get("godex_output")?, item.raw.get("action"));
            // What was searched for is the model's own words.
            let searched =
                action.and_then(|action| action.get("type")).is_some_and(|kind| kind.as_str() == "\"search\"");
            kept.get(if searched { "sources" } else { "output" }).filter(|_| !has_failed(item.raw))
        }
        _ => None,
    }
}

fn has_failed(item: Raw<'_>) -> bool {
    item.get("status").and_then(Raw::text).is_some_and(|status| status.is("failed"))
}

/// Every text that a value has in it.
fn each_text(value: Raw<'_>, look: &mut impl FnMut(&str)) {
    let mut values = vec![value];
    while let Some(value) = values.pop() {
        match value.kind() {
            Kind::String => value.text().iter().for_each(|text| look(&text.decode())),
            Kind::Array => values.extend(value.elements()),
            Kind::Object => values.extend(value.fields().map(|(_, value)| value)),
            _ => {}
        }
    }
}

/// The label of the server whose tool is called.
fn server(call: &HostedCall) -> Option<&str> {
    (call.tool.kind == ToolKind::Mcp).then(|| call.tool.namespace.as_deref().unwrap_or_default())
}

fn label(tool: &McpTool<'_>) -> Option<String> {
    tool.server_label.map(|label| label.decode().into_owned())
}

fn unusable(label: &str, why: &str) -> ApiError {
    let message = format!("An approval in the input is for a tool of the MCP server '{}', which {why}.", clip(label));
    ApiError::bad_request(InvalidCode::InvalidValue, message).with_param("input")
}

/// Refuses approvals where no MCP server may be called at all.
pub(crate) fn refuse_approvals(approved: &[Approved]) -> Result<(), ApiError> {
    match approved.first() {
        Some(approved) => Err(unusable(&approved.server_label, "is not among the request's 'tools'")),
        None => Ok(()),
    }
}

/// Whether the operator declares the server.
fn is_declared(tool: &McpTool<'_>, context: &RequestContext) -> bool {
    let servers = &context.snapshot.config.tools.mcp.servers;
    label(tool).is_some_and(|label| servers.iter().any(|server| server.label == label))
}
