//! The accept loop: nodelay, a deadline for request heads, a cap on connections, a graceful end.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;

use crate::app::App;
use crate::route;

/// How long running requests may take to end after the signal.
const GRACE: Duration = Duration::from_secs(30);

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
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

pub(crate) async fn serve(app: Arc<App>, listener: TcpListener, shutdown: impl Future<Output = ()>) {
    let builder = builder(&app);
    let slots = Arc::new(Semaphore::new(app.config.server.max_connections.min(Semaphore::MAX_PERMITS)));
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    let mut tidying = tokio::time::interval(TIDY);
    loop {
        let accepted = tokio::select! {
            // A connection beyond the cap waits in the kernel's queue until another ends.
            accepted = accept(&listener, &slots) => accepted,
            () = shutdown.as_mut() => break,
            _ = tidying.tick() => {
                app.tidy();
                continue;
            }
        };
        let Some((stream, slot)) = accepted else { continue };
        let app = Arc::clone(&app);
        let limit = app.config.server.header_timeout;
        let asked = Arc::new(AtomicBool::new(false));
        let was_asked = Arc::clone(&asked);
        let service = service_fn(move |request| {
            was_asked.store(true, Ordering::Relaxed);
            let app = Arc::clone(&app);
            async move { Ok::<_, Infallible>(route::answer(app, request).await) }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        let connection = graceful.watch(connection);
        spawn(async move {
            if let Err(error) = watched(connection, &asked, limit).await {
                tracing::debug!(error, "connection ended");
            }
            drop(slot);
        });
    }
    app.drain();
    drop(listener);
    tracing::info!("draining");
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still running when the grace period ended");
    }
}

/// Drives a connection to its end, unless the first request does not come in time: hyper's own deadline begins
/// only when it knows which protocol the client speaks, and a client that says nothing would hold its slot.
async fn watched<E: std::fmt::Display>(
    connection: impl Future<Output = Result<(), E>>,
    asked: &AtomicBool,
    limit: Duration,
) -> Result<(), String> {
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended.map_err(|error| error.to_string()),
        () = tokio::time::sleep(limit) => {}
    }
    if asked.load(Ordering::Relaxed) {
        return connection.await.map_err(|error| error.to_string());
    }
    Err("no request came in time".to_owned())
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
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

fn builder(app: &App) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(app.config.server.header_timeout);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(100).max_send_buf_size(64 * 1024);
    builder
}

/// The one place that starts a task: a connection, which the graceful shutdown watches.
#[expect(clippy::disallowed_methods, reason = "GracefulShutdown waits for it")]
fn spawn(connection: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(connection);
}
