//! A scripted MCP server on a real socket, of either era of the protocol, whose tools are what tests need: well-behaved
//! ones, and one for each way in which a call can go wrong. It remembers what it was asked. [`STDIO`] is one that speaks
//! over its standard streams.

mod answers;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{Received, Script, Upstream};

/// What the session of an older client is called.
pub const SESSION: &str = "session-of-the-test";
/// A picture of one pixel, as base64.
pub const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The protocol that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpEra {
    /// 2026-07-28: no sessions.
    Modern,
    /// 2025-11-25: `initialize`, a session, answers as event streams.
    Legacy,
}

/// How a server is to be.
#[derive(Debug, Clone)]
pub struct McpOptions {
    pub era: McpEra,
    /// `tools` of its list; by default all of [`tools`].
    pub tools: Vec<Value>,
    /// How many tools are on a page; 0: all.
    pub page: usize,
    /// How long a list may be kept.
    pub ttl_ms: u64,
    /// Every request needs this `authorization`.
    pub authorization: Option<String>,
    /// In place of an answer to `tools/list`.
    pub list_fault: Option<Script>,
    /// In place of any answer.
    pub fault: Option<Script>,
}

impl McpOptions {
    pub fn new(era: McpEra) -> Self {
        Self { era, tools: tools(), page: 0, ttl_ms: 0, authorization: None, list_fault: None, fault: None }
    }

    #[must_use]
    pub fn tools(self, tools: Vec<Value>) -> Self {
        Self { tools, ..self }
    }
}

/// A tool as `tools/list` has it, with a schema of no properties.
pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("The tool {name}."), "inputSchema": {"type": "object"}})
}

/// Everything that these servers can do.
pub fn tools() -> Vec<Value> {
    let text = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let mut tools = vec![
        json!({"name": "echo", "description": "Says it again.", "inputSchema": text, "annotations": {"readOnlyHint": true}}),
        json!({"name": "write", "description": "Changes something.", "inputSchema": text,
            "annotations": {"readOnlyHint": false}}),
    ];
    tools.extend(answers::NAMES.iter().map(|name| tool(name)));
    tools
}

/// The server; dropping it closes every connection.
#[derive(Debug)]
pub struct McpServer {
    upstream: Upstream,
    options: Arc<Mutex<McpOptions>>,
}

impl McpServer {
    pub async fn modern() -> Result<Self> {
        Self::start(McpOptions::new(McpEra::Modern)).await
    }

    pub async fn legacy() -> Result<Self> {
        Self::start(McpOptions::new(McpEra::Legacy)).await
    }

    pub async fn start(options: McpOptions) -> Result<Self> {
        let options = Arc::new(Mutex::new(options));
        let shared = Arc::clone(&options);
        let upstream = Upstream::start_with(move |received| {
            let options = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
            answers::answer(&options, received)
        })
        .await?;
        Ok(Self { upstream, options })
    }

    /// Where it is, with a path that is as secret as some are.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.upstream.url())
    }

    /// From now on it is otherwise.
    pub fn change(&self, change: impl FnOnce(&mut McpOptions)) {
        change(&mut self.options.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// For what came over which connection, and how that ended.
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    pub fn requests(&self) -> Vec<Received> {
        self.upstream.requests()
    }

    /// The JSON-RPC methods so far; `DELETE` and `GET` where the request was one.
    pub fn methods(&self) -> Vec<String> {
        let method = |received: &Received| match received.method.as_str() {
            "POST" => received.json()["method"].as_str().unwrap_or("?").to_owned(),
            other => other.to_owned(),
        };
        self.requests().iter().map(method).collect()
    }

    /// How often this method was asked for.
    pub fn count(&self, method: &str) -> usize {
        self.methods().iter().filter(|asked| *asked == method).count()
    }

    /// The calls so far: of which tool, with which arguments.
    pub fn calls(&self) -> Vec<(String, Value)> {
        let bodies = self.requests().iter().map(Received::json).collect::<Vec<_>>();
        let calls = bodies.iter().filter(|body| body["method"] == "tools/call");
        calls
            .map(|body| {
                let params = &body["params"];
                (params["name"].as_str().unwrap_or_default().to_owned(), params["arguments"].clone())
            })
            .collect()
    }

    /// Waits until this method was asked for so many times; for 10 seconds at most, then says no.
    pub async fn asked(&self, method: &str, times: usize) -> bool {
        let all = async {
            loop {
                // Before the look: what comes in between is not missed.
                let arrived = self.requests().len();
                if self.count(method) >= times {
                    return;
                }
                self.upstream.arrived(arrived + 1).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), all).await.is_ok()
    }
}

/// A server of the older era that speaks over its standard streams, for `sh -c`. Its tools: `echo` (what it was sent, as
/// text), `environment` (its variables), `die` (ends in the middle of the call), `sleep` (never answers), `pid`.
pub const STDIO: &str = include_str!("mcp/stdio.sh");
