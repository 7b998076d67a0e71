//! What a running server knows, in two parts: the snapshot, which a new configuration replaces as a whole, and the
//! runtime, which stays: the store, connections to providers and what is known of their models, tasks, budgets.
//!
//! A request takes the snapshot of its beginning and keeps it to its end.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bridge::Policy;
use store::{MemoryLimits, SqliteOptions, Store, Tenant};

use crate::access::{Access, Terms};
use crate::account::Account;
use crate::body::{self, Budget};
use crate::caller::Caller;
use crate::config::{
    AllowedHosts, Backend, Config, CorsConfig, KeyFrom, ModelError, ProviderConfig, ResilienceConfig, ServerConfig,
    Timeouts, TrustedProxies,
};
use crate::descriptions::Descriptions;
use crate::files::Files;
use crate::grammar::Grammars;
use crate::idempotency::Keys;
use crate::jobs::Jobs;
use crate::limits::Limits;
use crate::live::Live;
use crate::mcp::McpRuntime;
use crate::metrics::{Metrics, Names};
use crate::observe::Observers;
use crate::otel::Spans;
use crate::outbound::Outbound;
use crate::prefix::Prefixes;
use crate::presence::Presence;
use crate::seal::{SealKey, TenantSeal};
use crate::session::{Session, Sessions};
use crate::shown::ShownInSessions;
use crate::spending::Spending;
use crate::start::StartError;
use crate::stop::Stop;
use crate::tasks::Tasks;
use crate::tokens::TokensByTenant;
use crate::trace::Traces;
use crate::upstream::{Connections, Failover, Learner, Listing, Provider, Replicas};
use crate::webhooks::Webhooks;

/// The application.
#[derive(Debug)]
pub(crate) struct App {
    snapshot: RwLock<Arc<Snapshot>>,
    pub(crate) runtime: Runtime,
}

/// What the configuration says, ready for use.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) config: Config,
    providers: BTreeMap<String, Arc<Provider>>,
}

/// What stays as it is when the configuration changes.
#[derive(Debug)]
pub(crate) struct Runtime {
    /// Who may ask.
    pub(crate) access: Arc<Access>,
    /// How much.
    pub(crate) limits: Arc<Limits>,
    /// What it costs.
    pub(crate) spending: Arc<Spending>,
    /// What became of requests.
    pub(crate) observers: Arc<Observers>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) jobs: Arc<Jobs>,
    /// Streams that are followed.
    pub(crate) live: Arc<Live>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) webhooks: Arc<Webhooks>,
    seal_key: SealKey,
    pub(crate) stop: Arc<Stop>,
    /// Who is at work for whom.
    pub(crate) presence: Arc<Presence>,
    /// For whoever manages all tenants: see `admin`.
    pub(crate) store: Store,
    pub(crate) tasks: Tasks,
    /// What is known of the tokens of models.
    pub(crate) tokens: TokensByTenant,
    /// What providers were sent last in each session.
    pub(crate) prefixes: Prefixes,
    pub(crate) budget: Arc<Budget>,
    pub(crate) grammars: Arc<Grammars>,
    /// To whoever is no provider.
    pub(crate) outbound: Arc<Outbound>,
    /// What is shared by all who use MCP servers.
    pub(crate) mcp: Arc<McpRuntime>,
    /// What clients that search by themselves have been shown.
    pub(crate) shown: ShownInSessions,
    /// Of what WebSockets remember.
    pub(crate) remembered: Arc<Budget>,
    /// What images show, for models that cannot see them.
    pub(crate) descriptions: Descriptions,
    /// What is in files, for models that take none.
    pub(crate) files: Files,
    /// By the provider's name.
    connections: Mutex<HashMap<String, Made>>,
    /// How many requests came so far: decides among targets by weight.
    requests: AtomicU64,
    /// For `created` of models: they exist since we do.
    pub(crate) started_at: u64,
}

/// Connections, and the configuration that they were made for.
type Made = (ProviderConfig, ResilienceConfig, Arc<Connections>);

impl App {
    pub(crate) async fn new(config: Config) -> Result<Self, StartError> {
        let runtime = Runtime::new(&config, open_store(&config).await?).await?;
        if runtime.access.is_open() && !config.server.may_be_open() {
            return Err(StartError::Unguarded { host: config.server.host });
        }
        let snapshot = RwLock::new(Arc::new(runtime.snapshot_of(config)?));
        Ok(Self { snapshot, runtime })
    }

    /// The same for whoever only looks, on a store that is open already: nobody is answered.
    pub(crate) async fn looking(mut config: Config, store: Store) -> Result<Self, StartError> {
        // Nothing happens that could be traced.
        config.trace.enabled = false;
        let runtime = Runtime::new(&config, store).await?;
        let snapshot = RwLock::new(Arc::new(runtime.snapshot_of(config)?));
        Ok(Self { snapshot, runtime })
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the configuration for all requests that come from now on. Providers whose sections are the same keep
    /// their connections. Nothing changes if it cannot be used.
    pub(crate) fn swap(&self, config: Config) -> Result<(), StartError> {
        let before = self.snapshot();
        if let Some(section) = fixed_section(&before.config, &config) {
            return Err(StartError::NeedsRestart { section });
        }
        if self.runtime.access.would_be_open(&config) && !config.server.may_be_open() {
            return Err(StartError::Unguarded { host: config.server.host });
        }
        let snapshot = self.runtime.snapshot_of(config)?;
        self.runtime.access.replace(&snapshot.config);
        self.runtime.webhooks.replace(&snapshot.config.webhooks);
        self.runtime.mcp.replace(&snapshot.config.tools.mcp);
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
        Ok(())
    }

    /// What providers list of their models has changed: metrics are to know them by name.
    pub(crate) fn name_models(&self) {
        self.runtime.observers.metrics.know(self.snapshot().names());
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.runtime.stop.has_begun()
    }
}

/// The store that the configuration names.
///
/// # Errors
/// It cannot be opened: another process has it, or the database does not answer.
pub async fn open_store(config: &Config) -> Result<Store, store::OpenError> {
    let keys = config.session.encryption.keys.clone();
    match &config.session.backend {
        Backend::Memory { max_bytes } => Store::memory(MemoryLimits { bytes: *max_bytes, ..MemoryLimits::default() }),
        Backend::Sqlite { path } => Store::encrypted_sqlite(path, &sqlite_options(config), keys),
        Backend::Postgres(postgres) => Store::encrypted_postgres(postgres.url.expose(), &postgres.options, keys).await,
    }
}

/// Where there is little memory, connections keep little of the database in it.
fn sqlite_options(config: &Config) -> SqliteOptions {
    let usual = SqliteOptions::default();
    let share = |memory: u64| u32::try_from(memory / 64 / 1024).unwrap_or(u32::MAX).clamp(1_000, usual.cache_kib);
    SqliteOptions { cache_kib: config.limits.memory.map_or(usual.cache_kib, share), ..usual }
}

impl Runtime {
    async fn new(config: &Config, store: Store) -> Result<Self, StartError> {
        let access = Access::new(store.clone(), config).await.map_err(StartError::Access)?;
        let stop = Arc::new(Stop::new());
        let seal_key = SealKey::of(&config.session, &store)?;
        let budget = Budget::new(config.limits.body_bytes_in_flight);
        let live = Arc::<Live>::default();
        let webhooks = Webhooks::new(store.clone(), &config.webhooks);
        let session = config.session.clone();
        let outbound = Arc::<Outbound>::default();
        let jobs = Arc::new(Jobs::new().map_err(StartError::Worker)?);
        Ok(Self {
            access,
            limits: Limits::new(store.clone(), jobs.worker, &config.limits),
            spending: Spending::new(store.clone(), jobs.worker),
            observers: Arc::new(Observers {
                metrics: Metrics::new(config.metrics.enabled),
                spans: Spans::new(config.otel.as_ref()),
                traces: Traces::start(config, &store),
            }),
            sessions: Sessions::new(
                store.clone(),
                session,
                Arc::clone(&budget),
                Arc::clone(&live),
                Arc::clone(&webhooks),
                config.limits.memory,
            ),
            jobs,
            live,
            keys: Arc::default(),
            webhooks,
            seal_key,
            presence: Presence::new(Arc::clone(&stop)),
            stop,
            store: store.clone(),
            tasks: Tasks::default(),
            tokens: TokensByTenant::default(),
            prefixes: Prefixes::default(),
            budget,
            grammars: Arc::default(),
            mcp: Arc::new(McpRuntime::new(Arc::clone(&outbound))),
            outbound,
            shown: ShownInSessions::default(),
            remembered: Budget::new(config.limits.remembered_bytes),
            descriptions: Descriptions::default(),
            files: Files::new(config.pdf_program.clone()),
            connections: Mutex::default(),
            requests: AtomicU64::new(0),
            started_at: crate::clock::unix_seconds(),
        })
    }

    /// The caller's sessions.
    pub(crate) fn session(&self, caller: &Caller) -> Session {
        self.sessions.of(caller.tenant().clone())
    }

    /// Seals what the caller carries for us.
    pub(crate) fn seal(&self, caller: &Caller) -> TenantSeal {
        self.seal_key.tenant(caller.tenant())
    }

    /// What the caller's bodies may hold: a part of what all may, if that is limited.
    pub(crate) fn bodies(&self, caller: &Caller) -> Arc<Budget> {
        let Some(grant) = caller.grant() else { return Arc::clone(&self.budget) };
        let part = |budget: Arc<Budget>, kind: &str, name: &str, terms: &Terms| match terms.body_bytes {
            Some(limit) => budget.part(&format!("{kind}/{name}"), limit),
            None => budget,
        };
        let budget = part(Arc::clone(&self.budget), "tenant", grant.tenant.name(), &grant.tenant_terms);
        part(budget, "key", grant.limited_as(), &grant.terms)
    }

    /// Forgets what can be found out again: memory is short.
    pub(crate) fn shed(&self) {
        self.descriptions.forget();
        self.files.forget();
        self.prefixes.forget();
        self.grammars.forget();
        self.mcp.tidy();
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.values().for_each(|(_, _, connections)| connections.shed());
    }

    /// Forgets what is in memory of a tenant. Where it is not known whose something is, all of it is forgotten: it would be
    /// made again.
    pub(crate) fn forget(&self, tenant: &Tenant) {
        self.sessions.forget(tenant);
        self.keys.forget(tenant);
        self.mcp.lists.forget(tenant);
        self.shown.forget(tenant);
        self.prefixes.forget();
        self.descriptions.forget();
        self.files.forget();
    }

    /// Closes connections that nobody will want, and ends processes that nobody uses; called now and then.
    pub(crate) fn tidy(&self) {
        self.mcp.tidy();
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.values().for_each(|(_, _, connections)| connections.tidy());
    }

    /// Makes a configuration ready for use. Providers whose sections are the same keep their connections, those that
    /// are gone are forgotten, while requests that use them keep them to their end. Nothing changes on an error.
    fn snapshot_of(&self, config: Config) -> Result<Snapshot, StartError> {
        let mut known = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut made, mut providers) = (HashMap::new(), BTreeMap::new());
        for provider in &config.providers {
            let before = known.get(&provider.name).filter(|(section, resilience, _)| {
                same_connections(section, provider) && *resilience == config.resilience
            });
            let connections = match before {
                Some((_, _, connections)) => Arc::clone(connections),
                None => {
                    let moved = known.get(&provider.name).filter(|(section, resilience, _)| {
                        same_but_addresses(section, provider) && *resilience == config.resilience
                    });
                    let before = moved.map(|(_, _, connections)| &**connections);
                    Arc::new(Connections::following(provider, config.resilience, before)?)
                }
            };
            made.insert(provider.name.clone(), (provider.clone(), config.resilience, Arc::clone(&connections)));
            providers.insert(provider.name.clone(), Arc::new(Provider::new(provider, connections)));
        }
        *known = made;
        let snapshot = Snapshot { config, providers };
        self.observers.metrics.know(snapshot.names());
        self.observers.spans.know(&snapshot.config);
        Ok(snapshot)
    }
}

impl Snapshot {
    /// Takes the keys of all providers out of what is kept of a request: whoever knows one may have written it there.
    pub(crate) fn redact(&self, bytes: &mut Vec<u8>) {
        for provider in self.providers.values() {
            provider.connections().redactor().bytes(bytes, 0);
        }
    }

    /// Those who may serve this `model` for the tenant, in the order in which they are to be tried.
    pub(crate) fn failover(
        &self,
        model: &str,
        runtime: &Runtime,
        tenant: &Tenant,
        account: &Account,
    ) -> Result<Failover, ModelError> {
        // Even shares without a die: the multiples of the golden ratio leave no gaps.
        let draw = runtime.requests.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let targets = self.config.targets(model, draw)?;
        let provider =
            |(config, model): (&ProviderConfig, String)| Some((Arc::clone(self.providers.get(&config.name)?), model));
        let targets: Vec<_> = targets.into_iter().filter_map(provider).collect();
        if targets.is_empty() {
            return Err(ModelError::Incomplete { model: model.to_owned() });
        }
        let learner = Learner { tenant: tenant.clone(), tokens: runtime.tokens.of(tenant) };
        Ok(Failover::new(targets, self.config.resilience, account.clone(), learner))
    }

    /// The models that are known by name.
    fn names(&self) -> Names {
        let listings: Vec<_> = self
            .providers
            .values()
            .filter_map(|provider| Some((&*provider.name, provider.connections().listing.get()?)))
            .collect();
        let models = |(provider, listing): &'_ (&'_ str, Arc<Listing>)| -> Vec<(String, String)> {
            listing.models.iter().map(|model| ((*provider).to_owned(), model.name.clone())).collect()
        };
        let listed: Vec<_> = listings.iter().flat_map(models).collect();
        Names::of(&self.config, listed.iter().map(|(provider, model)| (&**provider, &**model)))
    }

    /// The connections of a provider.
    pub(crate) fn connections(&self, provider: &str) -> Option<&Arc<Connections>> {
        Some(self.providers.get(provider)?.connections())
    }

    /// The addresses of every provider.
    pub(crate) fn replicas(&self) -> impl Iterator<Item = &Replicas> {
        self.providers.values().map(|provider| &provider.connections().replicas)
    }

    /// How many tokens a request to this model of a provider may have, if anybody says.
    pub(crate) fn context_window(&self, provider: &str, model: &str) -> Option<u64> {
        self.providers.get(provider)?.context_window(model)
    }

    /// How forgiving we are to this client: as the operator says, else as its profile does.
    pub(crate) fn policy(&self, caller: &Caller) -> Policy {
        let compat = self.config.compat;
        let repair_history = compat.repair_history.unwrap_or(caller.profile().repair_history);
        Policy { strict: compat.strict, repair_history }
    }

    /// How large a request's body may be, and all of them together.
    pub(crate) fn body_limits(&self, runtime: &Runtime, caller: &Caller) -> body::Limits {
        body::Limits { body: self.config.server.max_body_bytes, budget: runtime.bodies(caller) }
    }
}

/// Whether requests to both go over the same connections, with the same keys.
fn same_connections(one: &ProviderConfig, other: &ProviderConfig) -> bool {
    // All but what connections do not depend on.
    let relevant = |config: &ProviderConfig| ProviderConfig {
        key_from: KeyFrom::Nowhere,
        models: Vec::new(),
        timeouts: Timeouts { connect: config.timeouts.connect, ..Timeouts::default() },
        ..config.clone()
    };
    relevant(one) == relevant(other)
}

/// Whether both differ in nothing but in where they are: what both have stays as it is.
fn same_but_addresses(one: &ProviderConfig, other: &ProviderConfig) -> bool {
    let anywhere = |config: &ProviderConfig| ProviderConfig {
        base_url: String::new(),
        base_urls: Vec::new(),
        provider: other.provider.clone(),
        ..config.clone()
    };
    one.provider.is_alike(&other.provider) && same_connections(&anywhere(one), &anywhere(other))
}

/// The section that differs although only a start reads it.
fn fixed_section(old: &Config, new: &Config) -> Option<&'static str> {
    // Of `server`, these are read when they are needed.
    let fixed = |config: &Config| ServerConfig {
        trusted_proxies: TrustedProxies::default(),
        allowed_hosts: AllowedHosts::default(),
        cors: CorsConfig::default(),
        max_body_bytes: 0,
        heartbeat: Duration::ZERO,
        drain_delay: Duration::ZERO,
        drain_timeout: Duration::ZERO,
        ..config.server.clone()
    };
    let same = [
        ("server", fixed(old) == fixed(new)),
        ("admin", old.admin == new.admin),
        ("session", old.session == new.session),
        ("limits", old.limits == new.limits),
        ("metrics", old.metrics == new.metrics),
        ("otel", old.otel == new.otel),
        ("logging", old.logging == new.logging),
        ("trace", old.trace == new.trace),
    ];
    same.into_iter().find_map(|(section, same)| (!same).then_some(section))
}
