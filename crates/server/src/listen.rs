//! The accept loop: nodelay, deadlines for request heads, idling and clients that do not read, a cap on connections,
//! and an end in which no request is lost.

mod connection;
mod door;
mod files;
mod pause;
mod socket;
mod stall;
mod streams;
mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Interval;

use crate::access::Shown;
use crate::app::{App, Runtime};
use crate::body::Body;
use crate::config::Config;
use crate::delivery::{Activity, Protocol, Running, Slot};
use crate::route::{self, Peer};
use crate::socket::Opening;
use crate::stop::Phase;
use connection::Patience;
use door::Door;
pub(crate) use door::bind;
pub(crate) use files::raise_limit as raise_file_limit;
use pause::Pause;
use socket::Socket;
pub(crate) use stall::Stalling;
use streams::Streams;
use tls::Stream;
pub(crate) use tls::Tls;

/// How long what is cut off at the end may take to say so.
const FAREWELL: Duration = Duration::from_secs(2);

/// What may wait in hyper for a client that does not read.
const UNSENT: usize = 64 * 1024;

/// How often an HTTP/2 client is asked whether it is still there, and how long its answer may take.
const PING: Duration = Duration::from_secs(20);

/// How often idle connections to providers are looked at.
const TIDY: Duration = Duration::from_secs(15);

/// Ready when somebody wants the server to end. Boxed, so that the server is compiled once, and not by its callers.
pub(crate) type Signal<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Answers until `drain` is ready; then for `server.drain_delay`, while clients are told to go elsewhere; then lets
/// running requests end, but no longer than `server.drain_timeout`. When `now` is ready, too, all of that is cut short.
pub(crate) async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    drain: Signal<'_>,
    mut now: Signal<'_>,
) {
    let mut host = Host::new(Arc::clone(&app), tls);
    host.receive(&listener, drain).await;
    let Runtime { stop, tasks, .. } = &app.runtime;
    let server = app.snapshot().config.server.clone();
    stop.begin(Phase::Leaving);
    let mut cut_short = false;
    if !server.drain_delay.is_zero() {
        tracing::info!(delay = ?server.drain_delay, "clients are told to go elsewhere");
        cut_short = host.receive(&listener, over(server.drain_delay, &mut now)).await;
    }
    for (stream, peer) in door::close(listener).await {
        host.take(stream, peer, None);
    }
    stop.begin(Phase::Draining);
    tracing::info!("draining");
    let mut all_ended = std::pin::pin!(tasks.ended());
    if !cut_short {
        tokio::select! {
            () = all_ended.as_mut() => return,
            _ = over(server.drain_timeout, &mut now) => {}
        }
    }
    tracing::warn!("requests that still run are cut off");
    stop.begin(Phase::Now);
    let _ = tokio::time::timeout(FAREWELL, all_ended).await;
}

/// Ready when the time is over, or when it does not matter any more: then it is true.
async fn over(time: Duration, now: &mut Signal<'_>) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => false,
        () = now => true,
    }
}

/// Takes connections in and starts a task for each.
struct Host {
    app: Arc<App>,
    config: Config,
    builder: auto::Builder<Streams>,
    tls: Option<Arc<Tls>>,
    door: Door,
    tidying: Interval,
}

impl Host {
    fn new(app: Arc<App>, tls: Option<Arc<Tls>>) -> Self {
        let config = app.snapshot().config.clone();
        let builder = builder(&app, &config);
        let door = Door::new(config.server.max_connections, app.runtime.tasks.clone(), tls.is_some());
        Self { app, config, builder, tls, door, tidying: tokio::time::interval(TIDY) }
    }

    /// Takes in whoever comes, until then.
    async fn receive<T>(&mut self, listener: &TcpListener, until: impl Future<Output = T>) -> T {
        let mut until = std::pin::pin!(until);
        loop {
            tokio::select! {
                accepted = self.door.accept(listener) => {
                    if let Some((stream, peer, slot)) = accepted {
                        self.take(stream, peer, Some(slot));
                    }
                }
                result = until.as_mut() => return result,
                _ = self.tidying.tick() => self.app.runtime.tidy(),
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: IpAddr, slot: Option<OwnedSemaphorePermit>) {
        // Nagle's algorithm with delayed acknowledgements makes a lone stream stall by 40 ms.
        let _ = stream.set_nodelay(true);
        let Config { server, limits, .. } = &self.config;
        let Runtime { stop, tasks, .. } = &self.app.runtime;
        let activity = Arc::new(Activity::new());
        let pause = Pause::new(Arc::clone(&activity), Arc::clone(stop), server.header_timeout);
        let socket = Socket::new(stream, limits.write_stall, pause);
        let patience = Patience { first: server.header_timeout, idle: server.idle_timeout };
        let connection = Connection {
            app: Arc::clone(&self.app),
            builder: self.builder.clone(),
            peer: Arc::new(Peer { address: peer, shown: Shown::default() }),
            activity,
            patience,
            slot: Arc::new(slot),
        };
        match &self.tls {
            None => tasks.spawn(answer(connection, Stream::Plain(socket))),
            Some(tls) => tasks.spawn(secured(connection, Arc::clone(tls), socket)),
        }
    }
}

/// A connection, but its stream.
struct Connection {
    app: Arc<App>,
    builder: auto::Builder<Streams>,
    peer: Arc<Peer>,
    activity: Arc<Activity>,
    patience: Patience,
    slot: Slot,
}

/// The handshake, which may take as long as the head of a request, and then all requests.
async fn secured(connection: Connection, tls: Arc<Tls>, socket: Socket) {
    let mut stopping = connection.app.runtime.stop.subscribe();
    let handshake = async {
        tokio::select! {
            stream = tokio::time::timeout(connection.patience.first, tls.accept(socket)) => stream.ok().flatten(),
            _ = stopping.wait_for(|phase| *phase == Phase::Now) => None,
        }
    };
    // Boxed, as all that comes after: neither keeps the room of the other.
    if let Some(stream) = Box::pin(handshake).await {
        Box::pin(answer(connection, stream)).await;
    }
}

/// All requests of one connection.
async fn answer(connection: Connection, stream: Stream) {
    let Connection { app, builder, peer, activity, patience, slot } = connection;
    let stop = Arc::clone(&app.runtime.stop);
    let (requests, place) = (Arc::clone(&activity), Arc::clone(&slot));
    let service = service_fn(move |request: Request<Incoming>| {
        let running = Running::new(&requests);
        let (app, activity, place) = (Arc::clone(&app), Arc::clone(&requests), Arc::clone(&place));
        let peer = Arc::clone(&peer);
        let http2 = request.version() == Version::HTTP_2;
        if http2 {
            activity.speaks(Protocol::Http2);
        }
        // Boxed: hyper keeps the room of a request's future until the next one, and a stream needs none of it.
        Box::pin(async move {
            let mut response: Response<Body> = route::answer(Arc::clone(&app), request, &peer).await;
            match Opening::of(&mut response) {
                // The connection goes on, and keeps its place, without hyper.
                Some(opening) => {
                    activity.speaks(Protocol::Upgraded);
                    opening.start(place, running);
                }
                None => response.body_mut().hold(running),
            }
            if response.status() != StatusCode::SWITCHING_PROTOCOLS && !http2 && app.runtime.stop.has_begun() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        })
    });
    // Boxed: moved, it would take its room twice.
    let connection = Box::pin(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    if let Err(error) = connection::drive(connection, &activity, patience, &stop).await {
        tracing::debug!(error, "connection ended");
    }
    drop(slot);
}

fn builder(app: &App, config: &Config) -> auto::Builder<Streams> {
    let Runtime { stop, tasks, .. } = &app.runtime;
    let streams = Streams { stop: Arc::clone(stop), tasks: tasks.clone(), stall: config.limits.write_stall };
    let mut builder = auto::Builder::new(streams);
    let mut http1 = builder.http1();
    // Hyper's deadline for a head runs also while there is none: `pause` has ours.
    http1.timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(UNSENT);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).max_concurrent_streams(100).max_send_buf_size(UNSENT);
    http2.keep_alive_interval(PING).keep_alive_timeout(PING);
    builder
}
