//! `godex serve`: start, say where, and run until a signal.

use std::io::Write;

use anyhow::Context;
use server::Server;
use tokio::signal;

use crate::args::Flags;
use crate::{banner, logs};

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
        let server = Server::bind(config.clone()).await?;
        let banner = banner::banner(&config, server.local_addr());
        // A closed stdout is no reason not to serve.
        let _ = std::io::stdout().lock().write_all(banner.as_bytes());
        server.run(signalled()).await?;
        Ok(())
    })
}

/// Completes at the first SIGINT or SIGTERM.
async fn signalled() {
    let interrupt = async {
        if let Err(error) = signal::ctrl_c().await {
            tracing::error!(%error, "cannot listen for SIGINT");
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupt => {}
        () = terminated() => {}
    }
    tracing::info!("shutting down");
}

#[cfg(unix)]
async fn terminated() {
    match signal::unix::signal(signal::unix::SignalKind::terminate()) {
        Ok(mut stream) => {
            stream.recv().await;
        }
        Err(error) => {
            tracing::error!(%error, "cannot listen for SIGTERM");
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending::<()>().await;
}
