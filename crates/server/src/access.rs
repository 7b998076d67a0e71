//! Who may ask: API keys (made with `godex keys`, or declared in `godex.yaml`) and the tokens of an identity provider.
//! Who asks is found here once per request, out of memory; the store is not asked for a single request, but for a key that
//! may have been made on another instance a moment ago.
//!
//! The door is open (everybody is the tenant `default`) as long as there is no key and no identity provider; the first
//! key closes it for all at once, and it stays closed when that key is revoked. Nothing but the credential says whose
//! tenant it is: no header, no field of a body.
//!
//! What the store has is read again and again, so that what any instance changes holds on all of them within a second.
//! While the store is away, its keys work from memory for `limits.key_grace`; after that, and for keys that are not
//! known, nobody can say whether they are good: 503, and never 401.

mod credential;
mod jwt;
pub mod key;
pub mod manage;
mod oidc;
mod shown;
mod strangers;
mod table;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use http::HeaderMap;
use store::{Store, Tenant};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::clock;
use crate::config::Config;
use crate::error::ApiError;
pub use crate::terms;
pub use crate::terms::Terms;
pub(crate) use credential::answered_protocol;
use oidc::{Oidc, Refused};
pub(crate) use shown::Shown;
use strangers::Strangers;
use table::{Entry, Table};

/// How often a store that others change is looked at. What is revoked is dead everywhere after this and one question.
const LOOK: Duration = Duration::from_millis(300);
/// How often one that only this process changes is: each change is read at once.
const LOOK_AT_OWN: Duration = Duration::from_secs(5);
/// Longer than this, an answer is not waited for: the next question may find a connection that works.
const PATIENCE: Duration = Duration::from_secs(5);
/// A key that may be a new one waits no longer than this to be known.
const STRANGERS_PATIENCE: Duration = Duration::from_secs(1);
/// After so many looks without an answer, a key that is not known may be a new one.
const MISSED: u32 = 3;

/// What a credential stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// What usage is counted by: `key_…`, `config:NAME`, or made of who an identity provider says it is.
    pub(crate) id: String,
    /// What people call it.
    pub(crate) name: String,
    pub(crate) tenant: Tenant,
    pub(crate) terms: Terms,
    /// What its tenant may use, with all of its keys together.
    pub(crate) tenant_terms: Arc<Terms>,
    /// Unix seconds.
    pub(crate) expires_at: Option<u64>,
    /// The ids of all keys that took each other's place, this one among them, the oldest first: they share limits and budget.
    /// Empty where none did.
    pub(crate) line: Arc<[String]>,
    /// By which a secret is known again, where its id does not say which one it was.
    pub(crate) mark: Option<Mark>,
}

/// The beginning of a secret's hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark([u8; 8]);

impl Mark {
    fn of(hash: &[u8; 32]) -> Self {
        Self(hash.first_chunk().copied().unwrap_or_default())
    }

    fn hex(self) -> String {
        self.0.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    }
}

impl Grant {
    /// What the log, traces and usage call it: nobody who chooses what a token says gets the name of a key.
    pub(crate) fn label(&self) -> &str {
        if oidc::is_token(&self.id) { &self.id } else { &self.name }
    }

    /// Whose limits and budget count for it.
    pub(crate) fn limited_as(&self) -> &str {
        self.line.first().unwrap_or(&self.id)
    }

    /// Whether it, or its tenant, has a budget.
    pub(crate) fn has_budget(&self) -> bool {
        self.terms.budget.is_some() || self.tenant_terms.budget.is_some()
    }

    /// Whether a turn of it may have to wait for what it may use: such turns wait in a line.
    pub(crate) fn waits_in_line(&self) -> bool {
        let waits = |terms: &Terms| terms.concurrency.or(terms.tpm).or(terms.body_bytes).is_some();
        waits(&self.terms) || waits(&self.tenant_terms) || self.has_budget()
    }

    /// Whether a model may be asked for by this name.
    pub(crate) fn allows_model(&self, name: &str) -> bool {
        self.terms.allow_model(name) && self.tenant_terms.allow_model(name)
    }

    /// Whether a hosted tool may be used: `web_search`, or `mcp:LABEL`.
    pub(crate) fn allows_tool(&self, tool: &str) -> bool {
        self.terms.allow_tool(tool) && self.tenant_terms.allow_tool(tool)
    }

    /// Whether hosted tools need to be allowed at all.
    pub(crate) fn binds_tools(&self) -> bool {
        self.terms.tools.is_some() || self.tenant_terms.tools.is_some()
    }

    fn has_expired(&self) -> bool {
        self.expires_at.is_some_and(|end| end <= clock::unix_seconds())
    }
}

/// What is kept of a grant while a turn waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub(crate) id: String,
    /// As JSON, where nothing else would know them later.
    pub(crate) terms: Option<String>,
    /// Which secret of that id it was, where it may be replaced under the same one. None also for what earlier versions kept.
    pub(crate) mark: Option<String>,
}

impl Grant {
    /// What a turn that waits must keep of it.
    pub(crate) fn for_later(&self) -> Earlier {
        let terms = oidc::is_token(&self.id).then(|| self.terms.to_json());
        Earlier { id: self.id.clone(), terms, mark: self.mark.map(Mark::hex) }
    }
}

/// Everybody who may ask.
#[derive(Debug)]
pub(crate) struct Access {
    store: Store,
    table: RwLock<Arc<Table>>,
    /// The identity provider whose tokens are taken.
    oidc: RwLock<Option<Arc<Oidc>>>,
    oidc_changed: Notify,
    /// Whoever replaces the table holds this.
    changing: Mutex<()>,
    /// Whoever reads the store has this, so that what was read later is not replaced by what was read before.
    reading: Semaphore,
    strangers: Strangers,
    started: Instant,
    /// When the store last answered, in milliseconds since the start. Not by the wall clock, which may jump.
    read_at: AtomicU64,
    grace: Duration,
}

impl Access {
    /// Reads what the store has.
    pub(crate) async fn new(store: Store, config: &Config) -> Result<Arc<Self>, store::Error> {
        let access = Self {
            store,
            table: RwLock::new(Arc::new(Table::declaring(config))),
            oidc: RwLock::new(config.oidc.clone().map(|oidc| Arc::new(Oidc::new(oidc)))),
            oidc_changed: Notify::new(),
            changing: Mutex::default(),
            reading: Semaphore::new(1),
            strangers: Strangers::new(),
            started: Instant::now(),
            read_at: AtomicU64::new(0),
            grace: config.limits.key_grace,
        };
        access.refresh().await?;
        Ok(Arc::new(access))
    }

    /// A new configuration: other declared keys, another identity provider.
    pub(crate) fn replace(&self, config: &Config) {
        self.change(|table| table.with_declared(config));
        if self.oidc().map(|oidc| oidc.config.clone()) != config.oidc {
            let oidc = config.oidc.clone().map(|oidc| Arc::new(Oidc::new(oidc)));
            *self.oidc.write().unwrap_or_else(PoisonError::into_inner) = oidc;
            self.oidc_changed.notify_one();
        }
    }

    /// The identity provider whose tokens are taken.
    pub(crate) fn oidc(&self) -> Option<Arc<Oidc>> {
        self.oidc.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Until there is another one, or none.
    pub(crate) async fn oidc_changed(&self) {
        self.oidc_changed.notified().await;
    }

    /// Reads what the store has now: for whoever has changed it.
    pub(crate) async fn refresh(&self) -> Result<(), store::Error> {
        let _reading = self.reading.acquire().await;
        let asked_at = self.elapsed();
        let list = self.store.access_list(self.table().version).await?;
        if let Some(list) = list {
            self.change(|table| table.with_stored(&list));
        }
        self.read_at.fetch_max(asked_at, Ordering::Relaxed);
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&Table) -> Table) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let table = Arc::new(change(&self.table()));
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = table;
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there is no key, and no identity provider.
    pub(crate) fn is_open(&self) -> bool {
        self.table().is_open()
    }

    /// Whether everybody may ask, without showing anything.
    pub(crate) fn lets_everybody_in(&self) -> bool {
        self.table().lets_everybody_in()
    }

    /// The same, if this were the configuration.
    pub(crate) fn would_be_open(&self, config: &Config) -> bool {
        self.table().with_declared(config).is_open()
    }

    /// Whom a request is from; None while the door is open. Waits only where a token is signed with a key that is not
    /// known yet, and where another instance may have made a key that is not.
    pub(crate) async fn admit(&self, headers: &HeaderMap, shown: &Shown) -> Result<Option<Arc<Grant>>, ApiError> {
        let error = match self.look_up(headers, shown) {
            Err(Refused::UnknownSigner(error)) => error,
            Err(Refused::UnknownKey(error, hash)) => {
                let known = self.store.is_shared() && Box::pin(self.is_known_by_now(&hash)).await;
                return if known { self.admit_at_once(headers, shown) } else { Err(error) };
            }
            looked_up => return looked_up.map_err(Refused::into_error),
        };
        let oidc = self.oidc().ok_or(error)?;
        Box::pin(oidc.fetch()).await;
        self.admit_at_once(headers, shown)
    }

    /// The same for whoever was admitted before with these headers.
    pub(crate) fn admit_at_once(&self, headers: &HeaderMap, shown: &Shown) -> Result<Option<Arc<Grant>>, ApiError> {
        self.look_up(headers, shown).map_err(Refused::into_error)
    }

    fn look_up(&self, headers: &HeaderMap, shown: &Shown) -> Result<Option<Arc<Grant>>, Refused> {
        let table = self.table();
        if table.lets_everybody_in() {
            return Ok(None);
        }
        let sent = credential::of(headers)?.ok_or_else(credential::missing)?;
        let hash = shown.hash(sent);
        if let Some(entry) = table.by_hash(&hash) {
            return Ok(Some(self.checked(entry, || credential::expired(sent))?));
        }
        if let Some(oidc) = self.oidc().filter(|_| jwt::looks_like(sent)) {
            return oidc.grant(sent, hash, |tenant| table.tenant_terms(tenant)).map(Some);
        }
        if self.age() > self.look().saturating_mul(MISSED) {
            return Err(credential::unknown_now().into());
        }
        let error = credential::incorrect(sent);
        Err(if key::is_whole(sent) { Refused::UnknownKey(error, hash) } else { error.into() })
    }

    /// Looks whether the store knows by now what is not known here.
    async fn is_known_by_now(&self, hash: &[u8; 32]) -> bool {
        if self.strangers.is_refused(hash) {
            return false;
        }
        let came = self.elapsed();
        let looked = async {
            let _looking = self.strangers.looking.acquire().await;
            if self.table().by_hash(hash).is_some() {
                return true;
            }
            // What was read since it came says as much.
            let is_new = self.read_at.load(Ordering::Relaxed) > came;
            if !is_new && (!self.strangers.may_look(self.elapsed()) || self.refresh().await.is_err()) {
                return false;
            }
            let known = self.table().by_hash(hash).is_some();
            if !known {
                self.strangers.refuse(hash);
            }
            known
        };
        timeout(STRANGERS_PATIENCE, looked).await.unwrap_or(false)
    }

    /// Whether a grant is still good: for turns that begin later than they were asked for. By its id, and for one by a token
    /// by its terms of then. Also while the door is open: what was asked for with a key is not done as if there had been none.
    pub(crate) fn still(&self, earlier: &Earlier, tenant: &Tenant) -> Result<Arc<Grant>, ApiError> {
        let (table, id) = (self.table(), &earlier.id);
        if oidc::is_token(id) {
            let terms = earlier.terms.as_deref().filter(|_| self.oidc().is_some()).zip(table.tenant_terms(tenant));
            let grant = terms.and_then(|(terms, all)| oidc::granted_earlier(id, tenant, terms, all));
            return grant.map(Arc::new).ok_or_else(credential::revoked_meanwhile);
        }
        match table.by_id(id) {
            Some(entry) if entry.grant.tenant != *tenant => Err(credential::revoked_meanwhile()),
            Some(entry) if earlier.mark.is_some() && earlier.mark != entry.grant.mark.map(Mark::hex) => {
                Err(credential::revoked_meanwhile())
            }
            Some(entry) => self.checked(entry, credential::expired_meanwhile),
            None if self.age() > self.grace => Err(credential::unknown_now()),
            None => Err(credential::revoked_meanwhile()),
        }
    }

    /// Whether nothing has to be shown still: for turns that begin later than they were asked for.
    pub(crate) fn still_open(&self) -> Result<(), ApiError> {
        if self.lets_everybody_in() { Ok(()) } else { Err(credential::wanted_meanwhile()) }
    }

    fn checked(&self, entry: &Entry, expired: impl FnOnce() -> ApiError) -> Result<Arc<Grant>, ApiError> {
        if entry.is_stored && self.age() > self.grace {
            return Err(credential::unknown_now());
        }
        if entry.grant.has_expired() {
            return Err(expired());
        }
        Ok(Arc::clone(&entry.grant))
    }

    /// Keeps what is in memory as the store has it; runs as long as the server.
    pub(crate) async fn maintain(self: Arc<Self>) {
        let mut looks = interval(self.look());
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut was_away = false;
        loop {
            looks.tick().await;
            let failed = match timeout(PATIENCE, self.refresh()).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_) => Some("no answer in time".to_owned()),
            };
            // Once, and not at each look.
            match (&failed, was_away) {
                (Some(error), false) => {
                    tracing::warn!(error, "the API keys cannot be read; they work from memory for a while");
                }
                (None, true) => tracing::info!("the API keys can be read again"),
                _ => {}
            }
            was_away = failed.is_some();
        }
    }

    fn look(&self) -> Duration {
        if self.store.is_shared() { LOOK } else { LOOK_AT_OWN }
    }

    /// How old what is in memory may be.
    fn age(&self) -> Duration {
        Duration::from_millis(self.elapsed().saturating_sub(self.read_at.load(Ordering::Relaxed)))
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
