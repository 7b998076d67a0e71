//! The data keys of the tenants: made when a tenant writes for the first time, unwrapped when it is asked for, remembered.
//!
//! Other processes make keys, too. A new key of a tenant that has one is first only announced, for longer than any process
//! remembers what it read: so whoever meets a body can open it, and nobody has to look twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::rand;
use tokio::time::Instant;

use super::cipher::Ring;
use super::{Cipher, Encryption, KeyId, no_randomness};
use crate::{Backend, Error, Tenant, sqlite};

/// How long a process goes by what it read, where others write, too.
pub(super) const REMEMBERED: Duration = Duration::from_secs(2);

/// More tenants than this are forgotten all at once, and read again.
const MOST: usize = 4096;

/// A data key as it is in the database.
#[derive(Debug, Clone)]
pub(crate) struct DataKey {
    pub(crate) number: u32,
    pub(crate) wrapped: Vec<u8>,
    /// Announced: nobody seals with it yet.
    pub(crate) coming: bool,
    /// The tenant goes back to clear: nobody seals with it any more.
    pub(crate) retired: bool,
    /// Whether the tenant has no body in clear.
    pub(crate) sealed_only: bool,
}

/// A data key to be stored.
#[derive(Debug, Clone)]
pub(crate) struct NewDataKey {
    pub(crate) number: u32,
    pub(crate) wrapped: Vec<u8>,
    /// Of the store key that wrapped it.
    pub(crate) wrapping: KeyId,
}

/// What a change of the store's key does to the data keys of a tenant, all at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rotation {
    pub(crate) rewrapped: Vec<NewDataKey>,
    pub(crate) new: Option<NewDataKey>,
    /// Back to clear.
    pub(crate) retire: bool,
}

impl DataKey {
    /// With which the tenant's bodies are sealed now.
    pub(crate) fn current(rows: &[Self]) -> Option<&Self> {
        rows.iter().filter(|row| !row.coming && !row.retired).max_by_key(|row| row.number)
    }

    /// What a wrapped key is bound to: it is no other tenant's, and no other number's.
    pub(crate) fn bound_to(tenant: &Tenant, number: u32) -> Vec<u8> {
        [b"godex data key 1".as_slice(), &number.to_le_bytes(), tenant.key()].concat()
    }

    /// A new one, if there is a key to wrap it.
    pub(crate) fn made(encryption: &Encryption, tenant: &Tenant, number: u32) -> Result<Option<NewDataKey>, Error> {
        let Some(key) = &encryption.key else { return Ok(None) };
        let mut fresh = [0; 32];
        rand::fill(&mut fresh).map_err(|_| no_randomness())?;
        let wrapped = key.wrap(&Self::bound_to(tenant, number), &fresh)?;
        Ok(Some(NewDataKey { number, wrapped, wrapping: *key.id() }))
    }

    /// The number after the last.
    pub(crate) fn next(rows: &[Self]) -> u32 {
        rows.iter().map(|row| row.number).max().unwrap_or(0).saturating_add(1)
    }
}

/// The store's keys, and the tenants' that were asked for.
#[derive(Clone, Default)]
pub(crate) struct Vault(Arc<Inner>);

#[derive(Default)]
struct Inner {
    encryption: Encryption,
    rings: Mutex<HashMap<Tenant, Remembered>>,
}

#[derive(Clone)]
struct Remembered {
    ring: Arc<Ring>,
    at: Instant,
}

impl Vault {
    pub(crate) fn new(encryption: Encryption) -> Self {
        Self(Arc::new(Inner { encryption, rings: Mutex::default() }))
    }

    pub(crate) fn encryption(&self) -> &Encryption {
        &self.0.encryption
    }

    /// To read what the tenant has.
    pub(crate) async fn reading(&self, backend: &Backend, tenant: &Tenant) -> Result<Cipher, Error> {
        self.cipher(backend, tenant, false).await
    }

    /// To write for the tenant, which gets its first key now if it has none.
    pub(crate) async fn writing(&self, backend: &Backend, tenant: &Tenant) -> Result<Cipher, Error> {
        self.cipher(backend, tenant, self.0.encryption.key.is_some()).await
    }

    async fn cipher(&self, backend: &Backend, tenant: &Tenant, make: bool) -> Result<Cipher, Error> {
        if !self.0.encryption.is_on() {
            return Ok(Cipher::default());
        }
        let enough = |ring: &Ring| !make || ring.current().is_some();
        let known = self.known(tenant).filter(|known| enough(&known.ring));
        let alone = matches!(backend, Backend::Sqlite(_));
        if let Some(known) = &known
            && (alone || known.at.elapsed() < REMEMBERED)
        {
            return Ok(Cipher::new(Arc::clone(&known.ring)));
        }
        let at = Instant::now();
        let rows = match (self.rows(backend, tenant, make).await, known) {
            // What was good a moment ago still is: whether the database is away, the work itself will find out.
            (Err(Error::Unavailable(_)), Some(known)) => return Ok(Cipher::new(known.ring)),
            (rows, _) => rows?,
        };
        let ring = Arc::new(Ring::new(&self.0.encryption, tenant, &rows)?);
        // That there is none is not worth remembering where somebody else may make one now.
        if alone || !rows.is_empty() {
            self.remember(tenant, Remembered { ring: Arc::clone(&ring), at });
        }
        Ok(Cipher::new(ring))
    }

    async fn rows(&self, backend: &Backend, tenant: &Tenant, make: bool) -> Result<Vec<DataKey>, Error> {
        let rows = data_keys(backend, tenant).await?;
        if !make || DataKey::current(&rows).is_some() {
            return Ok(rows);
        }
        match DataKey::made(&self.0.encryption, tenant, DataKey::next(&rows))? {
            Some(new) => add_data_key(backend, tenant, new).await,
            None => Ok(rows),
        }
    }

    fn known(&self, tenant: &Tenant) -> Option<Remembered> {
        self.0.rings.lock().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned()
    }

    fn remember(&self, tenant: &Tenant, ring: Remembered) {
        let mut rings = self.0.rings.lock().unwrap_or_else(PoisonError::into_inner);
        if rings.len() >= MOST {
            rings.clear();
        }
        rings.insert(tenant.clone(), ring);
    }

    /// What was read of a tenant is not true any more.
    pub(crate) fn forget(&self, tenant: &Tenant) {
        self.0.rings.lock().unwrap_or_else(PoisonError::into_inner).remove(tenant);
    }
}

/// Without the keys.
impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.encryption.is_on() { "Vault(<redacted>)" } else { "Vault(off)" })
    }
}

pub(crate) async fn data_keys(backend: &Backend, tenant: &Tenant) -> Result<Vec<DataKey>, Error> {
    match backend {
        Backend::Sqlite(database) => {
            let tenant = tenant.clone();
            database.write(move |connection| sqlite::data_keys(connection, tenant.name())).await
        }
        Backend::Postgres(database) => database.data_keys(tenant).await,
    }
}

async fn add_data_key(backend: &Backend, tenant: &Tenant, new: NewDataKey) -> Result<Vec<DataKey>, Error> {
    match backend {
        Backend::Sqlite(database) => {
            let tenant = tenant.clone();
            database.write(move |connection| sqlite::add_data_key(connection, tenant.name(), &new)).await
        }
        Backend::Postgres(database) => database.add_data_key(tenant, &new).await,
    }
}
