//! A running server in front of a scripted provider.

use std::net::SocketAddr;
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};
use server::config::{Config, Discover, Overrides, Sources, load};
use server::{Operator, Reloader, Server};
use testkit::grammar::Stream;
use testkit::{Answer, Client, Schemas, Script, Upstream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The provider's key: it must never come out again.
pub(crate) const KEY: &str = "sk-upstream-0123456789";

/// Retries as usual, without the waits between them.
pub(crate) const QUICK: &str = "backoff_ms: 2, breaker_failures: 0";

pub(crate) struct Rig {
    pub(crate) upstream: Upstream,
    pub(crate) client: Client,
    pub(crate) address: SocketAddr,
    /// Where it is administered.
    pub(crate) admin: Option<String>,
    /// Where metrics are answered beside the port for clients.
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) reloader: Reloader,
    /// To drain, and to end at once.
    stop: [Option<oneshot::Sender<()>>; 2],
    running: JoinHandle<()>,
}

/// Who reads no configuration anew.
#[derive(Debug)]
struct Stubborn;

impl Operator for Stubborn {
    fn reload(&self) -> Result<(), String> {
        Err("godex.yaml:1: no\ngodex.yaml:2: neither".to_owned())
    }
}

/// What a test wants otherwise than usual.
#[derive(Default)]
pub(crate) struct Settings {
    /// Lines of the `server` section.
    pub(crate) server: &'static str,
    /// The provider's `timeouts`, as a YAML flow mapping's inside.
    pub(crate) timeouts: &'static str,
    /// The inside of the `session` section; in memory when empty.
    pub(crate) session: String,
    /// The inside of the `resilience` section; short waits and no breaker when empty.
    pub(crate) resilience: &'static str,
    /// The provider's spec, a name or a YAML flow mapping; `openai-compatible` when empty.
    pub(crate) spec: &'static str,
    /// The list of `webhooks`; none when empty.
    pub(crate) webhooks: String,
    /// The provider's address instead of the scripted one's.
    pub(crate) base_url: Option<String>,
    pub(crate) tweak: Option<fn(&mut Config)>,
}

impl Rig {
    /// Every request is answered with this script, unless the upstream's queue has one for it.
    pub(crate) async fn start(script: Script) -> Self {
        Self::with(script, Settings::default()).await
    }

    pub(crate) async fn with(script: Script, settings: Settings) -> Self {
        Self::before(Upstream::start(script).await.unwrap(), settings).await
    }

    pub(crate) async fn before(upstream: Upstream, settings: Settings) -> Self {
        Self::try_before(upstream, settings).await.unwrap()
    }

    pub(crate) async fn try_before(upstream: Upstream, settings: Settings) -> Result<Self, server::StartError> {
        let config = config(&upstream, &settings);
        Self::serving(upstream, config).await
    }

    /// With a configuration of its own; `upstream` is the one that tests look at.
    pub(crate) async fn serving(upstream: Upstream, config: Config) -> Result<Self, server::StartError> {
        let server = Server::bind(config).await?.administered(Arc::new(Stubborn)).await?;
        let (admin, metrics) = (server.admin_address(), server.metrics_address());
        let (address, reloader) = (server.local_addr(), server.reloader());
        let (stop, stopped) = oneshot::channel::<()>();
        let (stop_now, stopped_now) = oneshot::channel::<()>();
        let running = spawn(async move {
            let (drain, now) = (async { drop(stopped.await) }, async { drop(stopped_now.await) });
            server.run(drain, now).await.unwrap();
        });
        let stop = [Some(stop), Some(stop_now)];
        Ok(Self { upstream, client: Client::new().unwrap(), address, admin, metrics, reloader, stop, running })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn post(&self, body: &Value) -> Answer {
        self.client.post_json(&self.url("/v1/responses"), body).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.client.get(&self.url(path)).await.unwrap()
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [("content-type", "application/json")];
        self.client.request(method, &self.url(path), &headers, body).await.unwrap()
    }

    /// The same request, not streamed and streamed.
    pub(crate) async fn both(&self, body: &Value) -> (Answer, Answer) {
        let mut streamed = body.clone();
        streamed["stream"] = json!(true);
        (self.post(body).await, self.post(&streamed).await)
    }

    /// Asks it to stop, and does not wait.
    pub(crate) fn drain(&mut self) {
        drop(self.stop[0].take());
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) async fn stop(mut self) {
        drop(self.stop[0].take());
        (&mut self.running).await.unwrap();
    }

    /// Waits until it has stopped by itself.
    pub(crate) async fn ended(mut self) {
        (&mut self.running).await.unwrap();
    }

    /// Does not wait for what still runs.
    pub(crate) async fn stop_at_once(mut self) {
        self.stop = [None, None];
        (&mut self.running).await.unwrap();
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.running.abort();
    }
}

#[expect(clippy::disallowed_methods, reason = "the test's runtime ends with the test")]
pub(crate) fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task)
}

pub(crate) fn config(upstream: &Upstream, settings: &Settings) -> Config {
    let Settings { server, timeouts, session, resilience, spec, webhooks, base_url, tweak } = settings;
    let spec = if spec.is_empty() { "openai-compatible" } else { spec };
    let resilience = if resilience.is_empty() { QUICK } else { resilience };
    let session = if session.is_empty() { "backend: memory" } else { session };
    let base_url = base_url.clone().unwrap_or_else(|| format!("{}/v1", upstream.url()));
    let text = format!(
        "server: {{{server}}}\nsession: {{{session}}}\nresilience: {{{resilience}}}\nproviders:\n  up:\n    spec: {spec}\n    \
         endpoint: {{base_url: '{base_url}'}}\n    credentials: {{api_key: {KEY}}}\n    timeouts: {{{timeouts}}}\n    \
         models: [m]\nwebhooks: {webhooks}\n"
    );
    let mut config = parse(&text);
    if let Some(tweak) = tweak {
        tweak(&mut config);
    }
    config
}

/// A configuration from its text.
pub(crate) fn parse(text: &str) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("godex.yaml");
    std::fs::write(&path, text).unwrap();
    let overrides = Overrides { port: Some(0), ..Overrides::default() };
    let sources = Sources { config_path: Some(&path), cwd: folder.path(), home: None, env: &|_| None, overrides };
    let mut config = load(&sources).unwrap_or_else(|problems| panic!("{problems}"));
    if !text.contains("discover:") {
        // Tests count the upstream's requests.
        config.discover = Discover::Off;
    }
    config
}

// === what every answer must be ===

/// A whole object: the grammar and both schemas.
pub(crate) fn object(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let response = answer.json();
    testkit::grammar::check_response(&response).unwrap_or_else(|problem| panic!("{problem}: {response}"));
    let mut schematic = response.clone();
    schema_code(&mut schematic);
    assert_eq!(problems(|schemas| schemas.response(&schematic)), Vec::<String>::new(), "{response}");
    request_id(answer);
    response
}

/// An object that may be of a response under way.
pub(crate) fn object_now(answer: &Answer) -> Value {
    let response = answer.json();
    if response["status"] != "queued" && response["status"] != "in_progress" {
        return object(answer);
    }
    assert_eq!((answer.status, &response["output"]), (200, &json!([])), "{response}");
    assert_eq!(problems(|schemas| schemas.response(&response)), Vec::<String>::new(), "{response}");
    response
}

/// A whole stream: its head, the grammar, both schemas for every event.
pub(crate) fn stream(answer: &Answer) -> Stream {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    for (name, value) in [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    request_id(answer);
    let stream = testkit::grammar::check(&answer.body).unwrap_or_else(|problem| panic!("{problem}"));
    for (name, event) in &stream.events {
        let mut event = event.clone();
        if let Some(response) = event.get_mut("response") {
            schema_code(response);
        }
        assert_eq!(problems(|schemas| schemas.event(&event)), Vec::<String>::new(), "{name}: {event}");
    }
    stream
}

/// Codes that clients act on and the schema's closed list lacks: one that it has takes their place.
fn schema_code(response: &mut Value) {
    const MORE: [&str; 8] = [
        "http_error",
        "server_restarted",
        "server_shutdown",
        "context_length_exceeded",
        "invalid_output_format",
        "server_is_overloaded",
        "insufficient_quota",
        "model_not_found",
    ];
    let code = response.pointer_mut("/error/code");
    if let Some(code) = code.filter(|code| MORE.iter().any(|known| *code == known)) {
        *code = json!("server_error");
    }
}

fn problems(check: impl FnOnce(&Schemas) -> Vec<String>) -> Vec<String> {
    Schemas::if_present().map(|schemas| check(&schemas)).unwrap_or_default()
}

fn request_id(answer: &Answer) {
    assert!(answer.header("x-request-id").is_some_and(|id| id.starts_with("req_")), "{:?}", answer.headers);
}

/// An error: status, type, code, param; the message for whoever wants to look. All four members are there, the
/// domain code is in its header, and the provider's key is nowhere.
pub(crate) fn error(answer: &Answer) -> Error {
    let text = String::from_utf8_lossy(&answer.body);
    assert!(!text.contains(KEY), "{text}");
    assert!(answer.status >= 400, "{} {text}", answer.status);
    assert_eq!(answer.header("content-type"), Some("application/json"), "{text}");
    request_id(answer);
    let body = answer.json();
    let members = |value: &Value| value.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>());
    assert_eq!(members(&body), Some(vec!["error".to_owned()]), "{text}");
    let mut names = members(&body["error"]).unwrap();
    names.sort();
    assert_eq!(names, ["code", "message", "param", "type"], "{text}");
    let string = |name: &str| body["error"][name].as_str().map(str::to_owned);
    let domain = answer.header("x-godex-error").unwrap().to_owned();
    let code = string("code");
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    assert!(code.as_ref().is_none_or(|code| !code.is_empty() && code.chars().all(plain)), "{text}");
    assert_eq!(code.is_none(), WORDS_ALONE.contains(&&*domain), "{domain}: {text}");
    Error {
        status: answer.status,
        kind: string("type").unwrap(),
        code: code.unwrap_or_else(|| domain.clone()),
        param: string("param"),
        message: string("message").filter(|message| !message.is_empty()).unwrap(),
        domain,
    }
}

/// What OpenAI has no code for: `error.code` is null.
const WORDS_ALONE: [&str; 11] = [
    "missing_api_key",
    "mcp_approval_invalid",
    "invalid_json",
    "invalid_utf8",
    "invalid_body",
    "invalid_request",
    "bridge.history.unknown_call",
    "item_not_found",
    "response_not_found",
    "conversation_not_found",
    "response_not_streamable",
];

#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) status: u16,
    pub(crate) kind: String,
    /// The domain code where `error.code` is null.
    pub(crate) code: String,
    pub(crate) param: Option<String>,
    pub(crate) message: String,
    pub(crate) domain: String,
}

impl Error {
    /// Without the message, for comparison.
    pub(crate) fn key(&self) -> (u16, &str, &str, Option<&str>) {
        (self.status, &self.kind, &self.code, self.param.as_deref())
    }
}

/// Ids, times and seals are each answer's own; the rest of two answers can be compared.
pub(crate) fn anonymous(mut response: Value) -> Value {
    for name in ["id", "created_at", "completed_at"] {
        response[name] = json!(null);
    }
    for item in response["output"].as_array_mut().into_iter().flatten() {
        item["id"] = json!(null);
        // Sealed with a nonce of its own each time.
        if let Some(sealed) = item.get_mut("encrypted_content") {
            *sealed = json!("sealed");
        }
    }
    response
}
