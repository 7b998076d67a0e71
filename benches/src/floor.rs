//! The floors: reverse proxies on godex's own stack that forward bytes and look at none of them. What a gateway
//! costs beyond them is the price of translating.
//!
//! One is built as most proxies are, with an HTTP client and its pool; the bare one is the least that hyper allows:
//! HTTP/1.1 alone, and each client's connection has one to the upstream for itself.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use http::header::{CONNECTION, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::serve;

const PATH: &str = "/v1/chat/completions";

pub(crate) async fn run(upstream: &str) -> Result<()> {
    let client = reqwest::Client::builder()
        .http1_only()
        .no_proxy()
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let url = reqwest::Url::parse(&format!("http://{upstream}{PATH}"))?;
    serve::serve(move |request| forward(client.clone(), url.clone(), request)).await
}

async fn forward(
    client: reqwest::Client,
    url: reqwest::Url,
    request: Request<Incoming>,
) -> Result<Response<reqwest::Body>> {
    let body = reqwest::Body::wrap(request.into_body());
    let answer = client.post(url).header(CONTENT_TYPE, "application/json").body(body).send().await?;
    let mut answer: Response<reqwest::Body> = answer.into();
    answer.headers_mut().remove(CONNECTION);
    answer.headers_mut().remove(TRANSFER_ENCODING);
    Ok(answer)
}

pub(crate) async fn run_bare(upstream: String) -> Result<()> {
    let listener = serve::listen()?;
    loop {
        let (client, _) = listener.accept().await?;
        client.set_nodelay(true)?;
        let upstream = TcpStream::connect(&upstream).await?;
        upstream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(upstream)).await?;
        tokio::spawn(connection);
        let sender = Arc::new(Mutex::new(sender));
        let service = service_fn(move |request| forward_bare(Arc::clone(&sender), request));
        // A connection that fails is the load generator's to report.
        tokio::spawn(async move { http1::Builder::new().serve_connection(TokioIo::new(client), service).await.ok() });
    }
}

async fn forward_bare(
    sender: Arc<Mutex<SendRequest<Incoming>>>,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>> {
    *request.uri_mut() = Uri::from_static(PATH);
    let locked = || sender.lock().unwrap_or_else(PoisonError::into_inner);
    std::future::poll_fn(|cx| locked().poll_ready(cx)).await?;
    let answer = locked().send_request(request);
    Ok(answer.await?)
}
