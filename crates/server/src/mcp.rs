//! MCP servers as the whole process reaches them: over HTTP through `outbound`, or as processes that it runs; and the lists
//! of tools that may be kept for a while. Who may use which is decided elsewhere (`hosted::mcp`).

mod carry;
mod lists;
mod processes;
mod trial;

use std::sync::Arc;
use std::time::Duration;

use ::mcp::{Client, Endpoint, Failure};
use http::{HeaderName, HeaderValue};
use store::Tenant;
use tokio::time::timeout;

use crate::config::{McpAddress, McpConfig, McpServerConfig};
use crate::outbound::{Outbound, Reach};
use carry::Carrier;
pub(crate) use lists::{ListKey, Lists};
use processes::{Processes, Running};
pub use trial::{Called, Checked, ListedTool, call, check, list};

/// Until a server is ready to be asked.
const BEGIN: Duration = Duration::from_secs(10);
/// The same for a process: it may have to fetch itself first.
const BEGIN_PROCESS: Duration = Duration::from_secs(30);
/// Until all tools are listed.
const LIST: Duration = Duration::from_secs(10);

/// What all who use servers share.
#[derive(Debug)]
pub(crate) struct McpRuntime {
    outbound: Arc<Outbound>,
    processes: Processes,
    pub(crate) lists: Lists,
}

/// Where a server is, for whoever may use it.
#[derive(Debug, Clone)]
pub(crate) enum ServerAt {
    Http { endpoint: Endpoint, reach: Reach },
    Process(McpServerConfig),
}

impl ServerAt {
    /// Of a server that the operator declares.
    pub(crate) fn declared(config: &McpServerConfig) -> Self {
        match &config.at {
            McpAddress::Url { url, headers } => {
                // The configuration has looked at them.
                let header = |(name, value): &(String, crate::config::Secret)| {
                    let mut value = HeaderValue::from_str(value.expose()).ok()?;
                    value.set_sensitive(true);
                    Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
                };
                let endpoint = Endpoint { url: url.clone(), headers: headers.iter().filter_map(header).collect() };
                Self::Http { endpoint, reach: Reach::Anywhere }
            }
            McpAddress::Command { .. } => Self::Process(config.clone()),
        }
    }
}

/// A conversation with a server: one's own, or with a process that all responses of a tenant share.
#[derive(Debug)]
pub(crate) enum Connection {
    Own(Client),
    Shared(Arc<Running>),
}

impl Connection {
    pub(crate) fn client(&self) -> &Client {
        match self {
            Self::Own(client) => client,
            Self::Shared(running) => running.client(),
        }
    }
}

impl McpRuntime {
    pub(crate) fn new(outbound: Arc<Outbound>) -> Self {
        Self { outbound, processes: Processes::default(), lists: Lists::default() }
    }

    /// Begins a conversation for a tenant, within its deadline.
    pub(crate) async fn connect(&self, tenant: &Tenant, at: &ServerAt) -> Result<Connection, Failure> {
        match at {
            ServerAt::Http { endpoint, reach } => {
                let http = Arc::new(Carrier { outbound: Arc::clone(&self.outbound), reach: *reach });
                let begun = timeout(BEGIN, Box::pin(Client::over_http(endpoint, http))).await;
                begun.unwrap_or_else(|_| Err(late("begin", BEGIN))).map(Connection::Own)
            }
            ServerAt::Process(config) => {
                let begun = timeout(BEGIN_PROCESS, Box::pin(self.processes.get(tenant, config))).await;
                begun.unwrap_or_else(|_| Err(late("begin", BEGIN_PROCESS))).map(Connection::Shared)
            }
        }
    }

    /// Processes that this configuration does not have end; those that it has stay as they are.
    pub(crate) fn replace(&self, config: &McpConfig) {
        self.processes.keep(&config.servers);
    }

    /// Ends processes that nobody has used for a while.
    pub(crate) fn tidy(&self) {
        self.processes.tidy();
    }

    /// Ends all processes.
    pub(crate) fn close(&self) {
        self.processes.keep(&[]);
    }
}

/// Asks for the tools, within the deadline.
pub(crate) async fn tools_of(connection: &Connection) -> Result<::mcp::ToolList, Failure> {
    let listed = timeout(LIST, Box::pin(connection.client().list())).await;
    listed.unwrap_or_else(|_| Err(late("list its tools", LIST)))
}

fn late(what: &str, limit: Duration) -> Failure {
    Failure::timeout(format!("The server did not {what} within {} seconds.", limit.as_secs()))
}
