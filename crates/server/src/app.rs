//! What a running server knows: resolved at start, never changed afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bridge::{Dialect, Policy};
use http::HeaderMap;
use providers::Wire;
use store::{MemoryLimits, SqliteOptions, Store, Tenant};

use crate::StartError;
use crate::config::{Backend, Config, ModelError, ProviderConfig};
use crate::seal::{SealKey, TenantSeal};
use crate::session::{Session, Sessions};
use crate::upstream::{Deadlines, HttpTarget, Upstream};

/// The application.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) sessions: Arc<Sessions>,
    providers: BTreeMap<String, Provider>,
    seal_key: SealKey,
    draining: AtomicBool,
    /// For `created` of models: they exist since we do.
    pub(crate) started_at: u64,
}

/// A provider that can be called.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) wire: Wire,
    pub(crate) dialect: Dialect,
    pub(crate) upstream: Upstream,
    pub(crate) deadlines: Deadlines,
}

impl App {
    pub(crate) async fn new(config: Config) -> Result<Self, StartError> {
        let mut providers = BTreeMap::new();
        for provider in &config.providers {
            providers.insert(provider.name.clone(), Provider::new(provider)?);
        }
        let store = match &config.session.backend {
            Backend::Memory { max_bytes } => {
                Store::memory(MemoryLimits { bytes: *max_bytes, ..MemoryLimits::default() })?
            }
            Backend::Sqlite { path } => Store::sqlite(path, &SqliteOptions::default())?,
            Backend::Postgres(postgres) => Store::postgres(postgres.url.expose(), &postgres.options).await?,
        };
        let seal_key = SealKey::of(&config.session, &store)?;
        let sessions = Sessions::new(store, config.session.clone());
        let started_at = crate::clock::unix_seconds();
        Ok(Self { config, sessions, providers, seal_key, draining: AtomicBool::new(false), started_at })
    }

    /// The provider of a request's `model`, and the model's name there.
    pub(crate) fn resolve(&self, model: &str) -> Result<(&Provider, String), ModelError> {
        let (config, upstream_model) = self.config.resolve(model)?;
        match self.providers.get(&config.name) {
            Some(provider) => Ok((provider, upstream_model)),
            None => Err(ModelError::Incomplete { model: model.to_owned() }),
        }
    }

    /// How forgiving we are to this client: as the operator says; broken histories are mended for Codex, which
    /// sends them and cannot do otherwise.
    pub(crate) fn policy(&self, headers: &HeaderMap) -> Policy {
        let compat = self.config.compat;
        let is_codex = || {
            let originator = headers.get("originator").and_then(|value| value.to_str().ok());
            originator.is_some_and(|name| name.starts_with("codex"))
        };
        Policy { strict: compat.strict, repair_history: compat.repair_history.unwrap_or_else(is_codex) }
    }

    /// The caller's sessions. Everybody is one tenant until there are keys; no header and no body says which.
    pub(crate) fn session(&self) -> Session {
        self.sessions.of(Tenant::default())
    }

    /// Seals what clients carry for us. Everybody is one tenant until there are keys.
    pub(crate) fn seal(&self) -> TenantSeal {
        self.seal_key.tenant("")
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }
}

impl Provider {
    fn new(config: &ProviderConfig) -> Result<Self, StartError> {
        let upstream = match config.provider.wire {
            Wire::Chat | Wire::Responses => Upstream::Http(Box::new(HttpTarget::new(config)?)),
            Wire::Demo => Upstream::Demo,
        };
        let timeouts = config.timeouts;
        let deadlines = Deadlines { first_byte: timeouts.first_byte, idle: timeouts.idle, total: timeouts.total };
        Ok(Self { wire: config.provider.wire, dialect: config.provider.dialect.clone(), upstream, deadlines })
    }
}
