//! Encryption at rest: what holds words of clients and models is sealed before it reaches the database.
//!
//! Each tenant has data keys of its own, made at random. They are kept in the database, wrapped by the store's key, which
//! never is: so the store's key changes without a rewrite of everything, and a tenant whose data keys are gone is gone.
//!
//! A body is bound to its tenant, its table and its row: one that was moved, swapped or changed is damage, never somebody
//! else's words. Nothing is ever written in clear because sealing failed.

mod cipher;
mod rekey;
mod vault;

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, MAX_TAG_LEN, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{constant_time, hmac, rand};

pub(crate) use cipher::{Cipher, Place};
pub(crate) use rekey::{BodyTable, Cursor, Recipher, Step};
pub use rekey::{Rekeyed, Rewriting};
pub(crate) use vault::{DataKey, NewDataKey, Rotation, Vault, data_keys};

use crate::prefix::Secret;
use crate::{Error, OpenError};

/// By which a wrapped key says whose it is.
pub(crate) type KeyId = [u8; 8];

/// What the wrapped secret of the hashes is bound to.
const OF_SECRET: &[u8] = b"godex store secret 1";
/// What a wrapped secret in a copy of the database is bound to.
const OF_COPY: &[u8] = b"godex backup secret 1";

/// The store's key, from the configuration. It is never written anywhere.
#[derive(Clone)]
pub struct StoreKey(Arc<Wrapping>);

struct Wrapping {
    id: KeyId,
    key: LessSafeKey,
    /// Seals traces, which have no data keys: they are short-lived, and no tenant's.
    traces: LessSafeKey,
}

impl StoreKey {
    pub fn new(bytes: &[u8; 32]) -> Result<Self, OpenError> {
        let root = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let mut id = KeyId::default();
        for (to, from) in id.iter_mut().zip(hmac::sign(&root, b"godex store key id 1").as_ref()) {
            *to = *from;
        }
        // Never the key itself for two things.
        let derived = hmac::sign(&root, b"godex store key wrap 1");
        let key = aead(derived.as_ref()).map_err(|_| OpenError::KeyRefused)?;
        let derived = hmac::sign(&root, b"godex store key traces 1");
        let traces = aead(derived.as_ref()).map_err(|_| OpenError::KeyRefused)?;
        Ok(Self(Arc::new(Wrapping { id, key, traces })))
    }

    pub(crate) fn id(&self) -> &KeyId {
        &self.0.id
    }

    /// The id of this key, a nonce, the sealed key.
    pub(crate) fn wrap(&self, bound_to: &[u8], secret: &[u8; 32]) -> Result<Vec<u8>, Error> {
        let mut wrapped = Vec::with_capacity(self.0.id.len() + NONCE_LEN + secret.len() + MAX_TAG_LEN);
        wrapped.extend_from_slice(&self.0.id);
        let nonce = nonce()?;
        wrapped.extend_from_slice(&nonce);
        let mut sealed = *secret;
        let tag = self.0.key.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(bound_to),
            &mut sealed,
        );
        wrapped.extend_from_slice(&sealed);
        wrapped.extend_from_slice(tag.map_err(|_| refused())?.as_ref());
        Ok(wrapped)
    }

    /// Appends what is in clear, sealed, after its nonce.
    pub(crate) fn seal_trace(&self, bound_to: &[u8], clear: &[u8], into: &mut Vec<u8>) -> Result<(), Error> {
        let nonce = nonce()?;
        into.extend_from_slice(&nonce);
        let from = into.len();
        into.extend_from_slice(clear);
        let content = into.get_mut(from..).unwrap_or_default();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.traces.seal_in_place_separate_tag(nonce, Aad::from(bound_to), content);
        into.extend_from_slice(tag.map_err(|_| refused())?.as_ref());
        Ok(())
    }

    pub(crate) fn open_trace(&self, bound_to: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut opened = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = self.0.traces.open_in_place(nonce, Aad::from(bound_to), &mut opened).ok()?.len();
        opened.truncate(length);
        Some(opened)
    }

    fn unwrap(&self, bound_to: &[u8], wrapped: &[u8]) -> Option<[u8; 32]> {
        let (_, rest) = wrapped.split_first_chunk::<8>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        self.0.key.open_in_place(nonce, Aad::from(bound_to), &mut sealed).ok()?.try_into().ok()
    }
}

/// Keys are not for logs.
impl std::fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreKey(<redacted>)")
    }
}

impl PartialEq for StoreKey {
    fn eq(&self, other: &Self) -> bool {
        constant_time::verify_slices_are_equal(&self.0.id, &other.0.id).is_ok()
    }
}

impl Eq for StoreKey {}

/// The keys with which a store is opened; none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Encryption {
    /// Wraps the data keys that are made from now on. Without it no tenant gets its first one.
    pub key: Option<StoreKey>,
    /// Whatever these have wrapped can be read, too.
    pub previous: Vec<StoreKey>,
}

impl Encryption {
    /// Whether there is any key.
    pub(crate) fn is_on(&self) -> bool {
        self.key.is_some() || !self.previous.is_empty()
    }

    /// The same keys, with which nothing is sealed any more.
    pub(crate) fn opening(&self) -> Self {
        Self { key: None, previous: self.keys().cloned().collect() }
    }

    fn keys(&self) -> impl Iterator<Item = &StoreKey> {
        self.key.iter().chain(&self.previous)
    }

    pub(crate) fn find(&self, wrapped: &[u8]) -> Option<&StoreKey> {
        self.keys().find(|key| wrapped.starts_with(key.id()))
    }

    /// What one of the keys has wrapped.
    pub(crate) fn unwrap(&self, bound_to: &[u8], wrapped: &[u8]) -> Result<[u8; 32], Error> {
        let key = self.find(wrapped).ok_or_else(|| Error::corrupt("a data key is wrapped by another store key"))?;
        key.unwrap(bound_to, wrapped).ok_or_else(|| Error::corrupt("a data key cannot be unwrapped"))
    }

    /// Whether a database whose wrapped keys begin with these ids can be opened.
    pub(crate) fn admit<'a>(&self, name: &str, ids: impl Iterator<Item = &'a [u8]>) -> Result<(), OpenError> {
        for id in ids {
            if !self.is_on() {
                return Err(OpenError::Encrypted { name: name.to_owned() });
            }
            if self.find(id).is_none() {
                let wanted = id.first_chunk().map_or(0, |id: &KeyId| u64::from_be_bytes(*id));
                let wanted = format!("{wanted:016x}");
                return Err(OpenError::WrongKey { name: name.to_owned(), wanted });
            }
        }
        Ok(())
    }

    /// A secret that came with a copy of the database; None if it is damaged.
    pub(crate) fn unwrap_named(&self, name: &str, wrapped: &[u8]) -> Result<Option<[u8; 32]>, OpenError> {
        self.admit(name, std::iter::once(wrapped))?;
        Ok(self.unwrap(OF_COPY, wrapped).ok())
    }

    pub(crate) fn unwrap_secret(&self, name: &str, wrapped: &[u8]) -> Result<Secret, OpenError> {
        self.admit(name, std::iter::once(wrapped))?;
        let secret = self.unwrap(OF_SECRET, wrapped);
        secret.map(Secret).map_err(|_| OpenError::DamagedKey { name: name.to_owned() })
    }
}

impl StoreKey {
    /// For a copy of the database.
    pub(crate) fn wrap_named(&self, secret: &[u8; 32]) -> Result<Vec<u8>, Error> {
        self.wrap(OF_COPY, secret)
    }

    pub(crate) fn wrap_secret(&self, secret: &Secret) -> Result<Vec<u8>, Error> {
        self.wrap(OF_SECRET, &secret.0)
    }
}

/// A key for AES-256-GCM-SIV: a nonce that is drawn twice tells at most that two bodies are the same.
fn aead(key: &[u8]) -> Result<LessSafeKey, Error> {
    UnboundKey::new(&AES_256_GCM_SIV, key).map(LessSafeKey::new).map_err(|_| refused())
}

fn nonce() -> Result<[u8; NONCE_LEN], Error> {
    let mut nonce = [0; NONCE_LEN];
    rand::fill(&mut nonce).map_err(|_| no_randomness())?;
    Ok(nonce)
}

fn no_randomness() -> Error {
    Error::unavailable("no randomness from the operating system")
}

fn refused() -> Error {
    Error::unavailable("a body could not be sealed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> StoreKey {
        StoreKey::new(&[byte; 32]).unwrap()
    }

    #[test]
    fn a_wrapped_key_opens_with_its_key_and_its_purpose_only() {
        let (one, two) = (key(1), key(2));
        let wrapped = one.wrap(b"here", &[7; 32]).unwrap();
        let both = Encryption { key: Some(two.clone()), previous: vec![one.clone()] };
        assert_eq!(both.unwrap(b"here", &wrapped).unwrap(), [7; 32]);
        assert!(matches!(both.unwrap(b"there", &wrapped), Err(Error::Corrupt(_))));
        let other = Encryption { key: Some(two), previous: Vec::new() };
        assert!(matches!(other.unwrap(b"here", &wrapped), Err(Error::Corrupt(_))));
        for at in 0..wrapped.len() {
            let mut changed = wrapped.clone();
            changed[at] ^= 0x20;
            assert!(matches!(both.unwrap(b"here", &changed), Err(Error::Corrupt(_))), "{at}");
        }
        for cut in 0..wrapped.len() {
            assert!(matches!(both.unwrap(b"here", &wrapped[..cut]), Err(Error::Corrupt(_))), "{cut}");
        }
        assert!(!format!("{one:?} {both:?}").contains("1, 1"));
    }

    #[test]
    fn a_database_is_opened_with_all_the_keys_it_needs_or_not_at_all() {
        let key_of = key;
        let key = key_of(1);
        let id = *key.id();
        let with = |key: Option<StoreKey>, previous| Encryption { key, previous };
        let admitted = |encryption: &Encryption| encryption.admit("db", std::iter::once(&id[..]));
        assert!(admitted(&with(Some(key.clone()), vec![])).is_ok());
        assert!(admitted(&with(None, vec![key.clone()])).is_ok());
        assert!(matches!(admitted(&Encryption::default()), Err(OpenError::Encrypted { .. })));
        let wrong = admitted(&with(Some(key_of(2)), vec![])).unwrap_err().to_string();
        assert!(wrong.contains(&id.map(|byte| format!("{byte:02x}")).concat()), "{wrong}");
        assert!(Encryption::default().admit("db", std::iter::empty()).is_ok());
    }
}
