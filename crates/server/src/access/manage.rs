//! Making, listing, revoking, rotating keys: what `godex keys` and the admin listener do, on a store.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::Store;

use super::Terms;
use crate::config::Secret;

/// A key to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    pub name: String,
    /// None: `default`, who owns what was stored before there were keys.
    #[serde(default)]
    pub tenant: Option<String>,
    #[serde(default)]
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
    pub terms: Terms,
}

/// A key that was made: the only time that it is shown.
#[derive(Debug, Clone)]
pub struct MadeKey {
    pub info: KeyInfo,
    pub key: Secret,
    /// It is the first one: whoever had none is refused from now on.
    pub closes_the_door: bool,
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
    let _ = store;
    Err(ManageError::Invalid(new.name))
}

/// All keys, the revoked ones as well, by tenant and name.
pub async fn list(store: &Store) -> Result<Vec<KeyInfo>, ManageError> {
    let _ = store;
    Ok(Vec::new())
}

/// By name or id.
pub async fn show(store: &Store, key: &str) -> Result<KeyInfo, ManageError> {
    let _ = store;
    Err(ManageError::Unknown(key.to_owned()))
}

/// Dead at once, on every instance within a second.
pub async fn revoke(store: &Store, key: &str) -> Result<KeyInfo, ManageError> {
    let _ = store;
    Err(ManageError::Unknown(key.to_owned()))
}

/// A new key with the same name and terms; the older one works for `grace` more.
pub async fn rotate(store: &Store, key: &str, grace: Duration) -> Result<MadeKey, ManageError> {
    let _ = (store, grace);
    Err(ManageError::Unknown(key.to_owned()))
}

/// Forgets a key that was revoked or has expired. With the last one the door is open again.
pub async fn delete(store: &Store, key: &str) -> Result<KeyInfo, ManageError> {
    let _ = store;
    Err(ManageError::Unknown(key.to_owned()))
}
