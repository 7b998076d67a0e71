//! `metrics.listen`: a listener that answers `/metrics` and nothing else, to anybody who reaches it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::app::App;
use crate::body::Body;
use crate::error::ApiError;
use crate::guard;
use crate::listen::{self, Stalling};
use crate::scrape;
use crate::start::StartError;
use crate::stop::Phase;

/// Connections at the same time; more wait to be accepted.
const CONNECTIONS: usize = 16;
/// How long a request's head may take, or the pause before it.
const HEAD: Duration = Duration::from_mins(2);
/// How long to rest when no connection can be accepted.
const BACK_OFF: Duration = Duration::from_millis(50);

/// A listener that has not begun to answer.
#[derive(Debug)]
pub(crate) struct MetricsListener {
    listener: TcpListener,
    app: Arc<App>,
}

impl MetricsListener {
    /// Listens where the configuration says; None if it says nowhere.
    pub(crate) async fn bind(app: &Arc<App>) -> Result<Option<Self>, StartError> {
        let metrics = app.snapshot().config.metrics.clone();
        let Some(address) = metrics.listen.filter(|_| metrics.enabled) else { return Ok(None) };
        let listener = listen::bind(&address).await.map_err(|source| StartError::Bind { address, source })?;
        Ok(Some(Self { listener, app: Arc::clone(app) }))
    }

    pub(crate) fn address(&self) -> Option<std::net::SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Answers until it is dropped.
    pub(crate) async fn serve(self) {
        let Self { listener, app } = self;
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (tasks, app) = (app.runtime.tasks.clone(), Arc::clone(&app));
                    tasks.spawn(async move {
                        connection(app, stream).await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the listener of metrics cannot accept connections");
                    tokio::time::sleep(BACK_OFF).await;
                }
            }
        }
    }
}

async fn connection(app: Arc<App>, stream: TcpStream) {
    let is_local = stream.local_addr().is_ok_and(|address| address.ip().to_canonical().is_loopback());
    let mut stopping = app.runtime.stop.subscribe();
    let stream = Stalling::new(stream, app.snapshot().config.limits.write_stall);
    let service = service_fn(move |request: Request<Incoming>| {
        let app = Arc::clone(&app);
        async move { Ok::<_, Infallible>(answer(&app, &request, is_local).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    tokio::select! {
        served = http.serve_connection(TokioIo::new(stream), service) => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection for metrics ended");
            }
        }
        // Whoever only waits for the next scrape is not waited for.
        _ = stopping.wait_for(|phase| *phase >= Phase::Draining) => {}
    }
}

/// Where only this machine can ask, no web page may, by whatever name it has found its way here.
async fn answer(app: &App, request: &Request<Incoming>, is_local: bool) -> Response<Body> {
    if is_local && let Err(error) = guard::admit(&app.snapshot().config.server, request, false) {
        return error.response().map(Body::full);
    }
    let error = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => return scrape::answer(app, request.headers()).await,
        (method, "/metrics") => ApiError::method_not_allowed(method, "GET"),
        (method, path) => ApiError::not_found(method, path),
    };
    error.response().map(Body::full)
}
