//! The accept loop: nodelay, deadlines for request heads, idling and clients that do not read, a cap on connections,
//! a graceful end.

mod connection;
mod socket;
mod streams;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::Response;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::app::{App, Runtime};
use crate::body::Body;
use crate::config::Config;
use crate::delivery::{Activity, Running};
use crate::route;
use crate::stop::Phase;
use connection::Patience;
use socket::Socket;
use streams::Streams;

/// How long what is cut off at the end may take to say so.
const FAREWELL: Duration = Duration::from_secs(2);

/// What may wait for a client that does not read, in hyper and in the kernel, which doubles it.
const UNSENT: usize = 64 * 1024;
const KERNEL_UNSENT: u32 = 128 * 1024;

/// How often an HTTP/2 client is asked whether it is still there, and how long its answer may take.
const PING: Duration = Duration::from_secs(20);

/// How often idle connections to providers are looked at.
const TIDY: Duration = Duration::from_secs(15);

/// How long to rest when no connection can be accepted (no file descriptors left): no spinning.
const BACK_OFF: Duration = Duration::from_millis(50);

/// Connections that may wait to be accepted. The usual 128 drops some when a few hundred clients come at once,
/// and a dropped one comes back a second later.
const BACKLOG: u32 = 4096;

/// Listens on the first address of `host:port` that can be had.
pub(crate) async fn bind(address: &str) -> io::Result<TcpListener> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    for candidate in tokio::net::lookup_host(address).await? {
        match listen_on(candidate) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit it. Without a cap the kernel takes megabytes for a client that does not read.
    socket.set_send_buffer_size(KERNEL_UNSENT)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Ready when somebody wants the server to end. Boxed, so that the server is compiled once, and not by its callers.
pub(crate) type Signal<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Answers until `drain` is ready, then lets running requests end, but no longer than `server.drain_timeout` or until
/// `now` is ready.
pub(crate) async fn serve(app: Arc<App>, listener: TcpListener, mut drain: Signal<'_>, now: Signal<'_>) {
    let config = app.snapshot().config.clone();
    let builder = builder(&app, &config);
    let slots = Arc::new(Semaphore::new(config.server.max_connections.min(Semaphore::MAX_PERMITS)));
    let Runtime { stop, tasks, .. } = &app.runtime;
    let mut tidying = tokio::time::interval(TIDY);
    loop {
        let accepted = tokio::select! {
            // A connection beyond the cap waits in the kernel's queue until another ends.
            accepted = accept(&listener, &slots) => accepted,
            () = drain.as_mut() => break,
            _ = tidying.tick() => {
                app.runtime.tidy();
                continue;
            }
        };
        if let Some((stream, slot)) = accepted {
            let patience = Patience { first: config.server.header_timeout, idle: config.server.idle_timeout };
            let socket = Socket::new(stream, config.limits.write_stall);
            tasks.spawn(answer(Arc::clone(&app), builder.clone(), socket, patience, slot));
        }
    }
    stop.begin(Phase::Draining);
    drop(listener);
    tracing::info!("draining");
    let mut all_ended = std::pin::pin!(tasks.ended());
    tokio::select! {
        () = all_ended.as_mut() => return,
        () = tokio::time::sleep(config.server.drain_timeout) => {}
        () = now => {}
    }
    tracing::warn!("requests that still run are cut off");
    stop.begin(Phase::Now);
    let _ = tokio::time::timeout(FAREWELL, all_ended).await;
}

/// All requests of one connection.
async fn answer(
    app: Arc<App>,
    builder: auto::Builder<Streams>,
    socket: Socket,
    patience: Patience,
    slot: OwnedSemaphorePermit,
) {
    let stopping = app.runtime.stop.subscribe();
    let activity = Arc::new(Activity::default());
    let requests = Arc::clone(&activity);
    let service = service_fn(move |request| {
        let running = Running::new(&requests);
        let app = Arc::clone(&app);
        // Boxed: hyper keeps the room of a request's future until the next one, and a stream needs none of it.
        Box::pin(async move {
            let mut response: Response<Body> = route::answer(app, request).await;
            response.body_mut().hold(running);
            Ok::<_, Infallible>(response)
        })
    });
    // Boxed: moved, it would take its room twice.
    let connection = Box::pin(builder.serve_connection(TokioIo::new(socket), service));
    if let Err(error) = connection::drive(connection, &activity, patience, stopping).await {
        tracing::debug!(error, "connection ended");
    }
    drop(slot);
}

async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Nagle's algorithm with delayed acknowledgements makes a lone stream stall by 40 ms.
            let _ = stream.set_nodelay(true);
            Some((stream, slot))
        }
        Err(error) => {
            tracing::warn!(%error, "cannot accept connections");
            tokio::time::sleep(BACK_OFF).await;
            None
        }
    }
}

fn builder(app: &App, config: &Config) -> auto::Builder<Streams> {
    let Runtime { stop, tasks, .. } = &app.runtime;
    let streams = Streams { stop: Arc::clone(stop), tasks: tasks.clone(), stall: config.limits.write_stall };
    let mut builder = auto::Builder::new(streams);
    let mut http1 = builder.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(config.server.header_timeout).max_buf_size(UNSENT);
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).max_concurrent_streams(100).max_send_buf_size(UNSENT);
    http2.keep_alive_interval(PING).keep_alive_timeout(PING);
    builder
}
