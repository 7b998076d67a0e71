//! Every key of `godex.yaml` but those of a provider's entry: what it takes, its default, what it is for, and where its
//! value is kept. The reader, `config print`, the suggestions for misspelt keys and `docs/config.md` use this table.

use std::time::Duration;

use bridge::{Checks, Repair};

use super::key::{Described, Key, KeyStatus, keys};
use super::kind::{Flag, Lifetime, Number, Size, Special, Text, Time, Unset, Word};
use super::session::BackendKind;
use super::units::Bare;
use super::{
    Backend, Config, Discover, GrammarPolicy, LogFormat, LogLevel, McpClients, PdfPolicy, PostgresConfig, Rescue,
    admin, keys, logging, mcp, oidc, print, search, telemetry, webhooks,
};

const DAY: Duration = Duration::from_hours(24);

keys! { KEYS of Config {
    /// The address to listen on. One that others can reach needs an API key (`godex keys create NAME`, or `keys`), or
    /// `server.allow_unauthenticated`.
    SERVER_HOST = "server.host", Text: Text("127.0.0.1") => |config| Some(config.server.host.clone());
    /// The port to listen on. The flag and the variable also take 0: any free port.
    SERVER_PORT = "server.port", Number: Number { range: 1..=65_535, default: 5678 }
        => |config| Some(config.server.port.into());
    /// How long a connection may be without a request; `0s`: for ever.
    SERVER_IDLE_TIMEOUT = "server.idle_timeout", Time:
        Time { bare: Bare::Seconds, range: Duration::ZERO..=DAY, default: Duration::from_mins(5) }
        => |config| Some(config.server.idle_timeout.unwrap_or_default());
    /// Listen beyond this machine without API keys, although anybody who reaches the port may then use the providers' keys:
    /// something else guards it.
    SERVER_ALLOW_UNAUTHENTICATED = "server.allow_unauthenticated", Flag: Flag(false)
        => |config| Some(config.server.allow_unauthenticated);
    /// The largest request body, after decompression.
    SERVER_MAX_BODY_BYTES = "server.max_body_bytes", Unset<Size>:
        Unset(Size { range: 1..=4_294_967_295, default: 32 << 20 }),
        otherwise "`{}`, or a sixteenth of `limits.memory` if that is less"
        => |config| Some(config.server.max_body_bytes as u64);
    /// Connections at the same time; more wait to be accepted.
    SERVER_MAX_CONNECTIONS = "server.max_connections", Number: Number { range: 1..=4_294_967_295, default: 10_000 }
        => |config| Some(config.server.max_connections as u64);
    /// How long a stream may be silent before the client gets a sign of life.
    SERVER_HEARTBEAT = "server.heartbeat", Time:
        Time { bare: Bare::Seconds, range: Duration::from_secs(1)..=Duration::from_hours(1), default: Duration::from_secs(15) }
        => |config| Some(config.server.heartbeat);
    /// How long a WebSocket may live: then it says so, and closes after what runs on it.
    SERVER_WEBSOCKET_LIFETIME = "server.websocket.lifetime", Time:
        Time { bare: Bare::Refused, range: Duration::from_millis(100)..=DAY, default: Duration::from_hours(1) }
        => |config| Some(config.server.websocket.lifetime);
    /// How often the client of a silent WebSocket is asked whether it is still there; one that does not answer twice
    /// is gone.
    SERVER_WEBSOCKET_PING = "server.websocket.ping", Time:
        Time { bare: Bare::Refused, range: Duration::from_millis(100)..=Duration::from_hours(1), default: Duration::from_secs(20) }
        => |config| Some(config.server.websocket.ping);
    /// How long everything is still answered after the signal to stop, while `/ready` says no and answers close their
    /// connections: what a balancer needs to notice, and its clients to move on.
    SERVER_DRAIN_DELAY = "server.drain_delay", Time:
        Time { bare: Bare::Refused, range: Duration::ZERO..=DAY, default: Duration::ZERO }
        => |config| Some(config.server.drain_delay);
    /// How long running requests may take to end after that.
    SERVER_DRAIN_TIMEOUT = "server.drain_timeout", Time:
        Time { bare: Bare::Refused, range: Duration::ZERO..=DAY, default: Duration::from_secs(30) }
        => |config| Some(config.server.drain_timeout);
    /// Names that the server answers to, beside IP addresses, localhost and `server.host`; `*.example.com` is every
    /// name below that one, `*` any name.
    SERVER_ALLOWED_HOSTS = "server.allowed_hosts", Special: Special("list of host names"), otherwise "none"
        => |config| Some(print::list(config.server.allowed_hosts.names()));
    /// Web pages that may call the server, such as `https://app.example.com`, or `*`.
    SERVER_CORS_ORIGINS = "server.cors.origins", Special: Special("list of origins"), otherwise "none"
        => |config| Some(print::list(config.server.cors.origins.iter().map(String::as_str)));
    /// The certificate for https, a PEM file with the server's own first. With it the port speaks https only. It is read
    /// again when the file changes.
    SERVER_TLS_CERT = "server.tls.cert", Unset<Text>: Unset(Text("")), otherwise "none: plain http"
        => |config| Some(config.server.tls.as_ref()?.cert.display().to_string());
    /// Its private key, a PEM file.
    SERVER_TLS_KEY = "server.tls.key", Unset<Text>: Unset(Text("")), otherwise "none"
        => |config| Some(config.server.tls.as_ref()?.key.display().to_string());
    /// Addresses and networks of proxies, such as `10.0.0.0/8`: what they say in `X-Forwarded-For` (or `Forwarded`) is the
    /// client's address in the log.
    SERVER_TRUSTED_PROXIES = "server.trusted_proxies", Special: Special("list of addresses and networks"), otherwise "none"
        => |config| Some(print::list(config.server.trusted_proxies.names().iter().map(String::as_str)));

    /// Where keys, tenants and the server itself are managed: `unix:PATH`, `HOST:PORT` (then with `admin.token`), or `off`.
    ADMIN_LISTEN = "admin.listen", Special: Special("text"),
        otherwise "`unix:~/.godex/admin.sock`, where there are such sockets and a home"
        => |config| Some(admin::print(&config.admin.listen));
    /// What has to be shown there as a bearer token: at least 16 characters.
    ADMIN_TOKEN = "admin.token", Special: Special("text, a secret"), otherwise "none is asked for"
        => |config| config.admin.token.as_ref().map(|token| format!("# {token}"));

    /// Bytes of request bodies, and of what is made of them for providers, that all requests together may hold.
    LIMITS_BODY_BYTES_IN_FLIGHT = "limits.body_bytes_in_flight", Unset<Size>:
        Unset(Size { range: 1 << 16..=1 << 44, default: 256 << 20 }),
        otherwise "`{}`, or twice `server.max_body_bytes` if that is more"
        => |config| Some(config.limits.body_bytes_in_flight as u64);
    /// Bytes of responses with `store: false` that all WebSockets together may remember, so that they can be continued.
    LIMITS_REMEMBERED_BYTES = "limits.remembered_bytes", Size: Size { range: 0..=1 << 44, default: 256 << 20 }
        => |config| Some(config.limits.remembered_bytes as u64);
    /// Requests that ask a model at once, of everybody together. Beyond that they are answered with 503, at once.
    LIMITS_TURNS = "limits.turns", Unset<Number>: Unset(Number { range: 1..=1 << 32, default: 1000 }), otherwise "no limit"
        => |config| config.limits.turns.map(|turns| turns as u64);
    /// The memory that the process may use. From 85 % of it on new requests that ask a model are answered with 503, from
    /// 95 % on all but `/health` and `/ready`. Linux only.
    LIMITS_MEMORY = "limits.memory", Unset<Size>: Unset(Size { range: 1 << 26..=1 << 50, default: 1 << 30 }),
        otherwise "what the container, or the machine, has"
        => |config| config.limits.memory;
    /// How long a client may take none of what is ready for it.
    LIMITS_WRITE_STALL = "limits.write_stall", Time:
        Time { bare: Bare::Refused, range: Duration::from_millis(100)..=DAY, default: Duration::from_mins(1) }
        => |config| Some(config.limits.write_stall);
    /// How long API keys that the store has work from memory while it is away; then they get 503. New ones and revocations
    /// are not known meanwhile. Keys of this file always work.
    LIMITS_KEY_GRACE = "limits.key_grace", Time:
        Time { bare: Bare::Refused, range: Duration::ZERO..=DAY, default: Duration::from_mins(1) }
        => |config| Some(config.limits.key_grace);

    /// Whether `/metrics` answers: numbers for Prometheus. Once there are API keys it wants `admin.token`; no key of a client
    /// opens it.
    METRICS_ENABLED = "metrics.enabled", Flag: Flag(true) => |config| Some(config.metrics.enabled);
    /// `HOST:PORT` where `/metrics` is answered as well, to anybody who reaches it, without a token.
    METRICS_LISTEN = "metrics.listen", Special: Special("text"), otherwise "nowhere"
        => |config| config.metrics.listen.as_deref().map(print::quote);
    /// An OpenTelemetry collector, such as `http://127.0.0.1:4318`: it is sent a trace of each request, as OTLP over HTTP.
    /// Nothing that clients or models say is in it.
    OTEL_ENDPOINT = "otel.endpoint", Special: Special("URL"), otherwise "none: nothing is sent"
        => |config| config.otel.as_ref().map(telemetry::print_endpoint);
    /// Headers for it, such as `authorization: "Bearer ${COLLECTOR_KEY}"`.
    OTEL_HEADERS = "otel.headers", Special: Special("mapping"), otherwise "none"
        => |config| config.otel.as_ref().and_then(telemetry::print_headers);
    /// What this server is called there.
    OTEL_SERVICE_NAME = "otel.service_name", Text: Text("godex")
        => |config| config.otel.as_ref().map(|otel| otel.service_name.clone());
    /// How many of the requests that belong to no client's trace are sent; a client's trace says itself.
    OTEL_SAMPLE_PERCENT = "otel.sample_percent", Number: Number { range: 0..=100, default: 100 }
        => |config| config.otel.as_ref().map(|otel| otel.sample_percent.into());

    /// API keys, beside those that are made with `godex keys create`, each as `{name: team-a, tenant: a, hash: "sha256:…"}`
    /// or with `key: ${VARIABLE}`, at least 20 characters, in place of the hash. The hash is SHA-256 in hexadecimal digits.
    /// Without `tenant` it is `default`'s. What a key may do: `models` and aliases as clients name them (`deepseek/*` is all
    /// that begin so), hosted `tools` (`web_search`, `mcp`, `mcp:LABEL`), `rpm` (requests per minute), `tpm` (tokens per
    /// minute), `concurrency` (turns at once), `queue` (background responses that wait), `body_bytes` (of requests in flight),
    /// `budget` such as `50usd/month`; what is not said is not limited. `expires: 2027-06-30` is the last day of a key.
    API_KEYS = "keys", Special: Special("list of mappings"), otherwise "none"
        => |config| keys::print(&config.keys);
    /// An identity provider whose tokens (JWT) are taken as API keys are: `{issuer: "https://id.example.com", audience:
    /// godex, tenant_claim: team}`. `issuer` is as tokens have it in `iss`, `audience` must be in `aud`, and the claim that
    /// `tenant_claim` names says whose tenant it is. Its keys are found by discovery, or at `jwks_uri`; while
    /// the issuer is away they are used for `jwks_grace`, `1h` if it is not said. `terms: {rpm: 60}` is what each token may
    /// do, in the words of `keys`; `models_claim` names a claim that lists models, `terms_claim` one that has terms as JSON.
    OIDC = "oidc", Special: Special("mapping"), otherwise "none"
        => |config| config.oidc.as_ref().map(oidc::print);

    /// The provider of models that name none.
    DEFAULT_PROVIDER = "default_provider", Unset<Text>: Unset(Text("")),
        otherwise "the first of `providers`, else the demo model"
        => |config| Some(config.default_provider.clone());
    /// Other names for models: `NAME: provider/model`, a list of them (the first that works), or
    /// `{targets: [{model: provider/model, weight: 3}, …]}`. `*` is every name that is nothing else.
    MODELS_ALIASES = "models.aliases", Special: Special("mapping of names"), otherwise "none"
        => |config| print::aliases(config);
    /// Whose own lists of models (`GET …/models`) are asked for, now and then, and shown beside what this file names: those
    /// of providers on this machine or a private network, of all, or of none.
    MODELS_DISCOVER = "models.discover", Word<Discover>:
        Word { all: Discover::ALL, name: Discover::name, default: Discover::Local } => |config| Some(config.discover);
    /// The providers, each under a name of your choice; see below.
    PROVIDERS = "providers", Special: Special("mapping of names"),
        otherwise "the demo model, and one for each known key in the environment"
        => |config| Some(print::providers(config));

    /// Where responses and conversations are kept.
    SESSION_BACKEND = "session.backend", Word<BackendKind>:
        Word { all: BackendKind::ALL, name: BackendKind::name, default: BackendKind::Sqlite }
        => |config| Some(BackendKind::of(&config.session.backend));
    /// The database file; `~/` is the home directory.
    SESSION_SQLITE_PATH = "session.sqlite.path", Text: Text("~/.godex/data/sessions.db")
        => |config| match &config.session.backend {
            Backend::Sqlite { path } => Some(path.display().to_string()),
            _ => None,
        };
    /// How much `memory` may hold; what was not used for longest goes first.
    SESSION_MAX_BYTES = "session.max_bytes", Size: Size { range: 1 << 20..=1 << 40, default: 256 << 20 }
        => |config| match config.session.backend {
            Backend::Memory { max_bytes } => Some(max_bytes),
            _ => None,
        };
    /// The database of `postgres`: `postgres://user:password@host/database`.
    SESSION_POSTGRES_URL = "session.postgres.url", Special: Special("URL, a secret"), otherwise "must be given"
        => |config| postgres(config).map(|postgres| postgres.url.to_string());
    /// Connections of this process to the database.
    SESSION_POSTGRES_CONNECTIONS = "session.postgres.connections", Number: Number { range: 1..=1000, default: 8 }
        => |config| postgres(config).map(|postgres| postgres.options.connections as u64);
    /// How long to wait for a connection before the store counts as unavailable.
    SESSION_POSTGRES_ACQUIRE = "session.postgres.acquire_ms", Time: of_database(Duration::from_secs(2))
        => |config| postgres(config).map(|postgres| postgres.options.acquire);
    /// How long one statement may take.
    SESSION_POSTGRES_STATEMENT = "session.postgres.statement_ms", Time: of_database(Duration::from_secs(5))
        => |config| postgres(config).map(|postgres| postgres.options.statement);
    /// How long to try while the database is away before the client is told.
    SESSION_POSTGRES_RETRY = "session.postgres.retry_ms", Time: of_database(Duration::from_secs(15))
        => |config| postgres(config).map(|postgres| postgres.options.retry);
    /// The status for a `previous_response_id` that is not known: OpenAI's 400, or 404.
    SESSION_UNKNOWN_STATUS = "session.unknown_previous_response_status", Word<u16>:
        Word { all: &[400, 404], name: status_name, default: 400 }
        => |config| Some(config.session.unknown_previous_response_status);
    /// Fail a response that could not be stored, instead of delivering it as one with `store: false`.
    SESSION_STRICT = "session.strict", Flag: Flag(false) => |config| Some(config.session.strict);
    /// How long responses are kept. Conversations have no end.
    SESSION_TTL = "session.ttl", Lifetime: Lifetime(Duration::from_hours(30 * 24)) => |config| Some(config.session.ttl);
    /// What reasoning is sealed with: at least 32 characters, the same on all replicas.
    SESSION_SEAL_KEY = "session.seal_key", Special: Special("text, a secret"),
        otherwise "one that is made and kept beside the database"
        => |config| config.session.seal_key.as_ref().map(|key| format!("# {key}"));
    /// What the database is encrypted with: 32 bytes in base64 or hexadecimal ([encryption.md](encryption.md)).
    SESSION_ENCRYPTION_KEY = "session.encryption.key", Special: Special("text, a secret"), otherwise "none: it is in clear"
        => |config| encryption_key(config);
    /// A file with that key, which nobody else can read.
    SESSION_ENCRYPTION_KEY_FILE = "session.encryption.key_file", Unset<Text>: Unset(Text("")), otherwise "none"
        => |config| config.session.encryption.key_file.as_ref().map(|path| path.display().to_string());
    /// Keys that only open what was encrypted with them, while the key changes.
    SESSION_ENCRYPTION_PREVIOUS = "session.encryption.previous_keys", Special: Special("list of texts, secrets"),
        otherwise "none"
        => |config| (!config.session.encryption.keys.previous.is_empty()).then(|| "# <redacted>".to_owned());
    /// How many responses `previous_response_id` may lead through.
    SESSION_CHAIN_MAX_DEPTH = "session.chain.max_depth", Number: Number { range: 1..=1_000_000, default: 1000 }
        => |config| Some(config.session.chain.max_depth as u64);
    /// Whether an `incomplete` response may be continued.
    SESSION_CHAIN_INCOMPLETE = "session.chain.include_incomplete", Flag: Flag(true)
        => |config| Some(config.session.chain.include_incomplete);
    /// Whether earlier turns' `instructions` come back as system messages.
    SESSION_CHAIN_INSTRUCTIONS = "session.chain.replay_instructions", Flag: Flag(false)
        => |config| Some(config.session.chain.replay_instructions);

    /// How long the events of a stream that has ended can be asked for one by one (`GET …?stream=true&starting_after=N`);
    /// later its stream is made from the stored response.
    SESSION_EVENT_TTL = "session.event_ttl", Time: Time {
            bare: Bare::Seconds,
            range: Duration::from_secs(1)..=Duration::from_hours(30 * 24),
            default: Duration::from_hours(1),
        } => |config| Some(config.session.event_ttl);
    /// Whether streams of stored responses can be resumed though they are not made in the background. They go on when
    /// their client is gone, and each event is stored before it is sent.
    SESSION_RESUME_FOREGROUND = "session.resume_foreground", Flag: Flag(false)
        => |config| Some(config.session.resume_foreground);
    /// How many background responses of one tenant run at once, on all instances together.
    SESSION_BACKGROUND_CONCURRENCY = "session.background.concurrency", Number:
        Number { range: 1..=100_000, default: 64 } => |config| Some(u64::from(config.session.background.concurrency));
    /// How many background responses of one tenant may wait; more are refused with 429.
    SESSION_BACKGROUND_QUEUE = "session.background.queue", Number: Number { range: 0..=1_000_000, default: 1000 }
        => |config| Some(u64::from(config.session.background.queue));

    /// Who is told when background responses end, each as `{url: "https://…", secret: "${HOOK_SECRET}"}`, signed as
    /// Standard Webhooks say. `secret` is `whsec_` and base64, or any text of 24 characters or more. `events` are those of
    /// `response.completed`, `response.failed`, `response.incomplete` and `response.cancelled` that are wanted, by default
    /// all. `tenants` are those whose responses it is told of, by default all. `allow_private: true` lets a webhook go to this machine, a private network, or over plain http.
    WEBHOOKS = "webhooks", Special: Special("list of mappings"), otherwise "none"
        => |config| webhooks::print(&config.webhooks);

    /// Refuse what is unknown or cannot be done, instead of leaving it out with a note.
    COMPAT_STRICT = "compat.strict", Flag: Flag(false) => |config| Some(config.compat.strict);
    /// Whether a tool's output that answers no call becomes a message.
    COMPAT_REPAIR_HISTORY = "compat.repair_history", Unset<Flag>: Unset(Flag(false)),
        otherwise "only for clients that are known to need it"
        => |config| config.compat.repair_history;

    /// Which answers must be in the format that was asked for: where the API promises it (`strict: true`,
    /// `json_object`), for every schema, or none.
    OUTPUT_CHECK = "output.check", Word<Checks>:
        Word { all: Checks::ALL, name: Checks::name, default: Checks::Strict } => |config| Some(config.output.check);
    /// What is done with an answer that does not fit: nothing; `syntax`: code fences come off and brackets are
    /// closed; `reask`: that, and the provider is asked once more, where nothing has been sent yet.
    OUTPUT_REPAIR = "output.repair", Word<Repair>:
        Word { all: Repair::ALL, name: Repair::name, default: Repair::Syntax } => |config| Some(config.output.repair);

    /// What is done about the input of a custom tool that does not fit its grammar. `check`: it is mended where little
    /// is wrong, and else delivered with a note; `reask`: that, and the provider is asked once more with what is wrong,
    /// where nothing of the call has been sent yet.
    TOOLS_GRAMMAR = "tools.grammar", Word<GrammarPolicy>:
        Word { all: GrammarPolicy::ALL, name: GrammarPolicy::name, default: GrammarPolicy::Check }
        => |config| Some(config.tools.grammar);
    /// Which MCP servers requests may name: those of `tools.mcp.servers`; or, beside them, those that begin with an entry of
    /// `tools.mcp.allow`, or any at a public https address; or none at all.
    TOOLS_MCP_CLIENTS = "tools.mcp.clients", Word<McpClients>:
        Word { all: McpClients::ALL, name: McpClients::name, default: McpClients::Declared }
        => |config| Some(config.tools.mcp.clients);
    /// With `clients: allow_list`: what a client's `server_url` may begin with, such as `https://mcp.example.com/`; in
    /// `https://*.example.com/` the star is any name.
    TOOLS_MCP_ALLOW = "tools.mcp.allow", Special: Special("list of URLs"), otherwise "none"
        => |config| {
            let allow = &config.tools.mcp.allow;
            (!allow.is_empty()).then(|| print::list(allow.iter().map(String::as_str)))
        };
    /// The MCP servers that clients may name by a label alone, each as `LABEL: {url: "https://…", headers: {authorization:
    /// "Bearer ${KEY}"}}` or `LABEL: {command: [program, argument], env: {NAME: value}}`: a process that godex starts and that
    /// speaks over its standard streams; it sees of godex's environment only `PATH`, `HOME`, `LANG` and `TMPDIR`, and secrets
    /// belong into `env`. `allowed_tools: [name]`: no others may be called. `require_approval`: `always`, whatever clients say;
    /// `never`, where they say nothing; by default their choice. `optional: true`: responses go on when the server's tools
    /// cannot be listed. `client_headers: true`: clients may send `headers` and `authorization` of their own along.
    /// `price_per_call: 0.01`: what each call costs, in US dollars. These servers may be on this machine or a private network.
    TOOLS_MCP_SERVERS = "tools.mcp.servers", Special: Special("mapping of labels"), otherwise "none"
        => |config| mcp::print(&config.tools.mcp.servers);
    /// The services that search the web for models whose providers do not, each as `{spec: tavily, credentials: {api_key:
    /// "${TAVILY_API_KEY}"}}`, or by the name of its spec alone; the next one is asked where one fails. `spec` is a built-in
    /// one, a file, or written here. Also `endpoint.base_url`, `endpoint.allow_plain_http`, `timeout`, `price_per_call`
    /// in US dollars, and `country` and `language` for clients that say none. In the first entry, for all of them: `pages: false` lets no page be opened,
    /// `only_shown: false` lets a model open addresses that its conversation has not shown, `max_calls` is how often one
    /// response may search.
    TOOLS_WEB_SEARCH = "tools.web_search", Special: Special("mapping, or list of mappings"),
        otherwise "none: the tool is left out with a note, where the provider has none"
        => |config| search::print(&config.tools.web_search);

    /// The model (`provider/model`, or an alias) that says what images show, for models that cannot see them: its words take
    /// the image's place. Each image is described once and remembered in memory.
    IMAGES_DESCRIBE = "images.describe", Unset<Text>: Unset(Text("")),
        otherwise "none: an image that a model cannot see is left out with a note"
        => |config| config.images.describe.clone();

    /// What becomes of PDFs for models that take no files: their text, read by a process of its own within the limits below,
    /// or a placeholder.
    FILES_PDF = "files.pdf", Word<PdfPolicy>:
        Word { all: PdfPolicy::ALL, name: PdfPolicy::name, default: PdfPolicy::Text } => |config| Some(config.files.pdf);
    /// Pages of a PDF that are read, from its first.
    FILES_MAX_PAGES = "files.max_pages", Number: Number { range: 1..=100_000, default: 500 }
        => |config| Some(config.files.max_pages as u64);
    /// Bytes of text of one PDF; more are cut off, and the model is told.
    FILES_MAX_BYTES = "files.max_bytes", Size: Size { range: 1 << 10..=64 << 20, default: 1 << 20 }
        => |config| Some(config.files.max_bytes as u64);
    /// Bytes of text of all PDFs of a request together, with those of the conversation before it; the first ones get them.
    FILES_MAX_REQUEST_BYTES = "files.max_request_bytes", Size: Size { range: 1 << 10..=256 << 20, default: 4 << 20 }
        => |config| Some(config.files.max_request_bytes as u64);
    /// How long the reading of one PDF may take.
    FILES_TIMEOUT = "files.timeout", Time:
        Time { bare: Bare::Seconds, range: Duration::from_secs(1)..=Duration::from_mins(5), default: Duration::from_secs(10) }
        => |config| Some(config.files.timeout);
    /// How much memory it may take. Enforced on Linux.
    FILES_MEMORY = "files.memory", Size: Size { range: 64 << 20..=16 << 30, default: 512 << 20 }
        => |config| Some(config.files.memory);

    /// What is done when the provider says that a request is too long for the model, and nothing has been sent yet:
    /// nothing; or `compact`: the model is asked for a summary, and goes on from that.
    CONTEXT_RESCUE = "context.rescue", Word<Rescue>:
        Word { all: Rescue::ALL, name: Rescue::name, default: Rescue::Off } => |config| Some(config.context.rescue);

    /// How often a request that failed is sent once more, before the client has had anything.
    RESILIENCE_RETRIES = "resilience.retries", Number: Number { range: 0..=10, default: 2 }
        => |config| Some(config.resilience.retries.into());
    /// The first wait before that is random up to this; each further one up to twice the one before.
    RESILIENCE_BACKOFF = "resilience.backoff_ms", Time:
        Time { bare: Bare::Milliseconds, range: Duration::ZERO..=Duration::from_mins(1), default: Duration::from_millis(250) }
        => |config| Some(config.resilience.backoff);
    /// A provider that asks for a longer wait than this is not waited for: its wish is passed on.
    RESILIENCE_MAX_RETRY_AFTER = "resilience.max_retry_after", Time:
        Time { bare: Bare::Seconds, range: Duration::ZERO..=Duration::from_mins(2), default: Duration::from_secs(10) }
        => |config| Some(config.resilience.max_wait);
    /// The share of the requests that wait for a target that may be retries.
    RESILIENCE_BUDGET = "resilience.budget_percent", Number: Number { range: 0..=100, default: 20 }
        => |config| Some(config.resilience.budget_percent as u64);
    /// Failures in a row after which a target gets only one request per second to try; 0: never.
    RESILIENCE_BREAKER = "resilience.breaker_failures", Number: Number { range: 0..=100_000, default: 8 }
        => |config| Some(config.resilience.breaker_failures.into());

    /// How much is logged.
    LOGGING_LEVEL = "logging.level", Word<LogLevel>: level() => |config| Some(config.logging.level);
    /// The form of a line: for people, as JSON, or `auto`: for people on a terminal, JSON elsewhere.
    LOGGING_FORMAT = "logging.format", Word<LogFormat>:
        Word { all: LogFormat::ALL, name: LogFormat::name, default: LogFormat::Auto }
        => |config| Some(config.logging.format);
    /// Whether anything is logged to the console, which is stderr.
    LOGGING_CONSOLE_ENABLED = "logging.console.enabled", Flag: Flag(true) => |config| Some(config.logging.console);
    /// How much is logged to the console.
    LOGGING_CONSOLE_LEVEL = "logging.console.level", Unset<Word<LogLevel>>: Unset(level()), otherwise "`logging.level`"
        => |_| None;
    /// `true` is `logging.format: human`, `false` is `json`.
    LOGGING_CONSOLE_PRETTY = "logging.console.pretty", Unset<Flag>: Unset(Flag(true)),
        otherwise "`logging.format`"; Older => |_| None;

    /// Log to a file, too: JSON, a line for each event, unless `logging.format` is `human`. It is the owner's alone.
    LOGGING_FILE_ENABLED = "logging.file.enabled", Flag: Flag(false) => |config| Some(config.logging.file.is_some());
    /// The folder of log files, which is made if it is not there.
    LOGGING_FILE_DIR = "logging.file.dir", Text: Text("~/.godex/logs")
        => |config| Some(config.logging.file.as_ref()?.dir.display().to_string());
    /// The name of the log file. Older ones have `.1`, `.2` and so on after it.
    LOGGING_FILE_NAME = "logging.file.filename", Text: Text("godex.log")
        => |config| Some(config.logging.file.as_ref()?.filename.clone());
    /// How much is logged to the file.
    LOGGING_FILE_LEVEL = "logging.file.level", Unset<Word<LogLevel>>: Unset(level()), otherwise "`logging.level`"
        => |config| Some(config.logging.file.as_ref()?.level);
    /// The size after which a new file is begun, in megabytes; a number from 1048576 on is bytes.
    LOGGING_FILE_MAX_SIZE = "logging.file.max_size", Number: Number { range: 1..=u64::MAX, default: 10 }
        => |config| config.logging.file.as_ref().map(logging::max_size);
    /// How many files are kept, with the newest.
    LOGGING_FILE_MAX_FILES = "logging.file.max_files", Number: Number { range: 1..=u64::MAX, default: 5 }
        => |config| Some(config.logging.file.as_ref()?.max_files);
    /// Keep a trace of each request that makes something, and of each that fails.
    TRACE_ENABLED = "trace.enabled", Flag: Flag(true) => |config| Some(config.trace.enabled);
    /// The file of traces. With it traces are in a file wherever sessions are.
    TRACE_PATH = "trace.path", Unset<Text>: Unset(Text("")),
        otherwise "`trace.db` beside `session.sqlite.path`; with other backends where sessions are"
        => |config| config.trace.place.file();
    /// Traces that may wait to be written; more are not kept, and counted.
    TRACE_MAX_QUEUE_SIZE = "trace.max_queue_size", Number: Number { range: 1..=10_000_000, default: 10_000 }
        => |config| Some(config.trace.max_queue_size as u64);
    /// How long a trace waits for others to be written with.
    TRACE_FLUSH_INTERVAL = "trace.flush_interval_ms", Time:
        Time { bare: Bare::Milliseconds, range: Duration::ZERO..=Duration::from_hours(1), default: Duration::from_secs(1) }
        => |config| Some(config.trace.flush_interval);
    /// How many traces are written at once.
    TRACE_BATCH_SIZE = "trace.batch_size", Number: Number { range: 1..=10_000, default: 1024 }
        => |config| Some(config.trace.batch_size as u64);
    /// Whether traces hold bodies: what was asked, what was sent, what came back. Keys are taken out of them.
    TRACE_CAPTURE_PAYLOAD = "trace.capture_payload", Flag: Flag(false) => |config| Some(config.trace.capture.enabled);
    /// Whether that holds for requests with `store: false`, too.
    TRACE_CAPTURE_UNSTORED = "trace.capture_unstored", Flag: Flag(false) => |config| Some(config.trace.capture.unstored);
    /// How much of each body.
    TRACE_PAYLOAD_MAX_BYTES = "trace.payload_max_bytes", Size: Size { range: 0..=1 << 30, default: 64 << 10 }
        => |config| Some(config.trace.capture.max_bytes as u64);
    /// How long traces are kept.
    TRACE_TTL = "trace.ttl", Lifetime: Lifetime(Duration::from_hours(7 * 24)) => |config| Some(config.trace.ttl);
    /// How many bytes all traces together may have; the oldest go first. In memory `64MiB`, where it is not said.
    TRACE_MAX_BYTES = "trace.max_bytes", Unset<Size>: Unset(Size { range: 1 << 20..=1 << 50, default: 1 << 30 }),
        otherwise "`{}`" => |config| Some(config.trace.max_bytes);
    /// Whether the web is searched for models that cannot.
    WEB_SEARCH_ENABLED = "web_search.enabled", Unset<Flag>: Unset(Flag(true)), otherwise "`{}`"; Older => |_| None;
    /// Who searches; in every mode a provider's own search is preferred.
    WEB_SEARCH_MODE = "web_search.mode", Unset<Word<&str>>:
        words(&["auto", "provider_native", "godex_managed", "disabled"]), otherwise "`auto`"; Older => |_| None;
    /// The service, as `tools.web_search` names it. `zhipu` uses the key of the provider of that name.
    WEB_SEARCH_PROVIDER = "web_search.provider", Unset<Word<&str>>: words(&["none", "mock", "zhipu"]),
        otherwise "`none`"; Older => |_| None;
    /// What is done with the tool when nobody can search: the client answers calls of a function `web_search`; the request is
    /// refused; or the tool is left out with a note.
    WEB_SEARCH_ON_UNAVAILABLE = "web_search.on_unavailable", Unset<Word<&str>>:
        words(&["client_tool_call", "fail", "ignore"]), otherwise "`ignore`"; Older => |_| None;
    /// How often a model may search in one turn, as `max_calls` of `tools.web_search`.
    WEB_SEARCH_MAX_ITERATIONS = "web_search.max_iterations", Unset<Number>: ANY, otherwise "no limit of its own"; Older => |_| None;
    /// How long a search may take, in milliseconds.
    WEB_SEARCH_TIMEOUT = "web_search.timeout_ms", Unset<Number>: ANY, otherwise "`10000`"; Older => |_| None;
} }

const ANY: Unset<Number> = Unset(Number { range: 1..=u64::MAX, default: 1 });

const fn level() -> Word<LogLevel> {
    Word { all: LogLevel::ALL, name: LogLevel::name, default: LogLevel::Info }
}

const fn words(all: &'static [&'static str]) -> Unset<Word<&'static str>> {
    Unset(Word { all, name: |name| name, default: "" })
}

const fn of_database(default: Duration) -> Time {
    Time { bare: Bare::Milliseconds, range: Duration::from_millis(1)..=Duration::from_mins(10), default }
}

/// Not one that is in a file: then the file is said.
fn encryption_key(config: &Config) -> Option<String> {
    let encryption = &config.session.encryption;
    (encryption.keys.key.is_some() && encryption.key_file.is_none()).then(|| "# <redacted>".to_owned())
}

const fn postgres(config: &Config) -> Option<&PostgresConfig> {
    match &config.session.backend {
        Backend::Postgres(postgres) => Some(postgres),
        Backend::Sqlite { .. } | Backend::Memory { .. } => None,
    }
}

const fn status_name(status: u16) -> &'static str {
    if status == 404 { "404" } else { "400" }
}
