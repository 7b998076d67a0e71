//! Declared servers, asked by a person at a terminal: no request of a client, and none of its policy.

use std::sync::Arc;
use std::time::Duration;

use ::mcp::{CallTimes, Failure};
use store::Tenant;
use tokio::time::Instant;

use super::{McpRuntime, ServerAt, tools_of};
use crate::config::{Config, McpServerConfig};

/// What is known of a server that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// As it calls itself.
    pub server: Option<String>,
    /// The version of the protocol.
    pub version: String,
    pub tools: Vec<ListedTool>,
    /// Until all of this was known.
    pub took: Duration,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTool {
    pub name: String,
    pub description: Option<String>,
    /// As JSON.
    pub input_schema: String,
    pub read_only: bool,
    /// Whether the configuration lets models call it.
    pub allowed: bool,
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    pub text: String,
    /// As data URLs.
    pub images: Vec<String>,
    /// The tool says that it failed.
    pub failed: bool,
}

/// Begins a conversation with a declared server and asks for its tools.
///
/// # Errors
/// It cannot be reached, or does not speak the protocol: why, in words for a person.
pub async fn check(server: &McpServerConfig) -> Result<Checked, String> {
    let began = Instant::now();
    let runtime = McpRuntime::new(Arc::default());
    let connection = runtime
        .connect(&Tenant::default(), &ServerAt::declared(server))
        .await
        .map_err(|failure| failure.to_string())?;
    let list = tools_of(&connection).await.map_err(|failure| failure.to_string())?;
    let tool = |tool: ::mcp::Tool| ListedTool {
        allowed: server.allowed_tools.as_ref().is_none_or(|allowed| allowed.contains(&tool.name)),
        name: tool.name,
        description: tool.description,
        input_schema: tool.input_schema,
        read_only: tool.read_only,
    };
    Ok(Checked {
        server: connection.client().server(),
        version: connection.client().version(),
        tools: list.tools.into_iter().map(tool).collect(),
        took: began.elapsed(),
    })
}

/// The same, by its label.
///
/// # Errors
/// There is none of this label; or as [`check`].
pub async fn list(config: &Config, label: &str) -> Result<Vec<ListedTool>, String> {
    Ok(check(declared(config, label)?).await?.tools)
}

/// Calls a tool of a declared server. `arguments` is a JSON object.
///
/// # Errors
/// There is no server of this label; the call could not be made, or has no result.
pub async fn call(config: &Config, label: &str, tool: &str, arguments: &str) -> Result<Called, String> {
    let server = declared(config, label)?;
    let runtime = McpRuntime::new(Arc::default());
    let connection = runtime
        .connect(&Tenant::default(), &ServerAt::declared(server))
        .await
        .map_err(|failure| failure.to_string())?;
    match Box::pin(connection.client().call(tool, arguments, CallTimes::default())).await {
        Ok(result) => Ok(Called { text: result.text, images: result.images, failed: false }),
        Err(Failure::Tool { text }) => Ok(Called { text, images: Vec::new(), failed: true }),
        Err(failure) => Err(failure.to_string()),
    }
}

fn declared<'c>(config: &'c Config, label: &str) -> Result<&'c McpServerConfig, String> {
    let servers = &config.tools.mcp.servers;
    config.tools.mcp.server(label).ok_or_else(|| {
        let known: Vec<&str> = servers.iter().map(|server| server.label.as_str()).collect();
        match known.as_slice() {
            [] => format!("there is no MCP server `{label}`: none are declared under `tools.mcp.servers`"),
            known => format!("there is no MCP server `{label}`; declared: {}", known.join(", ")),
        }
    })
}
