//! The HTTP side of godex: the accept loop, one file per endpoint, the turn driver, calls to providers.
#![forbid(unsafe_code)]

pub mod access;
mod account;
mod api;
mod app;
mod ask;
mod background;
mod body;
mod caller;
mod client;
mod clock;
mod compaction;
mod compat;
pub mod config;
mod delivery;
mod descriptions;
mod error;
mod follow;
mod grammar;
mod guard;
mod hosted;
mod idempotency;
mod images;
mod items;
mod jobs;
mod jwks;
mod limits;
mod listen;
mod live;
pub mod mcp;
mod models;
mod outbound;
mod output;
pub mod peer;
mod prefix;
pub mod probe;
mod request;
mod route;
mod seal;
mod session;
mod shown;
mod socket;
mod spending;
mod start;
mod stop;
mod tasks;
pub mod terms;
mod tokens;
mod turn;
mod upstream;
mod webhooks;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

pub use account::LOST_LOG_LINES;
use app::App;
pub use bridge::{NoteCode, note_code};
use config::Config;
pub use error::Code as ErrorCode;
pub use hosted::search::search;
pub use models::{CatalogModel, Discovered, catalog_models, codex_catalog, discover};
pub use outbound::Network;
pub use route::{ROUTES, Route};
pub use start::StartError;
pub use web::search::Found;

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

    /// From now on whoever is no provider is looked for in this network: for tests, which have no other way there.
    #[doc(hidden)]
    pub fn among(&self, network: Arc<dyn Network>) {
        self.app.runtime.outbound.among(network);
    }

    /// What changes the configuration while the server runs.
    pub fn reloader(&self) -> Reloader {
        Reloader(Arc::clone(&self.app))
    }

    /// Answers until `drain` is ready, then lets running requests end: for `server.drain_timeout` at most, or until
    /// `now` is ready too.
    pub async fn run(
        self,
        drain: impl Future<Output = ()> + Send,
        now: impl Future<Output = ()> + Send,
    ) -> Result<(), StartError> {
        self.run_until(Box::pin(drain), Box::pin(now)).await;
        Ok(())
    }

    async fn run_until(self, drain: listen::Signal<'_>, now: listen::Signal<'_>) {
        let (sessions, keys) = (Arc::clone(&self.app.runtime.sessions), Arc::clone(&self.app.runtime.keys));
        let mcp = Arc::clone(&self.app.runtime.mcp);
        let background = Box::pin(background::maintain(Arc::clone(&self.app)));
        let webhooks = Box::pin(webhooks::deliver(Arc::clone(&self.app.runtime.webhooks)));
        let models = Box::pin(models::maintain(Arc::clone(&self.app)));
        let access = Box::pin(Arc::clone(&self.app.runtime.access).maintain());
        let outbound = Arc::clone(&self.app.runtime.outbound);
        let issuer = Box::pin(jwks::maintain(Arc::clone(&self.app.runtime.access), outbound));
        let limits = Box::pin(Arc::clone(&self.app.runtime.limits).maintain());
        let spending = Arc::clone(&self.app.runtime.spending);
        let counting = Box::pin(Arc::clone(&spending).maintain());
        tokio::select! {
            () = listen::serve(self.app, self.listener, drain, now) => {}
            () = session::maintain(Arc::clone(&sessions), Arc::clone(&keys)) => {}
            () = background => {}
            () = webhooks => {}
            () = models => {}
            () = access => {}
            () = issuer => {}
            () = limits => {}
            () = counting => {}
        }
        mcp.close();
        spending.flush().await;
        keys.give_back().await;
        sessions.close().await;
    }
}

/// Gives a running server another configuration.
#[derive(Debug, Clone)]
pub struct Reloader(Arc<App>);

impl Reloader {
    /// From now on requests are answered as this configuration says; those under way go on as they began. Connections
    /// to providers whose sections are the same stay.
    ///
    /// # Errors
    /// It cannot be used, or differs in what only a start reads. Then nothing has changed.
    pub fn reload(&self, config: Config) -> Result<(), StartError> {
        self.0.swap(config)
    }
}
