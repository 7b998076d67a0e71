//! The accept loop of the admin listener, and who may ask. One request per connection: nobody is in a hurry here.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};

use super::listener::Stream;
use super::routes::{self, Place};
use super::seats::{Seat, Seats};
use super::{Admin, Desk};
use crate::body::{self, Body, Limits};
use crate::error::{ApiError, Code};
use crate::guard;
use crate::listen::Stalling;
use crate::page;
use crate::stop::Phase;

/// Connections at the same time. While there are more, those make room that have not shown that they may ask.
const CONNECTIONS: usize = 128;
/// How long a request's head may take.
const HEAD: Duration = Duration::from_secs(10);
/// How long to rest when no connection can be accepted.
const BACK_OFF: Duration = Duration::from_millis(50);
/// How large a request's body may be.
const LARGEST: usize = 64 << 10;

impl Admin {
    /// Answers until it is dropped.
    pub(crate) async fn serve(self) {
        let Self { listener, desk } = self;
        let seats = Seats::new(CONNECTIONS);
        loop {
            match listener.accept().await {
                Ok(stream) => {
                    let seat = Arc::new(seats.take().await);
                    let desk = Arc::clone(&desk);
                    let tasks = desk.app.runtime.tasks.clone();
                    tasks.spawn(connection(desk, stream, seat));
                    // What it has said already is heard before the next one comes.
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    tracing::warn!(%error, "the admin listener cannot accept connections");
                    tokio::time::sleep(BACK_OFF).await;
                }
            }
        }
    }
}

async fn connection(desk: Arc<Desk>, stream: Box<dyn Stream>, seat: Arc<Seat>) {
    let mut stopping = desk.app.runtime.stop.subscribe();
    let stream = Stalling::new(stream, desk.app.snapshot().config.limits.write_stall);
    let asking = Arc::clone(&seat);
    let service = service_fn(move |request: Request<Incoming>| {
        let (desk, seat) = (Arc::clone(&desk), Arc::clone(&asking));
        Box::pin(async move { Ok::<_, Infallible>(answer(&desk, &seat, request).await) })
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).keep_alive(false);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        served = connection => {
            if let Err(error) = served {
                tracing::debug!(%error, "an admin connection ended");
            }
        }
        () = seat.is_lost() => tracing::debug!("an admin connection made room for another"),
        _ = stopping.wait_for(|phase| *phase == Phase::Now) => {}
    }
}

async fn answer(desk: &Arc<Desk>, seat: &Seat, request: Request<Incoming>) -> Response<Body> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let asked = request.headers().clone();
    let answer = match admit(desk, &request) {
        Ok(()) => {
            // The page's files are for strangers, too.
            if desk.token.is_none() || !page::has(&path) {
                seat.is_known();
            }
            handle(desk, request).await
        }
        Err(error) => Err(error),
    };
    let response = answer.unwrap_or_else(|error| error.response().map(Body::full));
    let mut response = page::unless_known(&asked, response);
    guarded(response.headers_mut());
    let status = response.status().as_u16();
    if method == http::Method::GET {
        tracing::debug!(%method, path, status, "admin request");
    } else {
        tracing::info!(%method, path, status, "admin request");
    }
    response
}

/// No browser keeps what is answered here, takes it for something else, or tells others of it.
fn guarded(headers: &mut HeaderMap) {
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

async fn handle(desk: &Arc<Desk>, request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
    let (head, incoming) = request.into_parts();
    let snapshot = desk.app.snapshot();
    let largest = if routes::takes_requests(head.uri.path()) { snapshot.config.server.max_body_bytes } else { LARGEST };
    let limits = Limits { body: largest, budget: Arc::clone(&desk.app.runtime.budget) };
    let body = body::read_json(&head.headers, incoming, &limits).await?;
    let traces = OnceLock::new();
    let place = Place { store: &desk.app.runtime.store, config: &snapshot.config, desk: Some(desk), traces: &traces };
    routes::answer(place, &head.method, &head.uri, body).await
}

/// Whether this may be answered at all. On a port, of all web pages only godex's own gets anything, and its files are
/// everybody's: it asks for the token itself. No browser has a way to the socket.
fn admit<B>(desk: &Desk, request: &Request<B>) -> Result<(), ApiError> {
    let (headers, path) = (request.headers(), request.uri().path());
    match &desk.server {
        // A link to the page may stand anywhere.
        Some(server) => drop(guard::admit(server, request, path == "/")?),
        None if headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site") => {
            return Err(ApiError::forbidden(Code::OriginNotAllowed, "Web pages may not use the admin listener."));
        }
        None => {}
    }
    match &desk.token {
        Some(_) if page::has(path) => Ok(()),
        Some(token) if !token.is_shown_in(headers) => {
            Err(ApiError::new(Code::InvalidAdminToken, "The admin listener wants `admin.token` as a bearer token."))
        }
        _ => Ok(()),
    }
}
