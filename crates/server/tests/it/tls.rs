//! TLS on the listener: both versions of HTTP, WebSockets, a certificate that is replaced.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use server::config::{Config, TlsConfig};
use testkit::{Script, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;

use crate::chat;
use crate::rig::{self, Rig, Settings, spawn};

/// Nothing here takes as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Someone who signs certificates, and the files that the server reads.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let it = Self { issuer, folder: tempfile::tempdir().unwrap() };
        it.issue();
        it
    }

    /// A new pair in the files: the certificate.
    fn issue(&self) -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = certificate.signed_by(&key, &self.issuer).unwrap();
        let TlsConfig { cert, key: file } = self.files();
        write(&cert, &certificate.pem());
        write(&file, &key.serialize_pem());
        certificate.der().clone()
    }

    fn files(&self) -> TlsConfig {
        TlsConfig { cert: self.folder.path().join("cert.pem"), key: self.folder.path().join("key.pem") }
    }

    async fn connect(&self, rig: &Rig, protocol: &[u8]) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(rig.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
        stream
    }

    async fn shown(&self, rig: &Rig) -> CertificateDer<'static> {
        let stream = self.connect(rig, b"http/1.1").await;
        stream.get_ref().1.peer_certificates().unwrap()[0].clone()
    }
}

/// As careful people replace files.
fn write(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(beside, path).unwrap();
}

async fn serving(authority: &Authority) -> Rig {
    let script = Script::sse(&[chat::text("Hel"), chat::text("lo"), chat::stop()]);
    let upstream = Upstream::start(script).await.unwrap();
    let mut config = rig::config(&upstream, &Settings::default());
    config.server.tls = Some(authority.files());
    Rig::serving(upstream, config).await.unwrap()
}

fn asking(stream: bool) -> Bytes {
    json!({"model": "m", "input": "Hi", "stream": stream}).to_string().into()
}

#[tokio::test]
async fn http_1_is_answered_and_its_connection_is_kept() {
    let authority = Authority::new();
    let rig = serving(&authority).await;
    let stream = authority.connect(&rig, b"http/1.1").await;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = spawn(connection);
    for stream in [false, true, false] {
        let request =
            Request::post("/v1/responses").header("host", "localhost").header("content-type", "application/json");
        let answer = sender.send_request(request.body(Full::new(asking(stream))).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200);
        let body = String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
        assert!(body.contains("Hello") && body.contains("response.completed") == stream, "{body}");
    }
    rig.stop().await;
    // The end is one that TLS knows, too: nothing could have been cut off.
    drop(sender);
    connection.await.unwrap().unwrap();
}

#[tokio::test]
async fn http_2_is_answered() {
    let authority = Authority::new();
    let rig = serving(&authority).await;
    let stream = authority.connect(&rig, b"h2").await;
    let (mut sender, connection) = hyper::client::conn::http2::handshake(Spawning, TokioIo::new(stream)).await.unwrap();
    spawn(connection);
    for _ in 0..2 {
        let request = Request::post("https://localhost/v1/responses").header("content-type", "application/json");
        let answer = sender.send_request(request.body(Full::new(asking(true))).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("response.completed"));
    }
}

#[derive(Clone)]
struct Spawning;

impl<F: Future<Output: Send + 'static> + Send + 'static> hyper::rt::Executor<F> for Spawning {
    fn execute(&self, task: F) {
        spawn(task);
    }
}

#[tokio::test]
async fn a_websocket_is_one_over_tls_too() {
    use futures_util::{SinkExt, StreamExt};

    let authority = Authority::new();
    let rig = serving(&authority).await;
    let stream = authority.connect(&rig, b"http/1.1").await;
    let (mut socket, _) = tokio_tungstenite::client_async("wss://localhost/v1/responses", stream).await.unwrap();
    socket
        .send(Message::text(json!({"type": "response.create", "model": "m", "input": "Hi"}).to_string()))
        .await
        .unwrap();
    loop {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
        let Message::Text(text) = message else { continue };
        let event: Value = serde_json::from_str(&text).unwrap();
        assert_ne!(event["type"], "error", "{event}");
        if event["type"] == "response.completed" {
            break;
        }
    }
}

#[tokio::test]
async fn who_speaks_http_is_told_and_who_says_nothing_holds_nothing() {
    let authority = Authority::new();
    let upstream = Upstream::start(Script::sse(&chat::chunks())).await.unwrap();
    let mut config = rig::config(&upstream, &Settings::default());
    config.server.tls = Some(authority.files());
    config.server.header_timeout = Duration::from_millis(300);
    let rig = Rig::serving(upstream, config).await.unwrap();
    for (sent, expected) in [
        (&b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"[..], "This port speaks https"),
        (b"", ""),
        (b"\x16\x03\x01", ""),
        (b"\x00\x01nonsense", ""),
        (b"\x16\x03\x01\x00\x05hello there, this is no handshake at all", ""),
    ] {
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        let mut said = Vec::new();
        // A reset is an end as well.
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut said)).await.expect("it is closed");
        assert!(String::from_utf8_lossy(&said).contains(expected), "{said:?}");
    }
    // Nobody else has waited for them.
    authority.shown(&rig).await;
}

#[tokio::test]
async fn a_new_pair_is_shown_and_a_bad_one_is_not() {
    let authority = Authority::new();
    let first = authority.issue();
    let rig = serving(&authority).await;
    assert_eq!(authority.shown(&rig).await, first);
    let stay = authority.connect(&rig, b"http/1.1").await;

    let TlsConfig { cert, key } = authority.files();
    let other = KeyPair::generate().unwrap();
    write(&key, &other.serialize_pem());
    // Longer than it would take to be seen.
    tokio::time::sleep(Duration::from_millis(2200)).await;
    assert_eq!(authority.shown(&rig).await, first, "a key of another certificate changes nothing");
    write(&cert, "no certificate");
    tokio::time::sleep(Duration::from_millis(2200)).await;
    assert_eq!(authority.shown(&rig).await, first);

    let second = authority.issue();
    let changed = async {
        while authority.shown(&rig).await != second {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, changed).await.expect("the new one is shown");
    // A connection that was made before goes on.
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stay)).await.unwrap();
    spawn(connection);
    let request = Request::post("/v1/responses").header("host", "localhost").header("content-type", "application/json");
    let answer = sender.send_request(request.body(Full::new(asking(false))).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[test]
fn what_is_wrong_with_the_files_is_said_with_their_names() {
    let authority = Authority::new();
    let folder = authority.folder.path();
    let other = KeyPair::generate().unwrap();
    std::fs::write(folder.join("other.pem"), other.serialize_pem()).unwrap();
    std::fs::write(folder.join("empty.pem"), "").unwrap();
    let load = |tls: &str| -> Result<Config, String> {
        let path = folder.join("godex.yaml");
        std::fs::write(&path, format!("server: {{tls: {{{tls}}}}}\n")).unwrap();
        let sources = server::config::Sources {
            config_path: Some(&path),
            cwd: folder,
            home: None,
            env: &|_| None,
            overrides: server::config::Overrides::default(),
        };
        server::config::load(&sources).map_err(|problems| problems.to_string())
    };
    let good = load("cert: cert.pem, key: key.pem").unwrap();
    assert_eq!((good.server.tls.as_ref(), good.server.scheme()), (Some(&authority.files()), "https"));
    for (tls, expected) in [
        ("cert: cert.pem", "server.tls.cert: needs `server.tls.key` beside it"),
        ("key: key.pem", "server.tls.key: needs `server.tls.cert` beside it"),
        ("cert: none.pem, key: key.pem", "none.pem: cannot be read: "),
        ("cert: empty.pem, key: key.pem", "empty.pem: holds no certificate in PEM form"),
        ("cert: key.pem, key: key.pem", "key.pem: holds no certificate in PEM form"),
        ("cert: cert.pem, key: cert.pem", "cert.pem: holds no private key in PEM form"),
        ("cert: cert.pem, key: other.pem", "other.pem: is not the key of the certificate in "),
        ("cert: ., key: key.pem", "is no file in PEM form"),
    ] {
        let problem = load(tls).unwrap_err();
        assert!(problem.contains(expected) && problem.contains("godex.yaml:1:"), "{tls}: {problem}");
    }
}
