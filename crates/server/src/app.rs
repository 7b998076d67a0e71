//! What a running server knows: resolved at start, never changed afterwards.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bridge::{AnswerDialect, Dialect, Policy};
use http::HeaderMap;
use providers::{Matches, ModelSpec, Wire};
use store::{MemoryLimits, SqliteOptions, Store, Tenant};

use crate::StartError;
use crate::body::{self, Budget};
use crate::config::{Backend, Config, ModelError, ProviderConfig, ResilienceConfig};
use crate::seal::{SealKey, TenantSeal};
use crate::session::{Session, Sessions};
use crate::stop::{Phase, Stop};
use crate::upstream::{Deadlines, HttpTarget, Targets, Upstream, Walk};

/// The application.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) sessions: Arc<Sessions>,
    providers: BTreeMap<String, Provider>,
    seal_key: SealKey,
    pub(crate) stop: Arc<Stop>,
    pub(crate) bodies: body::Limits,
    /// How many came so far: decides among targets by weight.
    requests: AtomicU64,
    /// For `created` of models: they exist since we do.
    pub(crate) started_at: u64,
}

/// A provider that can be called.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) name: String,
    spec: providers::Provider,
    /// What the spec comes to for the models that were asked for so far: one for each set of its entries.
    manners: RwLock<HashMap<Matches, Arc<Manner>>>,
    pub(crate) upstream: Upstream,
    deadlines: Deadlines,
    /// Until an answer begins that is not streamed.
    whole: Duration,
    pub(crate) targets: Targets,
}

/// How one model is spoken to.
#[derive(Debug)]
pub(crate) struct Manner {
    pub(crate) wire: Wire,
    pub(crate) dialect: Dialect,
    /// The answer's half of it, in the machine's own form.
    pub(crate) answer: Arc<AnswerDialect>,
}

impl App {
    pub(crate) async fn new(config: Config) -> Result<Self, StartError> {
        let mut providers = BTreeMap::new();
        for provider in &config.providers {
            providers.insert(provider.name.clone(), Provider::new(provider, config.resilience)?);
        }
        let store = match &config.session.backend {
            Backend::Memory { max_bytes } => {
                Store::memory(MemoryLimits { bytes: *max_bytes, ..MemoryLimits::default() })?
            }
            Backend::Sqlite { path } => Store::sqlite(path, &SqliteOptions::default())?,
            Backend::Postgres(postgres) => Store::postgres(postgres.url.expose(), &postgres.options).await?,
        };
        let seal_key = SealKey::of(&config.session, &store)?;
        let budget = Budget::new(config.limits.body_bytes_in_flight);
        let sessions = Sessions::new(store, config.session.clone(), Arc::clone(&budget));
        let bodies = body::Limits { body: config.server.max_body_bytes, budget };
        let started_at = crate::clock::unix_seconds();
        Ok(Self {
            config,
            sessions,
            providers,
            seal_key,
            stop: Arc::new(Stop::new()),
            bodies,
            requests: AtomicU64::new(0),
            started_at,
        })
    }

    /// The way of a request to those who may serve its `model`.
    pub(crate) fn walk(&self, model: &str) -> Result<Walk<'_>, ModelError> {
        // Even shares without a die: the multiples of the golden ratio leave no gaps.
        let draw = self.requests.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let targets = self.config.targets(model, draw)?;
        let provider = |(config, model): (&ProviderConfig, String)| Some((self.providers.get(&config.name)?, model));
        let targets: Vec<_> = targets.into_iter().filter_map(provider).collect();
        if targets.is_empty() {
            return Err(ModelError::Incomplete { model: model.to_owned() });
        }
        Ok(Walk::new(targets, self.config.resilience))
    }

    /// Closes connections that nobody will want; called now and then.
    pub(crate) fn tidy(&self) {
        self.providers.values().for_each(|provider| provider.upstream.tidy());
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
        self.stop.phase() != Phase::Serving
    }
}

impl Provider {
    fn new(config: &ProviderConfig, policy: ResilienceConfig) -> Result<Self, StartError> {
        let (upstream, policy) = match config.provider.wire {
            Wire::Chat | Wire::Responses => (Upstream::Http(Box::new(HttpTarget::new(config)?)), policy),
            // What fails there was asked to fail.
            Wire::Demo => (Upstream::Demo, ResilienceConfig { breaker_failures: 0, ..policy }),
        };
        let timeouts = config.timeouts;
        Ok(Self {
            name: config.name.clone(),
            spec: config.provider.clone(),
            manners: RwLock::default(),
            upstream,
            deadlines: Deadlines { first_byte: timeouts.first_byte, idle: timeouts.idle, total: timeouts.total },
            whole: timeouts.whole,
            targets: Targets::new(policy),
        })
    }

    /// What is not streamed begins when it is whole, and may take longer to begin.
    pub(crate) fn deadlines(&self, stream: bool) -> Deadlines {
        let first_byte = if stream { self.deadlines.first_byte } else { self.whole };
        Deadlines { first_byte, ..self.deadlines }
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
        let ModelSpec { wire, dialect, .. } = spec;
        let answer = AnswerDialect { family: dialect.family().to_owned(), ..dialect.answer.clone() };
        Self { wire, dialect, answer: Arc::new(answer) }
    }
}
