//! The MCP servers of one response: those that its request names and the operator lets it use.

use std::sync::Arc;

use bridge::HostedEnd;
use wire::responses::McpTool;

use super::{HostedOutput, Running};
use crate::error::ApiError;
use crate::request::RequestContext;

/// The servers of one response. Connections are opened when they are needed, and closed when this is dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct McpServers {
    _servers: Arc<()>,
}

/// The tools of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// As `mcp_list_tools` shows them: a JSON array of `{name, description, input_schema, annotations}`.
    pub(crate) tools: String,
}

/// Why a server's tools could not be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotListed {
    /// For the client: names the label, and nothing secret.
    pub(crate) message: String,
    /// `error` of the item, as JSON.
    pub(crate) error: String,
    /// The operator wants responses to go on without this server.
    pub(crate) optional: bool,
}

impl McpServers {
    /// The servers that these tools name; the numbers are their places in `tools`. What the operator does not allow, and
    /// what no server can be asked with, is refused, before any name is resolved.
    pub(crate) fn of(_tools: &[(usize, &McpTool<'_>)], _context: &RequestContext) -> Result<Self, ApiError> {
        Ok(Self::default())
    }

    /// Asks for the tools. Once for each server and response.
    pub(crate) fn list(&self, label: &str) -> Running<Result<Listed, NotListed>> {
        let message = format!("There is no MCP server '{label}'.");
        Box::pin(async move { Err(NotListed { message, error: "{}".to_owned(), optional: false }) })
    }

    /// Whether the request and the operator let the model call this tool. `annotations`: as the list has them.
    pub(crate) fn allows(&self, _label: &str, _tool: &str, _annotations: Option<wire::json::Raw<'_>>) -> bool {
        false
    }

    /// Whether this call needs somebody's approval.
    pub(crate) fn needs_approval(&self, _label: &str, _tool: &str, _annotations: Option<wire::json::Raw<'_>>) -> bool {
        true
    }

    /// Whether it is the operator who demands that approval.
    pub(crate) fn approval_is_forced(&self, _label: &str) -> bool {
        false
    }

    /// Calls a tool. `arguments` as the model wrote them. Whatever goes wrong is for the model to read.
    pub(crate) fn call(&self, label: &str, tool: &str, _arguments: &str) -> Running<HostedOutput> {
        let text = format!("There is no tool {tool} at {label}.");
        let end = HostedEnd::Failed { error: "{}".to_owned() };
        Box::pin(async move { HostedOutput { end, text, images: Vec::new(), sources: Vec::new() } })
    }
}
