//! The keyed hash of a list of items, which tells that a request begins with a list we already hold.
//!
//! HMAC-SHA-256 (aws-lc, in the binary for TLS anyway, and on this hardware faster than any hash we would add), with a
//! key per tenant: equal items of two tenants have nothing in common, not even a hash, so nobody can learn from
//! sizes or times what another one has stored. Cut to 128 bits, since only the holder of the key could seek collisions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::hmac;

use crate::{OpenError, Tenant};

/// The hash of a list: of all items up to a place.
pub(crate) type Prefix = [u8; 16];

/// The hash of the empty list.
pub(crate) const EMPTY: Prefix = [0; 16];

/// How many bytes the hashes of one history have in common. The others tell them apart.
const NEIGHBOURS: usize = 4;

/// The store's own secret; it lives beside the data.
#[derive(Clone)]
pub(crate) struct Secret(pub(crate) [u8; 32]);

/// One tenant's hashes.
#[derive(Clone)]
pub(crate) struct Hasher {
    key: Arc<hmac::Key>,
}

/// The hashes of the tenants that were asked for: making them costs more than all else that a small request needs.
#[derive(Clone, Default)]
pub(crate) struct Hashers(Arc<Mutex<HashMap<Tenant, Hasher>>>);

impl Hashers {
    /// More tenants than this are forgotten all at once, and made again.
    const MOST: usize = 4096;

    pub(crate) fn of(&self, secret: &Secret, tenant: &Tenant) -> Hasher {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hasher) = known.get(tenant) {
            return hasher.clone();
        }
        if known.len() >= Self::MOST {
            known.clear();
        }
        known.entry(tenant.clone()).or_insert_with(|| Hasher::new(secret, tenant)).clone()
    }
}

impl Secret {
    pub(crate) fn random() -> Result<Self, OpenError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| OpenError::Random)?;
        Ok(Self(bytes))
    }

    /// A key for something else. No tenant's name begins with this byte, so it is no tenant's key.
    pub(crate) fn derive(&self, purpose: &str) -> [u8; 32] {
        let store = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let mut context = hmac::Context::with_key(&store);
        context.update(&[0xff]);
        context.update(purpose.as_bytes());
        let mut key = [0; 32];
        key.copy_from_slice(context.sign().as_ref());
        key
    }
}

impl Hasher {
    pub(crate) fn new(secret: &Secret, tenant: &Tenant) -> Self {
        let store = hmac::Key::new(hmac::HMAC_SHA256, &secret.0);
        let derived = hmac::sign(&store, tenant.key());
        Self { key: Arc::new(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())) }
    }

    /// The hash of one item or of settings. It reads all bytes, so it is made outside the writer.
    pub(crate) fn content(&self, body: &[u8]) -> Prefix {
        self.sign(&[b"content", body])
    }

    /// The hash of a list with one more item. It begins as that of the list, so the hashes of one history are side by
    /// side in an index, and those of a turn are written with one page instead of one for each.
    pub(crate) fn extend(&self, list: &Prefix, content: &Prefix) -> Prefix {
        let mut extended = self.sign(&[b"list", list, content]);
        if *list != EMPTY {
            extended[..NEIGHBOURS].copy_from_slice(&list[..NEIGHBOURS]);
        }
        extended
    }

    fn sign(&self, parts: &[&[u8]]) -> Prefix {
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(part);
        }
        let mut cut = EMPTY;
        for (to, from) in cut.iter_mut().zip(context.sign().as_ref()) {
            *to = *from;
        }
        cut
    }
}

/// Keys are not for logs.
impl std::fmt::Debug for Hasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hasher")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_have_no_hash_in_common_and_order_matters() {
        let secret = Secret([7; 32]);
        let one = Hasher::new(&secret, &Tenant::new("one"));
        let two = Hasher::new(&secret, &Tenant::new("two"));
        assert_ne!(one.content(b"x"), two.content(b"x"));
        assert_eq!(one.content(b"x"), Hasher::new(&secret, &Tenant::new("one")).content(b"x"));
        let (x, y) = (one.content(b"x"), one.content(b"y"));
        let list = |a, b| one.extend(&one.extend(&EMPTY, a), b);
        assert_ne!(list(&x, &y), list(&y, &x));
    }
}
