//! What a running server knows: resolved at start, never changed afterwards.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bridge::{AnswerDialect, Dialect, Policy};
use providers::{Matches, ModelSpec, Wire};
use store::{MemoryLimits, SqliteOptions, Store};

use crate::StartError;
use crate::config::{Backend, Config, ModelError, ProviderConfig};
use crate::seal::{SealKey, TenantSeal};
use crate::upstream::{Deadlines, HttpTarget, Upstream};

/// The application.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) store: Store,
    providers: BTreeMap<String, Provider>,
    seal_key: SealKey,
    draining: AtomicBool,
    /// For `created` of models: they exist since we do.
    pub(crate) started_at: u64,
}

/// A provider that can be called.
#[derive(Debug)]
pub(crate) struct Provider {
    spec: providers::Provider,
    /// What the spec comes to for the models that were asked for so far: one for each set of its entries.
    manners: RwLock<HashMap<Matches, Arc<Manner>>>,
    pub(crate) upstream: Upstream,
    pub(crate) deadlines: Deadlines,
}

/// How one model is spoken to.
#[derive(Debug)]
pub(crate) struct Manner {
    pub(crate) dialect: Dialect,
    /// The answer's half of it, in the machine's own form.
    pub(crate) answer: Arc<AnswerDialect>,
}

impl App {
    pub(crate) fn new(config: Config) -> Result<Self, StartError> {
        let mut providers = BTreeMap::new();
        for provider in &config.providers {
            providers.insert(provider.name.clone(), Provider::new(provider)?);
        }
        let store = match &config.session.backend {
            Backend::Memory => Store::memory(MemoryLimits::default())?,
            Backend::Sqlite { path } => Store::sqlite(path, &SqliteOptions::default())?,
        };
        let started_at = crate::clock::unix_seconds();
        let seal_key = SealKey::of(&config.session)?;
        Ok(Self { config, store, providers, seal_key, draining: AtomicBool::new(false), started_at })
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
    pub(crate) fn policy(&self, headers: &http::HeaderMap) -> Policy {
        let compat = self.config.compat;
        let is_codex = || {
            let originator = headers.get("originator").and_then(|value| value.to_str().ok());
            originator.is_some_and(|name| name.starts_with("codex"))
        };
        Policy { strict: compat.strict, repair_history: compat.repair_history.unwrap_or_else(is_codex) }
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
            Wire::Chat => Upstream::Http(Box::new(HttpTarget::new(config)?)),
            Wire::Demo => Upstream::Demo,
        };
        let timeouts = config.timeouts;
        let deadlines = Deadlines { first_byte: timeouts.first_byte, idle: timeouts.idle, total: timeouts.total };
        Ok(Self { spec: config.provider.clone(), manners: RwLock::default(), upstream, deadlines })
    }

    /// How this model is spoken to. Worked out once for all models that the spec speaks of alike.
    pub(crate) fn manner(&self, model: &str) -> Arc<Manner> {
        let matches = self.spec.matches(model);
        let known = self.manners.read().unwrap_or_else(PoisonError::into_inner).get(&matches).cloned();
        known.unwrap_or_else(|| {
            let manner = Arc::new(Manner::new(self.spec.with(&matches)));
            self.manners.write().unwrap_or_else(PoisonError::into_inner).insert(matches, Arc::clone(&manner));
            manner
        })
    }
}

impl Manner {
    fn new(spec: ModelSpec) -> Self {
        let ModelSpec { dialect, .. } = spec;
        let answer = AnswerDialect { family: dialect.family().to_owned(), ..dialect.answer.clone() };
        Self { dialect, answer: Arc::new(answer) }
    }
}
