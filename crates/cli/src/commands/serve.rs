//! `godex serve`: start, say where, and run until a signal.

use anyhow::Context;
use server::Server;
use tokio::signal;
use tokio::sync::Mutex;

use crate::args::Flags;
use crate::{banner, logs, output};

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let config = flags.load()?;
    logs::start(config.logging);
    for key in &config.unused {
        tracing::warn!(key, "this configuration key has no effect in this version");
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(threads).enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(async {
        let signals = Mutex::new(Signals::new()?);
        let drain = signalled(&signals, "shutting down; a second signal ends it at once");
        let now = signalled(&signals, "ending at once");
        let server = Server::bind(config.clone()).await?;
        let banner = banner::banner(&config, server.local_addr());
        // A closed stdout is no reason not to serve.
        let _ = output::print(&banner);
        server.run(drain, now).await?;
        Ok(())
    })
}

/// Completes at the next SIGINT or SIGTERM.
async fn signalled(signals: &Mutex<Signals>, what: &str) {
    signals.lock().await.next().await;
    tracing::info!("{what}");
}

/// SIGINT and SIGTERM, listened for from one moment on: none that follows is missed.
struct Signals {
    #[cfg(unix)]
    interrupt: signal::unix::Signal,
    #[cfg(unix)]
    terminate: signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> anyhow::Result<Self> {
        let listen = |kind| signal::unix::signal(kind).context("cannot listen for signals");
        let (interrupt, terminate) = (signal::unix::SignalKind::interrupt(), signal::unix::SignalKind::terminate());
        Ok(Self { interrupt: listen(interrupt)?, terminate: listen(terminate)? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
    fn new() -> anyhow::Result<Self> {
        Ok(Self {})
    }

    async fn next(&mut self) {
        if let Err(error) = signal::ctrl_c().await {
            tracing::error!(%error, "cannot listen for Ctrl-C");
            std::future::pending::<()>().await;
        }
    }
}
