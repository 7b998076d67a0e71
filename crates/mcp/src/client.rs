//! One conversation with one server.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use http::{HeaderName, HeaderValue};
use rmcp::model::{
    CacheScope, CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ClientCapabilities, ClientConfig, ClientRequest, ErrorCode, Implementation, PaginatedRequestParams,
    ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::NeverRetry;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, transport};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::LARGEST;
use crate::failure::{Failure, Secrets};
use crate::http::{Carrier, HttpClient};
use crate::lines::Lines;
use crate::result::CallResult;

const MOST_PAGES: usize = 20;
const MOST_TOOLS: usize = 1024;
const LARGEST_LIST: usize = 4 << 20;

/// Where a server is, and what each request to it carries.
#[derive(Clone)]
pub struct Endpoint {
    pub url: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

/// How long a call may take.
#[derive(Debug, Clone, Copy)]
pub struct CallTimes {
    /// Without a sign of progress.
    pub idle: Duration,
    pub total: Duration,
}

impl Default for CallTimes {
    fn default() -> Self {
        Self { idle: Duration::from_mins(1), total: Duration::from_mins(5) }
    }
}

/// A tool that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    pub description: Option<String>,
    /// As the server sent it, as JSON.
    pub input_schema: String,
    /// The server says that it changes nothing.
    pub read_only: bool,
}

/// All tools of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolList {
    pub tools: Vec<Tool>,
    /// How long the list may be kept.
    pub ttl: Duration,
    /// Whether it is the same for everybody.
    pub public: bool,
}

/// How a conversation with a server begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// As the newer protocol has it; as the older one, if the server says so, or nothing for ten seconds.
    Either,
    /// As the older protocol has it: however long the server takes.
    Initialize,
}

/// A conversation with a server. When it is dropped, its connections close, its session is given back, and what is under
/// way is cancelled.
pub struct Client {
    service: RunningService<RoleClient, ClientConfig>,
    secrets: Secrets,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// With a server behind an address. Has no deadline of its own.
    pub async fn over_http(endpoint: &Endpoint, http: Arc<dyn HttpClient>) -> Result<Self, Failure> {
        let secrets = secrets(endpoint);
        let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str())
            .custom_headers(endpoint.headers.iter().cloned().collect())
            .max_sse_event_size(LARGEST)
            // Whether a call ran before its session was lost, nobody knows: it is not sent again.
            .reinit_on_expired_session(false);
        config.retry_config = Arc::new(NeverRetry::default());
        let carrier = Carrier { http, secrets: secrets.clone() };
        Self::start(StreamableHttpClientTransport::with_client(carrier, config), secrets, Opening::Either).await
    }

    /// With a process that reads and writes a message to a line. `secrets`: what it was started with and must not say again.
    pub async fn over_streams<'a, R, W>(
        read: R,
        write: W,
        secrets: impl Iterator<Item = &'a str>,
        opening: Opening,
    ) -> Result<Self, Failure>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let secrets = Secrets::of(secrets);
        let streams = AsyncRwTransport::new(Lines::new(read, LARGEST), write).with_max_line_length(LARGEST);
        Self::start(streams, secrets, opening).await
    }

    async fn start<T, E, A>(transport: T, secrets: Secrets, opening: Opening) -> Result<Self, Failure>
    where
        T: transport::IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        // No capabilities: nothing is asked of the user, sampled, or rooted here.
        let us = Implementation::new("godex", env!("CARGO_PKG_VERSION"));
        let config = ClientConfig::new(ClientCapabilities::default(), us);
        let lifecycle = match opening {
            Opening::Either => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Opening::Initialize => ClientLifecycleMode::Initialize,
        };
        let started = Box::pin(config.serve_with_lifecycle(transport, lifecycle)).await;
        let service = started.map_err(|error| Failure::of_start(&error, &secrets))?;
        Ok(Self { service, secrets })
    }

    /// The version of the protocol that is spoken.
    pub fn version(&self) -> String {
        self.service.peer_info().map(|info| info.protocol_version.to_string()).unwrap_or_default()
    }

    /// How the server calls itself.
    pub fn server(&self) -> Option<String> {
        let info = self.service.peer_info()?;
        let server = info.server_info.as_ref()?;
        Some(format!("{} {}", server.name, server.version).trim().to_owned())
    }

    /// Whether nothing can be asked any more.
    pub fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.is_transport_closed()
    }

    /// Asks for all tools, page by page.
    pub async fn list(&self) -> Result<ToolList, Failure> {
        let mut list = ToolList::default();
        let (mut names, mut bytes, mut cursor) = (HashSet::new(), 0, None);
        for page in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let asked = Box::pin(self.service.list_tools(Some(params))).await;
            let answer = asked.map_err(|error| Failure::of_request(&error, &self.secrets))?;
            if page == 0 {
                list.ttl = Duration::from_millis(answer.ttl_ms.unwrap_or(0));
                list.public = answer.cache_scope == Some(CacheScope::Public);
            }
            for tool in answer.tools {
                let input_schema = serde_json::to_string(&*tool.input_schema).unwrap_or_else(|_| "{}".to_owned());
                let description = tool.description.map(String::from);
                bytes += tool.name.len() + description.as_ref().map_or(0, String::len) + input_schema.len();
                let read_only = tool.annotations.and_then(|annotations| annotations.read_only_hint).unwrap_or(false);
                if names.insert(tool.name.to_string()) {
                    list.tools.push(Tool { name: tool.name.into_owned(), description, input_schema, read_only });
                }
            }
            if list.tools.len() > MOST_TOOLS || bytes > LARGEST_LIST {
                break;
            }
            cursor = answer.next_cursor.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() {
                return Ok(list);
            }
        }
        Err(Failure::broken(format!(
            "The server's list of tools is too long: more than {MOST_TOOLS} tools, {MOST_PAGES} pages or {LARGEST_LIST} bytes."
        )))
    }

    /// Calls a tool with these arguments, a JSON object; nothing is an empty one. When the future is dropped, the server is
    /// told that nobody waits any more.
    pub async fn call(&self, tool: &str, arguments: &str, times: CallTimes) -> Result<CallResult, Failure> {
        let arguments = object(arguments)?;
        let answer = match self.try_call(tool, arguments.clone(), times).await {
            // It wants some of the arguments as headers too, and which ones only its list says. Nothing has run.
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::HEADER_MISMATCH => {
                self.list().await?;
                self.try_call(tool, arguments, times).await
            }
            answer => answer,
        };
        match answer.map_err(|error| Failure::of_request(&error, &self.secrets))? {
            ServerResult::CallToolResult(result) if result.is_error == Some(true) => {
                let text = self.secrets.redact(&CallResult::of(result).text);
                Err(Failure::Tool { text })
            }
            ServerResult::CallToolResult(result) => Ok(CallResult::of(result)),
            ServerResult::InputRequiredResult(_) => {
                Err(Failure::broken("The tool asks its user for more, and there is nobody to ask."))
            }
            ServerResult::CreateTaskResult(_) => {
                Err(Failure::broken("The tool made a task to be asked for later, which is not supported."))
            }
            _ => Err(Failure::broken("The server's answer is not what the protocol says.")),
        }
    }

    async fn try_call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        times: CallTimes,
    ) -> Result<ServerResult, ServiceError> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = Some(arguments);
        let options = PeerRequestOptions::with_timeout(times.idle)
            .reset_timeout_on_progress()
            .with_max_total_timeout(times.total);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = Box::pin(self.service.send_request_with_option(request, options)).await?;
        let mut under_way = UnderWay { peer: self.service.peer().clone(), id: Some(handle.id.clone()) };
        let answer = Box::pin(handle.await_response()).await;
        under_way.id = None;
        answer
    }
}

/// What a model wrote as arguments.
fn object(text: &str) -> Result<Map<String, Value>, Failure> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(text).map_err(|_| {
        let message = "The arguments are no JSON object; the tool was not called.".to_owned();
        Failure::Protocol { code: ErrorCode::INVALID_PARAMS.0, message }
    })
}

/// A call that is cancelled when nobody waits for it any more.
struct UnderWay {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let params = CancelledNotificationParam::new(Some(id), Some("nobody waits for it".to_owned()));
        // Put into the queue by the first look; whether it arrives, nobody needs to know.
        let _ = Box::pin(self.peer.send_notification(CancelledNotification::new(params).into())).now_or_never();
    }
}

/// The values of the headers, and what the address has beyond its host.
fn secrets(endpoint: &Endpoint) -> Secrets {
    let headers = endpoint.headers.iter().filter_map(|(_, value)| value.to_str().ok());
    let after_scheme = endpoint.url.split_once("://").map_or(endpoint.url.as_str(), |(_, rest)| rest);
    let path = after_scheme.find('/').map(|start| &after_scheme[start..]);
    let parts = path.into_iter().flat_map(|path| path.split(['/', '?', '&', '=']).chain([path]));
    Secrets::of(headers.chain(parts))
}
