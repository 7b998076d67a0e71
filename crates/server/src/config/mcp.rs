//! `tools.mcp`: the MCP servers that the operator declares, and which others clients may bring.

use http::HeaderName;
use providers::yaml::{Env, Field, Section};
use store::dollars;
use url::Url;

use super::key::Keys;
use super::print::{list, quote, quote_key};
use super::{Secret, address, provider, table};

/// Who may have which servers called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct McpConfig {
    pub clients: McpClients,
    /// With [`McpClients::AllowList`]: what a client's `server_url` begins with. A host may begin with `*.`.
    pub allow: Vec<String>,
    pub servers: Vec<McpServerConfig>,
}

impl McpConfig {
    /// The declared server of this label.
    pub fn server(&self, label: &str) -> Option<&McpServerConfig> {
        self.servers.iter().find(|server| server.label == label)
    }
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

impl McpClients {
    pub const ALL: &'static [Self] = &[Self::Declared, Self::AllowList, Self::Open, Self::Off];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Declared => "declared",
            Self::AllowList => "allow_list",
            Self::Open => "open",
            Self::Off => "off",
        }
    }
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
    /// Whether clients may send headers of their own along, beside those of the operator.
    pub client_headers: bool,
    /// What a call costs, in nanodollars, if the operator says.
    pub price_per_call: Option<u64>,
}

#[derive(Clone, PartialEq, Eq)]
pub enum McpAddress {
    Url {
        /// As the URL standard writes it.
        url: String,
        headers: Vec<(String, Secret)>,
    },
    /// A process that speaks over its standard streams: its program, arguments and environment.
    Command {
        command: Vec<String>,
        env: Vec<(String, Secret)>,
        /// What it sees of our own environment.
        inherited: Vec<(String, String)>,
    },
}

impl std::fmt::Debug for McpAddress {
    /// Keys are in paths, too, and in arguments.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url { url, .. } => f.write_str(&shown(url)),
            Self::Command { command, .. } => f.write_str(command.first().map_or("", String::as_str)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequireApproval {
    Always,
    Never,
}

impl RequireApproval {
    const ALL: &'static [Self] = &[Self::Always, Self::Never];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

/// Headers that are the protocol's or the connection's, whoever asks for them.
const RESERVED: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether nobody may set this header (in lower case) of requests to MCP servers.
pub(crate) fn is_reserved_header(name: &str) -> bool {
    RESERVED.contains(&name) || name.starts_with("mcp-") || name.starts_with("proxy-")
}

/// Whether it can be a `server_label`.
pub(crate) fn is_label(label: &str) -> bool {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    label.len() <= 64 && label.starts_with(|c: char| c.is_ascii_alphabetic()) && label.bytes().all(part)
}

/// What processes see of our own environment: enough to find programs and their files, and none of our secrets.
#[cfg(not(windows))]
const INHERITED: &[&str] = &["PATH", "HOME", "LANG", "TMPDIR"];
#[cfg(windows)]
const INHERITED: &[&str] = &["PATH", "PATHEXT", "SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP"];

pub(super) fn read(keys: &mut Keys<'_>, environment: Env<'_>) -> McpConfig {
    let clients = keys.get(&table::TOOLS_MCP_CLIENTS);
    let allow_field = keys.field(&table::TOOLS_MCP_ALLOW);
    let allow: Vec<String> = allow_field.as_ref().map(allow).unwrap_or_default();
    match (&allow_field, clients) {
        (Some(_), McpClients::AllowList) | (None, McpClients::Declared | McpClients::Open | McpClients::Off) => {}
        (Some(field), _) => {
            field.problem_of_key("has an effect only with `clients: allow_list`", None);
        }
        (None, McpClients::AllowList) => {
            if let Some(field) = keys.field(&table::TOOLS_MCP_CLIENTS) {
                field.problem("`allow_list` needs the list: `tools.mcp.allow`", None);
            }
        }
    }
    let servers = keys.field(&table::TOOLS_MCP_SERVERS).and_then(|field| field.entries()).unwrap_or_default();
    let servers = servers.into_iter().filter_map(|(label, field)| server(label, field, environment)).collect();
    McpConfig { clients, allow, servers }
}

fn allow(field: &Field<'_>) -> Vec<String> {
    let entry = |field: &Field<'_>| {
        let text = field.text()?;
        // A star is not in the standard's hosts, but is a name all the same.
        let url = Url::parse(&text.replacen("://*.", "://any-name.", 1)).ok();
        let good = url.is_some_and(|url| {
            let bare = url.username().is_empty() && url.password().is_none() && url.query().is_none();
            url.scheme() == "https" && bare && url.fragment().is_none()
        });
        if !good {
            field.problem(
                "must be the beginning of a URL such as https://mcp.example.com/ or https://*.example.com/",
                None,
            );
        }
        good.then_some(text)
    };
    let list = field.list().unwrap_or_default();
    if list.is_empty() {
        field.problem("expected at least one URL", None);
    }
    list.iter().filter_map(entry).collect()
}

fn server(label: String, field: Field<'_>, environment: Env<'_>) -> Option<McpServerConfig> {
    if !is_label(&label) {
        field.problem_of_key("a label has up to 64 letters, digits, `_` and `-`, and begins with a letter", None);
    }
    let mut section = field.section()?;
    let at = at(&mut section, environment);
    let config = McpServerConfig {
        allowed_tools: section.read("allowed_tools", Field::texts),
        require_approval: section
            .read("require_approval", |field| field.choice(RequireApproval::ALL, RequireApproval::name)),
        optional: section.read("optional", Field::boolean).unwrap_or(false),
        client_headers: section.read("client_headers", Field::boolean).unwrap_or(false),
        price_per_call: section.read("price_per_call", providers::price_per_call),
        label,
        at: McpAddress::Command { command: Vec::new(), env: Vec::new(), inherited: Vec::new() },
    };
    section.finish();
    Some(McpServerConfig { at: at?, ..config })
}

fn at(section: &mut Section<'_>, environment: Env<'_>) -> Option<McpAddress> {
    let [url_field, command_field] = ["url", "command"].map(|name| section.field(name));
    let [headers, env] = ["headers", "env"].map(|name| section.field(name));
    match (url_field, command_field) {
        (Some(field), None) => {
            if let Some(env) = env {
                env.problem_of_key("only a `command` has an environment", None);
            }
            let headers = headers.map(|field| self::headers(&field)).unwrap_or_default();
            let url = field.text()?;
            url_of(&url).map(|url| McpAddress::Url { url, headers }).map_err(|why| field.problem(why, None)).ok()
        }
        (None, Some(field)) => {
            if let Some(headers) = headers {
                headers.problem_of_key("a `command` is not asked over HTTP", Some("use `env`".to_owned()));
            }
            let command: Vec<String> = field.list()?.iter().filter_map(Field::string).collect();
            if command.first().is_none_or(|program| program.trim().is_empty()) {
                field.problem("needs the program, then its arguments", None);
                return None;
            }
            let env = env.map(|field| variables(&field)).unwrap_or_default();
            let inherited = INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), environment(name)?)));
            Some(McpAddress::Command { command, env, inherited: inherited.collect() })
        }
        (Some(_), Some(field)) => {
            field.problem_of_key("a server has a `url` or a `command`, not both", None);
            None
        }
        (None, None) => {
            section.problem("needs `url` or `command`", None);
            None
        }
    }
}

/// Problems do not quote it: keys are in paths, too.
fn url_of(text: &str) -> Result<String, &'static str> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some((url, host)) = url.as_ref().and_then(|url| Some((url, url.host_str()?))) else {
        return Err("must be a URL such as https://mcp.example.com/mcp");
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user or a password; use `headers`");
    }
    if url.fragment().is_some() {
        return Err("must not have a fragment, because that is never sent");
    }
    if url.scheme() == "http" && !address::is_private(host) {
        return Err("plain http to a public host would send headers and calls in the clear; use https");
    }
    Ok(url.as_str().to_owned())
}

fn headers(field: &Field<'_>) -> Vec<(String, Secret)> {
    let header = |(name, field): (String, Field<'_>)| {
        let name = name.to_ascii_lowercase();
        if HeaderName::from_bytes(name.as_bytes()).is_err() || is_reserved_header(&name) {
            field.problem("this header cannot be set", None);
            return None;
        }
        // A variable that was read from a file often ends with a line break.
        let value = field.string()?.trim().to_owned();
        if !provider::can_be_sent(&value) {
            field.problem(provider::UNSENDABLE, None);
            return None;
        }
        Some((name, Secret::new(value)))
    };
    field.entries().unwrap_or_default().into_iter().filter_map(header).collect()
}

fn variables(field: &Field<'_>) -> Vec<(String, Secret)> {
    let variable = |(name, field): (String, Field<'_>)| {
        if name.is_empty() || name.contains(['=', '\0']) {
            field.problem_of_key("this is no name of a variable", None);
            return None;
        }
        let value = field.string()?;
        if value.contains('\0') {
            field.problem("a variable cannot hold this", None);
            return None;
        }
        Some((name, Secret::new(value)))
    };
    field.entries().unwrap_or_default().into_iter().filter_map(variable).collect()
}

/// An address without what may be secret in it.
fn shown(url: &str) -> String {
    let Ok(parsed) = Url::parse(url) else { return String::new() };
    if matches!(parsed.path(), "/" | "/mcp" | "/mcp/" | "/sse") && parsed.query().is_none() {
        return url.to_owned();
    }
    format!("{}/<redacted>", parsed.origin().ascii_serialization())
}

/// Secrets as `<redacted>`.
pub(super) fn print(servers: &[McpServerConfig]) -> Option<String> {
    let named = |all: &[(String, Secret)]| {
        let all: Vec<String> = all.iter().map(|(name, value)| format!("{}: {value}", quote_key(name))).collect();
        format!("{{{}}}", all.join(", "))
    };
    let line = |server: &McpServerConfig| {
        let mut parts = match &server.at {
            McpAddress::Url { url, headers } => {
                vec![format!("url: {}", quote(&shown(url))), format!("headers: {}", named(headers))]
            }
            McpAddress::Command { command, env, .. } => {
                let command = list(command.iter().map(String::as_str));
                vec![format!("command: {command}"), format!("env: {}", named(env))]
            }
        };
        if let Some(tools) = &server.allowed_tools {
            parts.push(format!("allowed_tools: {}", list(tools.iter().map(String::as_str))));
        }
        if let Some(approval) = server.require_approval {
            parts.push(format!("require_approval: {}", approval.name()));
        }
        parts.push(format!("optional: {}", server.optional));
        parts.push(format!("client_headers: {}", server.client_headers));
        parts.extend(server.price_per_call.map(|price| format!("price_per_call: {}", dollars(price))));
        format!("\n{}: {{{}}}", quote_key(&server.label), parts.join(", "))
    };
    (!servers.is_empty()).then(|| servers.iter().map(line).collect())
}

#[cfg(test)]
#[path = "mcp_tests.rs"]
mod tests;
