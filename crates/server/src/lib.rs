//! The HTTP side of godex: the accept loop, one file per endpoint, the turn driver, calls to providers.
#![forbid(unsafe_code)]

pub mod access;
mod account;
pub mod admin;
mod api;
mod app;
mod ask;
mod background;
mod body;
mod caller;
pub mod checkup;
mod client;
mod clock;
mod compaction;
mod compat;
pub mod config;
mod delivery;
mod descriptions;
mod error;
pub mod explain;
mod files;
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
mod metrics;
mod metrics_listener;
mod models;
mod observe;
mod otel;
mod otel_exporter;
mod outbound;
mod output;
mod pace;
mod page;
mod parts;
pub mod peer;
mod per_tenant;
mod prefix;
mod presence;
pub mod probe;
mod process_group;
mod rekey;
mod remembered;
mod request;
mod restore;
mod route;
mod scrape;
mod seal;
mod session;
mod shown;
mod socket;
mod span;
mod spending;
mod start;
mod stop;
mod tasks;
pub mod terms;
mod token;
mod tokens;
mod trace;
mod turn;
mod upstream;
mod webhooks;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

pub use account::LOST_LOG_LINES;
use admin::Admin;
pub use admin::Operator;
use app::App;
pub use app::open_store;
pub use bridge::{NoteCode, note_code};
use config::Config;
pub use error::Code as ErrorCode;
pub use hosted::search::search;
pub use limits::tidy_thread;
use listen::Tls;
pub use metrics::{METRICS, MetricKind, MetricRow};
use metrics_listener::MetricsListener;
pub use models::{CatalogModel, Discovered, catalog_models, codex_catalog, discover};
pub use outbound::Network;
pub use rekey::{RekeyError, rekey};
pub use restore::{RestoreError, restore};
pub use route::{ROUTES, Route};
pub use spending::report as usage;
pub use start::StartError;
pub use store::{Rekeyed, TraceRekeyed, check_sqlite};
pub use trace::OUTCOMES;
pub use web::search::Found;

/// A server that listens and has not begun to answer.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<Tls>>,
    admin: Option<Admin>,
    metrics: Option<MetricsListener>,
}

impl Server {
    /// Opens the store, builds the clients, binds the port.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        let address = config.server.address();
        listen::raise_file_limit();
        let tls = config.server.tls.clone().map(Tls::new).transpose()?.map(Arc::new);
        let app = Arc::new(App::new(config).await?);
        let bound = listen::bind(&address).await.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (local, listener) = bound.map_err(|source| StartError::Bind { address, source })?;
        let metrics = MetricsListener::bind(&app).await?;
        Ok(Self { app, listener, address: local, tls, admin: None, metrics })
    }

    /// Also listens where `admin.listen` says, for the operator alone.
    ///
    /// # Errors
    /// The port cannot be had.
    pub async fn administered(mut self, operator: Arc<dyn Operator>) -> Result<Self, StartError> {
        self.admin = Admin::bind(Arc::clone(&self.app), operator, self.address).await?;
        Ok(self)
    }

    /// Where it is administered, as `admin.listen` would say it.
    pub fn admin_address(&self) -> Option<String> {
        self.admin.as_ref().map(Admin::address)
    }

    /// Where metrics are answered beside the port for clients, if anywhere.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(MetricsListener::address)
    }

    /// Whether clients need a key, or a token of an identity provider.
    pub fn wants_keys(&self) -> bool {
        !self.app.runtime.access.is_open()
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
        let app = Arc::clone(&self.app);
        let replicas = Box::pin(upstream::watch_replicas(move || {
            app.snapshot().replicas().flat_map(upstream::Replicas::due).collect()
        }));
        let access = Box::pin(Arc::clone(&self.app.runtime.access).maintain());
        let outbound = Arc::clone(&self.app.runtime.outbound);
        let issuer = Box::pin(jwks::maintain(Arc::clone(&self.app.runtime.access), outbound));
        let limits = Box::pin(Arc::clone(&self.app.runtime.limits).maintain());
        let pressed = Arc::clone(&self.app);
        let shedding = async move {
            loop {
                pressed.runtime.limits.load().pressed().await;
                pressed.runtime.shed();
            }
        };
        let spending = Arc::clone(&self.app.runtime.spending);
        let counting = Box::pin(Arc::clone(&spending).maintain());
        let wanted = self.admin.as_ref().map(Admin::drain).unwrap_or_default();
        let drain: listen::Signal<'_> = Box::pin(async move {
            tokio::select! {
                () = drain => {}
                () = wanted.notified() => {}
            }
        });
        let admin = Box::pin(async {
            match self.admin {
                Some(admin) => admin.serve().await,
                None => std::future::pending().await,
            }
        });
        let metrics = Box::pin(async {
            match self.metrics {
                Some(metrics) => metrics.serve().await,
                None => std::future::pending().await,
            }
        });
        let (observers, outbound) = (Arc::clone(&self.app.runtime.observers), Arc::clone(&self.app.runtime.outbound));
        let exporting = Box::pin(otel_exporter::maintain(observers.spans.waiting(), &outbound));
        tokio::select! {
            () = listen::serve(self.app, self.listener, self.tls, drain, now) => {}
            () = admin => {}
            () = session::maintain(Arc::clone(&sessions), Arc::clone(&keys)) => {}
            () = background => {}
            () = webhooks => {}
            () = models => {}
            () = replicas => {}
            () = access => {}
            () = issuer => {}
            () = limits => {}
            () = shedding => {}
            () = counting => {}
            () = metrics => {}
            () = exporting => {}
        }
        otel_exporter::flush(observers.spans.waiting(), &outbound).await;
        mcp.close();
        spending.flush().await;
        observers.traces.close().await;
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
