//! The configuration: `godex.yaml`, the environment and the command line become one checked [`Config`].
//!
//! Everything that is wrong is found in one run and reported with its line. Past [`load`] nothing reads the
//! environment or the file again, and every value is in range: the rest of the server checks nothing.

mod ad_hoc;
mod address;
mod admin;
mod alias;
mod client_key;
mod defaults;
mod encryption;
mod files;
mod images;
mod key;
mod keys;
mod kind;
mod limits;
mod locate;
mod logging;
mod mcp;
mod model;
mod oidc;
mod ports;
mod print;
mod provider;
mod provider_table;
mod proxies;
mod read;
mod replicas;
mod resilience;
mod search;
mod secret;
mod session;
mod source;
mod table;
mod telemetry;
mod tls;
mod tools;
mod trace;
mod transport;
mod units;
mod web;
mod webhooks;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bridge::{Checks, Repair};
use providers::Provider;
use providers::yaml::{Document, Env};
pub use providers::yaml::{Problem, Problems};

pub use ad_hoc::{ad_hoc, keyless};
pub(crate) use address::{is_public, unbracket};
pub use admin::{AdminConfig, AdminListen};
pub use alias::Alias;
pub(crate) use client_key::KEY_PREFIX;
pub use client_key::{OWN_VARIABLE, UNWANTED, for_provider};
pub use files::{FilesConfig, PdfPolicy, PdfProgram};
pub use images::ImagesConfig;
pub use key::{Described, KeyStatus};
pub use keys::{KeyConfig, KeyHash};
pub(crate) use keys::{NAME, is_name};
pub use limits::LimitsConfig;
pub use logging::{LogFileConfig, LogFormat, LogLevel, LoggingConfig};
pub use mcp::{McpAddress, McpClients, McpConfig, McpServerConfig, RequireApproval};
pub(crate) use mcp::{is_label, is_reserved_header};
pub use model::{Discover, ListedModel, ModelError, ModelRef};
pub use oidc::OidcConfig;
pub use print::{quote, quote_key};
pub use provider_table::PROVIDER_KEYS;
pub use proxies::TrustedProxies;
pub use resilience::ResilienceConfig;
pub use search::{SearchService, SearchUnavailable, WebSearchConfig};
pub use secret::Secret;
pub use source::{VARIABLES, Variable};
pub use table::KEYS;
pub use telemetry::{MetricsConfig, OtelConfig};
pub use tls::{TlsConfig, TlsProblem};
pub use tools::{GrammarPolicy, ToolsConfig};
pub use trace::{CaptureConfig, TraceConfig, TracePlace};
pub use transport::{ExtraRoots, Proxy, TransportConfig};
pub use units::{Bare, parse_duration, print_duration};
pub use web::{AllowedHosts, CorsConfig};
pub use webhooks::{SigningKey, WebhookConfig, WebhookEvent};

/// Where a configuration comes from.
pub struct Sources<'a> {
    /// `--config`.
    pub config_path: Option<&'a Path>,
    pub cwd: &'a Path,
    pub home: Option<&'a Path>,
    pub env: Env<'a>,
    pub overrides: Overrides,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources")
            .field("config_path", &self.config_path)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// What the command line says; it wins over everything else.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub host: Option<String>,
    pub port: Option<u16>,
    pub log_level: Option<LogLevel>,
    pub purpose: Purpose,
}

/// What the configuration is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    #[default]
    Serve,
    /// A provider without its key is no problem: nobody is asked.
    Look,
    /// What is wrong with sections that only requests use is no problem either, such as a variable that whoever manages a
    /// server does not have.
    Manage,
    /// The same without a server: then the keys in the file are those that there are.
    ManageAlone,
}

/// Finds the file, reads it, and checks all of it together.
///
/// # Errors
/// Every problem of the file, the environment and the command line, not only the first.
pub fn load(sources: &Sources<'_>) -> Result<Config, Problems> {
    let (origin, name, text) = locate::locate(sources)?;
    let document = Document::parse(&name, &text)?;
    read::read(&document, sources, origin)
}

/// The same for a text that is in no file yet.
///
/// # Errors
/// As [`load`]; they call the text by this name.
pub fn load_text(name: &str, text: &str, sources: &Sources<'_>) -> Result<Config, Problems> {
    let document = Document::parse(name, text)?;
    read::read(&document, sources, Origin::File(sources.cwd.join(name)))
}

/// The whole configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub origin: Origin,
    pub server: ServerConfig,
    pub admin: AdminConfig,
    pub default_provider: String,
    /// In the order of the file; `*` is every name that is nothing else.
    pub aliases: Vec<(String, Alias)>,
    /// Whose own lists of models are asked for.
    pub discover: Discover,
    pub providers: Vec<ProviderConfig>,
    pub session: SessionConfig,
    pub compat: CompatConfig,
    pub output: OutputConfig,
    pub context: ContextConfig,
    pub tools: ToolsConfig,
    pub images: ImagesConfig,
    pub files: FilesConfig,
    /// What reads PDFs for models that take no files. Without one they are told that nobody does. It is no key of the file.
    pub pdf_program: Option<PdfProgram>,
    pub resilience: ResilienceConfig,
    pub limits: LimitsConfig,
    /// API keys, beside those that the store has.
    pub keys: Vec<KeyConfig>,
    /// Whose tokens are taken beside them.
    pub oidc: Option<OidcConfig>,
    /// Who is told when background responses end.
    pub webhooks: Vec<WebhookConfig>,
    pub metrics: MetricsConfig,
    /// Who is told of each request.
    pub otel: Option<OtelConfig>,
    pub logging: LoggingConfig,
    pub trace: TraceConfig,
    /// Keys that are accepted but do nothing in this version.
    pub unused: Vec<String>,
    /// What the environment has a key for, and why it is left out all the same.
    pub left_out: Vec<String>,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    File(PathBuf),
    Defaults,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Defaults => f.write_str("built-in defaults"),
        }
    }
}

/// What is done about answers that are not in the format that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputConfig {
    pub check: Checks,
    pub repair: Repair,
}

/// What is done about conversations that are too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextConfig {
    pub rescue: Rescue,
}

/// What is done when a provider refuses a request as too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rescue {
    /// The client is told.
    #[default]
    Off,
    /// It is summarised, and sent once more.
    Compact,
}

impl Rescue {
    const ALL: &'static [Self] = &[Self::Off, Self::Compact];

    const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Compact => "compact",
        }
    }
}

/// How we listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// An address or a host name, without brackets.
    pub host: String,
    pub port: u16,
    /// How long a connection may be without a request; None: for ever.
    pub idle_timeout: Option<Duration>,
    /// None: plain HTTP.
    pub tls: Option<TlsConfig>,
    pub trusted_proxies: TrustedProxies,
    pub allowed_hosts: AllowedHosts,
    pub cors: CorsConfig,
    /// Listen beyond this machine although anybody may call.
    pub allow_unauthenticated: bool,
    pub max_body_bytes: usize,
    pub max_connections: usize,
    /// How long a client may take to send its request's head.
    pub header_timeout: Duration,
    /// Silence after which a client gets a sign of life.
    pub heartbeat: Duration,
    /// How long everything is still answered after the signal to stop.
    pub drain_delay: Duration,
    /// How long running requests may take to end after that.
    pub drain_timeout: Duration,
    pub websocket: WebsocketConfig,
}

/// How long a WebSocket may live, and how it is found out that its client does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebsocketConfig {
    pub lifetime: Duration,
    pub ping: Duration,
}

impl ServerConfig {
    /// Whether everybody who reaches the address may ask: it is this machine's alone, or the operator has said so.
    pub(crate) fn may_be_open(&self) -> bool {
        self.allow_unauthenticated || address::is_loopback(&self.host)
    }

    /// `host:port`, as sockets and URLs want it.
    pub fn address(&self) -> String {
        address::authority(&self.host, self.port)
    }

    /// What its URLs begin with.
    pub const fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// One provider, ready to be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    /// Its name in this configuration; several may share a spec.
    pub name: String,
    pub provider: Provider,
    /// Each conversation has one; one that is refused rests.
    pub api_keys: Vec<Secret>,
    /// Where the first key is from, or where it is missing.
    pub key_from: KeyFrom,
    /// Without a slash at the end; empty for the demo model.
    pub base_url: String,
    /// All of its addresses, where there are several; the first is `base_url`.
    pub base_urls: Vec<String>,
    /// Where an address is asked whether it is up; None: where its models are listed.
    pub health: Option<String>,
    pub timeouts: Timeouts,
    /// What the list of models shows.
    pub models: Vec<String>,
    /// Sent with every request.
    pub headers: Vec<(String, Secret)>,
    pub transport: TransportConfig,
}

impl ProviderConfig {
    /// Whether it is on this machine or a private network. The demo model is nowhere.
    pub fn is_private(&self) -> bool {
        self.addresses().iter().all(|url| address::base_url(url, true).is_ok_and(|base| base.private))
    }

    /// Where it is; one at least, which is empty for the demo model.
    pub fn addresses(&self) -> &[String] {
        if self.base_urls.is_empty() { std::slice::from_ref(&self.base_url) } else { &self.base_urls }
    }

    /// The same provider at each of its addresses alone.
    pub fn each_address(&self) -> impl Iterator<Item = Self> {
        let at = |url: &String| Self { base_url: url.clone(), base_urls: Vec::new(), ..self.clone() };
        self.addresses().iter().map(at)
    }
}

/// Where a provider's key comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyFrom {
    /// None is wanted.
    #[default]
    Nowhere,
    /// `file:line`.
    File(String),
    /// A variable of the environment.
    Variable(String),
    /// A token that this program prints.
    Command(String),
    /// There should be one; the variable that could hold it, if one is known.
    Missing(Option<String>),
}

/// How long we wait for a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Duration,
    /// Until a stream begins.
    pub first_byte: Duration,
    /// Until an answer begins that is not streamed: it begins when it is whole.
    pub whole: Duration,
    /// Between two reads of a stream.
    pub idle: Duration,
    pub total: Duration,
}

/// What is kept between requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionConfig {
    pub backend: Backend,
    /// 400 or 404.
    pub unknown_previous_response_status: u16,
    /// Fail a response that could not be stored, instead of delivering it with `store: false`.
    pub strict: bool,
    /// How long responses are kept; None is for ever. Conversations have no end.
    pub ttl: Option<Duration>,
    pub chain: ChainConfig,
    /// What reasoning is sealed with; None: a key is made and kept beside the database.
    pub seal_key: Option<Secret>,
    /// What the database is encrypted with; without a key it is in clear.
    pub encryption: EncryptionConfig,
    /// The database of another process whose seals are ours, too: see [`SessionConfig::beside`].
    pub beside: Option<PathBuf>,
    /// How long the events of a stream that has ended can be asked for again, one by one.
    pub event_ttl: Duration,
    /// Whether streams of stored responses can be resumed though they are not made in the background.
    pub resume_foreground: bool,
    pub background: BackgroundConfig,
}

impl SessionConfig {
    /// For a server that one client starts and ends, beside the one that this is the configuration of. A database file
    /// is one process's alone, and whoever is on a shared one takes jobs of others up: both are left to that one. What
    /// is stored is gone with the server, but what its client carries was sealed with the same key and opens in every
    /// later one; with Postgres only if `session.seal_key` is set.
    #[must_use]
    pub fn beside(self) -> Self {
        let (backend, beside) = match self.backend {
            Backend::Sqlite { path } => (Backend::Memory { max_bytes: BESIDE_BYTES }, Some(path)),
            Backend::Postgres(_) => (Backend::Memory { max_bytes: BESIDE_BYTES }, None),
            memory @ Backend::Memory { .. } => (memory, None),
        };
        Self { backend, beside, ..self }
    }
}

/// The keys of the database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncryptionConfig {
    pub keys: store::Encryption,
    /// Where the key was read from, if that is a file.
    pub key_file: Option<PathBuf>,
}

/// What a server beside another may hold in memory.
const BESIDE_BYTES: u64 = 64 << 20;

/// Responses that are made in the background, of each tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundConfig {
    /// How many run at once, on all instances together.
    pub concurrency: u32,
    /// How many wait.
    pub queue: u32,
}

/// Where it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    Memory { max_bytes: u64 },
    Sqlite { path: PathBuf },
    Postgres(PostgresConfig),
}

/// A database that several instances may share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresConfig {
    /// It may hold a password.
    pub url: Secret,
    pub options: store::PostgresOptions,
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory { .. } => f.write_str("memory"),
            Self::Postgres(_) => f.write_str("postgres"),
            Self::Sqlite { path } => write!(f, "sqlite ({})", path.display()),
        }
    }
}

/// How `previous_response_id` is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainConfig {
    pub max_depth: usize,
    /// Whether an `incomplete` response may be continued.
    pub include_incomplete: bool,
    /// Whether earlier turns' `instructions` come back as system messages.
    pub replay_instructions: bool,
}

/// How forgiving we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompatConfig {
    /// Refuse unknown input items and fields instead of leaving them out with a note.
    pub strict: bool,
    /// Turn an output that answers no call into a message. None: only for clients known to need it.
    pub repair_history: Option<bool>,
}

/// Numbers here are bounded far below what any machine's `usize` holds.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
