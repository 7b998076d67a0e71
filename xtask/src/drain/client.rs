//! Clients that keep their connections as pools do: one that was announced to end, or has ended, is not used again, and a
//! request that was sent is never sent twice. What comes back must be whole.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

/// Longer than anything here takes; who waits that long has found a hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// Failures that are told.
const TOLD: usize = 10;

/// What all clients of a run share.
#[derive(Default)]
struct Shared {
    over: AtomicBool,
    requests: AtomicUsize,
    streaming: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

/// Clients at work.
pub(super) struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// So many that stream all the time, and so many that ask now and then on a connection that idles in between, but
    /// never for longer than `pause`.
    pub(super) fn start(address: SocketAddr, streaming: usize, asking: usize, pause: Duration) -> Result<Self> {
        let (shared, began) = (Arc::new(Shared::default()), Instant::now());
        let client = |number: usize| {
            let shared = Arc::clone(&shared);
            start(move || {
                let mut client = Client { connection: Connection::new(address), number, turns: 0 };
                while !shared.over.load(Ordering::Relaxed) {
                    let asked = if number < streaming { client.stream(&shared) } else { client.ask(pause) };
                    shared.requests.fetch_add(1, Ordering::Relaxed);
                    if let Err(error) = asked {
                        client.connection.open = None;
                        let failure = format!("client {number}, {} ms: {error:#}", began.elapsed().as_millis());
                        shared.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
                    }
                }
            })
        };
        let clients = (0..streaming + asking).map(client).collect::<Result<_>>()?;
        Ok(Self { shared, clients })
    }

    /// Streams under way.
    pub(super) fn streaming(&self) -> usize {
        self.shared.streaming.load(Ordering::Relaxed)
    }

    /// Requests that have ended.
    pub(super) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Lets everybody end what they began: how many requests there were. Any that failed is an error.
    pub(super) fn end(mut self) -> Result<usize> {
        self.shared.over.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            client.join().map_err(|_panic| anyhow!("a client panicked"))?;
        }
        let requests = self.requests();
        let failures = self.shared.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let mut told = String::new();
        for failure in failures.iter().take(TOLD) {
            write!(told, "\n{failure}")?;
        }
        ensure!(failures.is_empty(), "{} of {requests} requests failed:{told}", failures.len());
        Ok(requests)
    }
}

/// A thread with a small stack: there are hundreds of them.
pub(crate) fn start<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    thread::Builder::new().stack_size(256 * 1024).spawn(work).context("cannot start a thread")
}

struct Client {
    connection: Connection,
    number: usize,
    turns: usize,
}

/// A connection that is kept as long as the server does, and made anew when it is needed.
pub(crate) struct Connection {
    address: SocketAddr,
    open: Option<BufReader<TcpStream>>,
}

impl Connection {
    pub(crate) const fn new(address: SocketAddr) -> Self {
        Self { address, open: None }
    }

    /// The head, in small letters, and the body of the answer, whatever it is.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: &str) -> Result<(String, String)> {
        let mut connection = match self.open.take().filter(is_open) {
            Some(connection) => connection,
            None => connect(self.address).context("cannot connect")?,
        };
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        connection.get_mut().write_all(request.as_bytes()).context("cannot send")?;
        let (head, body) = read(&mut connection)?;
        self.open = (!head.contains("\r\nconnection: close\r\n")).then_some(connection);
        Ok((head, body))
    }
}

impl Client {
    /// A stream of up to two seconds: some are under way for longer than the delay of an end.
    fn stream(&mut self, shared: &Shared) -> Result<()> {
        self.turns += 1;
        let chunks = 1 + (self.number + self.turns) % 8;
        let body = format!(r#"{{"model":"steady","input":"slow {chunks}","stream":true,"store":false}}"#);
        shared.streaming.fetch_add(1, Ordering::Relaxed);
        let answer = self.call("POST", "/v1/responses", &body);
        shared.streaming.fetch_sub(1, Ordering::Relaxed);
        let answer = answer?;
        let terminal = answer.lines().rfind(|line| line.starts_with("event: ")).unwrap_or_default();
        ensure!(terminal == "event: response.completed", "a stream ended with {terminal:?}: {answer}");
        Ok(())
    }

    /// A pause and a small request.
    fn ask(&mut self, pause: Duration) -> Result<()> {
        self.turns += 1;
        let tenth = u32::try_from((self.number * 7 + self.turns * 3) % 10)?;
        thread::sleep(pause * tenth / 10);
        if self.turns.is_multiple_of(2) {
            return self.call("GET", "/v1/models", "").map(drop);
        }
        let answer = self.call("POST", "/v1/responses", r#"{"model":"steady","input":"echo Hi"}"#)?;
        ensure!(answer.contains(r#""status":"completed""#), "{answer}");
        Ok(())
    }

    /// The body of an answer with status 200.
    fn call(&mut self, method: &str, path: &str, body: &str) -> Result<String> {
        let (head, body) = self.connection.send(method, path, body)?;
        ensure!(head.starts_with("http/1.1 200 "), "{head}{body}");
        Ok(body)
    }
}

fn connect(address: SocketAddr) -> Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(stream))
}

/// Whether the server has not ended it yet, as far as is known here.
fn is_open(connection: &BufReader<TcpStream>) -> bool {
    let stream = connection.get_ref();
    let blocking = |blocking: bool| stream.set_nonblocking(!blocking).is_ok();
    let silent =
        blocking(false) && stream.peek(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    blocking(true) && silent
}

/// The head, in small letters, and the body.
fn read(connection: &mut BufReader<TcpStream>) -> Result<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if connection.read_line(&mut head).context("cannot read")? == 0 {
            bail!("the connection ended after {head:?}");
        }
    }
    head.make_ascii_lowercase();
    let mut body = Vec::new();
    if let Some(length) = head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
        body.resize(length.parse()?, 0);
        connection.read_exact(&mut body).context("half an answer")?;
    } else {
        while read_chunk(connection, &mut body).with_context(|| format!("{head}{}", String::from_utf8_lossy(&body)))? {}
    }
    Ok((head, String::from_utf8(body)?))
}

/// Appends the next chunk; false after the last.
fn read_chunk(connection: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> Result<bool> {
    let mut line = String::new();
    ensure!(connection.read_line(&mut line)? > 0, "the stream was cut");
    let (length, begin) = (usize::from_str_radix(line.trim(), 16)?, body.len());
    body.resize(begin + length + 2, 0);
    connection.read_exact(&mut body[begin..]).context("the stream was cut")?;
    body.truncate(begin + length);
    Ok(length > 0)
}
