//! The configuration of a running server is read anew, from the same places as at the start: at SIGHUP, or when the admin
//! listener is told to. One that is not good, or that differs in what only a start reads, changes nothing, and the log says
//! why. SIGHUP ends the process only where it always did: when the terminal that it was started in is closed.

use std::sync::{Mutex, PoisonError};

use anyhow::bail;
use server::config::Origin;
use server::{Operator, Reloader};

use crate::args::Flags;
use crate::causes;

#[cfg(unix)]
pub(crate) use hangups::Hangups;

/// Where the configuration comes from, and whom it is for.
#[derive(Debug)]
pub(crate) struct Configuration {
    flags: Flags,
    reloader: Reloader,
    /// What was read last. Held while it is read anew: one after the other.
    origin: Mutex<Origin>,
}

impl Configuration {
    pub(crate) fn new(flags: Flags, origin: Origin, reloader: Reloader) -> Self {
        Self { flags, reloader, origin: Mutex::new(origin) }
    }
}

impl Operator for Configuration {
    fn reload(&self) -> Result<(), String> {
        let mut origin = self.origin.lock().unwrap_or_else(PoisonError::into_inner);
        match reload(&self.flags, &origin, &self.reloader) {
            Ok(read) => {
                *origin = read;
                Ok(())
            }
            Err(error) => {
                let problems = causes(&error);
                // One line each, as `godex config check` says it.
                problems.lines().for_each(|line| tracing::error!("the configuration stays as it was: {line}"));
                Err(problems)
            }
        }
    }
}

#[cfg(unix)]
mod hangups {
    use std::fs::File;
    use std::io::IsTerminal;
    use std::sync::Arc;
    use std::thread;

    use anyhow::Context;
    use server::Operator;
    use tokio::runtime::Handle;
    use tokio::signal::unix::{Signal, SignalKind, signal};
    use tokio::sync::oneshot;

    use super::Configuration;

    /// SIGHUPs from now on: none that comes is missed, and none kills.
    pub(crate) struct Hangups(Signal);

    impl Hangups {
        pub(crate) fn listen() -> anyhow::Result<Self> {
            Ok(Self(signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?))
        }

        /// Reloads at each of them. On a thread of its own: files are read, and the accept loop does not wait for that.
        /// What it returns is ready when the terminal is closed.
        pub(crate) fn reload(mut self, configuration: Arc<Configuration>) -> impl Future<Output = ()> + Send + use<> {
            let runtime = Handle::current();
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
                        let _ = configuration.reload();
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
