//! The listening socket: how it is made, how connections are taken from it, and how it is closed without turning
//! anybody away who has already come.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What may wait in the kernel, which doubles it, for a client that does not read.
const KERNEL_UNSENT: u32 = 128 * 1024;

/// How long to rest when no connection can be accepted (no file descriptors left): no spinning.
const BACK_OFF: Duration = Duration::from_millis(50);

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

/// The next connection, when there is a slot for it.
pub(super) async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, IpAddr, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer.ip(), slot)),
        Err(error) => {
            tracing::warn!(%error, "cannot accept connections");
            tokio::time::sleep(BACK_OFF).await;
            None
        }
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
