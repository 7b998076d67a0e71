//! A network of one page server on this machine, which has whatever public addresses the names lead to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{NOT_PUBLIC, Network, Outbound, OutboundError, Reach};

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 215, 14));

/// Leads to one address after the other, and counts.
#[derive(Debug)]
struct Names {
    server: SocketAddr,
    answers: Mutex<Vec<Vec<IpAddr>>>,
    asked: AtomicUsize,
    reached: Mutex<Vec<SocketAddr>>,
}

impl Network for Names {
    fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        if answers.len() > 1 { Ok(answers.remove(0)) } else { Ok(answers[0].clone()) }
    }

    fn reach(&self, address: SocketAddr) -> SocketAddr {
        self.reached.lock().unwrap().push(address);
        self.server
    }
}

struct Place {
    outbound: Outbound,
    names: Arc<Names>,
    listener: TcpListener,
}

async fn place(answers: &[&[&str]]) -> Place {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let parse = |list: &&[&str]| list.iter().map(|address| address.parse().unwrap()).collect();
    let names = Arc::new(Names {
        server: listener.local_addr().unwrap(),
        answers: Mutex::new(answers.iter().map(parse).collect()),
        asked: AtomicUsize::new(0),
        reached: Mutex::default(),
    });
    let outbound = Outbound::default();
    outbound.among(Arc::<Names>::clone(&names));
    Place { outbound, names, listener }
}

fn get(url: &str) -> Request<Bytes> {
    Request::get(url).body(Bytes::new()).unwrap()
}

impl Place {
    /// What was sent, answered with this.
    async fn serve(&self, answer: &str) -> String {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let read = stream.read(&mut head).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(head[..read].to_vec()).unwrap()
    }

    async fn nobody_came(&self) {
        let came = tokio::time::timeout(Duration::from_millis(20), self.listener.accept()).await;
        assert!(came.is_err(), "somebody connected");
        assert!(self.names.reached.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_request_is_for_the_path_at_its_host() {
    for (url, line, host, port) in [
        ("http://example.com", "GET / HTTP/1.1", "host: example.com\r\n", 80),
        ("http://example.com:443/a/b?c=d", "GET /a/b?c=d HTTP/1.1", "host: example.com:443\r\n", 443),
        ("http://example.com?q=1", "GET /?q=1 HTTP/1.1", "host: example.com\r\n", 80),
    ] {
        let place = place(&[&["93.184.215.14"]]).await;
        let mut request = get(url);
        request.headers_mut().insert("host", "inside.example".parse().unwrap());
        let answering = place.serve("HTTP/1.1 203 x\r\ncontent-length: 5\r\n\r\nhello");
        let (answer, sent) = tokio::join!(place.outbound.send(request, Reach::Public), answering);
        let answer = answer.unwrap();
        assert_eq!(answer.status(), StatusCode::NON_AUTHORITATIVE_INFORMATION);
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "hello");
        assert!(sent.starts_with(line) && sent.contains(host) && !sent.contains("inside"), "{sent}");
        assert!(sent.contains("connection: close\r\n"), "{sent}");
        assert_eq!(*place.names.reached.lock().unwrap(), [SocketAddr::new(PUBLIC, port)]);
    }
}

#[tokio::test]
async fn nothing_inside_is_connected_to_in_any_spelling() {
    for url in [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "https://10.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::1]/",
        "http://[fd00:ec2::254]/",
        "http://inside.example/",
        "https://inside.example/",
    ] {
        let place = place(&[&["192.168.0.7"]]).await;
        let answer = place.outbound.send(get(url), Reach::Public).await;
        assert_eq!(answer.unwrap_err(), OutboundError::Refused(NOT_PUBLIC), "{url}");
        place.nobody_came().await;
    }
}

/// The system's resolver takes these for addresses: they are looked at as such.
#[tokio::test]
async fn odd_spellings_of_addresses_are_what_they_lead_to() {
    for host in ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "localhost"] {
        let answer = Outbound::default().send(get(&format!("http://{host}/")), Reach::Public).await;
        assert_eq!(answer.unwrap_err(), OutboundError::Refused(NOT_PUBLIC), "{host}");
    }
}

/// One address inside among public ones is refused: whoever connected might take it.
#[tokio::test]
async fn every_address_of_a_name_is_public() {
    for answers in [&["93.184.215.14", "127.0.0.1"][..], &["fe80::1", "93.184.215.14"], &["::ffff:10.1.1.1"]] {
        let place = place(&[answers]).await;
        let answer = place.outbound.send(get("http://example.com/"), Reach::Public).await;
        assert_eq!(answer.unwrap_err(), OutboundError::Refused(NOT_PUBLIC), "{answers:?}");
        place.nobody_came().await;
    }
}

/// A name that leads elsewhere when it is asked for again: it is asked for once, and that address is connected to.
#[tokio::test]
async fn a_name_is_resolved_once() {
    let place = place(&[&["93.184.215.14"], &["127.0.0.1"]]).await;
    let answering = place.serve("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let (answer, _) = tokio::join!(place.outbound.send(get("http://example.com/"), Reach::Public), answering);
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
    assert_eq!(place.names.asked.load(Ordering::SeqCst), 1);
    assert_eq!(*place.names.reached.lock().unwrap(), [SocketAddr::new(PUBLIC, 80)]);
    let again = place.outbound.send(get("http://example.com/"), Reach::Public).await;
    assert_eq!(again.unwrap_err(), OutboundError::Refused(NOT_PUBLIC));
}

#[tokio::test]
async fn what_is_no_address_of_the_web_is_refused() {
    for (url, why) in [
        ("http://example.com:22/", "only the ports 80 and 443"),
        ("https://example.com:8443/", "only the ports 80 and 443"),
        ("http://user@example.com/", "a user in it"),
        ("http://user:secret@example.com/", "a user in it"),
        ("ftp://example.com/", "must begin with https:// or http://"),
        ("file://example.com/etc/passwd", "must begin with https:// or http://"),
        ("/etc/passwd", "no host"),
    ] {
        let place = place(&[&["93.184.215.14"]]).await;
        let error = place.outbound.send(get(url), Reach::Public).await.unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("secret"), "{url}: {error}");
        place.nobody_came().await;
    }
}

/// The operator's own servers may be anywhere, at any port.
#[tokio::test]
async fn the_operator_may_lead_anywhere() {
    let place = place(&[&["127.0.0.1"]]).await;
    let answering = place.serve("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let request = get("http://inside.example:8000/mcp");
    let (answer, _) = tokio::join!(place.outbound.send(request, Reach::Anywhere), answering);
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn an_answer_that_is_dropped_closes_its_connection() {
    let place = place(&[&["93.184.215.14"]]).await;
    let sending = place.outbound.send(get("http://example.com/"), Reach::Public);
    let serving = async {
        let (mut stream, _) = place.listener.accept().await.unwrap();
        let mut head = [0; 1024];
        assert!(stream.read(&mut head).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nx").await.unwrap();
        stream
    };
    let (answer, mut stream) = tokio::join!(sending, serving);
    drop(answer.unwrap());
    let end = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut [0; 16])).await.unwrap();
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
}

/// What breaks off says so, and a head that does not end is no reason to keep it all.
#[tokio::test]
async fn bad_answers_are_errors() {
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(1 << 20));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(10_000));
    for answer in ["", "SSH-2.0-OpenSSH_9.9\r\n", "HTTP/1.1 200", &endless, &many] {
        let place = place(&[&["93.184.215.14"]]).await;
        let serving = async {
            let (mut stream, _) = place.listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
            // It is closed when too much has come.
            _ = stream.write_all(answer.as_bytes()).await;
        };
        let (found, ()) = tokio::join!(place.outbound.send(get("http://example.com/"), Reach::Public), serving);
        let error = found.map(|answer| answer.status()).unwrap_err();
        assert!(matches!(error, OutboundError::Broken(_)), "{error:?}");
    }
    let place = place(&[&["93.184.215.14"]]).await;
    let answering = place.serve("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello");
    let (answer, _) = tokio::join!(place.outbound.send(get("http://example.com/"), Reach::Public), answering);
    let body = answer.unwrap().into_body().collect().await;
    assert!(matches!(body, Err(OutboundError::Broken(_))), "{body:?}");
}
