//! Asks the admin listener of a running server; or, where none runs, answers out of the store itself. Commands do not see
//! the difference.

use std::fmt;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use store::{MemoryLimits, Store, TraceStore};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::listener::Stream;
use super::routes::{self, LookedUp, Place};
use crate::app::open_store;
use crate::config::{AdminListen, Backend, Config, Origin, TracePlace};
use crate::start::StartError;

/// Who is there answers at once.
const CONNECT: Duration = Duration::from_secs(3);
/// It says what it is out of its memory.
const STATUS: Duration = Duration::from_secs(10);
/// More than it waits itself for its store, where that is all it does.
const LOOK: Duration = Duration::from_secs(30);
/// An erasure of much takes its time.
const ANSWER: Duration = Duration::from_mins(10);
/// The most of an answer that is kept as a whole.
const LARGEST: usize = 64 << 20;

/// Whoever manages what this configuration is about.
#[derive(Debug)]
pub struct AdminClient {
    config: Config,
    /// None: a server is asked.
    store: Option<Store>,
    /// Opened when somebody asks for them.
    traces: OnceLock<LookedUp>,
}

/// What was answered.
#[derive(Debug)]
pub struct AdminAnswer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// Why nobody was asked.
#[derive(Debug)]
pub enum Unreachable {
    /// `admin.listen` is `off`.
    Off,
    /// Nobody listens there.
    Nobody(String),
    /// A server with another store does: where, and which.
    Another(String, String),
    /// One that was started with another configuration: where, and which.
    Other(String, String),
    /// Something else answers there.
    Stranger(String),
    /// It is there, and says nothing: it is stopped, or has more to do than it can.
    Silent(String),
    /// It could not be asked: where, and why.
    Failed(String, String),
    /// What it answered could not be given on.
    Sink(io::Error),
    /// Without a server there is nothing in memory.
    Memory,
    Store(Box<StartError>),
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("the admin listener is off (`admin.listen`)"),
            Self::Nobody(address) => write!(f, "no godex listens on {address}"),
            Self::Another(address, store) => {
                write!(f, "the godex that listens on {address} has another session store: {store}")
            }
            Self::Other(address, config) => write!(
                f,
                "the godex that listens on {address} was started with another configuration: {config}; name it with --config"
            ),
            Self::Stranger(address) => write!(f, "what listens on {address} is not godex"),
            Self::Silent(address) => write!(f, "a godex is there ({address}), but does not answer"),
            Self::Sink(error) => write!(f, "the answer cannot be written: {error}"),
            Self::Failed(address, why) => write!(f, "the godex that listens on {address} cannot be asked: {why}"),
            Self::Memory => f.write_str(
                "no godex runs, and with `session.backend: memory` nothing outlives one: start it first, or use SQLite or \
                 Postgres",
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Unreachable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => error.source(),
            _ => None,
        }
    }
}

/// By which a store is known to be the same: a database by what only it has, a file by its path, memory by whose it is.
pub(super) fn store_id(config: &Config, store: &Store) -> String {
    match &config.session.backend {
        Backend::Postgres(_) => {
            let id = store.derive_key("which database this is");
            let id = id.iter().take(16).fold(0_u128, |id, byte| id << 8 | u128::from(*byte));
            format!("postgres {id:032x}")
        }
        backend @ Backend::Sqlite { .. } => backend.to_string(),
        Backend::Memory { .. } => memory_id(config),
    }
}

fn memory_id(config: &Config) -> String {
    format!("memory of {}", whole_path(config))
}

/// The file of a configuration, however it was named.
pub(super) fn whole_path(config: &Config) -> String {
    match &config.origin {
        Origin::File(path) => std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()).display().to_string(),
        Origin::Defaults => config.origin.to_string(),
    }
}

/// How long the head of an answer is waited for.
fn patience(method: &Method, path: &str) -> Duration {
    match (method, path) {
        (&Method::GET, "/admin/status") => STATUS,
        // What drains says so first.
        (&Method::POST, "/admin/drain")
        | (&Method::GET, "/" | "/admin/traces" | "/admin/series" | "/admin/providers") => LOOK,
        (&Method::GET, path) if path.starts_with("/page/") => LOOK,
        _ => ANSWER,
    }
}

/// Nobody can listen where the path is too long for a socket.
const fn is_nobody(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::InvalidInput)
}

impl AdminClient {
    /// The server that has the store of this configuration: what is said of keys and tenants is then about the same ones.
    ///
    /// # Errors
    /// None runs, it has another store, or it cannot be asked.
    pub async fn running(config: &Config) -> Result<Self, Unreachable> {
        let (client, found) = Self::found(config).await?;
        let ours = match &config.session.backend {
            Backend::Postgres(_) => {
                let store = open_store(config).await.map_err(|error| Unreachable::Store(Box::new(error.into())))?;
                let ours = store_id(config, &store);
                store.close().await;
                ours
            }
            Backend::Sqlite { .. } => config.session.backend.to_string(),
            Backend::Memory { .. } => memory_id(config),
        };
        if found["store_id"] != ours {
            let theirs = found["store"].as_str().unwrap_or_default();
            let config = found["config"].as_str().unwrap_or_default();
            return Err(Unreachable::Another(client.address(), format!("{theirs}, of {config}")));
        }
        Ok(client)
    }

    /// The server that was started with this configuration.
    ///
    /// # Errors
    /// None runs, it has another one, or it cannot be asked.
    pub async fn started_with(config: &Config) -> Result<Self, Unreachable> {
        let (client, found) = Self::found(config).await?;
        let theirs = found["config"].as_str().unwrap_or_default();
        if theirs != whole_path(config) {
            return Err(Unreachable::Other(client.address(), theirs.to_owned()));
        }
        Ok(client)
    }

    fn address(&self) -> String {
        self.config.admin.listen.to_string()
    }

    /// Whoever listens, and what it says of itself.
    async fn found(config: &Config) -> Result<(Self, Value), Unreachable> {
        let client = Self { config: config.clone(), store: None, traces: OnceLock::new() };
        let status = client.ask("GET", "/admin/status", None).await?;
        let found: Value = serde_json::from_slice(&status.body).unwrap_or_default();
        let status = status.status;
        if status == 200 && found["name"] == "godex" {
            return Ok((client, found));
        }
        // A godex knows this path, and may refuse whoever asks.
        match found["error"]["message"].as_str() {
            Some(why) if status >= 400 && status != 404 => Err(Unreachable::Failed(client.address(), why.to_owned())),
            _ => Err(Unreachable::Stranger(client.address())),
        }
    }

    /// The store of this configuration, which no server of this machine may have open.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn direct(config: &Config) -> Result<Self, Unreachable> {
        if matches!(config.session.backend, Backend::Memory { .. }) {
            return Err(Unreachable::Memory);
        }
        let store = open_store(config).await.map_err(|error| Unreachable::Store(Box::new(error.into())))?;
        Ok(Self { config: config.clone(), store: Some(store), traces: OnceLock::new() })
    }

    /// The trace file of this configuration, whatever became of its sessions. It is only looked at.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn of_trace_file(config: &Config, path: &Path) -> Result<Self, Unreachable> {
        let unreachable = |error: store::OpenError| Unreachable::Store(Box::new(error.into()));
        let store = Store::memory(MemoryLimits::default()).map_err(unreachable)?;
        let traces = TraceStore::look(path, &config.session.encryption.keys).map_err(unreachable)?;
        Ok(Self { config: config.clone(), store: Some(store), traces: OnceLock::from(Ok(Some(traces))) })
    }

    /// The store itself; None: a server has it.
    pub const fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// Asks, and has the whole answer.
    ///
    /// # Errors
    /// There is none.
    pub async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<AdminAnswer, Unreachable> {
        let mut whole = Vec::new();
        let mut keep = |chunk: &[u8]| {
            if whole.len() + chunk.len() > LARGEST {
                return Err(io::Error::other("the answer is too long"));
            }
            whole.extend_from_slice(chunk);
            Ok(())
        };
        let status = self.read(method, path, body, &mut keep).await?;
        Ok(AdminAnswer { status, body: whole })
    }

    /// Asks, and gives the answer on as it comes.
    ///
    /// # Errors
    /// There is none, or it could not be given on.
    pub async fn read(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        sink: &mut (dyn FnMut(&[u8]) -> io::Result<()> + Send),
    ) -> Result<u16, Unreachable> {
        let failed =
            |why: &dyn fmt::Display| Unreachable::Failed(self.config.admin.listen.to_string(), why.to_string());
        let (method, uri) = (Method::from_bytes(method.as_bytes()), path.parse::<Uri>());
        let (Ok(method), Ok(uri)) = (method, uri) else { return Err(failed(&"the path is none")) };
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let Some(store) = &self.store else {
            let stream = self.connect().await?;
            return self.over(stream, method, uri, body, sink).await;
        };
        self.look_at_traces(&uri);
        let place = Place { store, config: &self.config, desk: None, traces: &self.traces };
        let answer = routes::answer(place, &method, &uri, body).await;
        let (head, mut body) = match answer {
            Ok(response) => response.into_parts(),
            Err(error) => error.response().map(crate::body::Body::full).into_parts(),
        };
        while let Some(Ok(frame)) = body.frame().await {
            if let Some(data) = frame.data_ref() {
                sink(data).map_err(Unreachable::Sink)?;
            }
        }
        Ok(head.status.as_u16())
    }

    /// Opens the traces for whoever only looks at them: a file that is damaged stays as it is.
    fn look_at_traces(&self, uri: &Uri) {
        let looks = uri.path().starts_with("/admin/traces") || uri.path() == "/admin/series";
        if let TracePlace::File(path) = &self.config.trace.place
            && looks
            && self.config.trace.enabled
        {
            let look = || TraceStore::look(path, &self.config.session.encryption.keys);
            self.traces.get_or_init(|| look().map(Some).map_err(|error| error.to_string()));
        }
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, Unreachable> {
        let listen = &self.config.admin.listen;
        let connecting = async {
            let stream: Box<dyn Stream> = match listen {
                AdminListen::Tcp(address) => Box::new(TcpStream::connect(address).await?),
                #[cfg(unix)]
                AdminListen::Unix(path) => Box::new(tokio::net::UnixStream::connect(path).await?),
                #[cfg(not(unix))]
                AdminListen::Unix(_) => return Err(io::ErrorKind::NotFound.into()),
                AdminListen::Off => return Err(io::ErrorKind::NotFound.into()),
            };
            Ok::<_, io::Error>(stream)
        };
        if *listen == AdminListen::Off {
            return Err(Unreachable::Off);
        }
        match timeout(CONNECT, connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) if is_nobody(error.kind()) => Err(Unreachable::Nobody(listen.to_string())),
            Ok(Err(error)) => Err(Unreachable::Failed(listen.to_string(), error.to_string())),
            Err(_) => Err(Unreachable::Silent(listen.to_string())),
        }
    }

    async fn over(
        &self,
        stream: Box<dyn Stream>,
        method: Method,
        uri: Uri,
        body: Bytes,
        sink: &mut (dyn FnMut(&[u8]) -> io::Result<()> + Send),
    ) -> Result<u16, Unreachable> {
        let failed = |why: String| Unreachable::Failed(self.address(), why);
        let mut headers = HeaderMap::new();
        if !body.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let answer = self.exchange(stream, method, uri, headers, body).await?;
        let (head, mut body) = answer.into_parts();
        while let Some(frame) = body.frame().await {
            if let Some(data) = frame.map_err(|error| failed(error.to_string()))?.data_ref() {
                sink(data).map_err(Unreachable::Sink)?;
            }
        }
        Ok(head.status.as_u16())
    }

    /// Asks a server, for somebody else who reads the answer as it comes.
    pub(super) async fn forward(
        &self,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Answering>, Unreachable> {
        let stream = self.connect().await?;
        self.exchange(stream, method, uri, headers, body).await
    }

    /// Sends a request and has the head of the answer.
    async fn exchange(
        &self,
        stream: Box<dyn Stream>,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Answering>, Unreachable> {
        let failed = |why: String| Unreachable::Failed(self.address(), why);
        let why = |error: hyper::Error| failed(error.to_string());
        let patience = patience(&method, uri.path());
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(why)?;
        let host = match &self.config.admin.listen {
            AdminListen::Tcp(address) => address.as_str(),
            AdminListen::Unix(_) | AdminListen::Off => "localhost",
        };
        let mut request = Request::builder().method(method).uri(uri).header(header::HOST, host);
        if let Some(token) = &self.config.admin.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.expose()));
        }
        let mut request = request.body(Full::new(body)).map_err(|error| failed(error.to_string()))?;
        request.headers_mut().extend(headers);
        let mut connection: Connection = Box::pin(async { drop(connection.await) });
        let mut sending = Box::pin(timeout(patience, sender.send_request(request)));
        let (answer, connection) = tokio::select! {
            biased;
            answer = &mut sending => (answer, Some(connection)),
            // What was sent may still be on its way through the channel between the two.
            () = &mut connection => (sending.await, None),
        };
        let answer = answer.map_err(|_| Unreachable::Silent(self.address()))?.map_err(why)?;
        Ok(answer.map(|body| Answering { body, connection }))
    }
}

/// Ready when it is over.
type Connection = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The body of an answer. Who reads it drives the connection that it comes over; who drops it closes that.
pub(super) struct Answering {
    body: Incoming,
    connection: Option<Connection>,
}

impl http_body::Body for Answering {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, hyper::Error>>> {
        if self.connection.as_mut().is_some_and(|connection| connection.as_mut().poll(cx).is_ready()) {
            self.connection = None;
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }
}
