//! `GET /v1/responses` as a WebSocket: many responses over one connection, as OpenAI's WebSocket mode has it.
//!
//! ```text
//!   channel ──▶ request ──▶ lanes ──▶ running ──▶ Turn
//!   (frames)     (JSON)    (order)   (one turn)
//!      ▲                      │
//!      └──── events ◀─────────┴──▶ memory (responses that are not stored)
//! ```
//!
//! One task per connection drives everything: it reads, pulls the turns of all lanes, and writes. Turns are pulled only
//! when what they said before has left, so a slow client slows its upstreams; a client that is gone drops them. Nothing
//! of one request is seen by another: each has its own account, ids and caller.

mod channel;
mod gate;
mod handshake;
mod lanes;
mod memory;
mod request;
mod running;

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::access::Shown;
use crate::account::Account;
use crate::app::App;
use crate::body::{Body, Share};
use crate::caller::Caller;
use crate::client::Client;
use crate::clock;
use crate::config::WebsocketConfig;
use crate::delivery::{self, Slot};
use crate::error::{ApiError, Code};
use crate::guard;
use crate::metrics::StreamKind;
use crate::request::RequestContext;
use crate::stop::Phase;
use channel::{Channel, Over, Received};
use lanes::{Lanes, Origin};
use memory::Memory;
use request::{Create, Said, StreamId, Unserved};
use running::{Running, Step};

/// Answers the request that asks for a WebSocket. Whoever drives the connection starts it.
pub(crate) fn open(context: &RequestContext, mut request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
    if context.app.runtime.stop.phase() >= Phase::Draining {
        return Err(ApiError::shutting_down());
    }
    let mut response = handshake::accept(&request)?;
    // Of a connection's answers only this one has headers.
    context.caller.profile().mark(response.headers_mut());
    let headers = own_headers(request.headers());
    let upgrade = hyper::upgrade::on(&mut request);
    let (caller, address) = (context.caller.clone(), context.account.address());
    response.extensions_mut().insert(Opening { app: Arc::clone(&context.app), headers, caller, address, upgrade });
    Ok(response)
}

/// A WebSocket that begins as soon as its handshake is answered.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    app: Arc<App>,
    headers: HeaderMap,
    caller: Caller,
    /// Of the client; None: on this machine.
    address: Option<IpAddr>,
    upgrade: OnUpgrade,
}

impl Opening {
    /// What an answer opens, if it opens anything.
    pub(crate) fn of(response: &mut Response<Body>) -> Option<Self> {
        let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if switches { response.extensions_mut().remove() } else { None }
    }

    /// Starts it. It has its connection's place, and is a request under way, until it ends.
    pub(crate) fn start(self, place: Slot, running: delivery::Running) {
        let tasks = self.app.runtime.tasks.clone();
        tasks.spawn(async move {
            let open = self.app.runtime.observers.metrics.open_stream(StreamKind::WebSocket);
            let held = (place, running, open);
            if let Ok(upgraded) = self.upgrade.await {
                let stream = TokioIo::new(upgraded);
                let connection = Connection::new(self.app, self.headers, self.caller, self.address);
                Box::pin(connection.run(stream)).await;
            }
            drop(held);
        });
    }
}

/// Headers in memory of their own: those of a request hold the whole buffer that it was read into.
fn own_headers(headers: &HeaderMap) -> HeaderMap {
    let own = |value: &HeaderValue| {
        let mut own = HeaderValue::from_bytes(value.as_bytes()).ok()?;
        // There may be a key in any of them.
        own.set_sensitive(true);
        Some(own)
    };
    let mut copy = HeaderMap::with_capacity(headers.keys_len());
    for (name, value) in headers {
        if let Some(value) = own(value) {
            copy.append(name.clone(), value);
        }
    }
    copy
}

/// One WebSocket, without its channel.
struct Connection {
    app: Arc<App>,
    /// Of the handshake: they say who asks, each time that something begins.
    headers: HeaderMap,
    shown: Shown,
    /// Who opened it.
    caller: Caller,
    address: Option<IpAddr>,
    lanes: Lanes,
    memory: Memory,
    config: WebsocketConfig,
    expires: Instant,
    /// How often something had to be forgotten when it was looked at last.
    forgotten: usize,
    ending: Option<Ending>,
}

/// Why no more is begun.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Draining,
    Expired,
    /// What it was opened with is no longer good.
    Unauthorized,
}

/// What there is to do.
enum Happened {
    Received(Received),
    Stepped(Origin, Step),
    Stopping,
    Time,
    /// Nothing runs, and the memory of large messages can be given back.
    Rested,
}

impl Connection {
    fn new(app: Arc<App>, headers: HeaderMap, caller: Caller, address: Option<IpAddr>) -> Self {
        let snapshot = app.snapshot();
        let (server, limit) = (&snapshot.config.server, snapshot.config.server.max_body_bytes);
        let memory = Memory::new(caller.tenant().clone(), limit, Arc::clone(&app.runtime.remembered));
        let (config, expires) = (server.websocket, Instant::now() + server.websocket.lifetime);
        let lanes = Lanes::new(limit.saturating_mul(2));
        let forgotten = app.runtime.presence.forgotten();
        let shown = Shown::default();
        Self { app, headers, shown, caller, address, lanes, memory, config, expires, forgotten, ending: None }
    }

    async fn run(mut self, stream: TokioIo<hyper::upgrade::Upgraded>) {
        let limit = self.app.snapshot().config.server.max_body_bytes;
        let mut channel = Channel::new(stream, Arc::clone(&self.app.runtime.budget), limit).await;
        let mut stopping = self.app.runtime.stop.subscribe();
        let mut timer = Box::pin(tokio::time::sleep_until(self.next_look()));
        stopping.mark_changed();
        let over = loop {
            if let Some(ending) = self.ending.filter(|_| self.lanes.is_idle()) {
                break self.last_words(ending);
            }
            let happened = match self.next(&mut channel, &mut stopping, timer.as_mut()).await {
                Ok(happened) => happened,
                Err(over) => break over,
            };
            if matches!(happened, Happened::Rested) {
                channel = channel.shrunk().await;
            } else if let Err(over) = self.handle(happened, &mut channel, timer.as_mut()) {
                break over;
            }
        };
        // Turns that nobody listens to any more end here, before the goodbye.
        drop(self);
        match over {
            Over::Gone => channel.end().await,
            Over::Closed(code, reason, error) => {
                if let Some(error) = error {
                    channel.say(error.message(None, None).into());
                }
                channel.close(code, reason).await;
            }
        }
    }

    /// When the client is looked at, or the connection is old.
    fn next_look(&self) -> Instant {
        let look = Instant::now() + self.config.ping;
        if self.ending.is_none() { look.min(self.expires) } else { look }
    }

    async fn next(
        &mut self,
        channel: &mut Channel,
        stopping: &mut watch::Receiver<Phase>,
        timer: Pin<&mut Sleep>,
    ) -> Result<Happened, Over> {
        tokio::select! {
            Ok(()) = stopping.changed() => Ok(Happened::Stopping),
            () = timer => Ok(Happened::Time),
            happened = poll_fn(|cx| self.poll(channel, cx)) => happened,
        }
    }

    /// Writes, reads, and pulls the lanes when all that they said has left.
    fn poll(&mut self, channel: &mut Channel, cx: &mut Context<'_>) -> Poll<Result<Happened, Over>> {
        let sent = channel.poll_sent(cx)?;
        if let Poll::Ready(received) = channel.poll_received(cx) {
            return Poll::Ready(Ok(Happened::Received(received)));
        }
        if sent.is_pending() {
            return Poll::Pending;
        }
        if self.lanes.is_idle() && channel.is_bloated() {
            return Poll::Ready(Ok(Happened::Rested));
        }
        let (origin, step) = std::task::ready!(self.lanes.poll_step(cx));
        Poll::Ready(Ok(Happened::Stepped(origin, step)))
    }

    fn handle(&mut self, happened: Happened, channel: &mut Channel, mut timer: Pin<&mut Sleep>) -> Result<(), Over> {
        match happened {
            Happened::Received(Received::Over(over)) => return Err(over),
            Happened::Received(Received::Text(text, share)) => self.received(channel, &text, share),
            Happened::Stepped(origin, step) => {
                self.stepped(channel, origin, step);
                self.dispatch(channel);
            }
            // What runs is polled once more after this, and sees for itself whether it must end.
            Happened::Stopping if self.app.runtime.stop.phase() < Phase::Draining => self.forget_erased(),
            Happened::Stopping => self.end(channel, Ending::Draining),
            Happened::Rested => {}
            Happened::Time => {
                if Instant::now() >= self.expires {
                    self.end(channel, Ending::Expired);
                }
                channel.look(self.config.ping)?;
                timer.as_mut().reset(self.next_look());
            }
        }
        Ok(())
    }

    /// A message has come. What it is paid with is given back when it was read.
    fn received(&mut self, channel: &mut Channel, text: &Bytes, share: Option<Share>) {
        let said = Said::read(text, &self.app.runtime.bodies(&self.caller));
        drop(share);
        match said {
            Ok(Said::Create(create)) => self.create(channel, create),
            Ok(Said::Steer { previous_response_id, input }) => {
                channel.say(request::steer_failed(&previous_response_id, &input).into());
            }
            Err(Unserved { error, stream_id }) => self.refuse(channel, &error, text.len(), stream_id.as_ref()),
        }
    }

    /// A message that is not dispatched is a request as well.
    fn refuse(&self, channel: &mut Channel, error: &ApiError, bytes: usize, stream_id: Option<&StreamId>) {
        let account = running::account(&self.app, &self.caller, self.address, bytes, &mut clock::ids());
        account.answered(error.status.as_u16(), Some(error.code.domain()));
        account.explained(&error.message);
        self.say_error(channel, error, &account, stream_id);
    }

    /// The one event of a request that has no response.
    fn say_error(&self, channel: &mut Channel, error: &ApiError, account: &Account, lane: Option<&StreamId>) {
        let error = Client::of(&self.headers).shown(error.clone());
        let message = error.message(Some(account.request_id()), lane.map(|id| &**id));
        account.pace().told(1);
        account.delivered(message.len() as u64, true);
        channel.say(message.into());
    }

    fn create(&mut self, channel: &mut Channel, create: Create) {
        let (stream_id, bytes) = (create.stream_id.clone(), create.received);
        let refused = match (self.ending, self.admitted()) {
            (Some(ending), _) => Some(ending.error(self.config)),
            (None, Err(error)) => Some(error),
            (None, Ok(())) => self.lanes.enqueue(create).err(),
        };
        match refused {
            Some(error) => self.refuse(channel, &error, bytes, stream_id.as_ref()),
            None => self.dispatch(channel),
        }
    }

    /// Whether the page that opened the connection, if it was one, may still ask: another configuration may be in force.
    fn admitted(&self) -> Result<(), ApiError> {
        let mut request = Request::new(());
        *request.headers_mut() = self.headers.clone();
        guard::admit(&self.app.snapshot().config.server, &request, false).map(drop)
    }

    /// What was erased is not remembered here.
    fn forget_erased(&mut self) {
        let presence = &self.app.runtime.presence;
        let forgotten = presence.forgotten();
        if presence.is_forgotten_since(self.memory.tenant(), self.forgotten) {
            self.memory.clear();
        }
        self.forgotten = forgotten;
    }

    /// Begins what may begin, for whoever the credential of the handshake stands for at this moment.
    fn dispatch(&mut self, channel: &mut Channel) {
        self.forget_erased();
        while let Some(create) = self.lanes.next() {
            let caller = match self.app.runtime.access.admit_at_once(&self.headers, &self.shown) {
                Ok(grant) => Caller::new(grant, &self.headers),
                Err(error) => {
                    self.refuse(channel, &error, create.received, create.stream_id.as_ref());
                    if error.status == StatusCode::UNAUTHORIZED {
                        self.end(channel, Ending::Unauthorized);
                    }
                    continue;
                }
            };
            self.memory.belongs_to(caller.tenant());
            let before = create.previous_response_id.as_deref().and_then(|id| self.memory.find(id));
            self.lanes.run(Running::new(&self.app, (caller, self.address), create, before));
        }
    }

    fn stepped(&mut self, channel: &mut Channel, origin: Origin, step: Step) {
        let Origin { stream_id, previous_response_id, before } = origin;
        let failed = match step {
            Step::Events(events, ended) => {
                for event in events {
                    channel.say(event);
                }
                let Some(ended) = ended else { return };
                if let Some((id, unstored)) = ended.unstored {
                    self.memory.keep(id.to_string(), stream_id.clone(), before, &unstored);
                }
                ended.failed
            }
            Step::Refused(error, account) => {
                self.say_error(channel, &error, &account, stream_id.as_ref());
                error.status != StatusCode::TOO_MANY_REQUESTS
            }
            Step::Over => return,
        };
        if let Some(previous) = previous_response_id.filter(|_| failed) {
            self.memory.forget(&previous, stream_id.as_ref());
        }
    }

    /// Nothing more is begun; what runs may end.
    fn end(&mut self, channel: &mut Channel, ending: Ending) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(ending);
        while let Some(create) = self.lanes.give_up() {
            self.refuse(channel, &ending.error(self.config), create.received, create.stream_id.as_ref());
        }
    }

    fn last_words(&self, ending: Ending) -> Over {
        match ending {
            Ending::Draining => Over::Closed(CloseCode::Restart, "the server is shutting down", None),
            Ending::Expired => {
                let error = ending.error(self.config);
                Over::Closed(CloseCode::Normal, "the connection is as old as it may be", Some(error))
            }
            Ending::Unauthorized => Over::Closed(CloseCode::Policy, "the API key is no longer valid", None),
        }
    }
}

impl Ending {
    fn error(self, config: WebsocketConfig) -> ApiError {
        match self {
            Self::Draining => ApiError::shutting_down(),
            Self::Unauthorized => {
                ApiError::new(Code::InvalidApiKey, "The API key of this connection is no longer valid.")
            }
            Self::Expired => {
                let minutes = config.lifetime.as_secs() / 60;
                let message = format!(
                    "Responses websocket connection limit reached ({minutes} minutes). Create a new websocket \
                     connection to continue."
                );
                ApiError::bad_request(Code::ConnectionLimit, message)
            }
        }
    }
}
