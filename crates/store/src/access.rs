//! API keys and what tenants are allowed, for all tenants together: who asks is found out before it is known whose data
//! may be seen.
//!
//! A key is never stored, only its hash. Names are unique among the keys that are not revoked. Everything that changes
//! raises one version, so that a process that holds all of it in memory asks one cheap question to know that it is
//! still right.

use crate::{Error, Store, Tenant};

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
        Ok(since.is_none().then(AccessList::default))
    }

    /// [`Error::Conflict`] if the name, the id or the hash is another key's.
    pub async fn create_api_key(&self, key: ApiKey) -> Result<(), Error> {
        let _ = key;
        Err(Error::unavailable("not built"))
    }

    /// From now on the key is nobody's; once revoked it stays so. [`Error::NotFound`] if there is none with this id.
    pub async fn revoke_api_key(&self, id: &str, at: i64) -> Result<(), Error> {
        let _ = (id, at);
        Err(Error::unavailable("not built"))
    }

    /// Puts a new key in the place of an older one, which keeps working until then (at once if that is past). The new one
    /// has its name.
    pub async fn rotate_api_key(&self, id: &str, new: ApiKey, until: i64) -> Result<(), Error> {
        let _ = (id, new, until);
        Err(Error::unavailable("not built"))
    }

    /// Forgets a revoked or expired key for good. [`Error::NotFound`] if there is none with this id.
    pub async fn delete_api_key(&self, id: &str) -> Result<(), Error> {
        let _ = id;
        Err(Error::unavailable("not built"))
    }

    /// What a tenant is allowed, with all of its keys together; None: nothing special.
    pub async fn set_tenant_terms(&self, tenant: &Tenant, terms: Option<String>) -> Result<(), Error> {
        let _ = (tenant, terms);
        Err(Error::unavailable("not built"))
    }
}
