//! The listening socket: how it is made, how connections are taken from it, and how it is closed without turning
//! anybody away who has already come.

use std::fmt::Write;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::files;
use crate::error::{ApiError, Code};
use crate::tasks::Tasks;

/// What may wait in the kernel, which doubles it, for a client that does not read.
const KERNEL_UNSENT: u32 = 128 * 1024;

/// How long to rest when no connection can be accepted (no file descriptors left): no spinning.
const BACK_OFF: Duration = Duration::from_millis(50);

/// For so long a connection beyond the cap waits for another to end, before whoever comes is sent away.
const FULL: Duration = Duration::from_secs(1);

/// It is logged as often that connections are refused.
const TELL_AGAIN: Duration = Duration::from_secs(10);

/// How many are sent away at the same time, and how long that may take.
const REFUSED_AT_ONCE: usize = 16;
const FAREWELL: Duration = Duration::from_secs(1);

/// Connections that may wait to be accepted. The usual 128 drops some when a few hundred clients come at once,
/// and a dropped one comes back a second later.
const BACKLOG: u32 = 4096;

/// How long a handshake that has begun may take to end, before the socket closes.
const HANDSHAKE: Duration = Duration::from_millis(100);

/// Listens on the first address of `host:port` that can be had.
pub(crate) async fn bind(address: &str) -> io::Result<TcpListener> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    for candidate in tokio::net::lookup_host(address).await? {
        match listen_on(candidate) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Accepted sockets inherit it. Without a cap the kernel takes megabytes for a client that does not read.
    socket.set_send_buffer_size(KERNEL_UNSENT)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Takes connections in, as many as there may be.
///
/// One beyond that waits in the kernel's queue: others may end soon. When none has for a while, whoever comes is told so
/// at once, and so is everybody when the file descriptors run out; those who are in do not notice.
#[derive(Debug)]
pub(super) struct Door {
    slots: Arc<Semaphore>,
    /// Those who are told at the same time that they cannot come in.
    refused: Arc<Semaphore>,
    /// Since when there is no slot.
    full_since: Option<Instant>,
    /// When it was logged that somebody was refused.
    told: Option<Instant>,
    reserve: Reserve,
    tasks: Tasks,
    /// Nothing can be said before a handshake, so they are only closed.
    tls: bool,
}

enum Accepted {
    In(TcpStream, IpAddr, OwnedSemaphorePermit),
    Refused(TcpStream, OwnedSemaphorePermit),
}

impl Door {
    pub(super) fn new(connections: usize, tasks: Tasks, tls: bool) -> Self {
        let slots = Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS)));
        let refused = Arc::new(Semaphore::new(REFUSED_AT_ONCE));
        Self { slots, refused, full_since: None, told: None, reserve: Reserve::new(), tasks, tls }
    }

    /// The next connection that may come in.
    pub(super) async fn accept(&mut self, listener: &TcpListener) -> Option<(TcpStream, IpAddr, OwnedSemaphorePermit)> {
        match self.next(listener).await {
            Ok(Accepted::In(stream, peer, slot)) if !files::nearly_out(&stream) => Some((stream, peer, slot)),
            Ok(Accepted::In(stream, ..)) => {
                self.tell("too many open files");
                // Without a place there to say so, it is only closed.
                if let Ok(place) = Arc::clone(&self.refused).try_acquire_owned() {
                    self.refuse(stream, place, "The server has too many open files.");
                }
                None
            }
            Ok(Accepted::Refused(stream, place)) => {
                self.tell("as many connections as there may be");
                self.refuse(stream, place, "The server has as many connections as it may.");
                None
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                if files::is_out(&error) {
                    self.reserve.refuse(listener, self.tls).await;
                } else {
                    tokio::time::sleep(BACK_OFF).await;
                }
                None
            }
        }
    }

    async fn next(&mut self, listener: &TcpListener) -> io::Result<Accepted> {
        let slot = match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(slot) => Some(slot),
            Err(_) => {
                let since = *self.full_since.get_or_insert_with(Instant::now);
                let slot = Arc::clone(&self.slots).acquire_owned();
                // What waits here is dropped and made anew by whoever accepts: so the time is one that stays.
                tokio::time::timeout_at(since + FULL, slot).await.ok().and_then(Result::ok)
            }
        };
        if let Some(slot) = slot {
            self.full_since = None;
            return listener.accept().await.map(|(stream, peer)| Accepted::In(stream, peer.ip(), slot));
        }
        let place = Arc::clone(&self.refused).acquire_owned();
        tokio::select! {
            biased;
            // A slot is free again, for whoever comes next.
            slot = Arc::clone(&self.slots).acquire_owned() => {
                self.full_since = None;
                let slot = slot.map_err(io::Error::other)?;
                listener.accept().await.map(|(stream, peer)| Accepted::In(stream, peer.ip(), slot))
            }
            refused = async {
                let place = place.await.map_err(io::Error::other)?;
                Ok::<_, io::Error>((listener.accept().await?.0, place))
            } => refused.map(|(stream, place)| Accepted::Refused(stream, place)),
        }
    }

    /// Logs that somebody is refused, now and then.
    fn tell(&mut self, why: &'static str) {
        if self.told.is_none_or(|told| told.elapsed() >= TELL_AGAIN) {
            self.told = Some(Instant::now());
            tracing::warn!(why, "connections are refused");
        }
    }

    fn refuse(&self, stream: TcpStream, place: OwnedSemaphorePermit, why: &'static str) {
        if self.tls {
            return;
        }
        self.tasks.spawn(async move {
            let _ = tokio::time::timeout(FAREWELL, say_refused(stream, why)).await;
            drop(place);
        });
    }
}

/// Hears the request, so that its answer is not lost with a reset, and answers that there is no place.
async fn say_refused(mut stream: TcpStream, why: &str) {
    let mut heard = [0; 4096];
    let _ = stream.read(&mut heard).await;
    if stream.write_all(refusal(why).as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        while stream.read(&mut heard).await.is_ok_and(|read| read > 0) {}
    }
}

/// A whole answer: 503.
fn refusal(why: &str) -> String {
    let error = ApiError::new(Code::Overloaded, format!("{why} Please retry in a moment.")).response();
    let mut text = format!("HTTP/1.1 {}\r\nconnection: close\r\n", error.status());
    for (name, value) in error.headers() {
        let _ = write!(text, "{name}: {}\r\n", value.to_str().unwrap_or_default());
    }
    let _ = write!(text, "content-length: {}\r\n\r\n", error.body().len());
    text.push_str(&String::from_utf8_lossy(error.body()));
    text
}

/// A file descriptor that is kept for the moment when there is none left: with it, one connection after the other can be
/// taken, told so, and closed. Otherwise they would all wait, and hear nothing.
#[derive(Debug)]
struct Reserve(Option<std::fs::File>);

impl Reserve {
    fn new() -> Self {
        Self(std::fs::File::open("/dev/null").ok())
    }

    /// Takes about as long as a rest, so that nothing spins.
    async fn refuse(&mut self, listener: &TcpListener, tls: bool) {
        let rest = tokio::time::sleep(BACK_OFF);
        if self.0.take().is_some() {
            let told = async {
                if let Ok((stream, _)) = listener.accept().await
                    && !tls
                {
                    say_refused(stream, "The server has too many open files.").await;
                }
            };
            let _ = tokio::time::timeout(BACK_OFF, told).await;
        }
        rest.await;
        *self = Self::new();
    }
}

/// Closes the socket. A client whose connection was made believes that it will be answered, and what still waits when
/// the socket closes is reset by the kernel: these are given back, slots or not.
pub(super) async fn close(listener: TcpListener) -> Vec<(TcpStream, IpAddr)> {
    if ignore_newcomers(&listener) {
        tokio::time::sleep(HANDSHAKE).await;
    }
    let mut waiting = Vec::new();
    // Without the runtime, whose idea of what waits may be older than what does.
    if let Ok(listener) = listener.into_std() {
        while let Ok((stream, peer)) = listener.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            waiting.extend(stream.map(|stream| (stream, peer.ip())));
        }
    }
    waiting
}

/// From now on nobody begins a handshake; those that have begun can end. A newcomer hears nothing and tries again a
/// second later, when the socket is closed, or another process listens.
#[cfg(target_os = "linux")]
fn ignore_newcomers(listener: &TcpListener) -> bool {
    use socket2::{SockFilter, SockRef};

    // The packet is seen from its TCP header on. Dropped is a SYN that is no SYN-ACK.
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const SYN_OR_ACK: u32 = 0x12;
    const PROGRAM: &[SockFilter] = &[
        SockFilter::new(0x30, 0, 0, FLAGS),      // load that byte
        SockFilter::new(0x54, 0, 0, SYN_OR_ACK), // and these bits of it
        SockFilter::new(0x15, 0, 1, SYN),        // if it is that, go on, else skip one
        SockFilter::new(0x06, 0, 0, 0),          // drop
        SockFilter::new(0x06, 0, 0, u32::MAX),   // keep
    ];
    SockRef::from(listener).attach_filter(PROGRAM).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn ignore_newcomers(_listener: &TcpListener) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_who_came_are_let_in() {
        let listener = bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut came = Vec::new();
        for _ in 0..50 {
            came.push(TcpStream::connect(address).await.unwrap());
        }
        let waiting = close(listener).await;
        assert_eq!(waiting.len(), came.len());
        assert_eq!(TcpStream::connect(address).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    /// Not refused, so that the client's kernel tries again.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_newcomer_hears_nothing_and_is_served_by_the_next_process() {
        let listener = bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _before = TcpStream::connect(address).await.unwrap();
        assert!(ignore_newcomers(&listener));
        let mut newcomer = std::pin::pin!(TcpStream::connect(address));
        assert!(tokio::time::timeout(HANDSHAKE, newcomer.as_mut()).await.is_err(), "neither taken nor refused");
        assert_eq!(close(listener).await.len(), 1);
        let next = bind(&address.to_string()).await.unwrap();
        let (taken, connected) = tokio::join!(next.accept(), newcomer);
        assert!(taken.is_ok() && connected.is_ok());
    }
}
