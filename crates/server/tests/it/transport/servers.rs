//! Servers that the scripted provider is not: TLS in front of it, a proxy that tunnels, one that speaks HTTP/2.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use crate::chat;
use crate::rig::spawn;

/// Someone who signs certificates.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// Its certificate, as `ca` wants it.
    pub(super) fn file(&self) -> String {
        self.folder.path().join("ca.pem").display().to_string()
    }

    fn acceptor(&self, protocols: &[&[u8]]) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "model.example.com".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// TLS in front of a plain server.
pub(super) async fn secure(plain_address: SocketAddr, authority: &Authority, protocols: &[&[u8]]) -> SocketAddr {
    let acceptor = authority.acceptor(protocols);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            spawn(async move {
                let Ok(mut tls) = acceptor.accept(stream).await else { return };
                let Ok(mut plain) = TcpStream::connect(plain_address).await else { return };
                let _ = tokio::io::copy_bidirectional(&mut tls, &mut plain).await;
            });
        }
    });
    address
}

/// A proxy that opens tunnels, all of them to one place.
pub(super) struct Tunnels {
    pub(super) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Tunnels {
    /// For those who bring this `Proxy-Authorization`.
    pub(super) async fn start(to: SocketAddr, authorization: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let log = Arc::clone(&log);
                spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let mut lines = Vec::new();
                    loop {
                        let mut line = String::new();
                        if stream.read_line(&mut line).await.unwrap_or(0) <= 2 {
                            break;
                        }
                        lines.push(line.trim_end().to_owned());
                    }
                    let known = |line: &String| {
                        line.split_once(": ").is_some_and(|(name, value)| {
                            name.eq_ignore_ascii_case("proxy-authorization") && value == authorization
                        })
                    };
                    if !lines.iter().any(known) {
                        let _ = stream.write_all(b"HTTP/1.1 407 Who are you\r\n\r\n").await;
                        return;
                    }
                    log.lock().unwrap().push(lines.swap_remove(0));
                    let mut far = TcpStream::connect(to).await.unwrap();
                    stream.write_all(b"HTTP/1.1 200 Go on\r\n\r\n").await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut far).await;
                });
            }
        });
        Self { address, asked }
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A provider that speaks HTTP/2 only.
pub(super) struct Http2 {
    pub(super) address: SocketAddr,
    shared: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    cancelled: AtomicUsize,
    keys: Mutex<Vec<String>>,
    arrived: Notify,
}

/// Dropped when a request has ended, well or not.
struct Open(Arc<Seen>, bool);

impl Open {
    fn answered(mut self) {
        self.1 = true;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.cancelled.fetch_add(usize::from(!self.1), Ordering::SeqCst);
    }
}

impl Http2 {
    /// Takes its time before each answer's body, or before its head if it is not streamed.
    pub(super) async fn start(pause: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Seen::default());
        let seen = Arc::clone(&shared);
        spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                seen.connections.fetch_add(1, Ordering::SeqCst);
                let seen = Arc::clone(&seen);
                let service = service_fn(move |request| answer(request, pause, Arc::clone(&seen)));
                let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                builder.max_concurrent_streams(100);
                spawn(async move { builder.serve_connection(TokioIo::new(stream), service).await.ok() });
            }
        });
        Self { address, shared }
    }

    /// The `Authorization` of each request.
    pub(super) fn seen(&self) -> Vec<String> {
        self.shared.keys.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Requests that ended before their answer did.
    pub(super) fn cancelled(&self) -> usize {
        self.shared.cancelled.load(Ordering::SeqCst)
    }

    /// Waits for a request.
    pub(super) async fn busy(&self) {
        self.shared.arrived.notified().await;
    }
}

type Frames = StreamBody<futures_util::stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

async fn answer(request: Request<Incoming>, pause: Duration, seen: Arc<Seen>) -> Result<Response<Frames>, Infallible> {
    let key = request.headers().get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    seen.keys.lock().unwrap().push(key.to_owned());
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let streamed = serde_json::from_slice::<Value>(&body).unwrap()["stream"] == json!(true);
    seen.arrived.notify_one();
    let open = Open(seen, false);
    let (content_type, text) = if streamed {
        ("text/event-stream", chat::bytes())
    } else {
        tokio::time::sleep(pause).await;
        ("application/json", chat::completion().to_string())
    };
    let frames = futures_util::stream::once(async move {
        if streamed {
            tokio::time::sleep(pause).await;
        }
        open.answered();
        Ok(Frame::data(Bytes::from(text)))
    });
    let mut response = Response::new(StreamBody::new(frames.boxed()));
    response.headers_mut().insert("content-type", content_type.parse().unwrap());
    Ok(response)
}
