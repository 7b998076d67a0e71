//! Pages that try to get somewhere else, to be endless, or to be something else. The network is one in which every public
//! address is a server of this test.

use std::future::Future;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::outbound::Network;

/// Names that end in `.inside` lead inside, `turning.example` at its second lookup; all others to a public address.
#[derive(Debug)]
struct Names {
    server: SocketAddr,
    turned: Mutex<bool>,
    reached: Mutex<Vec<SocketAddr>>,
}

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 215, 14));

impl Network for Names {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let turned = name == "turning.example" && std::mem::replace(&mut *self.turned.lock().unwrap(), true);
        let inside = turned || name == "localhost" || name.ends_with(".inside");
        Ok(vec![if inside { Ipv4Addr::LOCALHOST.into() } else { PUBLIC }])
    }

    fn reach(&self, address: SocketAddr) -> SocketAddr {
        self.reached.lock().unwrap().push(address);
        self.server
    }
}

struct Site {
    outbound: Outbound,
    names: Arc<Names>,
    listener: TcpListener,
    /// The heads of the requests that came.
    asked: Mutex<Vec<String>>,
}

impl Site {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let names = Arc::new(Names { server, turned: Mutex::default(), reached: Mutex::default() });
        let outbound = Outbound::default();
        outbound.among(Arc::<Names>::clone(&names));
        Self { outbound, names, listener, asked: Mutex::default() }
    }

    async fn accept(&self) -> TcpStream {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        self.asked.lock().unwrap().push(String::from_utf8(head).unwrap());
        stream
    }

    /// Opens a page while the site does what it does.
    async fn open(&self, url: &str, domains: &[&str], serving: impl Future<Output = ()>) -> Result<Page, String> {
        let domains: Vec<String> = domains.iter().map(|&domain| domain.to_owned()).collect();
        tokio::select! {
            page = open(&self.outbound, url, &domains) => page,
            () = async { serving.await; std::future::pending().await } => unreachable!(),
        }
    }

    /// Answers every request with the same.
    async fn always(&self, answer: &[u8]) {
        loop {
            let mut stream = self.accept().await;
            // Whoever has enough closes it.
            _ = stream.write_all(answer).await;
        }
    }

    fn reached_only(&self, address: IpAddr) {
        assert!(self.names.reached.lock().unwrap().iter().all(|reached| reached.ip() == address));
    }
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{head}\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

fn html(body: &str) -> Vec<u8> {
    answer("content-type: text/html; charset=utf-8\r\n", body.as_bytes())
}

fn to(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_page_is_text_with_links() {
    let site = Site::new().await;
    let body = html("<title>T</title><h1>Ü</h1><p>See <a href='/b'>b</a>.");
    let page = site.open("http://a.example/x#part", &[], site.always(&body)).await.unwrap();
    assert_eq!((page.url.as_str(), page.title.as_str()), ("http://a.example/x", "T"));
    assert_eq!(page.text, "# Ü\n\nSee [b](http://a.example/b).");
    assert_eq!((page.links, page.is_cut), (vec!["http://a.example/b".to_owned()], false));
    let asked = site.asked.lock().unwrap().remove(0);
    assert!(asked.starts_with("GET /x HTTP/1.1\r\n") && asked.contains("user-agent: godex/"), "{asked}");
    assert!(asked.contains("host: a.example\r\n") && asked.contains("accept-encoding: gzip, zstd\r\n"), "{asked}");
    for word in ["cookie", "authorization", "referer"] {
        assert!(!asked.contains(word), "{asked}");
    }
}

#[tokio::test]
async fn text_of_all_kinds_is_opened() {
    let packed = gzip(b"<p>packed");
    let zstd = zstd::encode_all(b"<p>packed".as_slice(), 0).unwrap();
    for (head, body, expected) in [
        ("content-type: text/plain\r\n", b"a < b".as_slice(), "a < b"),
        ("content-type: application/json\r\n", b"{\"a\":1}", "{\"a\":1}"),
        ("content-type: application/ld+json; charset=utf-8\r\n", b"{}", "{}"),
        ("content-type: application/rss+xml\r\n", b"<rss/>", "<rss/>"),
        ("content-type: TEXT/HTML; Charset=\"ISO-8859-1\"\r\n", b"<p>caf\xe9", "café"),
        ("content-type: application/xhtml+xml\r\n", b"<script src='x'/><p>x</p>", "x"),
        ("", b"<p>x", "x"),
        ("", b"plain", "plain"),
        ("content-type: text/html\r\ncontent-encoding: gzip\r\n", &packed, "packed"),
        ("content-type: text/html\r\ncontent-encoding: zstd\r\n", &zstd, "packed"),
        ("content-type: text/html\r\ncontent-encoding: identity\r\n", b"<p>x", "x"),
        ("content-type: text/html\r\n", b"", ""),
    ] {
        let site = Site::new().await;
        let page = site.open("http://a.example/", &[], site.always(&answer(head, body))).await;
        assert_eq!(page.as_ref().map(|page| page.text.as_str()), Ok(expected), "{head}");
    }
}

/// Whatever leads inside is not followed there, whoever says so.
#[tokio::test]
async fn no_address_leads_inside() {
    for (location, why) in [
        ("http://169.254.169.254/latest/meta-data/", "not at a public address"),
        ("http://127.0.0.1/", "not at a public address"),
        ("http://[::ffff:127.0.0.1]/", "not at a public address"),
        ("http://2130706433/", "not at a public address"),
        ("http://0x7f.1/", "not at a public address"),
        ("http://database.inside/", "not at a public address"),
        ("https://localhost/", "not at a public address"),
        ("//127.0.0.1/x", "not at a public address"),
        ("http://b.example:8080/", "only the ports 80 and 443"),
        ("http://b.example:22/", "only the ports 80 and 443"),
        ("file:///etc/passwd", "only addresses that begin with"),
        ("data:text/html,x", "only addresses that begin with"),
        ("gopher://b.example/", "only addresses that begin with"),
        ("http://me:secret@b.example/", "has a user in it"),
    ] {
        let site = Site::new().await;
        let first = site.open(location.trim_start_matches("//"), &[], site.always(&html("x"))).await;
        assert!(first.is_err(), "{location}");
        assert_eq!(site.asked.lock().unwrap().len(), 0, "{location}");
        let error = site.open("http://a.example/", &[], site.always(&to(location))).await.unwrap_err();
        assert!(
            error.contains(why) && !error.contains("secret") && !error.contains("meta-data"),
            "{location}: {error}"
        );
        assert_eq!(site.asked.lock().unwrap().len(), 1, "{location}");
        site.reached_only(PUBLIC);
    }
}

#[tokio::test]
async fn a_name_that_turns_is_not_followed() {
    let site = Site::new().await;
    let error = site.open("http://turning.example/", &[], site.always(&to("/again"))).await.unwrap_err();
    assert!(error.contains("not at a public address"), "{error}");
    assert_eq!(site.asked.lock().unwrap().len(), 1);
    site.reached_only(PUBLIC);
}

#[tokio::test]
async fn redirects_are_followed_and_not_for_ever() {
    let site = Site::new().await;
    let serving = async {
        for location in ["http://b.example/x", "../y", "?z#f", "//c.example/d/"] {
            site.accept().await.write_all(&to(location)).await.unwrap();
        }
        site.always(&html("<a href=e>there</a>")).await;
    };
    let page = site.open("http://a.example/", &[], serving).await.unwrap();
    assert_eq!((page.url.as_str(), page.text.as_str()), ("http://c.example/d/", "[there](http://c.example/d/e)"));
    let error = site.open("http://a.example/", &[], site.always(&to("/"))).await.unwrap_err();
    assert_eq!(error, "The page could not be opened: it was redirected more than 5 times.");
    let nowhere = b"HTTP/1.1 301 x\r\ncontent-length: 0\r\n\r\n";
    let error = site.open("http://a.example/", &[], site.always(nowhere)).await.unwrap_err();
    assert!(error.contains("a.example redirects to nowhere"), "{error}");
}

#[tokio::test]
async fn only_the_domains_of_the_search_are_opened() {
    for (url, domains, is_opened) in [
        ("http://a.example/", &["a.example"][..], true),
        ("http://A.Example./", &["a.example"], true),
        ("http://b.a.example/", &["c.example", "A.example"], true),
        ("http://ba.example/", &["a.example"], false),
        ("http://a.example.evil.example/", &["a.example"], false),
        ("http://a.example/", &[""], false),
        ("http://a.example/", &["."], false),
        ("http://a.example/", &[], true),
    ] {
        let site = Site::new().await;
        let page = site.open(url, domains, site.always(&html("x"))).await;
        assert_eq!(page.is_ok(), is_opened, "{url} {domains:?}: {page:?}");
        assert_eq!(site.asked.lock().unwrap().len(), usize::from(is_opened));
    }
    let site = Site::new().await;
    let error =
        site.open("http://a.example/", &["a.example"], site.always(&to("http://b.example/"))).await.unwrap_err();
    assert!(error.contains("b.example is not among the domains"), "{error}");
    assert_eq!(site.asked.lock().unwrap().len(), 1);
}

/// Ten gigabytes are promised, and sent for as long as somebody reads: what is read is two megabytes.
#[tokio::test]
async fn an_endless_body_is_cut() {
    let heads = ["content-length: 10737418240\r\n", "transfer-encoding: chunked\r\n"];
    for head in heads {
        let site = Site::new().await;
        let serving = async {
            let mut stream = site.accept().await;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n{head}\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
            let mut sent = 0_u64;
            while sent < 10 << 30 && stream.write_all(chunk.as_bytes()).await.is_ok() {
                sent += chunk.len() as u64;
            }
        };
        let page = site.open("http://a.example/", &[], serving).await.unwrap();
        assert!(page.is_cut && page.text.len() <= MOST_BYTES && page.text.len() > MOST_BYTES / 2, "{head}");
    }
}

#[tokio::test]
async fn bombs_stop_at_the_limit() {
    let much = vec![b'x'; 16 << 20];
    let (zstd, gzip) = (zstd::encode_all(much.as_slice(), 3).unwrap(), gzip(&much));
    for (encoding, body) in [("gzip", gzip.repeat(50)), ("zstd", zstd), ("gzip", gzip)] {
        let site = Site::new().await;
        let head = format!("content-type: text/plain\r\ncontent-encoding: {encoding}\r\n");
        let page = site.open("http://a.example/", &[], site.always(&answer(&head, &body))).await.unwrap();
        assert!(page.is_cut && page.text.len() == MOST_BYTES, "{encoding}");
    }
}

#[tokio::test]
async fn what_is_no_text_is_refused() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice();
    for (head, body, why) in [
        ("content-type: application/pdf\r\n", b"%PDF-1.7".as_slice(), "it is a PDF"),
        ("content-type: image/png\r\n", png, "it is image/png"),
        ("content-type: application/octet-stream\r\n", png, "it is application/octet-stream"),
        ("content-type: text/html\r\n", png, "said to be text, but it is not"),
        ("content-type: text/html\r\n", b"<p>\0\0\0\x01\x02", "said to be text, but it is not"),
        ("content-type: text/html\r\n", b"%PDF-1.7 abc", "said to be text, but it is not"),
        ("", b"\x7fELF\x02\x01", "said to be text, but it is not"),
        ("content-type: text/html\r\ncontent-encoding: br\r\n", b"x", "packed in a way that was not asked for"),
        ("content-type: text/html\r\ncontent-encoding: gzip, gzip\r\n", b"x", "packed in a way"),
        ("content-type: text/html\r\ncontent-encoding: gzip\r\ncontent-encoding: gzip\r\n", b"x", "more than once"),
        ("content-type: text/html\r\ncontent-encoding: gzip\r\n", b"no gzip", "cannot be unpacked"),
        ("content-type: text/html\r\ncontent-encoding: zstd\r\n", b"no zstd", "cannot be unpacked"),
    ] {
        let site = Site::new().await;
        let error = site.open("http://a.example/", &[], site.always(&answer(head, body))).await.unwrap_err();
        assert!(error.starts_with("The page could not be opened: ") && error.contains(why), "{head}: {error}");
    }
}

#[tokio::test]
async fn errors_of_the_site_are_told() {
    let short = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 100\r\n\r\nshort".as_slice();
    for (answer, why) in [
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 6\r\n\r\nsecret".as_slice(), "a.example answered 404 Not Found"),
        (b"HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n", "a.example answered 500"),
        (short, "the connection broke off"),
        (b"", "the connection broke off"),
        (b"hello", "the connection broke off"),
    ] {
        let site = Site::new().await;
        let error = site.open("http://a.example/path?key=secret", &[], site.always(answer)).await.unwrap_err();
        assert!(error.contains(why) && !error.contains("secret"), "{error}");
    }
    let site = Site::new().await;
    for url in ["", "nonsense", "/etc/passwd", "http://", "https://a.example:99999/", "http://[::1"] {
        let error = site.open(url, &[], site.always(b"")).await.unwrap_err();
        assert!(error.contains("no URL such as"), "{url}: {error}");
    }
    let error = site.open(&format!("http://a.example/{}", "x".repeat(9000)), &[], site.always(b"")).await.unwrap_err();
    assert!(error.contains("too long"), "{error}");
}

/// A byte now and then keeps nobody waiting for longer than the deadline, in the head, in the body, and from one redirect
/// to the next. The clock is the test's.
#[tokio::test(start_paused = true)]
async fn slow_pages_end_at_the_deadline() {
    for slow in
        ["HTTP/1.1 200 OK\r\nx: y", "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 9999\r\n\r\n<p>"]
    {
        let site = Site::new().await;
        let serving = async {
            let mut stream = site.accept().await;
            stream.write_all(slow.as_bytes()).await.unwrap();
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                stream.write_all(b"z").await.unwrap();
            }
        };
        let error = site.open("http://a.example/", &[], serving).await.unwrap_err();
        assert_eq!(error, "The page could not be opened: it did not come within 15 seconds.");
    }
    let site = Site::new().await;
    let serving = async {
        loop {
            let mut stream = site.accept().await;
            tokio::time::sleep(Duration::from_secs(4)).await;
            _ = stream.write_all(&to("/")).await;
        }
    };
    let error = site.open("http://a.example/", &[], serving).await.unwrap_err();
    assert!(error.contains("within 15 seconds"), "{error}");
}

/// Who gives up closes the connection.
#[tokio::test]
async fn a_page_that_nobody_waits_for_is_let_go() {
    let site = Site::new().await;
    let mut stream = {
        let opening = open(&site.outbound, "http://a.example/", &[]);
        tokio::select! {
            page = opening => unreachable!("{page:?}"),
            stream = site.accept() => stream,
        }
    };
    let end = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut [0; 16])).await.unwrap();
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
}
