//! `tools.mcp`: the MCP servers that the operator declares, and which others clients may bring.

use super::Secret;

/// Who may have which servers called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct McpConfig {
    pub clients: McpClients,
    /// With [`McpClients::AllowList`]: what a client's `server_url` begins with.
    pub allow: Vec<String>,
    pub servers: Vec<McpServerConfig>,
}

/// Which servers clients may name by a URL of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum McpClients {
    /// None but those that are declared.
    #[default]
    Declared,
    /// Those, and what is on a list.
    AllowList,
    /// Those, and whatever is at a public address.
    Open,
    /// No tools of MCP servers at all.
    Off,
}

/// A server that the operator declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerConfig {
    /// By which clients name it.
    pub label: String,
    pub at: McpAddress,
    /// The only tools that may be called; all, if there is no list.
    pub allowed_tools: Option<Vec<String>>,
    /// Whatever clients ask for (`always`), what it is where they ask for nothing (`never`), or their own choice (none).
    pub require_approval: Option<RequireApproval>,
    /// Whether a response goes on without the server when its tools cannot be listed.
    pub optional: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpAddress {
    Url {
        url: String,
        headers: Vec<(String, Secret)>,
    },
    /// A process that speaks over its standard streams: its program, arguments and environment.
    Command {
        command: Vec<String>,
        env: Vec<(String, Secret)>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequireApproval {
    Always,
    Never,
}
