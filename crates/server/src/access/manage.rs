//! Making, listing, revoking, rotating keys: what `godex keys` and the admin listener do, on a store. Whoever changes the
//! store of a running server tells it afterwards (`Access::refresh`).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{ApiKey, Store, Tenant};

use super::{Terms, key};
use crate::clock;
use crate::config::{NAME, Secret, is_name};
use crate::terms::MOST_TPM;

/// How ids begin, before so many bytes in hex.
const ID: &str = "key_";
const ID_BYTES: usize = 12;

/// A key to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    pub name: String,
    /// None: `default`, who owns what was stored before there were keys.
    #[serde(default)]
    pub tenant: Option<String>,
    #[serde(default, deserialize_with = "Terms::of_object")]
    pub terms: Terms,
    /// Unix seconds.
    #[serde(default)]
    pub expires_at: Option<u64>,
}

/// What may be shown of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyInfo {
    pub id: String,
    pub name: String,
    pub tenant: String,
    /// Its last characters.
    pub hint: String,
    /// Unix seconds.
    pub created_at: u64,
    pub expires_at: Option<u64>,
    pub revoked_at: Option<u64>,
    /// The id of the key that took its place; it works until it expires.
    #[serde(default)]
    pub replaced_by: Option<String>,
    pub terms: Terms,
}

/// A key that was made: the only time that it is shown.
#[derive(Debug, Clone)]
pub struct MadeKey {
    pub info: KeyInfo,
    pub key: Secret,
    /// It is the first one: whoever had none is refused from now on.
    pub closes_the_door: bool,
    /// The end of the one whose place it took, as Unix seconds.
    pub older_ends_at: Option<u64>,
}

/// A key that was revoked.
#[derive(Debug, Clone)]
pub struct RevokedKey {
    pub info: KeyInfo,
    /// All that worked until then, the oldest first: a name that was rotated may have several.
    pub ids: Vec<String>,
    /// The hashes of all of that name.
    pub(crate) hashes: Vec<[u8; 32]>,
}

/// Why a key cannot be managed as asked.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// A value is no good: which, and why.
    #[error("{0}")]
    Invalid(String),
    #[error("there is a key named {0} already; revoke it first, or rotate it")]
    Taken(String),
    #[error("there is no key {0}")]
    Unknown(String),
    #[error("the key {0} still works; revoke it first")]
    Works(String),
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Makes a key.
pub async fn create(store: &Store, new: NewKey) -> Result<MadeKey, ManageError> {
    let NewKey { name, tenant, terms, expires_at } = new;
    let tenant = tenant.map_or_else(Tenant::default, |tenant| Tenant::new(&tenant));
    for (what, name) in [("name", name.as_str()), ("tenant", tenant.name())] {
        if !is_name(name) {
            return Err(ManageError::Invalid(format!("a {what} is {NAME}")));
        }
    }
    if looks_like_id(&name) {
        return Err(ManageError::Invalid(
            "a name is not what ids of keys look like: it could be another key's".to_owned(),
        ));
    }
    if expires_at.is_some_and(|end| end <= clock::unix_seconds()) {
        return Err(ManageError::Invalid("the key would have expired already".to_owned()));
    }
    check(&terms)?;
    let closes_the_door = all(store).await?.is_empty();
    let (key, made) = made(&name, tenant, &terms, expires_at.map(millis))?;
    match store.create_api_key(made.clone()).await {
        Ok(()) => Ok(MadeKey { info: info(made), key, closes_the_door, older_ends_at: None }),
        Err(store::Error::Conflict) => Err(ManageError::Taken(name)),
        Err(error) => Err(error.into()),
    }
}

fn looks_like_id(name: &str) -> bool {
    let hex = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    name.strip_prefix(ID).is_some_and(|rest| rest.len() == 2 * ID_BYTES && rest.bytes().all(hex))
}

/// What would never be right, and what no counter can hold.
pub(crate) fn check(terms: &Terms) -> Result<(), ManageError> {
    let tools = terms.tools.iter().flatten();
    let unknown = |tool: &&String| {
        !matches!(tool.as_str(), "web_search" | "mcp") && tool.strip_prefix("mcp:").is_none_or(str::is_empty)
    };
    if let Some(tool) = tools.clone().find(unknown) {
        let message = format!("there is no hosted tool `{tool}`: tools are `web_search`, `mcp` and `mcp:LABEL`");
        return Err(ManageError::Invalid(message));
    }
    if terms.models.iter().flatten().any(String::is_empty) {
        return Err(ManageError::Invalid("a model has a name".to_owned()));
    }
    let none =
        [("rpm", terms.rpm), ("tpm", terms.tpm), ("concurrency", terms.concurrency), ("body_bytes", terms.body_bytes)];
    if let Some((name, _)) = none.into_iter().find(|(_, limit)| *limit == Some(0)) {
        return Err(ManageError::Invalid(format!("with {name} 0 nothing could be done")));
    }
    // As in the configuration: more is no limit, and several instances could not share it.
    let counted = [("rpm", terms.rpm), ("concurrency", terms.concurrency), ("queue", terms.queue)];
    let counted = counted.map(|(name, limit)| (name, limit, u64::from(u32::MAX)));
    match counted.into_iter().chain([("tpm", terms.tpm, MOST_TPM)]).find(|(_, limit, most)| *limit > Some(*most)) {
        Some((name, _, most)) => {
            Err(ManageError::Invalid(format!("{name} is at most {most}; without it there is no limit")))
        }
        None => Ok(()),
    }
}

/// A new key, and as it is stored.
fn made(name: &str, tenant: Tenant, terms: &Terms, expires_at: Option<i64>) -> Result<(Secret, ApiKey), ManageError> {
    let no_bits = || ManageError::Invalid("this system has no random numbers".to_owned());
    let key = key::make().ok_or_else(no_bits)?;
    let id = clock::secret_bits().ok_or_else(no_bits)?;
    let id = id[..ID_BYTES].iter().fold(ID.to_owned(), |id, byte| id + &format!("{byte:02x}"));
    let stored = ApiKey {
        id,
        tenant,
        name: name.to_owned(),
        hash: key::hash(key.expose().as_bytes()),
        hint: key::hint(key.expose()),
        created_at: now(),
        expires_at,
        revoked_at: None,
        replaced_by: None,
        terms: terms.to_json(),
    };
    Ok((key, stored))
}

/// All keys, the revoked ones as well, by tenant and name.
pub async fn list(store: &Store) -> Result<Vec<KeyInfo>, ManageError> {
    let mut keys: Vec<KeyInfo> = all(store).await?.into_iter().map(info).collect();
    keys.sort_by(|one, other| {
        let by = |key: &KeyInfo| (key.tenant.clone(), key.name.clone(), key.created_at, key.id.clone());
        by(one).cmp(&by(other))
    });
    Ok(keys)
}

/// By name or id.
pub async fn show(store: &Store, key: &str) -> Result<KeyInfo, ManageError> {
    found(store, key).await?.map(info).ok_or_else(|| ManageError::Unknown(key.to_owned()))
}

/// Dead at once, on every instance within a second. By name: with all that was rotated and still works.
pub async fn revoke(store: &Store, key: &str) -> Result<RevokedKey, ManageError> {
    let shown = found(store, key).await?.ok_or_else(|| ManageError::Unknown(key.to_owned()))?;
    let at = now();
    let revoked = if shown.id == key {
        store.revoke_api_key(key, at).await?;
        Vec::from_iter(shown.revoked_at.is_none().then(|| key.to_owned()))
    } else {
        // What is rotated at the same moment has the name as well.
        store.revoke_api_keys_named(key, at).await?
    };
    let mut found = named(store, key).await?;
    let hashes = found.iter().map(|key| key.hash).collect();
    found.sort_by_key(|key| key.created_at);
    found.retain(|key| revoked.contains(&key.id));
    let worked = found.iter().filter(|key| key.expires_at.is_none_or(|end| end > at));
    let ids = worked.map(|key| key.id.clone()).collect();
    // The one that had the name last.
    let last = found.into_iter().max_by_key(|key| (key.replaced_by.is_none(), key.created_at));
    Ok(RevokedKey { info: info(last.unwrap_or(shown)), ids, hashes })
}

/// A new key with the same name and terms, until the same moment; the older one works for `grace` more. In the place of one that
/// has expired comes one that lives as long as any of that name did: one that was rotated shortly before its end left the next
/// hardly any time.
pub async fn rotate(store: &Store, key: &str, grace: Duration) -> Result<MadeKey, ManageError> {
    let older = found(store, key).await?.ok_or_else(|| ManageError::Unknown(key.to_owned()))?;
    let gone =
        || ManageError::Invalid(format!("the key {key} was revoked or rotated; make another with `godex keys create`"));
    if older.revoked_at.is_some() || older.replaced_by.is_some() {
        return Err(gone());
    }
    let terms = Terms::from_json(&older.terms).map_err(|error| {
        ManageError::Invalid(format!("what the key {key} is allowed cannot be read by this version: {error}"))
    })?;
    let expires_at = match older.expires_at {
        Some(end) if end <= now() => Some(now().saturating_add(longest_life(&named(store, &older.name).await?))),
        end => end,
    };
    let (secret, made) = made(&older.name, older.tenant, &terms, expires_at)?;
    let until = now().saturating_add(i64::try_from(grace.as_millis()).unwrap_or(i64::MAX));
    let older_end = older.expires_at.map_or(until, |end| end.min(until));
    match store.rotate_api_key(&older.id, made.clone(), until).await {
        Ok(()) => {}
        // Somebody else was faster.
        Err(store::Error::NotFound) => return Err(gone()),
        Err(error) => return Err(error.into()),
    }
    let older_ends_at = u64::try_from(older_end / 1000).ok();
    Ok(MadeKey { info: info(made), key: secret, closes_the_door: false, older_ends_at })
}

/// Forgets a key that was revoked or has expired; by name: all of them that have it. With the last one of all the door is
/// open again.
pub async fn delete(store: &Store, key: &str) -> Result<KeyInfo, ManageError> {
    let found = named(store, key).await?;
    if found.is_empty() {
        return Err(ManageError::Unknown(key.to_owned()));
    }
    let mut dead: Vec<ApiKey> = found.into_iter().filter(|key| !works(key)).collect();
    dead.sort_by_key(|key| key.created_at);
    for key in &dead {
        store.delete_api_key(&key.id).await?;
    }
    dead.pop().map(info).ok_or_else(|| ManageError::Works(key.to_owned()))
}

/// What a tenant is allowed, with all of its keys together.
pub async fn tenant_terms(store: &Store, tenant: &str) -> Result<Terms, ManageError> {
    let list = store.access_list(None).await?.unwrap_or_default();
    match list.tenants.iter().find(|(name, _)| name.name() == tenant) {
        Some((_, terms)) => Terms::from_json(terms)
            .map_err(|error| ManageError::Invalid(format!("its terms cannot be read by this version: {error}"))),
        None => Ok(Terms::default()),
    }
}

/// From now on a tenant is allowed this, with all of its keys together.
pub async fn set_tenant_terms(store: &Store, tenant: &str, terms: &Terms) -> Result<(), ManageError> {
    if !is_name(tenant) {
        return Err(ManageError::Invalid(format!("a tenant is {NAME}")));
    }
    check(terms)?;
    let json = (*terms != Terms::default()).then(|| terms.to_json());
    Ok(store.set_tenant_terms(&Tenant::new(tenant), json).await?)
}

async fn all(store: &Store) -> Result<Vec<ApiKey>, ManageError> {
    Ok(store.access_list(None).await?.unwrap_or_default().keys)
}

/// The one that is meant by an id or a name: one that works, rather than one that was replaced; of those, the newest.
async fn found(store: &Store, key: &str) -> Result<Option<ApiKey>, ManageError> {
    let found = named(store, key).await?;
    Ok(found.into_iter().max_by_key(|key| (works(key), key.replaced_by.is_none(), key.created_at)))
}

/// The one with this id, else all with this name.
async fn named(store: &Store, key: &str) -> Result<Vec<ApiKey>, ManageError> {
    let (with_id, others): (Vec<_>, Vec<_>) = all(store).await?.into_iter().partition(|found| found.id == key);
    Ok(if with_id.is_empty() { others.into_iter().filter(|found| found.name == key).collect() } else { with_id })
}

fn longest_life(keys: &[ApiKey]) -> i64 {
    let life = |key: &ApiKey| Some(key.expires_at?.saturating_sub(key.created_at));
    keys.iter().filter_map(life).max().unwrap_or_default()
}

fn works(key: &ApiKey) -> bool {
    key.revoked_at.is_none() && key.expires_at.is_none_or(|end| end > now())
}

fn now() -> i64 {
    i64::try_from(clock::unix_millis()).unwrap_or(i64::MAX)
}

fn millis(seconds: u64) -> i64 {
    i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX)
}

fn info(key: ApiKey) -> KeyInfo {
    let seconds = |millis: i64| u64::try_from(millis).unwrap_or_default() / 1000;
    KeyInfo {
        id: key.id,
        name: key.name,
        tenant: key.tenant.name().to_owned(),
        hint: key.hint,
        created_at: seconds(key.created_at),
        expires_at: key.expires_at.map(seconds),
        revoked_at: key.revoked_at.map(seconds),
        replaced_by: key.replaced_by,
        // What cannot be read lets nobody in, and is shown as nothing.
        terms: Terms::from_json(&key.terms).unwrap_or_default(),
    }
}
