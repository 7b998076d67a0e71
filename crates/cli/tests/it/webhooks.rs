//! Webhooks of the binary: after `kill -9`, over TLS, and never with their secret in what people read.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::Signal;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;
use testkit::{Script, Upstream};

use crate::cli::{command, godex, home};
use crate::sessions::Godex;

const SECRET: &str = "whsec_c2VjcmV0cyBhcmUgbmV2ZXIgaW4gdGhlIGxvZw==";
/// In all forms.
const SECRETS: [&str; 2] = ["c2VjcmV0cyBhcm", "secrets are never"];

async fn submit(godex: &Godex, model: &str) -> String {
    let body = json!({"model": model, "input": "Hello", "background": true});
    let answer = godex.client.post_json(&format!("{}/v1/responses", godex.url), &body).await.unwrap();
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// A response whose process was killed is ended by the next one, and that is told.
#[tokio::test]
async fn a_lost_response_is_told_and_the_secret_is_in_no_log() {
    let (upstream, receiver) =
        (Upstream::start(Script::silent()).await.unwrap(), Upstream::start(Script::respond(200)).await.unwrap());
    receiver.queue(Script::respond(503));
    let up = format!("{{spec: openai-compatible, endpoint: {{base_url: '{}/v1'}}, models: [m]}}", upstream.url());
    let home = home(&format!(
        "logging: {{level: debug, format: human}}\nsession: {{sqlite: {{path: sessions.db}}}}\nmodels: {{discover: \
         off}}\nproviders: {{up: {up}}}\nwebhooks:\n- url: {}/token-in-path\n  secret: {SECRET}\n  allow_private: true\n",
        receiver.url()
    ));
    let start = |log: &str| Godex::logging_to(home.path(), File::create(home.path().join(log)).unwrap());
    let first = start("first.log");
    let response = submit(&first, "m").await;
    upstream.arrived(1).await;
    first.end(Signal::KILL);
    let second = start("second.log");
    tokio::time::timeout(Duration::from_mins(1), receiver.arrived(2)).await.unwrap();
    let told = receiver.requests();
    for told in &told {
        assert_eq!(told.json()["type"], "response.failed");
        assert_eq!(told.json()["data"], json!({"id": response}));
    }
    assert_eq!(told[0].header("webhook-id"), told[1].header("webhook-id"));
    let log = || fs::read_to_string(home.path().join("second.log")).unwrap();
    while !log().contains("a webhook was delivered") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(second.end(Signal::TERM).success());
    let (log, shown) = (log(), godex(home.path(), &["config", "print"]));
    assert!(log.contains("a webhook will be sent again") && log.contains("it answered 503"), "{log}");
    assert!(shown.1.contains("/token-in-path\", secret: <redacted>"), "{}", shown.1);
    assert!(!log.contains("token-in-path"), "{log}");
    let checked = godex(home.path(), &["config", "check"]);
    assert_eq!((shown.0, checked.0), (Some(0), Some(0)));
    let first = fs::read_to_string(home.path().join("first.log")).unwrap();
    for text in [first, log, shown.1, shown.2, checked.1, checked.2] {
        assert!(!SECRETS.iter().any(|secret| text.contains(secret)), "{text}");
    }
}

#[test]
fn what_is_printed_loads_and_what_is_wrong_is_told_with_its_line() {
    let home = home(&format!("webhooks:\n- {{url: 'https://a.example/x', secret: {SECRET}}}\n"));
    let (code, printed, _) = godex(home.path(), &["config", "print"]);
    assert_eq!(code, Some(0));
    fs::write(home.path().join("printed.yaml"), &printed).unwrap();
    let (code, _, said) = godex(home.path(), &["config", "check", "--config", "printed.yaml"]);
    assert_eq!((code, said.as_str()), (Some(0), ""), "{printed}");
    fs::write(
        home.path().join("godex.yaml"),
        "webhooks:\n- url: http://a.example\n  secret: c2VjcmV0cyBhcm\n  events: [completed]\n",
    )
    .unwrap();
    let (code, _, said) = godex(home.path(), &["config", "check"]);
    assert_eq!(code, Some(1));
    for expected in [
        "godex.yaml:2:8: webhooks[0].url: must be https",
        "godex.yaml:3:11: webhooks[0].secret: expected at least 24 characters",
        "godex.yaml:4:12: webhooks[0].events[0]: expected one of `response.completed`",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    assert!(!said.contains("c2VjcmV0cyBhcm"), "{said}");
}

/// A receiver at `https://localhost`, who signed for it, and what it is sent or why it is sent nothing.
fn encrypted() -> (u16, String, mpsc::Receiver<Result<String, String>>) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = names.signed_by(&key, &issuer).unwrap().der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut tls = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
            let _ = send.send(request(&mut tls).map_err(|error| error.to_string()));
            let _ = tls.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
        }
    });
    (port, issuer.pem(), received)
}

fn request(stream: &mut impl Read) -> std::io::Result<String> {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    // The end of an event.
    while !text.ends_with("}}") {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    Ok(text)
}

#[tokio::test]
async fn a_receiver_is_told_over_tls_if_its_certificate_is_good() {
    let (port, authority, received) = encrypted();
    let home = home(&format!(
        "session: {{backend: memory}}\nwebhooks: [{{url: 'https://localhost:{port}/x', secret: {SECRET}, \
         allow_private: true}}]\n"
    ));
    fs::write(home.path().join("ca.pem"), authority).unwrap();
    let wait = Duration::from_secs(30);
    let mut trusting = command(home.path(), &["--port", "0"]);
    trusting.env("SSL_CERT_FILE", home.path().join("ca.pem"));
    let trusting = Godex::run(trusting, std::process::Stdio::null());
    let response = submit(&trusting, "demo").await;
    let told = received.recv_timeout(wait).unwrap().unwrap();
    assert!(
        told.starts_with("POST /x HTTP/1.1\r\n") && told.contains(&format!("\r\nhost: localhost:{port}\r\n")),
        "{told}"
    );
    assert!(told.ends_with(&format!("\"type\":\"response.completed\",\"data\":{{\"id\":\"{response}\"}}}}")), "{told}");
    drop(trusting);
    let doubting = Godex::logging_to(home.path(), std::process::Stdio::null());
    submit(&doubting, "demo").await;
    assert!(received.recv_timeout(wait).unwrap().is_err(), "nobody vouches for its certificate");
}
