//! The tokens of an identity provider: which are good, and what they stand for. The issuer's keys are brought by whoever
//! fetches them (`jwks`); here they are only asked for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::Tenant;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use wire::json::{Kind, Raw, Text};

use super::jwt::{self, NoToken, Signer};
use super::{Grant, Terms, credential, key, manage};
use crate::clock;
use crate::config::{OidcConfig, is_name};
use crate::error::{ApiError, Code};

/// What the ids of grants by token begin with.
const PREFIX: &str = "oidc:";
/// Clocks differ.
const LEEWAY: u64 = 60;
/// A key that is not known may be new: so often it is asked for, whoever sends what.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// How long a request waits for that.
const PATIENCE: Duration = Duration::from_secs(5);
/// Good tokens that are remembered.
const MOST_REMEMBERED: usize = 4096;
const LONGEST_SUBJECT: usize = 128;

/// An identity provider.
#[derive(Debug)]
pub(crate) struct Oidc {
    pub(crate) config: OidcConfig,
    state: Mutex<State>,
    /// How often keys were fetched, or could not be.
    fetches: watch::Sender<u64>,
    wanted: Notify,
    is_fetching: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    signers: Arc<[Signer]>,
    /// When they were fetched, and when that was tried last.
    fetched_at: Option<Instant>,
    tried_at: Option<Instant>,
    failed: bool,
    /// Good tokens, by their hashes.
    remembered: HashMap<[u8; 32], Arc<Grant>>,
}

/// Why a token is not taken.
#[derive(Debug)]
pub(super) enum Refused {
    /// For good.
    Error(ApiError),
    /// Perhaps only because its key is not known yet.
    UnknownSigner(ApiError),
    /// Perhaps only because the key with this hash was made a moment ago.
    UnknownKey(ApiError, [u8; 32]),
}

impl Refused {
    pub(super) fn into_error(self) -> ApiError {
        match self {
            Self::Error(error) | Self::UnknownSigner(error) | Self::UnknownKey(error, _) => error,
        }
    }
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl Oidc {
    pub(super) fn new(config: OidcConfig) -> Self {
        let fetches = watch::Sender::new(0);
        Self { config, state: Mutex::default(), fetches, wanted: Notify::new(), is_fetching: AtomicBool::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a token stands for; what its tenant may use is found by `tenant_terms`, which is none where that is not known.
    pub(super) fn grant(
        &self,
        sent: &[u8],
        hash: [u8; 32],
        tenant_terms: impl Fn(&Tenant) -> Option<Arc<Terms>>,
    ) -> Result<Arc<Grant>, Refused> {
        let signers = {
            let state = self.state();
            let age = state.fetched_at.map(|at| at.elapsed());
            match age {
                None => return Err(Refused::UnknownSigner(unavailable())),
                Some(age) if age > self.config.jwks_grace => return Err(Refused::UnknownSigner(unavailable())),
                Some(_) => {}
            }
            if let Some(grant) = state.remembered.get(&hash) {
                if grant.has_expired() {
                    return Err(credential::expired(sent).into());
                }
                let is_current = |terms: &Arc<Terms>| *grant.tenant_terms == **terms;
                if tenant_terms(&grant.tenant).as_ref().is_some_and(is_current) {
                    return Ok(Arc::clone(grant));
                }
            }
            Arc::clone(&state.signers)
        };
        let claims = jwt::verified(sent, &signers).map_err(|no_token| match no_token {
            NoToken::UnknownSigner => Refused::UnknownSigner(wrong("it is signed with a key that is not known")),
            NoToken::Malformed => wrong("it is none that is taken here").into(),
            NoToken::Forged => wrong("its signature does not fit").into(),
        })?;
        let grant = Arc::new(self.read(sent, &claims, tenant_terms)?);
        self.remember(hash, &grant, &signers);
        Ok(grant)
    }

    fn remember(&self, hash: [u8; 32], grant: &Arc<Grant>, signers: &Arc<[Signer]>) {
        let mut state = self.state();
        // It was found good with other keys than there are now.
        if !Arc::ptr_eq(&state.signers, signers) {
            return;
        }
        if state.remembered.len() >= MOST_REMEMBERED {
            state.remembered.retain(|_, grant| !grant.has_expired());
        }
        if state.remembered.len() >= MOST_REMEMBERED {
            state.remembered.clear();
        }
        state.remembered.insert(hash, Arc::clone(grant));
    }

    fn read(
        &self,
        sent: &[u8],
        claims: &[u8],
        tenant_terms: impl Fn(&Tenant) -> Option<Arc<Terms>>,
    ) -> Result<Grant, ApiError> {
        let no_claims = || wrong("what it says is no JSON object");
        let claims = str::from_utf8(claims).ok().and_then(|text| Raw::parse(text).ok()).ok_or_else(no_claims)?;
        if claims.kind() != Kind::Object {
            return Err(no_claims());
        }
        let text = |name: &str| claims.get(name).and_then(Raw::text).map(Text::decode);
        if text("iss").as_deref() != Some(self.config.issuer.as_str()) {
            return Err(wrong("it is of another issuer"));
        }
        if !audiences(claims.get("aud")).contains(&self.config.audience) {
            return Err(wrong("it is for another audience"));
        }
        let expires_at = time(claims.get("exp")).ok_or_else(|| wrong("it does not say when it expires"))?;
        let (now, expires_at) = (clock::unix_seconds(), expires_at.saturating_add(LEEWAY));
        if expires_at <= now {
            return Err(credential::expired(sent));
        }
        if claims.get("nbf").is_some_and(|nbf| time(Some(nbf)).is_none_or(|begin| begin > now + LEEWAY)) {
            return Err(wrong("it is not good yet"));
        }
        let subject =
            text("sub").filter(|sub| !sub.is_empty()).ok_or_else(|| wrong("it does not say who it is for"))?;
        let tenant =
            text(&self.config.tenant_claim).filter(|tenant| is_name(tenant)).ok_or_else(|| self.no_tenant())?;
        let (tenant, subject) = (Tenant::new(&tenant), bounded(&subject));
        let terms = self.terms(claims)?;
        let tenant_terms = tenant_terms(&tenant).ok_or_else(credential::unknown_now)?;
        let id = format!("{PREFIX}{subject}");
        let (expires_at, line) = (Some(expires_at), Arc::default());
        Ok(Grant { id, name: subject, tenant, terms, tenant_terms, expires_at, line, mark: None })
    }

    fn no_tenant(&self) -> ApiError {
        let message = format!(
            "The token does not say whose it is: its claim `{}` is missing, or is no tenant's name.",
            self.config.tenant_claim
        );
        ApiError::new(Code::TenantMissing, message)
    }

    /// What the token says of itself, and what the operator says of all.
    fn terms(&self, claims: Raw<'_>) -> Result<Terms, ApiError> {
        let all = &self.config.terms;
        let claimed = |name: Option<&String>| claims.get(name?).filter(|raw| !raw.is_null());
        let own = match claimed(self.config.terms_claim.as_ref()) {
            Some(terms) => terms_in(terms).map_err(|error| {
                // A limit that is not understood is none that could be kept.
                tracing::warn!(error, "the terms in a token cannot be read: it is refused");
                wrong("its terms cannot be read")
            })?,
            None => Terms::default(),
        };
        let mut models = own.models.or_else(|| all.models.clone());
        if let Some(list) = claimed(self.config.models_claim.as_ref()) {
            let claimed = texts(Some(list));
            models = Some(models.map_or_else(|| claimed.clone(), |models| in_both(&claimed, &models)));
        }
        Ok(Terms {
            models,
            tools: own.tools.or_else(|| all.tools.clone()),
            rpm: own.rpm.or(all.rpm),
            tpm: own.tpm.or(all.tpm),
            concurrency: own.concurrency.or(all.concurrency),
            queue: own.queue.or(all.queue),
            body_bytes: own.body_bytes.or(all.body_bytes),
            budget: own.budget.or(all.budget),
        })
    }

    /// Keys have been fetched, as JSON; or why not. Those that were there are used on, for a while.
    pub(crate) fn fetched(&self, key_set: Result<Vec<u8>, String>) {
        let signers = key_set.and_then(|key_set| jwt::signers(&key_set));
        let mut state = self.state();
        state.tried_at = Some(Instant::now());
        match signers {
            Ok(signers) => {
                state.fetched_at = state.tried_at;
                if *state.signers != *signers {
                    state.signers = signers.into();
                    // What a key has signed that is there no more is good no more.
                    state.remembered.clear();
                }
                if std::mem::take(&mut state.failed) {
                    tracing::info!(
                        issuer = self.config.issuer,
                        "the keys of the identity provider can be fetched again"
                    );
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut state.failed, true) {
                    tracing::warn!(
                        issuer = self.config.issuer,
                        error,
                        "the keys of the identity provider cannot be fetched"
                    );
                }
            }
        }
        drop(state);
        self.is_fetching.store(false, Ordering::Relaxed);
        self.fetches.send_modify(|count| *count += 1);
    }

    /// Whoever fetches begins.
    pub(crate) fn is_fetching(&self) {
        self.is_fetching.store(true, Ordering::Relaxed);
    }

    /// Whether the last try came to nothing.
    pub(crate) fn has_failed(&self) -> bool {
        self.state().failed
    }

    /// Until a request wants keys that are not there.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Has keys fetched, if that was not just done, and waits for them.
    pub(super) async fn fetch(&self) {
        let mut fetches = self.fetches.subscribe();
        let may_ask = self.state().tried_at.is_none_or(|at| at.elapsed() >= ASK_AGAIN);
        if may_ask && !self.is_fetching.swap(true, Ordering::Relaxed) {
            self.wanted.notify_one();
        }
        if self.is_fetching.load(Ordering::Relaxed) {
            let _ = timeout(PATIENCE, fetches.changed()).await;
        }
    }
}

/// A grant by a token that was good when its holder asked for something that begins now. What was asked for outlives the
/// token: they expire within minutes, and are not revoked.
pub(super) fn granted_earlier(id: &str, tenant: &Tenant, terms: &str, tenant_terms: Arc<Terms>) -> Option<Grant> {
    let (name, terms) = (id.strip_prefix(PREFIX)?.to_owned(), Terms::from_json(terms).ok()?);
    Some(Grant {
        id: id.to_owned(),
        name,
        tenant: tenant.clone(),
        terms,
        tenant_terms,
        expires_at: None,
        line: Arc::default(),
        mark: None,
    })
}

/// Whether a grant is by a token.
pub(super) fn is_token(id: &str) -> bool {
    id.starts_with(PREFIX)
}

/// As terms of keys are, with which something must be possible.
fn terms_in(claim: Raw<'_>) -> Result<Terms, String> {
    let terms = Terms::from_json(claim.as_str())?;
    manage::check(&terms).map(|()| terms).map_err(|error| error.to_string())
}

fn wrong(why: &str) -> ApiError {
    ApiError::new(Code::InvalidApiKey, format!("The token provided is not valid: {why}."))
}

fn unavailable() -> ApiError {
    let message = "The keys of the identity provider cannot be read at the moment. Please retry in a moment.";
    ApiError::new(Code::KeysUnavailable, message)
}

/// One text, or those of an array; of one text with blanks, its words.
fn texts(raw: Option<Raw<'_>>) -> Vec<String> {
    let words = |text: &String| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    match (raw.map(Raw::kind), audiences(raw)) {
        (Some(Kind::String), text) => text.first().map(words).unwrap_or_default(),
        (_, texts) => texts,
    }
}

/// One text, whatever is in it, or those of an array.
fn audiences(raw: Option<Raw<'_>>) -> Vec<String> {
    let Some(raw) = raw else { return Vec::new() };
    let text = |raw: Raw<'_>| raw.text().map(|text| text.decode().into_owned());
    if raw.kind() == Kind::Array { raw.elements().filter_map(text).collect() } else { text(raw).into_iter().collect() }
}

/// What both lists allow: of a name, and of what begins as it does, the narrower one.
fn in_both(some: &[String], others: &[String]) -> Vec<String> {
    let covers = |wide: &str, narrow: &str| {
        Terms { models: Some(vec![wide.to_owned()]), ..Terms::default() }.allow_model(narrow)
    };
    let mut both: Vec<String> = Vec::new();
    for (one, other) in some.iter().flat_map(|one| others.iter().map(move |other| (one, other))) {
        let narrow = if covers(other, one) { Some(one) } else { Some(other).filter(|other| covers(one, other)) };
        both.extend(narrow.filter(|name| !both.contains(name)).cloned());
    }
    both
}

/// Seconds since the epoch, which may have a fraction.
fn time(raw: Option<Raw<'_>>) -> Option<u64> {
    let raw = raw.filter(|raw| raw.kind() == Kind::Number)?.as_str();
    let whole = raw.split(['.', 'e', 'E']).next()?;
    // Nobody writes a moment with an exponent, or before the epoch.
    (!raw.contains(['e', 'E'])).then(|| whole.parse().ok())?
}

/// Short enough to be counted by; what is cut keeps apart from others by its hash.
fn bounded(subject: &str) -> String {
    let plain: String = subject.chars().filter(|c| !c.is_control()).collect();
    // One that looks like a cut one might be another's.
    if plain == subject && subject.len() <= LONGEST_SUBJECT && !subject.contains('~') {
        return plain;
    }
    let hash = key::hash(subject.as_bytes());
    let start = &plain[..plain.floor_char_boundary(LONGEST_SUBJECT / 2)];
    hash[..12].iter().fold(format!("{start}~"), |id, byte| id + &format!("{byte:02x}"))
}

#[cfg(test)]
#[path = "oidc_tests.rs"]
mod tests;
