//! API keys and what tenants are allowed, for all tenants together: who asks is found out before it is known whose data
//! may be seen.
//!
//! A key is never stored, only its hash. Names are unique, over all tenants, among the keys that are neither revoked nor
//! replaced. Everything that changes raises one version, so that a process that holds all of it in memory asks one cheap
//! question to know that it is still right.

use crate::upkeep::upkeep;
use crate::{Backend, Error, Store, Tenant, sqlite};

/// An API key, without itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// `key_…`: what usage is counted by, and what may be shown.
    pub id: String,
    pub tenant: Tenant,
    pub name: String,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    /// Its last characters, by which people tell keys apart.
    pub hint: String,
    /// Unix milliseconds, as all moments here.
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub revoked_at: Option<i64>,
    /// The id of the key that took its place and has its name. It still works until it expires.
    pub replaced_by: Option<String>,
    /// What it may do: JSON of whoever reads it.
    pub terms: String,
}

/// All keys and what is said of tenants, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessList {
    pub version: i64,
    /// The revoked ones as well.
    pub keys: Vec<ApiKey>,
    /// What tenants are allowed, with all their keys together; those of whom something is said.
    pub tenants: Vec<(Tenant, String)>,
}

impl Store {
    /// Everything, unless nothing has changed since that version.
    pub async fn access_list(&self, since: Option<i64>) -> Result<Option<AccessList>, Error> {
        // No version is negative.
        let since = since.unwrap_or(-1);
        upkeep!(self, read, access_list(since))
    }

    /// [`Error::Conflict`] if the name, the id or the hash is another key's.
    pub async fn create_api_key(&self, key: ApiKey) -> Result<(), Error> {
        upkeep!(self, write, create_api_key(&key))
    }

    /// From now on the key is nobody's; once revoked it stays so. [`Error::NotFound`] if there is none with this id.
    pub async fn revoke_api_key(&self, id: &str, at: i64) -> Result<(), Error> {
        let id = id.to_owned();
        upkeep!(self, write, revoke_api_key(&id, at))
    }

    /// The same for all keys of this name, in one step: a key that is put in the place of one of them meanwhile is revoked
    /// with it, or not made. The ids of those that were not revoked before; none if there are none.
    pub async fn revoke_api_keys_named(&self, name: &str, at: i64) -> Result<Vec<String>, Error> {
        let name = name.to_owned();
        upkeep!(self, write, revoke_api_keys_named(&name, at))
    }

    /// Puts a new key in the place of an older one, which keeps working until then (at once if that is past), or until it
    /// expires, if that is earlier. The new one has its name, whatever name it came with; the older one is listed with it as
    /// well, and says by whom it was replaced.
    ///
    /// [`Error::NotFound`] if there is none with this id, or it is revoked or was replaced before; [`Error::Conflict`] if the
    /// new id or hash is another key's.
    pub async fn rotate_api_key(&self, id: &str, new: ApiKey, until: i64) -> Result<(), Error> {
        let id = id.to_owned();
        upkeep!(self, write, rotate_api_key(&id, &new, until))
    }

    /// Forgets a key for good; the caller sees to it that it is a revoked or expired one. [`Error::NotFound`] if there is
    /// none with this id.
    pub async fn delete_api_key(&self, id: &str) -> Result<(), Error> {
        let id = id.to_owned();
        upkeep!(self, write, delete_api_key(&id))
    }

    /// What a tenant is allowed, with all of its keys together; None: nothing special.
    pub async fn set_tenant_terms(&self, tenant: &Tenant, terms: Option<String>) -> Result<(), Error> {
        let tenant = tenant.clone();
        upkeep!(self, write, set_tenant_terms(&tenant, terms.as_deref()))
    }
}
