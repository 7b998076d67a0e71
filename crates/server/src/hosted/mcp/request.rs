//! The `mcp` tools of a request: which server each means, whether the operator lets it be used, and with which headers. Looks
//! nothing up, so that what is refused has reached nobody.

use std::collections::HashSet;
use std::net::IpAddr;

use ::mcp::Endpoint;
use http::{HeaderName, HeaderValue, header};
use url::{Host, Url};
use wire::json::{InvalidCode, Kind, Raw, Text};
use wire::responses::McpTool;

use super::rules::Rules;
use crate::config::{McpAddress, McpClients, McpConfig, McpServerConfig, is_label, is_public, is_reserved_header};
use crate::error::{ApiError, clip};
use crate::mcp::ServerAt;
use crate::outbound::Reach;

/// More servers are refused.
const MOST_SERVERS: usize = 32;
const MOST_HEADERS: usize = 64;
const LONGEST_VALUE: usize = 16 << 10;
const LONGEST_URL: usize = 8 << 10;

/// A server that a request names.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) label: String,
    pub(super) at: ServerAt,
    pub(super) rules: Rules,
    /// Responses go on without it.
    pub(super) optional: bool,
}

/// All of them.
pub(super) fn read(tools: &[(usize, &McpTool<'_>)], config: &McpConfig) -> Result<Vec<Named>, ApiError> {
    let mut labels = HashSet::new();
    let mut all = Vec::with_capacity(tools.len().min(MOST_SERVERS));
    for (index, tool) in tools {
        let place = Place { index: *index };
        if all.len() == MOST_SERVERS {
            let message = format!("A request may name {MOST_SERVERS} MCP servers.");
            return Err(ApiError::new(InvalidCode::ArrayAboveMaxLength, message).with_param("tools"));
        }
        let named = place.named(tool, config)?;
        if !labels.insert(named.label.clone()) {
            let message = format!("There are two MCP servers with the label '{}'.", named.label);
            return Err(place.refuse("server_label", InvalidCode::InvalidValue, message));
        }
        all.push(named);
    }
    Ok(all)
}

/// Where in `tools` something is.
#[derive(Clone, Copy)]
struct Place {
    index: usize,
}

impl Place {
    fn param(self, field: &str) -> String {
        format!("tools[{}].{field}", self.index)
    }

    fn refuse(self, field: &str, code: InvalidCode, message: impl Into<String>) -> ApiError {
        ApiError::new(code, message).with_param(self.param(field))
    }

    fn named(self, tool: &McpTool<'_>, config: &McpConfig) -> Result<Named, ApiError> {
        if config.clients == McpClients::Off {
            let message = "The operator of this server has turned MCP servers off.";
            return Err(
                ApiError::new(InvalidCode::UnsupportedValue, message).with_param(format!("tools[{}]", self.index))
            );
        }
        if tool.connector_id.is_some_and(|id| !id.is_empty()) {
            let message = "Connectors are not supported. Name an MCP server by 'server_url', or one that is declared.";
            return Err(self.refuse("connector_id", InvalidCode::UnsupportedValue, message));
        }
        let Some(label) = tool.server_label.map(|label| label.decode().into_owned()) else {
            let message = format!("Missing required parameter: '{}'.", self.param("server_label"));
            return Err(self.refuse("server_label", InvalidCode::MissingRequiredParameter, message));
        };
        if !is_label(&label) {
            let message = "A server label has up to 64 letters, digits, '_' and '-', and begins with a letter.";
            return Err(self.refuse("server_label", InvalidCode::InvalidValue, message));
        }
        let (declared, url) = self.server(&label, tool, config)?;
        let headers = self.headers(tool)?;
        let at = match (declared, url) {
            (Some(server), _) => self.declared(server, tool, headers)?,
            (None, url) => {
                let endpoint = Endpoint { url: url.unwrap_or_default(), headers };
                ServerAt::Http { endpoint, reach: Reach::Public }
            }
        };
        let rules = Rules::read(tool.allowed_tools, tool.require_approval, declared);
        let rules = rules.map_err(|invalid| invalid.at(&format!("tools[{}]", self.index)))?;
        Ok(Named { label, at, rules, optional: declared.is_some_and(|server| server.optional) })
    }

    /// The declared server that is meant, or the address of another that the operator lets clients bring.
    fn server<'c>(
        self,
        label: &str,
        tool: &McpTool<'_>,
        config: &'c McpConfig,
    ) -> Result<(Option<&'c McpServerConfig>, Option<String>), ApiError> {
        let refuse = |message: String| Err(self.refuse("server_url", InvalidCode::InvalidValue, message));
        let by_label = config.server(label);
        let Some(text) = tool.server_url.map(Text::decode).filter(|url| !url.is_empty()) else {
            return match by_label {
                Some(server) => Ok((Some(server), None)),
                None => {
                    let message =
                        format!("There is no MCP server '{}' here, and the tool has no 'server_url'.", clip(label));
                    Err(self.refuse("server_url", InvalidCode::MissingRequiredParameter, message))
                }
            };
        };
        let url = Url::parse(&text).ok().filter(|_| text.len() <= LONGEST_URL);
        let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) else {
            return refuse("'server_url' is no URL of an MCP server, such as https://mcp.example.com/mcp.".to_owned());
        };
        let is_at =
            |server: &&McpServerConfig| matches!(&server.at, McpAddress::Url { url: at, .. } if at == url.as_str());
        if let Some(server) = by_label {
            if is_at(&server) {
                return Ok((Some(server), None));
            }
            return refuse(format!(
                "The label '{}' is that of a declared MCP server, which is not at this URL. Leave 'server_url' out, or take \
                 another label.",
                clip(label)
            ));
        }
        if let Some(server) = config.servers.iter().find(is_at) {
            return Ok((Some(server), None));
        }
        let listed = || config.allow.iter().any(|allowed| begins_with(&url, allowed));
        let (allowed, any_port) = match config.clients {
            McpClients::Open => (true, false),
            McpClients::AllowList => (listed(), true),
            McpClients::Declared | McpClients::Off => (false, false),
        };
        if !allowed {
            return refuse("The operator of this server does not allow MCP servers at this URL.".to_owned());
        }
        match unusable(&url, any_port) {
            Some(why) => refuse(format!("'server_url' {why}.")),
            None => Ok((None, Some(url.as_str().to_owned()))),
        }
    }

    /// The operator's headers go along; the client's only where the operator says so.
    fn declared(
        self,
        server: &McpServerConfig,
        tool: &McpTool<'_>,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<ServerAt, ApiError> {
        let mut at = ServerAt::declared(server);
        let field = if tool.authorization.is_some() { "authorization" } else { "headers" };
        let refuse = |message: &str| Err(self.refuse(field, InvalidCode::InvalidValue, message));
        if headers.is_empty() {
            return Ok(at);
        }
        let ServerAt::Http { endpoint, .. } = &mut at else {
            return refuse("This MCP server is not reached over HTTP and takes no headers.");
        };
        if !server.client_headers {
            return refuse("The operator has not allowed clients to send headers to this declared MCP server.");
        }
        if headers.iter().any(|(name, _)| endpoint.headers.iter().any(|(own, _)| own == name)) {
            return refuse("The operator sends a header of this name to this MCP server already.");
        }
        endpoint.headers.extend(headers);
        Ok(at)
    }

    fn headers(self, tool: &McpTool<'_>) -> Result<Vec<(HeaderName, HeaderValue)>, ApiError> {
        let refuse = |message: String| self.refuse("headers", InvalidCode::InvalidValue, message);
        let mut headers: Vec<(HeaderName, HeaderValue)> = Vec::new();
        let given = tool.headers.filter(|given| !given.is_null()).unwrap_or(Raw::ours("{}"));
        if given.kind() != Kind::Object {
            let message = format!("Invalid type for '{}': expected an object of strings.", self.param("headers"));
            return Err(self.refuse("headers", InvalidCode::InvalidType, message));
        }
        for (name, value) in given.fields() {
            let name = name.decode().to_ascii_lowercase();
            let shown = clip(&name);
            let parsed =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse(format!("'{shown}' is no header.")))?;
            if is_reserved_header(&name) || name == "cookie" {
                return Err(refuse(format!("The header '{shown}' cannot be set.")));
            }
            let text = value.text().map(|text| text.decode().into_owned());
            let text = text.ok_or_else(|| refuse(format!("The value of the header '{shown}' is no string.")))?;
            let value =
                sendable(&text).ok_or_else(|| refuse(format!("The value of the header '{shown}' cannot be sent.")))?;
            if headers.len() == MOST_HEADERS {
                return Err(refuse(format!("There are more than {MOST_HEADERS} headers.")));
            }
            if headers.iter().any(|(other, _)| *other == parsed) {
                return Err(refuse(format!("The header '{shown}' is there twice.")));
            }
            headers.push((parsed, value));
        }
        if let Some(token) = tool.authorization.map(Text::decode).filter(|token| !token.is_empty()) {
            if headers.iter().any(|(name, _)| *name == header::AUTHORIZATION) {
                let message = "'authorization' and an Authorization header cannot both be there.";
                return Err(self.refuse("authorization", InvalidCode::InvalidValue, message));
            }
            let prefix = token.get(..7).filter(|prefix| prefix.eq_ignore_ascii_case("bearer "));
            let text = if prefix.is_some() { token.into_owned() } else { format!("Bearer {token}") };
            let value = sendable(&text).ok_or_else(|| {
                let message = "'authorization' holds a character that cannot be sent in a header.";
                self.refuse("authorization", InvalidCode::InvalidValue, message)
            })?;
            headers.push((header::AUTHORIZATION, value));
        }
        Ok(headers)
    }
}

fn sendable(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok().filter(|_| text.len() <= LONGEST_VALUE)?;
    value.set_sensitive(true);
    Some(value)
}

/// What is wrong with an address that a client brings, as far as it can be seen.
fn unusable(url: &Url, any_port: bool) -> Option<&'static str> {
    let inside = match url.host() {
        Some(Host::Ipv4(v4)) => !is_public(IpAddr::V4(v4)),
        Some(Host::Ipv6(v6)) => !is_public(IpAddr::V6(v6)),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost") || !name.contains('.')
        }
        None => true,
    };
    if url.scheme() != "https" {
        Some("must be https")
    } else if !url.username().is_empty() || url.password().is_some() {
        Some("must not hold a user or a password")
    } else if inside {
        Some("is not at a public address")
    } else if !any_port && url.port().is_some() {
        Some("must be at the usual port")
    } else {
        None
    }
}

/// Whether an address is below an entry of the operator's list: the same scheme, host and port, and the entry's path or one
/// below it.
fn begins_with(url: &Url, allowed: &str) -> bool {
    const ANY: &str = "any-name.";
    let star = allowed.contains("://*.");
    let Ok(entry) = Url::parse(&allowed.replacen("://*.", &format!("://{ANY}"), 1)) else { return false };
    let (Some(host), Some(entry_host)) = (url.host_str(), entry.host_str()) else { return false };
    let same_host = match entry_host.strip_prefix(ANY).filter(|_| star) {
        Some(domain) => host.strip_suffix(domain).is_some_and(|name| name.len() > 1 && name.ends_with('.')),
        None => host == entry_host,
    };
    let (path, below) = (url.path(), entry.path());
    let same_path =
        path.strip_prefix(below).is_some_and(|rest| rest.is_empty() || below.ends_with('/') || rest.starts_with('/'));
    url.scheme() == entry.scheme()
        && url.port_or_known_default() == entry.port_or_known_default()
        && same_host
        && same_path
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
