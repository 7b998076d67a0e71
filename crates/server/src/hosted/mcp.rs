//! The MCP servers of one response: those that its request names and the operator lets it use.

mod request;
mod rules;

use std::sync::{Arc, Mutex, PoisonError};

use ::mcp::{CallTimes, Failure, ToolList};
use bridge::HostedEnd;
use store::Tenant;
use tokio::sync::OnceCell;
use wire::json::{ObjectWriter, Raw};
use wire::responses::McpTool;

use super::{HostedOutput, Running};
use crate::account::{Account, Charge};
use crate::error::ApiError;
use crate::mcp::{Connection, ListKey, McpRuntime, tools_of};
use crate::request::RequestContext;
use request::Named;

/// The servers of one response. Connections are opened when they are needed, and closed when this is dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct McpServers {
    servers: Arc<[Arc<Server>]>,
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
    pub(crate) fn of(tools: &[(usize, &McpTool<'_>)], context: &RequestContext) -> Result<Self, ApiError> {
        let named = request::read(tools, &context.snapshot.config.tools.mcp)?;
        let server = |named: Named| {
            Arc::new(Server {
                tenant: context.caller.tenant().clone(),
                runtime: Arc::clone(&context.app.runtime.mcp),
                connection: Mutex::default(),
                listed: OnceCell::new(),
                price: context.snapshot.config.tools.mcp.server(&named.label).and_then(|server| server.price_per_call),
                account: context.account.clone(),
                named,
            })
        };
        Ok(Self { servers: named.into_iter().map(server).collect() })
    }

    fn server(&self, label: &str) -> Option<&Arc<Server>> {
        self.servers.iter().find(|server| server.named.label == label)
    }

    /// Asks for the tools. Once for each server and response.
    pub(crate) fn list(&self, label: &str) -> Running<Result<Listed, NotListed>> {
        match self.server(label).cloned() {
            Some(server) => {
                Box::pin(async move { server.listed.get_or_init(|| Box::pin(server.list())).await.clone() })
            }
            None => {
                let failure = Failure::broken("The request has no server of this label.");
                let not_listed = not_listed(label, &failure, false);
                Box::pin(async move { Err(not_listed) })
            }
        }
    }

    /// Whether the request and the operator let the model call this tool. `annotations`: as the list has them.
    pub(crate) fn allows(&self, label: &str, tool: &str, annotations: Option<Raw<'_>>) -> bool {
        self.server(label).is_some_and(|server| server.named.rules.allows(tool, annotations))
    }

    /// Whether this call needs somebody's approval.
    pub(crate) fn needs_approval(&self, label: &str, tool: &str, annotations: Option<Raw<'_>>) -> bool {
        self.server(label).is_none_or(|server| server.named.rules.needs_approval(tool, annotations))
    }

    /// Calls a tool. `arguments` as the model wrote them. Whatever goes wrong is for the model to read.
    pub(crate) fn call(&self, label: &str, tool: &str, arguments: &str) -> Running<HostedOutput> {
        let server = self.server(label).cloned();
        let (label, tool, arguments) = (label.to_owned(), tool.to_owned(), arguments.to_owned());
        Box::pin(async move {
            let called = match server {
                Some(server) => server.call(&tool, &arguments).await,
                None => Err(refused(format!("There is no MCP server '{label}' in this request."))),
            };
            match called {
                Ok(result) => HostedOutput {
                    end: HostedEnd::Output(result.text.clone()),
                    text: result.text,
                    images: result.images,
                    sources: Vec::new(),
                },
                Err(failure) => HostedOutput {
                    end: HostedEnd::Failed { error: failure.to_json() },
                    text: failure.to_string(),
                    images: Vec::new(),
                    sources: Vec::new(),
                },
            }
        })
    }
}

/// One of them.
#[derive(Debug)]
struct Server {
    named: Named,
    tenant: Tenant,
    runtime: Arc<McpRuntime>,
    /// One for the whole response; another only if the first has broken.
    connection: Mutex<Arc<OnceCell<Arc<Connection>>>>,
    listed: OnceCell<Result<Listed, NotListed>>,
    /// What a call costs, and who pays.
    price: Option<u64>,
    account: Account,
}

impl Server {
    async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        let cell = {
            let mut cell = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            if cell.get().is_some_and(|connection| connection.client().is_closed()) {
                *cell = Arc::default();
            }
            Arc::clone(&cell)
        };
        let connect = || async { self.runtime.connect(&self.tenant, &self.named.at).await.map(Arc::new) };
        cell.get_or_try_init(connect).await.cloned()
    }

    async fn list(&self) -> Result<Listed, NotListed> {
        match self.tools().await {
            Ok(list) => Ok(Listed { tools: shown(&list, &self.named.rules) }),
            Err(failure) => {
                tracing::info!(server = %self.named.label, %failure, "the tools of an MCP server cannot be listed");
                Err(not_listed(&self.named.label, &failure, self.named.optional))
            }
        }
    }

    async fn tools(&self) -> Result<Arc<ToolList>, Failure> {
        let key = ListKey::new(self.tenant.name(), &self.named.at);
        if let Some(list) = self.runtime.lists.get(&key) {
            return Ok(list);
        }
        let connection = self.connection().await?;
        let list = Arc::new(tools_of(&connection).await?);
        self.runtime.lists.put(key, &list);
        Ok(list)
    }

    async fn call(&self, tool: &str, arguments: &str) -> Result<::mcp::CallResult, Failure> {
        if !self.named.rules.allows_name(tool) {
            return Err(refused(format!("The tool '{tool}' may not be called.")));
        }
        let connection = self.connection().await?;
        self.account.charged(Charge::of_call(&self.named.label, tool, self.price));
        Box::pin(connection.client().call(tool, arguments, CallTimes::default())).await
    }
}

/// As a server says it of what it does not have.
fn refused(message: String) -> Failure {
    Failure::Protocol { code: -32602, message }
}

fn not_listed(label: &str, failure: &Failure, optional: bool) -> NotListed {
    let message = format!("Error retrieving tool list from MCP server: '{label}'. {failure}");
    let mut error = Vec::new();
    wire::json::write_text(&mut error, &failure.to_string());
    NotListed { message, error: String::from_utf8(error).unwrap_or_default(), optional }
}

/// What an item shows of the tools: no others than the operator lets be called.
fn shown(list: &ToolList, rules: &rules::Rules) -> String {
    let mut out = vec![b'['];
    let allowed = list.tools.iter().filter(|tool| rules.operator_allows(&tool.name));
    for (index, tool) in allowed.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let mut shown = ObjectWriter::new(&mut out);
        shown.text("name", &tool.name);
        // Some clients take no null here.
        if let Some(description) = &tool.description {
            shown.text("description", description);
        }
        shown.json("input_schema", tool.input_schema.as_bytes());
        let mut annotations = ObjectWriter::new(shown.key("annotations"));
        annotations.bool("read_only", tool.read_only);
        annotations.end();
        shown.end();
    }
    out.push(b']');
    String::from_utf8(out).unwrap_or_else(|_| "[]".to_owned())
}

#[cfg(test)]
mod tests;
