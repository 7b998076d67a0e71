//! The HTTP side of godex: the accept loop, one file per endpoint, the turn driver, calls to providers.
#![forbid(unsafe_code)]

mod api;
mod app;
mod body;
mod clock;
pub mod config;
mod delivery;
mod error;
mod guard;
mod listen;
mod output;
pub mod probe;
mod route;
mod seal;
mod session;
mod stop;
mod turn;
mod upstream;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::net::TcpListener;

use app::App;
use config::Config;
pub use route::{ROUTES, Route};

/// Lines of the log that could not be written. Whoever writes the log counts them; `/health` shows them.
pub static LOST_LOG_LINES: AtomicU64 = AtomicU64::new(0);

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}")]
    Bind { address: String, source: std::io::Error },
    #[error("provider {name}: {message}")]
    Provider { name: String, message: String },
    #[error("cannot read or create the key {path}")]
    SealKey { path: std::path::PathBuf, source: std::io::Error },
    #[error(transparent)]
    Store(#[from] store::OpenError),
}

/// A server that listens and has not begun to answer.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Opens the store, builds the clients, binds the port.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        let address = config.server.address();
        let app = Arc::new(App::new(config).await?);
        let bound = listen::bind(&address).await.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (local, listener) = bound.map_err(|source| StartError::Bind { address, source })?;
        Ok(Self { app, listener, address: local })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `drain` is ready, then lets running requests end: for `server.drain_timeout` at most, or until
    /// `now` is ready too.
    pub async fn run(
        self,
        drain: impl Future<Output = ()> + Send,
        now: impl Future<Output = ()> + Send,
    ) -> Result<(), StartError> {
        let sessions = Arc::clone(&self.app.sessions);
        tokio::select! {
            () = listen::serve(self.app, self.listener, drain, now) => {}
            () = session::maintain(Arc::clone(&sessions)) => {}
        }
        sessions.close().await;
        Ok(())
    }
}
