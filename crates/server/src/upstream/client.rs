//! The HTTP client of one provider: one exchange at a time, over its pool, with its keys in turn.

use std::io::Read as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bridge::{AnswerDialect, AnswerWire, Failure, FailureClass, Look, Opening};
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::Full;
use providers::{Auth, HeaderSource, HeaderText, TokenCommand, Wire};
use tokio::time::Instant;

use super::address::{self, Addresses, Fault};
use super::connect::Connector;
use super::keys::{Keys, Tried};
use super::link::LinkError;
use super::pool::{HttpBody, Pool, SendError, Sending};
use super::refused::{Refused, Remedy};
use super::shards::Shards;
use super::token::{Token, Tokens};
use super::{Accepted, AnswerBody, Deadlines, Format, Outgoing, Redactor, SETTLE, failure};
use crate::account::Deadline;
use crate::config::{ProviderConfig, Secret};
use crate::span::{Propagated, TRACEPARENT, TRACESTATE};
use crate::start::StartError;

/// How much of an error's body is read: some say the whole request again.
const ERROR_BODY: usize = 2 << 20;

/// How long the first content of an accepted answer is waited for before the client is told that it was accepted: an
/// error may come in its place, and until then another target can take over. Content is passed on when it comes. For a
/// client that is not told there is no such limit.
const PEEK: Duration = Duration::from_millis(500);

/// A provider's endpoints, the headers that go to it, and the connections.
#[derive(Debug)]
pub(crate) struct HttpClient {
    transport: Transport,
    addresses: Addresses,
    headers: HeaderMap,
    /// Those that say the cache key of a request.
    of_cache_key: Vec<HeaderName>,
    keys: Arc<Keys>,
    /// Instead of keys.
    tokens: Option<Tokens>,
    redactor: Redactor,
}

/// What a request shows.
#[derive(Debug, Clone, Copy)]
enum Credential<'a> {
    Key(usize),
    Token(&'a Token),
}

#[derive(Debug)]
enum Transport {
    Http1(Arc<Pool>),
    Http2(Box<Shards>),
}

/// The header of a Messages API for what is tried out; what the configuration sets itself stays as it is.
const BETAS: &str = "anthropic-beta";

impl HttpClient {
    pub(crate) fn new(config: &ProviderConfig) -> Result<Self, StartError> {
        Self::sharing(config, None)
    }

    /// With the keys of another client of the same provider: where one is refused, it rests everywhere.
    pub(super) fn sharing(config: &ProviderConfig, keys: Option<Arc<Keys>>) -> Result<Self, StartError> {
        Self::build(config, keys)
            .map_err(|error| StartError::Provider { name: config.name.clone(), message: error.to_string() })
    }

    fn build(config: &ProviderConfig, shared: Option<Arc<Keys>>) -> Result<Self, Fault> {
        let url = address::of_any_model(config)?;
        let authority = url.authority().ok_or("base_url has no host")?.as_str().to_owned();
        let mut headers = headers(config)?;
        let proxy = config.transport.proxy.as_ref().filter(|_| url.scheme_str() == Some("http"));
        if let Some(authorization) = proxy.and_then(|proxy| proxy.authorization.as_ref()) {
            headers.insert(header::PROXY_AUTHORIZATION, sensitive(authorization.expose())?);
        }
        // A proxy that forwards wants the whole address, and so does HTTP/2.
        let whole = proxy.is_some() || config.transport.http2;
        let addresses = Addresses::new(config, whole)?;
        let connector = Connector::new(url, config.timeouts.connect, &config.transport)?;
        let transport = if config.transport.http2 {
            Transport::Http2(Box::new(Shards::new(connector)))
        } else {
            headers.insert(header::HOST, HeaderValue::try_from(authority)?);
            Transport::Http1(Pool::new(connector))
        };
        let proxy_secret = config.transport.proxy.iter().filter_map(|proxy| proxy.authorization.as_ref());
        let in_headers = config.headers.iter().map(|(_, value)| value);
        let in_requests = config.provider.secrets();
        let known = config.api_keys.iter().chain(in_headers).chain(proxy_secret).cloned();
        let known: Vec<Secret> = known.chain(in_requests.into_iter().map(Secret::new)).collect();
        let redactor = Redactor::new(known.iter().map(Secret::expose));
        let tokens = token_command(config).map(|command| Tokens::new(command.clone(), known));
        let keys = match shared {
            Some(keys) => keys,
            None => Arc::new(Keys::new(keys(config)?)),
        };
        let of_cache_key = of_cache_key(config)?;
        Ok(Self { transport, addresses, headers, of_cache_key, keys, tokens, redactor })
    }

    /// Sends a request. A key that is refused rests, and the next one is tried at once. The dialect says how errors
    /// read.
    pub(super) async fn send(
        &self,
        outgoing: Outgoing,
        dialect: &Arc<AnswerDialect>,
        deadlines: Deadlines,
        alone: bool,
    ) -> Result<Accepted, Refused> {
        if let Some(tokens) = &self.tokens {
            return Box::pin(self.send_by_token(tokens, &outgoing, dialect, deadlines, alone)).await;
        }
        let mut tried = Tried::default();
        let mut last = None;
        while let Some(key) = self.keys.take(&mut tried, outgoing.affinity) {
            match self.send_with(Credential::Key(key), &outgoing, dialect, deadlines, alone).await {
                Err(refused) if self.keys.refused(key, &refused.failure) => {
                    tracing::info!(key, class = refused.failure.class.code(), "a key was refused and rests");
                    last = Some(refused);
                }
                done => return done,
            }
        }
        Err(last.unwrap_or_else(|| Failure::new(FailureClass::Auth, "There is no key.").into()))
    }

    /// A token that is refused may have ended before its time: the request is sent once more with another.
    async fn send_by_token(
        &self,
        tokens: &Tokens,
        outgoing: &Outgoing,
        dialect: &Arc<AnswerDialect>,
        deadlines: Deadlines,
        alone: bool,
    ) -> Result<Accepted, Refused> {
        let current = tokio::time::timeout_at(deadlines.until, tokens.current()).await;
        let token = current.map_err(|_| Refused::late(Deadline::Total))??;
        let refused = match self.send_with(Credential::Token(&token), outgoing, dialect, deadlines, alone).await {
            Err(refused) if refused.failure.class == FailureClass::Auth && !refused.failure.basis.is_hearsay() => {
                refused
            }
            done => return done,
        };
        match tokio::time::timeout_at(deadlines.until, tokens.instead_of(&token)).await {
            Ok(Some(other)) => self.send_with(Credential::Token(&other), outgoing, dialect, deadlines, alone).await,
            Ok(None) | Err(_) => Err(refused),
        }
    }

    async fn send_with(
        &self,
        credential: Credential<'_>,
        outgoing: &Outgoing,
        dialect: &Arc<AnswerDialect>,
        deadlines: Deadlines,
        alone: bool,
    ) -> Result<Accepted, Refused> {
        let open = match credential {
            Credential::Key(key) => self.keys.enter(key),
            Credential::Token(_) => None,
        };
        let (wire, body) = (outgoing.wire, outgoing.body.clone());
        let uri = self.addresses.of(wire, &outgoing.model)?;
        let mut request = Request::new(Full::new(body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers.clone();
        self.show(credential, request.headers_mut());
        if let Some(betas) = outgoing.betas.as_ref().filter(|_| !self.headers.contains_key(BETAS)) {
            request.headers_mut().insert(BETAS, betas.clone());
        }
        // A key that no header can carry goes without: it only helps to find what is cached.
        if let Some(Ok(value)) = outgoing.cache_key.as_deref().filter(|key| !key.is_empty()).map(sensitive) {
            let named = self.of_cache_key.iter().map(|name| (name.clone(), value.clone()));
            request.headers_mut().extend(named);
        }
        if let Some(propagated) = &outgoing.propagated {
            self.propagate(propagated, request.headers_mut());
        }
        // With another key it begins anew.
        outgoing.account.pace().asks();
        let mut sending = Sending::new(Some(outgoing.account.clone()));
        let began = sending.connected;
        let first_byte = began + deadlines.first_byte;
        let (until, late) = if first_byte <= deadlines.until {
            (first_byte, Deadline::FirstByte)
        } else {
            (deadlines.until, Deadline::Total)
        };
        let response = tokio::time::timeout_at(until, self.exchange(request, &mut sending))
            .await
            .map_err(|_| Refused::late(late))?
            .map_err(|error| failure::unsent(&error))?;
        if !response.status().is_success() {
            // Whoever refuses works on nothing, however long it takes to say why.
            outgoing.account.pace().asks();
            return Err(self.refused(response, &body, dialect, deadlines).await);
        }
        let format = format(response.headers()).map_err(|message| Failure::new(FailureClass::Protocol, message))?;
        let mut answer = response.into_body();
        let opening = || Opening::new(answer_wire(wire), Arc::clone(dialect)).alone(alone);
        let first = self.look_ahead(&mut answer, opening, outgoing, deadlines).await?;
        let body = AnswerBody::Http { first, body: Box::new(answer), watching: None, open: open.into_iter().collect() };
        let connecting = sending.connected - began;
        Ok(Accepted { format, body, redactor: self.redactor(), connecting, resent: sending.resent })
    }

    fn show(&self, credential: Credential<'_>, headers: &mut HeaderMap) {
        match credential {
            Credential::Key(key) => self.keys.apply(key, headers),
            Credential::Token(token) => drop(headers.insert(header::AUTHORIZATION, token.header.clone())),
        }
    }

    /// The trace that a request belongs to, unless the configuration sets these headers itself.
    fn propagate(&self, Propagated { parent, state }: &Propagated, headers: &mut HeaderMap) {
        if self.headers.contains_key(TRACEPARENT) {
            return;
        }
        headers.insert(TRACEPARENT, parent.clone());
        if let Some(state) = state {
            headers.insert(TRACESTATE, state.clone());
        }
    }

    /// Sends a request and waits for the head of its answer. Notes when there was a connection.
    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        sending: &mut Sending,
    ) -> Result<Response<HttpBody>, SendError> {
        match &self.transport {
            Transport::Http1(pool) => pool.send(request, sending).await,
            Transport::Http2(shards) => shards.send(request, sending).await,
        }
    }

    /// What comes of an accepted answer until its first content, if that comes soon or the request is patient: an error
    /// there is as good as a refusal. What was read is given back, to be read again.
    async fn look_ahead(
        &self,
        body: &mut HttpBody,
        opening: impl Fn() -> Opening,
        outgoing: &Outgoing,
        deadlines: Deadlines,
    ) -> Result<Option<Bytes>, Refused> {
        let (mut trial, mut read) = (opening(), Read::default());
        let patience = outgoing.patient.then_some(deadlines);
        let refused = match look(body, &mut trial, &mut read, &opening, patience).await {
            Ok(Look::Failed(failure)) => {
                let mut failure = failure.weighed(&outgoing.body, read.as_slice());
                self.redactor().failure(&mut failure);
                failure.into()
            }
            Ok(_) => return Ok(read.bytes()),
            Err(refused) => refused,
        };
        let said = Some(read.as_slice()).filter(|said| !said.is_empty());
        Err(Refused { body: said.map(Box::from), usage: trial.usage(), ..refused })
    }

    /// Any request to this provider, and its answer as it is, refusals included.
    pub(crate) async fn raw(
        &self,
        method: Method,
        endpoint: &str,
        body: Vec<u8>,
    ) -> Result<(Response<AnswerBody>, Redactor), Failure> {
        self.raw_with(method, endpoint, body, |_| {}).await
    }

    /// The same for the probe, which has its say about the headers.
    pub(crate) async fn raw_with(
        &self,
        method: Method,
        endpoint: &str,
        body: Vec<u8>,
        headers: impl FnOnce(&mut HeaderMap),
    ) -> Result<(Response<AnswerBody>, Redactor), Failure> {
        let uri = self.addresses.beside(endpoint, &body)?;
        self.raw_at(method, &uri, body, headers).await
    }

    /// The same to where the spec says that a model of this provider is asked.
    pub(crate) async fn raw_own(
        &self,
        model: &str,
        body: Vec<u8>,
        headers: impl FnOnce(&mut HeaderMap),
    ) -> Result<(Response<AnswerBody>, Redactor), Failure> {
        let uri = self.addresses.of(Wire::Messages, model)?.to_string();
        self.raw_at(Method::POST, &uri, body, headers).await
    }

    async fn raw_at(
        &self,
        method: Method,
        uri: &str,
        body: Vec<u8>,
        headers: impl FnOnce(&mut HeaderMap),
    ) -> Result<(Response<AnswerBody>, Redactor), Failure> {
        let answer = self.unread(method, uri, body, headers).await?;
        let answer =
            answer.map(|body| AnswerBody::Http { first: None, body: Box::new(body), watching: None, open: Vec::new() });
        Ok((answer, self.redactor()))
    }

    /// What is at this path after the base URL; `/../` goes up from there.
    pub(super) async fn get(&self, path: &str) -> Result<Response<HttpBody>, Failure> {
        self.unread(Method::GET, &self.addresses.at(path), Vec::new(), |_| {}).await
    }

    /// Sends a request with the first key that is not resting.
    async fn unread(
        &self,
        method: Method,
        uri: &str,
        body: Vec<u8>,
        headers: impl FnOnce(&mut HeaderMap),
    ) -> Result<Response<HttpBody>, Failure> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = method;
        *request.uri_mut() = uri.parse().map_err(|error: http::uri::InvalidUri| {
            Failure::new(FailureClass::Protocol, format!("The address cannot be used: {error}."))
        })?;
        *request.headers_mut() = self.headers.clone();
        if let Some(tokens) = &self.tokens {
            self.show(Credential::Token(&*tokens.current().await?), request.headers_mut());
        } else if let Some(key) = self.keys.take(&mut Tried::default(), None) {
            self.show(Credential::Key(key), request.headers_mut());
        }
        headers(request.headers_mut());
        let mut sending = Sending::new(None);
        let answer = self.exchange(request, &mut sending).await;
        answer.map_err(|error| {
            let mut failure = failure::unsent(&error).failure;
            self.redactor().failure(&mut failure);
            failure
        })
    }

    /// A status that is no success: what the body says, without our keys in it.
    async fn refused(
        &self,
        response: Response<HttpBody>,
        request: &[u8],
        dialect: &AnswerDialect,
        deadlines: Deadlines,
    ) -> Refused {
        let status = response.status().as_u16();
        let retry_after = failure::retry_after(response.headers());
        let is_packed = response.headers().get(header::CONTENT_ENCODING).is_some_and(|coding| coding == "gzip");
        let mut response = response.into_body();
        let mut body = Vec::new();
        let read = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                body.extend_from_slice(&chunk[..chunk.len().min(ERROR_BODY - body.len())]);
                if body.len() >= ERROR_BODY {
                    break;
                }
            }
        };
        // What arrived in time is enough.
        let _ = tokio::time::timeout(deadlines.idle.min(Duration::from_secs(10)), read).await;
        if is_packed {
            body = unpacked(&body);
        }
        let mut failure = Failure::from_answer_in(dialect, status, &body).weighed(request, &body);
        failure.retry_after = retry_after.or(failure.retry_after);
        self.redactor().failure(&mut failure);
        Refused { status: Some(status), body: Some(body.into()), ..failure.into() }
    }

    pub(super) fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.keys)
    }

    pub(super) fn redactor(&self) -> Redactor {
        self.tokens.as_ref().and_then(Tokens::redactor).unwrap_or_else(|| self.redactor.clone())
    }

    /// Closes idle connections that nobody will want, or all that have buffers of their own.
    pub(super) fn tidy(&self, all: bool) {
        match &self.transport {
            Transport::Http1(pool) if all => pool.shed(),
            Transport::Http1(pool) => pool.tidy(),
            Transport::Http2(shards) => shards.tidy(),
        }
    }
}

/// Reads until it is known what this is. `patience`: nobody is told before.
async fn look(
    body: &mut HttpBody,
    trial: &mut Opening,
    read: &mut Read,
    opening: impl Fn() -> Opening,
    patience: Option<Deadlines>,
) -> Result<Look, Refused> {
    let deadline = Instant::now() + PEEK;
    loop {
        let chunk = match (body.chunk().now_or_never(), patience) {
            (Some(chunk), _) => chunk,
            (None, Some(deadlines)) => match wait(body, read.as_slice(), &opening, deadlines).await? {
                ControlFlow::Continue(chunk) => chunk,
                ControlFlow::Break(look) => return Ok(look),
            },
            (None, None) => match tokio::time::timeout_at(deadline, body.chunk()).await {
                Ok(chunk) => chunk,
                Err(_) => return Ok(Look::Answer),
            },
        };
        let Some(bytes) = chunk.map_err(|error| Refused::new(failure::cut(&error), Remedy::Again))? else {
            return Ok(trial.end());
        };
        let look = trial.push(&bytes);
        read.push(bytes);
        if look != Look::More {
            return Ok(look);
        }
    }
}

/// Waits for more of an answer that nobody has been told of, as long as it may be silent; or sees that it has ended
/// without a word, and that only its connection is still open.
async fn wait(
    body: &mut HttpBody,
    read: &[u8],
    opening: impl Fn() -> Opening,
    deadlines: Deadlines,
) -> Result<ControlFlow<Look, Result<Option<Bytes>, LinkError>>, Refused> {
    let now = Instant::now();
    let silent = now + if read.is_empty() { deadlines.first_byte } else { deadlines.idle };
    let (until, late) =
        if silent < deadlines.until { (silent, Deadline::Idle) } else { (deadlines.until, Deadline::Total) };
    if let Ok(chunk) = tokio::time::timeout_at(until.min(now + SETTLE), body.chunk()).await {
        return Ok(ControlFlow::Continue(chunk));
    }
    if let Some(look) = settled(opening(), read) {
        return Ok(ControlFlow::Break(look));
    }
    match tokio::time::timeout_at(until, body.chunk()).await {
        Ok(chunk) => Ok(ControlFlow::Continue(chunk)),
        Err(_) => Err(Refused::late(late)),
    }
}

/// What an answer is of which no more than this comes; none if it is not over.
fn settled(mut opening: Opening, read: &[u8]) -> Option<Look> {
    let look = match opening.push(read) {
        Look::More => opening.end(),
        look => look,
    };
    let is_unfinished = |failure: &Failure| matches!(failure.class, FailureClass::Truncated | FailureClass::Protocol);
    (!matches!(&look, Look::Failed(failure) if is_unfinished(failure))).then_some(look)
}

/// What was read ahead; nearly always one piece, which is not copied.
#[derive(Debug, Default)]
enum Read {
    #[default]
    Nothing,
    One(Bytes),
    More(BytesMut),
}

impl Read {
    fn push(&mut self, bytes: Bytes) {
        *self = match std::mem::take(self) {
            Self::Nothing => Self::One(bytes),
            Self::One(first) => {
                let mut joined = BytesMut::from(first);
                joined.extend_from_slice(&bytes);
                Self::More(joined)
            }
            Self::More(mut joined) => {
                joined.extend_from_slice(&bytes);
                Self::More(joined)
            }
        };
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::One(bytes) => bytes,
            Self::More(joined) => joined,
        }
    }

    fn bytes(self) -> Option<Bytes> {
        match self {
            Self::Nothing => None,
            Self::One(bytes) => Some(bytes),
            Self::More(joined) => Some(joined.freeze()),
        }
    }
}

/// An error's body, which some front ends pack whatever they were asked: as much of it as can be read.
fn unpacked(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let _ = flate2::read::MultiGzDecoder::new(body).take(ERROR_BODY as u64).read_to_end(&mut out);
    out
}

/// The API in which the provider answers.
const fn answer_wire(wire: Wire) -> AnswerWire {
    match wire {
        Wire::Chat | Wire::Demo => AnswerWire::Chat,
        Wire::Responses => AnswerWire::RESPONSES,
        Wire::Messages => AnswerWire::Messages,
    }
}

/// What an accepted answer is, or why it is none.
fn format(headers: &HeaderMap) -> Result<Format, &'static str> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_ascii_lowercase);
    if text(header::CONTENT_ENCODING).is_some_and(|coding| !matches!(coding.trim(), "" | "identity")) {
        return Err("The provider compressed its answer although it was asked not to.");
    }
    match text(header::CONTENT_TYPE) {
        Some(name) if name.contains("event-stream") => Ok(Format::Sse),
        Some(name) if name.contains("json") => Ok(Format::Json),
        Some(name) if name.contains("html") => {
            Err("The provider answered with an HTML page instead of a chat completion.")
        }
        _ => Ok(Format::Unknown),
    }
}

/// What goes with every request; a key is added to it.
fn headers(config: &ProviderConfig) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("godex/", env!("CARGO_PKG_VERSION"))));
    // A compressed stream comes in lumps.
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, text) in &config.provider.headers {
        if let HeaderText::Fixed(text) = text {
            headers.insert(HeaderName::try_from(name.as_str())?, sensitive(text)?);
        }
    }
    for (name, value) in &config.headers {
        headers.insert(HeaderName::try_from(name.as_str())?, sensitive(value.expose())?);
    }
    Ok(headers)
}

/// The headers that say the cache key of a request. One that the configuration sets itself stays as it is.
fn of_cache_key(config: &ProviderConfig) -> Result<Vec<HeaderName>, Fault> {
    let named = config.provider.headers.iter().filter(|(_, text)| *text == HeaderText::From(HeaderSource::CacheKey));
    let names = named.map(|(name, _)| Ok(HeaderName::try_from(name.as_str())?)).collect::<Result<Vec<_>, Fault>>()?;
    let is_set = |name: &HeaderName| config.headers.iter().any(|(set, _)| *set == name.as_str());
    Ok(names.into_iter().filter(|name| !is_set(name)).collect())
}

/// The header that carries each key. One that the configuration sets itself stays as it is.
fn keys(config: &ProviderConfig) -> Result<Vec<(HeaderName, HeaderValue)>, Fault> {
    let (name, prefix) = match config.provider.auth {
        Auth::Bearer => (header::AUTHORIZATION, "Bearer "),
        Auth::ApiKeyHeader => (HeaderName::from_static("api-key"), ""),
        Auth::XApiKey => (HeaderName::from_static("x-api-key"), ""),
        Auth::None => return Ok(Vec::new()),
    };
    if config.headers.iter().any(|(set, _)| *set == name.as_str()) {
        return Ok(Vec::new());
    }
    let header = |key: &Secret| {
        let value = sensitive(&format!("{prefix}{}", key.expose()))
            .map_err(|_| "the API key has characters that no header may carry")?;
        Ok((name.clone(), value))
    };
    config.api_keys.iter().map(header).collect()
}

/// The command that prints tokens, where there is no key and the configuration sets no such header itself.
fn token_command(config: &ProviderConfig) -> Option<&TokenCommand> {
    let sets_it = config.headers.iter().any(|(set, _)| *set == header::AUTHORIZATION.as_str());
    config.provider.token.as_ref().filter(|_| config.api_keys.is_empty() && !sets_it)
}

pub(super) fn sensitive(text: &str) -> Result<HeaderValue, header::InvalidHeaderValue> {
    let mut value = HeaderValue::try_from(text)?;
    value.set_sensitive(true);
    Ok(value)
}
