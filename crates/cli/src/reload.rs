//! SIGHUP: the configuration is read anew, from the same places as at the start. One that is not good, or that differs
//! in what only a start reads, changes nothing, and the log says why. It ends the process only where it always did: when
//! the terminal that it was started in is closed.

use std::fs::File;
use std::io::IsTerminal;
use std::thread;

use anyhow::{Context, bail};
use server::Reloader;
use server::config::Origin;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::args::Flags;
use crate::causes;

/// SIGHUPs from now on: none that comes is missed, and none kills.
pub(crate) struct Hangups(Signal);

impl Hangups {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        Ok(Self(signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?))
    }

    /// Reloads at each of them. On a thread of its own: files are read, and the accept loop does not wait for that. What
    /// it returns is ready when the terminal is closed.
    pub(crate) fn reload(
        mut self,
        flags: Flags,
        origin: Origin,
        reloader: Reloader,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (runtime, mut origin) = (Handle::current(), origin);
        let (closed, was_closed) = oneshot::channel();
        let in_terminal = std::io::stdin().is_terminal();
        thread::spawn(move || {
            runtime.block_on(async move {
                while self.0.recv().await.is_some() {
                    if in_terminal && File::open("/dev/tty").is_err() {
                        tracing::info!("the terminal was closed");
                        let _ = closed.send(());
                        return;
                    }
                    match reload(&flags, &origin, &reloader) {
                        Ok(read) => origin = read,
                        // One line each, as `godex config check` says it.
                        Err(error) => causes(&error)
                            .lines()
                            .for_each(|line| tracing::error!("the configuration stays as it was: {line}")),
                    }
                }
            });
        });
        async move {
            if was_closed.await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

fn reload(flags: &Flags, before: &Origin, reloader: &Reloader) -> anyhow::Result<Origin> {
    // A pipe would be waited for, and all later signals with it.
    if let Origin::File(file) = before
        && std::fs::metadata(file).is_ok_and(|file| !file.is_file())
    {
        bail!("{}: not a file that can be read again", file.display());
    }
    let config = flags.load()?;
    let origin = config.origin.clone();
    match (before, &origin) {
        (Origin::Defaults, Origin::Defaults) => {
            tracing::info!("there is no configuration file: nothing to reload");
            return Ok(origin);
        }
        // It is being replaced, perhaps. Nobody who deletes it means the next one in the search.
        (Origin::File(file), _) if origin != *before => bail!("{}: the file is gone", file.display()),
        _ => {}
    }
    let unused = config.unused.clone();
    reloader.reload(config)?;
    for key in unused {
        tracing::warn!(key, "this configuration key has no effect in this version");
    }
    tracing::info!(from = %origin, "configuration reloaded");
    Ok(origin)
}
