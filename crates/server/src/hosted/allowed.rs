//! Which tools a request may have, where its caller's key is for some only. What the client runs itself is for everybody.
//! All else must be allowed by name, wherever it is declared: in `tools`, in the input, or in what the request continues.
//! What nobody here knows is taken for something that its provider runs, if it would get there.

use bridge::each_sent_item;
use wire::json::{FromRaw, Raw, Text};
use wire::responses::{CreateResponse, InputItem, Item, McpTool, ShellTool, Tool, ToolSearchTool};

use super::{is_declared, label};
use crate::access::Grant;
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::session::Context;
use crate::upstream::Failover;

/// A caller whose tools must be allowed.
struct Bound<'c> {
    context: &'c RequestContext,
    grant: &'c Grant,
    /// Tools and items may go to a provider as they are.
    forwards: bool,
}

impl<'c> Bound<'c> {
    fn of(context: &'c RequestContext, failover: &Failover) -> Option<Self> {
        let grant = context.caller.grant().filter(|grant| grant.binds_tools())?;
        Some(Self { context, grant, forwards: failover.may_forward() })
    }

    /// What the tool is called, if it may not be used.
    fn refused(&self, raw: Raw<'_>) -> Option<String> {
        let not_allowed = |name: &str| (!self.grant.allows_tool(name)).then(|| name.to_owned());
        // What is read otherwise by others counts as what nobody knows.
        let is_plain = !self.forwards || !repeats(raw);
        let Ok(tool) = Tool::from_raw(raw) else { return Some(kind(raw)) };
        match &tool {
            Tool::Function(_) | Tool::Custom(_) | Tool::LocalShell(_) | Tool::ApplyPatch(_) | Tool::Computer(_) => None,
            Tool::WebSearch(_) => not_allowed("web_search"),
            Tool::FileSearch(_) => not_allowed("file_search"),
            Tool::CodeInterpreter(_) => not_allowed("code_interpreter"),
            Tool::ImageGeneration(_) => not_allowed("image_generation"),
            Tool::Mcp(tool) if is_plain => not_allowed(&self.server(tool)),
            Tool::Mcp(_) => not_allowed("mcp"),
            Tool::Namespace(_) if is_plain => self.refused_of(raw.get("tools")?),
            Tool::Shell(tool) if is_plain && is_local(tool) => None,
            Tool::ToolSearch(tool) if is_plain && is_of_client(tool) => None,
            Tool::Namespace(_) | Tool::Shell(_) | Tool::ToolSearch(_) | Tool::Programmatic(_) | Tool::Other { .. } => {
                self.forwards.then(|| kind(raw))
            }
        }
    }

    fn refused_of(&self, tools: Raw<'_>) -> Option<String> {
        tools.elements().find_map(|tool| self.refused(tool))
    }

    /// Whatever an item declares, also one of a kind that is not known.
    fn refused_in(&self, item: &InputItem<'_>) -> Option<String> {
        if matches!(item.value, Item::McpListTools(_)) {
            return None;
        }
        let lists = item.raw.fields().filter(|(name, _)| name.is("tools"));
        lists.map(|(_, tools)| tools).find_map(|tools| self.refused_of(tools))
    }

    /// A label says which server is meant only if it is the operator's; any other is whatever its client says.
    fn server(&self, tool: &McpTool<'_>) -> String {
        let is_by_label = tool.server_url.is_none_or(Text::is_empty) && is_declared(tool, self.context);
        label(tool).filter(|_| is_by_label).map_or_else(|| "mcp".to_owned(), |label| format!("mcp:{label}"))
    }
}

/// Refuses what the request itself declares and its caller may not use, whoever would run it.
pub(super) fn check(
    request: &CreateResponse<'_>,
    failover: &Failover,
    context: &RequestContext,
) -> Result<(), ApiError> {
    let Some(bound) = Bound::of(context, failover) else { return Ok(()) };
    if bound.forwards && request.prompt.is_some() {
        return Err(ApiError::prompt_not_allowed());
    }
    let refused = request.tools.iter().flatten().find_map(|tool| bound.refused(tool.raw));
    refused.map_or(Ok(()), |tool| Err(ApiError::tool_not_allowed(&tool)))
}

/// The same of the items that would be sent: those of the input, and of what it continues.
pub(crate) fn check_items(
    request: &CreateResponse<'_>,
    past: &Context,
    failover: &Failover,
    context: &RequestContext,
) -> Result<(), ApiError> {
    let Some(bound) = Bound::of(context, failover) else { return Ok(()) };
    let mut request = request.clone();
    past.refer(&mut request)?;
    let (items, seal) = (past.past()?, context.app.runtime.seal(&context.caller));
    let mut refused = None;
    each_sent_item(&request, &items, &seal, |item, _| {
        refused = refused.take().or_else(|| bound.refused_in(item));
    });
    refused.map_or(Ok(()), |tool| Err(ApiError::tool_not_allowed(&tool).with_param("input")))
}

/// Where nothing is said, a shell is the client's.
fn is_local(tool: &ShellTool<'_>) -> bool {
    let says_so = |place: Raw<'_>| !repeats(place) && kind(place) == "local";
    tool.environment.is_none_or(says_so)
}

/// Where nothing is said, a search for tools is the provider's.
fn is_of_client(tool: &ToolSearchTool<'_>) -> bool {
    tool.execution.is_some_and(|who| who.is("client"))
}

fn kind(object: Raw<'_>) -> String {
    object.get("type").and_then(Raw::text).map(Text::decode).unwrap_or_default().into_owned()
}

/// Whether a member is there more than once.
fn repeats(object: Raw<'_>) -> bool {
    let mut names: Vec<_> = object.fields().map(|(name, _)| name.decode()).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair.first() == pair.last())
}
