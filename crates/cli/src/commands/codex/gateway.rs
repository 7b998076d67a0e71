//! The godex that Codex talks to: one that runs where the configuration says, if it is like this one; else one that is
//! started inside this process for as long as Codex runs.

use std::fmt;
use std::future::pending;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use server::Server;
use server::config::{Config, KeyConfig, Secret};
use server::peer::Peer;
use tokio::sync::oneshot;

use super::{KEY_VARIABLE, client_key, own_key};
use crate::args::variable;

/// Whether somebody is there is known at once on one's own machine.
const LOOK: Duration = Duration::from_secs(3);

/// Why there is no godex to use at the configured address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Nobody answers.
    Nobody,
    /// Somebody does who is no godex.
    Stranger,
    /// A godex that wants a key, and `GODEX_API_KEY` is none for it.
    Closed,
    /// A godex of another version.
    Version(String),
    /// A godex that does not know this model, which this configuration lists.
    Models(String),
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("nobody answers"),
            Self::Stranger => f.write_str("what answers is not godex"),
            Self::Closed => write!(f, "the godex that answers wants an API key: set {KEY_VARIABLE} to one"),
            Self::Version(version) => write!(f, "godex {version} answers, and this is {}", env!("CARGO_PKG_VERSION")),
            Self::Models(model) => {
                write!(f, "the godex that answers has another configuration: it does not list the model {model}")
            }
        }
    }
}

/// Where clients find the godex of this configuration, without `/v1`. "All addresses" is where one listens, not where
/// one calls.
pub(crate) fn url(config: &Config) -> String {
    let scheme = config.server.scheme();
    match config.server.host.as_str() {
        "0.0.0.0" => format!("{scheme}://127.0.0.1:{}", config.server.port),
        "::" => format!("{scheme}://[::1]:{}", config.server.port),
        _ => format!("{scheme}://{}", config.server.address()),
    }
}

/// Looks whether a godex like this one runs at `url`.
pub(crate) async fn look(url: &str, config: &Config) -> Result<(), Absent> {
    let peer = Peer::new(url, own_key(), &[], &variable).map_err(|_| Absent::Nobody)?;
    let health = peer.get("/health", LOOK).await.map_err(|_| Absent::Nobody)?;
    let health: Value = serde_json::from_slice(&health.body).map_err(|_| Absent::Stranger)?;
    if health["name"] != "godex" {
        return Err(Absent::Stranger);
    }
    // Strangers are not told it.
    let version = health["version"].as_str().ok_or(Absent::Closed)?;
    if release(version) != release(env!("CARGO_PKG_VERSION")) {
        return Err(Absent::Version(version.to_owned()));
    }
    let models = peer.get("/v1/models", LOOK).await.map_err(|_| Absent::Nobody)?;
    let models: Value = serde_json::from_slice(&models.body).map_err(|_| Absent::Stranger)?;
    let listed = |id: &str, owner: &str| {
        models["data"].as_array().is_some_and(|models| models.iter().any(|m| m["id"] == id && m["owned_by"] == owner))
    };
    // It may list more: what its providers tell it.
    match config.models().into_iter().find(|model| !listed(&model.id, &model.owned_by)) {
        Some(model) => Err(Absent::Models(model.id)),
        None => Ok(()),
    }
}

/// A godex that answers.
pub(crate) struct Gateway {
    /// Without `/v1`.
    pub(crate) url: String,
    /// What its clients send.
    pub(crate) key: Secret,
    /// Why it is not the one of the configured address.
    pub(crate) absent: Option<Absent>,
    own: Option<Server>,
}

impl Gateway {
    /// The one that runs, else one of our own.
    pub(crate) async fn find(config: &Config) -> anyhow::Result<Self> {
        let url = url(config);
        let Err(absent) = look(&url, config).await else {
            return Ok(Self { url, key: client_key(), absent: None, own: None });
        };
        Ok(Self { absent: Some(absent), ..Self::own(config).await? })
    }

    /// One of our own, whoever else runs.
    pub(crate) async fn own(config: &Config) -> anyhow::Result<Self> {
        let key = server::access::key::make().context("this system has no random numbers")?;
        let server = Box::pin(Server::bind(own(config, &key))).await?;
        let url = format!("http://{}", server.local_addr());
        Ok(Self { url, key, absent: None, own: Some(server) })
    }

    /// Answers while this is done, and lets what still runs end after it.
    pub(crate) async fn during<T: Send>(self, work: impl Future<Output = T> + Send) -> anyhow::Result<T> {
        let Some(server) = self.own else { return Ok(work.await) };
        let (over, is_over) = oneshot::channel::<()>();
        let work = async move {
            let done = work.await;
            drop(over);
            done
        };
        let over = async {
            let _ = is_over.await;
        };
        let (done, served) = tokio::join!(Box::pin(work), Box::pin(server.run(over, pending())));
        served?;
        Ok(done)
    }
}

/// What may change what is served: the numbers before the last point.
fn release(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |(release, _)| release)
}

/// The configuration for a godex of one's own: on a free port of this machine, for one client, which alone has its key.
fn own(config: &Config, key: &Secret) -> Config {
    let mut own = config.clone();
    own.keys = vec![KeyConfig::new("session", key)];
    own.oidc = None;
    "127.0.0.1".clone_into(&mut own.server.host);
    own.server.port = 0;
    own.server.tls = None;
    own.server.drain_delay = Duration::ZERO;
    // Its only client is gone by then.
    own.server.drain_timeout = own.server.drain_timeout.min(Duration::from_secs(5));
    own.session = own.session.beside();
    own.trace = own.trace.beside();
    // A port that the one beside it may have.
    own.metrics.listen = None;
    own
}
