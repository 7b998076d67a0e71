//! The operator's own listener: keys, tenants, usage, reloading, draining, the page. It is apart from the one for clients, on a
//! socket of the file system that only the user of this process may open, or on a port with a token. Nothing that a client
//! sends gets here, and no key of a client opens it.

mod client;
mod door;
mod explain;
mod keys;
mod listener;
mod providers;
mod routes;
mod seats;
mod serve;
mod store;
mod tenants;
mod traces;

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::app::App;
use crate::config::{AdminConfig, CorsConfig, ServerConfig};
use crate::start::StartError;
use crate::token::TokenHash;
pub use client::{AdminAnswer, AdminClient, Unreachable};
pub use door::PageDoor;
use listener::Listener;
pub use listener::socket_problem;
pub use routes::{ADMIN_ROUTES, AdminRoute};

/// What only the process itself can do.
pub trait Operator: Debug + Send + Sync + 'static {
    /// Reads the configuration anew. It may take its time: it is called on a thread of its own.
    ///
    /// # Errors
    /// Why nothing has changed, a line for each problem.
    fn reload(&self) -> Result<(), String>;
}

/// A listener that has not begun to answer.
#[derive(Debug)]
pub(crate) struct Admin {
    listener: Listener,
    desk: Arc<Desk>,
}

/// Who answers.
#[derive(Debug)]
struct Desk {
    app: Arc<App>,
    operator: Arc<dyn Operator>,
    /// Where clients are answered.
    address: SocketAddr,
    /// Of what has to be shown.
    token: Option<TokenHash>,
    /// Whose names may be asked for on a port, where no web page may ask but godex's own.
    server: Option<ServerConfig>,
    drain: Arc<Notify>,
}

impl Admin {
    /// Listens where the configuration says; None if it says nowhere, or if it cannot be there: then the log says why.
    pub(crate) async fn bind(
        app: Arc<App>,
        operator: Arc<dyn Operator>,
        address: SocketAddr,
    ) -> Result<Option<Self>, StartError> {
        let config = app.snapshot().config.clone();
        let AdminConfig { listen, token } = config.admin;
        let Some(listener) = Listener::bind(&listen).await? else { return Ok(None) };
        let server = listener.is_tcp().then(|| ServerConfig { cors: CorsConfig::default(), ..config.server });
        let token = token.as_ref().map(TokenHash::of);
        let desk = Desk { app, operator, address, token, server, drain: Arc::default() };
        Ok(Some(Self { listener, desk: Arc::new(desk) }))
    }

    /// Where it is, as `admin.listen` would say it.
    pub(crate) fn address(&self) -> String {
        self.listener.address()
    }

    /// Somebody wants the server to drain.
    pub(crate) fn drain(&self) -> Arc<Notify> {
        Arc::clone(&self.desk.drain)
    }
}
