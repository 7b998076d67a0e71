//! What a command says, and to whom. That nobody listens is no reason to panic: a reader that is gone has what it
//! wanted, and with stderr gone there is nobody left to tell.

use std::io::{ErrorKind, Write};

use anyhow::Context;

use crate::progress;

/// Writes what the command was asked for to stdout.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let write = || {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    match progress::aside(write) {
        // `godex models | head -1`
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done.context("cannot write to stdout"),
    }
}

/// The same for one who says more and more. False: nobody listens.
pub(crate) fn print_more(text: &str) -> anyhow::Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        done => done.map(|()| true).context("cannot write to stdout"),
    }
}

/// Writes to stderr what else there is to say.
pub(crate) fn tell(text: &str) {
    progress::aside(|| {
        let mut err = std::io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    });
}
