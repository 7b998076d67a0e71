//! A balancer as operators have them: it asks each instance whether it is ready, gives new connections to those that are,
//! in turn, and passes bytes through. One that cannot be connected to costs nobody anything: nothing was sent yet. A
//! connection that is made stays where it is, and its bytes are sent once.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::client::start;
use crate::process::answers;

/// How often it asks.
const INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct Balancer {
    pub(super) address: SocketAddr,
    backends: Arc<[Backend]>,
    over: Arc<AtomicBool>,
}

struct Backend {
    address: SocketAddr,
    ready: AtomicBool,
}

impl Balancer {
    pub(super) fn start(backends: &[SocketAddr]) -> Result<Self> {
        let backend = |address: &SocketAddr| Backend { address: *address, ready: AtomicBool::new(false) };
        let backends: Arc<[Backend]> = backends.iter().map(backend).collect();
        let over = Arc::new(AtomicBool::new(false));
        for index in 0..backends.len() {
            let (backends, over) = (Arc::clone(&backends), Arc::clone(&over));
            start(move || look_after(&backends[index], &over))?;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (address, all) = (listener.local_addr()?, Arc::clone(&backends));
        let turn = Arc::new(AtomicUsize::new(0));
        start(move || {
            while let Ok((client, _)) = listener.accept() {
                let (backends, turn) = (Arc::clone(&all), Arc::clone(&turn));
                // Whoever finds nobody ready is cut off, and counts that as a failure.
                drop(start(move || pass(client, &backends, &turn)));
            }
        })?;
        Ok(Self { address, backends, over })
    }

    /// How many instances it takes for ready.
    pub(super) fn ready(&self) -> usize {
        self.backends.iter().filter(|backend| backend.ready.load(Ordering::Relaxed)).count()
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn look_after(backend: &Backend, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        backend.ready.store(answers(backend.address, "/ready").unwrap_or(false), Ordering::Relaxed);
        thread::sleep(INTERVAL);
    }
}

/// One connection, both ways, to its end.
fn pass(client: TcpStream, backends: &[Backend], turn: &AtomicUsize) -> io::Result<()> {
    let first = turn.fetch_add(1, Ordering::Relaxed);
    let candidates = (0..backends.len()).map(|next| &backends[(first + next) % backends.len()]);
    let mut ready = candidates.filter(|backend| backend.ready.load(Ordering::Relaxed));
    let server = ready.find_map(|backend| TcpStream::connect(backend.address).ok());
    let server = server.ok_or(io::ErrorKind::ConnectionRefused)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let (from, to) = (client.try_clone()?, server.try_clone()?);
    drop(start(move || copy(from, to)));
    copy(server, client)
}

fn copy(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return to.shutdown(Shutdown::Write),
            Ok(read) => to.write_all(&buffer[..read])?,
            Err(error) => {
                to.shutdown(Shutdown::Both)?;
                return Err(error);
            }
        }
    }
}
