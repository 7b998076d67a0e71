//! A way for the browser of one user to the admin listener: a port of this machine, open as long as `godex page` runs.
//!
//! Everybody on the machine reaches a port, and so does every web page in the browser. Who has no session gets nothing: the
//! link with the token is exchanged for one, once. A session is a path that nobody can guess together with a cookie that only
//! that path gets: cookies know no ports, so a plain one would be sent to whoever else listens on this machine.
//! Of the admin listener's requests it lets through those that the page itself makes, and no others.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use super::client::{AdminClient, Answering};
use super::routes::is_for_page;
use super::seats::{Seat, Seats};
use crate::clock;
use crate::token::are_same;

/// Connections at the same time; a browser has six. While there are more, those make room that have no session.
const CONNECTIONS: usize = 256;
const HEAD: Duration = Duration::from_secs(2);
const BACK_OFF: Duration = Duration::from_millis(50);
/// The admin listener has a cap of its own; this one is for what is held here.
const LARGEST: usize = 64 << 20;
const COOKIE: &str = "godex_page";

/// What the admin listener is told of a request's head.
const PASSED: &[HeaderName] = &[header::CONTENT_TYPE, header::ACCEPT, header::IF_NONE_MATCH];

type Answer = Response<Either<Full<Bytes>, Answering>>;

/// The open port.
#[derive(Debug)]
pub struct PageDoor<'c> {
    client: &'c AdminClient,
    listener: TcpListener,
    port: u16,
    token: String,
    used: AtomicBool,
    /// The path of the session: `/…/`.
    path: String,
    cookie: String,
}

fn secret() -> io::Result<String> {
    let bits = clock::secret_bits().ok_or_else(|| io::Error::other("the system has no random numbers"))?;
    Ok(URL_SAFE_NO_PAD.encode(bits))
}

impl<'c> PageDoor<'c> {
    /// Opens a port of the loopback address; 0 takes a free one.
    ///
    /// # Errors
    /// It cannot be had.
    pub async fn open(client: &'c AdminClient, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        let (token, path, cookie) = (secret()?, format!("/{}/", secret()?), secret()?);
        Ok(Self { client, listener, port, token, used: AtomicBool::new(false), path, cookie })
    }

    /// What the user opens. It works once.
    pub fn link(&self) -> String {
        format!("http://127.0.0.1:{}/{}", self.port, self.token)
    }

    /// Answers until it is dropped.
    pub async fn serve(&self) {
        let (seats, mut connections) = (Seats::new(CONNECTIONS), FuturesUnordered::new());
        let mut came = None;
        loop {
            tokio::select! {
                biased;
                // What a newcomer has said already is heard before the next one comes.
                Some(()) = connections.next() => {}
                seat = seats.take(), if came.is_some() => connections.extend(came.take().map(|came| self.connection(came, seat))),
                accepted = self.listener.accept(), if came.is_none() => match accepted {
                    Ok((stream, _)) => came = Some(stream),
                    Err(_) => tokio::time::sleep(BACK_OFF).await,
                },
            }
        }
    }

    async fn connection(&self, stream: TcpStream, seat: Seat) {
        let seat = &seat;
        let service = service_fn(|request: Request<Incoming>| {
            Box::pin(async move { Ok::<_, Infallible>(self.answer(seat, request).await) })
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD);
        tokio::select! {
            // Whoever broke it off knows.
            _ = http.serve_connection(TokioIo::new(stream), service) => {}
            () = seat.is_lost() => {}
        }
    }

    async fn answer(&self, seat: &Seat, request: Request<Incoming>) -> Answer {
        let headers = request.headers();
        let hosts = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let Some(host) = only(headers, header::HOST).filter(|host| hosts.iter().any(|known| known == host)) else {
            return refused("Open the link that `godex page` has printed.");
        };
        let path = request.uri().path();
        if request.method() == Method::GET && path.strip_prefix('/').is_some_and(|shown| are_same(shown, &self.token)) {
            return self.enter(headers);
        }
        if !is_own(headers, host) {
            return refused("Other web pages may not use this one.");
        }
        let within = path.strip_prefix(self.path.as_str()).map(|rest| format!("/{rest}"));
        let Some(path) = within.filter(|_| self.knows(headers)) else {
            return refused(
                "Open the link that `godex page` has printed. If it is an older one, run `godex page` again.",
            );
        };
        seat.is_known();
        self.forward(&path, request).await
    }

    /// The token becomes a session.
    fn enter(&self, headers: &HeaderMap) -> Answer {
        // A browser that only looks ahead would use it up.
        if headers.contains_key("sec-purpose") || headers.contains_key("purpose") {
            return refused("Not ahead of time.");
        }
        if self.used.swap(true, Ordering::Relaxed) {
            return refused("This link was opened before, and works once: end `godex page` and run it again.");
        }
        // Not a redirect: a browser that came from elsewhere would follow that without the cookie.
        let path = &self.path;
        let html = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={path}\">\
             <title>godex</title><p><a href=\"{path}\">Open the page</a></p></html>"
        );
        let mut response = own(StatusCode::OK, "text/html; charset=utf-8", html);
        let cookie = format!("{COOKIE}={}; Path={path}; HttpOnly; SameSite=Strict", self.cookie);
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }

    /// Whether the cookie is shown.
    fn knows(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = shown.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == COOKIE && are_same(value, &self.cookie))
    }

    async fn forward(&self, path: &str, request: Request<Incoming>) -> Answer {
        let (head, incoming) = request.into_parts();
        if !is_for_page(&head.method, path) {
            return refused("The page only looks; use the commands for this.");
        }
        let target = head.uri.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        let (Ok(target), Ok(body)) = (target.parse(), Limited::new(incoming, LARGEST).collect().await) else {
            return own(StatusCode::BAD_REQUEST, "text/plain", "The request cannot be read.\n".to_owned());
        };
        let mut headers = HeaderMap::new();
        for name in PASSED {
            if let Some(value) = head.headers.get(name) {
                headers.insert(name, value.clone());
            }
        }
        match self.client.forward(head.method, target, headers, body.to_bytes()).await {
            Ok(mut response) => {
                for name in [header::CONNECTION, header::TRANSFER_ENCODING] {
                    response.headers_mut().remove(name);
                }
                response.map(Either::Right)
            }
            // As the page's own errors are.
            Err(error) => {
                let body = serde_json::json!({"error": {"message": error.to_string(), "code": "unreachable"}});
                own(StatusCode::BAD_GATEWAY, "application/json", body.to_string())
            }
        }
    }
}

/// A header that is there once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Whether the page itself asks, or the user; no browser lets another page say so.
fn is_own(headers: &HeaderMap, host: &str) -> bool {
    let origin = || only(headers, header::ORIGIN).is_some_and(|origin| origin.strip_prefix("http://") == Some(host));
    let near = || {
        let site = only(headers, HeaderName::from_static("sec-fetch-site"));
        site.is_some_and(|site| matches!(site, "same-origin" | "none"))
    };
    (!headers.contains_key(header::ORIGIN) || origin()) && (!headers.contains_key("sec-fetch-site") || near())
}

fn refused(why: &str) -> Answer {
    own(StatusCode::FORBIDDEN, "text/plain; charset=utf-8", format!("{why}\n"))
}

fn own(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(text))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    );
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
