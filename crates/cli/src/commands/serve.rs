//! `godex serve`: start, say where, and run until a signal. SIGHUP: see `reload`.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use anyhow::Context;
use server::Server;
use tokio::signal;

use crate::args::Flags;
use crate::reload::Configuration;
use crate::{banner, logs, output};

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let config = flags.load()?;
    logs::start(&config.logging, logs::Destination::Configured);
    for key in &config.unused {
        tracing::warn!(key, "this configuration key has no effect in this version");
    }
    for provider in &config.left_out {
        tracing::warn!("{provider}");
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    // What a thread has freed goes back to the system when it ends: a large request must not be felt for long. Those that
    // stay give it back when the server asks for it.
    runtime.worker_threads(threads).thread_keep_alive(Duration::from_secs(1)).on_thread_park(server::tidy_thread);
    let runtime = runtime.enable_all().build().context("cannot start the runtime")?;
    let ended = runtime.block_on(async {
        let signals = Mutex::new(listen()?);
        let drain = signalled(&signals, "shutting down; a second signal ends it at once");
        let now = signalled(&signals, "ending at once");
        #[cfg(unix)]
        let hangups = crate::reload::Hangups::listen()?;
        let server = Server::bind(config.clone()).await?;
        let configuration = Configuration::new(flags.clone(), config.origin.clone(), server.reloader());
        let configuration = Arc::new(configuration);
        let operator = Arc::<Configuration>::clone(&configuration);
        let server = server.administered(operator).await?;
        #[cfg(unix)]
        let closed = hangups.reload(configuration);
        #[cfg(not(unix))]
        let closed = std::future::pending();
        let drain = async {
            tokio::select! {
                () = drain => {}
                () = closed => {}
            }
        };
        let banner = banner::banner(&config, server.local_addr(), server.wants_keys());
        // A stdout that is closed, or that nobody reads, is no reason not to serve.
        std::thread::spawn(move || output::print(&banner));
        server.run(drain, now).await?;
        Ok(())
    });
    logs::finish();
    ended
}

/// Completes at the next SIGINT or SIGTERM.
async fn signalled(signals: &Mutex<Vec<Listener>>, what: &str) {
    poll_fn(|cx| {
        let mut signals = signals.lock().unwrap_or_else(PoisonError::into_inner);
        let mut came = signals.iter_mut().map(|signal| signal.poll_recv(cx).is_ready());
        if came.any(|came| came) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    tracing::info!("{what}");
}

#[cfg(unix)]
type Listener = signal::unix::Signal;
#[cfg(windows)]
type Listener = signal::windows::CtrlC;

/// Listens from now on: none that comes is missed.
#[cfg(unix)]
fn listen() -> anyhow::Result<Vec<Listener>> {
    let kinds = [signal::unix::SignalKind::interrupt(), signal::unix::SignalKind::terminate()];
    kinds.into_iter().map(signal::unix::signal).collect::<Result<_, _>>().context("cannot listen for signals")
}

#[cfg(windows)]
fn listen() -> anyhow::Result<Vec<Listener>> {
    Ok(vec![signal::windows::ctrl_c().context("cannot listen for Ctrl-C")?])
}
