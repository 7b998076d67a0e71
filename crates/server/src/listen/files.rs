//! File descriptors: as many as the system allows, and what is done when they run out.

use std::io;

use tokio::net::TcpStream;

/// Lets this process open as many files as it may be let: the usual limit is for programs of another age. Where that
/// does not work, it stays as it is.
#[cfg(unix)]
pub(crate) fn raise_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "the limit of open files stays as it is");
        }
    }
}

#[cfg(not(unix))]
pub(crate) const fn raise_limit() {}

/// So many are kept for what is running: connections to providers, the store, files.
#[cfg(unix)]
const KEPT: u64 = 64;

/// Whether this connection has one of the last file descriptors. A new one always has the smallest number that is free.
#[cfg(unix)]
pub(super) fn nearly_out(stream: &TcpStream) -> bool {
    use std::os::fd::AsRawFd;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let number = u64::try_from(stream.as_raw_fd()).unwrap_or_default();
    limit.is_some_and(|limit| number >= limit.saturating_sub(KEPT.min(limit / 4)))
}

#[cfg(not(unix))]
pub(super) const fn nearly_out(_stream: &TcpStream) -> bool {
    false
}

/// Whether there was no file descriptor for a connection.
#[cfg(unix)]
pub(super) fn is_out(error: &io::Error) -> bool {
    let out = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    out.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(not(unix))]
pub(super) const fn is_out(_error: &io::Error) -> bool {
    false
}
