//! All keys at one moment, by what they are found with. Made anew when the configuration or the store has changed.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use store::{AccessList, ApiKey, Tenant};

use super::{Grant, Mark, Terms};
use crate::config::{Config, KeyConfig};

#[derive(Debug)]
pub(super) struct Table {
    /// Of the configuration, as it has them.
    declared: Vec<KeyConfig>,
    /// Whether tokens of an identity provider are taken.
    takes_tokens: bool,
    /// Whether everybody may ask where nobody has a key. Where others reach the address and the operator has not said so,
    /// nobody may: also not when the last key is forgotten.
    may_be_open: bool,
    /// Of what the store had; none: nothing was read yet.
    pub(super) version: Option<i64>,
    stored: Vec<ApiKey>,
    tenants: HashMap<Tenant, Option<Arc<Terms>>>,
    by_hash: HashMap<[u8; 32], Entry, BuildHasherDefault<FirstBytes>>,
    /// Hashes by the ids of their grants.
    by_id: HashMap<String, [u8; 32]>,
}

/// The ids of keys that took each other's place, the oldest first, by each of them.
fn lines(stored: &[ApiKey]) -> HashMap<&str, Arc<[String]>> {
    let next: HashMap<&str, &str> =
        stored.iter().filter_map(|key| Some((key.id.as_str(), key.replaced_by.as_deref()?))).collect();
    let later: HashSet<&str> = next.values().copied().collect();
    let known: HashSet<&str> = stored.iter().map(|key| key.id.as_str()).collect();
    let mut lines = HashMap::new();
    for first in next.keys().copied().filter(|id| !later.contains(id)) {
        let line: Vec<&str> = std::iter::successors(Some(first), |id| next.get(id).copied())
            .take_while(|id| known.contains(id))
            .take(stored.len())
            .collect();
        let shared: Arc<[String]> = line.iter().map(|id| (*id).to_owned()).collect();
        lines.extend(line.into_iter().map(|id| (id, Arc::clone(&shared))));
    }
    lines
}

/// What is a hash already needs no other: nobody chooses the hashes of the keys that are in the table.
#[derive(Default)]
struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
    }

    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// One key that is good, if it has not expired.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) grant: Arc<Grant>,
    /// Whether the store may have revoked it meanwhile.
    pub(super) is_stored: bool,
}

impl Table {
    /// Before the store was read.
    pub(super) fn declaring(config: &Config) -> Self {
        let table = Self {
            declared: config.keys.clone(),
            takes_tokens: config.oidc.is_some(),
            may_be_open: config.server.may_be_open(),
            version: None,
            stored: Vec::new(),
            tenants: HashMap::new(),
            by_hash: HashMap::default(),
            by_id: HashMap::new(),
        };
        table.built()
    }

    /// The same store's, with another configuration.
    pub(super) fn with_declared(&self, config: &Config) -> Self {
        let (stored, tenants) = (self.stored.clone(), self.tenants.clone());
        Self { version: self.version, stored, tenants, ..Self::declaring(config) }.built()
    }

    /// The same configuration's, with what the store has now.
    pub(super) fn with_stored(&self, list: &AccessList) -> Self {
        let terms = |(tenant, json): &(Tenant, String)| {
            let terms = Terms::from_json(json).map_err(|error| {
                tracing::warn!(
                    tenant = tenant.name(),
                    error,
                    "what this tenant is allowed cannot be read: it is refused"
                );
            });
            (tenant.clone(), terms.ok().map(Arc::new))
        };
        let table = Self {
            declared: self.declared.clone(),
            takes_tokens: self.takes_tokens,
            may_be_open: self.may_be_open,
            version: Some(list.version),
            stored: list.keys.clone(),
            tenants: list.tenants.iter().map(terms).collect(),
            by_hash: HashMap::default(),
            by_id: HashMap::new(),
        };
        table.built()
    }

    fn built(mut self) -> Self {
        let lines = lines(&self.stored);
        let line = |key: &ApiKey| lines.get(key.id.as_str()).cloned().unwrap_or_default();
        let good = self.stored.iter().filter(|key| key.revoked_at.is_none());
        let stored = good.filter_map(|key| self.stored_entry(key, line(key)));
        // What the configuration says of a key comes last, and counts.
        let declared = self.declared.iter().filter_map(|key| self.declared_entry(key));
        let by_hash: HashMap<_, _, _> = stored.chain(declared).collect();
        self.by_id = by_hash.iter().map(|(hash, entry)| (entry.grant.id.clone(), *hash)).collect();
        self.by_hash = by_hash;
        self
    }

    fn stored_entry(&self, key: &ApiKey, line: Arc<[String]>) -> Option<([u8; 32], Entry)> {
        let terms = Terms::from_json(&key.terms).map_err(|error| {
            tracing::warn!(
                key = key.name,
                id = key.id,
                error,
                "what this key is allowed cannot be read: it is refused"
            );
        });
        let grant = Grant {
            id: key.id.clone(),
            name: key.name.clone(),
            tenant: key.tenant.clone(),
            terms: terms.ok()?,
            tenant_terms: self.tenant_terms(&key.tenant)?,
            expires_at: key.expires_at.map(|at| u64::try_from(at).unwrap_or_default() / 1000),
            line,
            mark: None,
        };
        Some((key.hash, Entry { grant: Arc::new(grant), is_stored: true }))
    }

    fn declared_entry(&self, key: &KeyConfig) -> Option<([u8; 32], Entry)> {
        let tenant = Tenant::new(&key.tenant);
        let grant = Grant {
            id: format!("config:{}", key.name),
            name: key.name.clone(),
            tenant_terms: self.tenant_terms(&tenant)?,
            tenant,
            terms: key.terms.clone(),
            expires_at: key.expires_at,
            line: Arc::default(),
            mark: Some(Mark::of(&key.hash.0)),
        };
        Some((key.hash.0, Entry { grant: Arc::new(grant), is_stored: false }))
    }

    /// What a tenant is allowed; none where that cannot be read.
    pub(super) fn tenant_terms(&self, tenant: &Tenant) -> Option<Arc<Terms>> {
        self.tenants.get(tenant).map_or_else(|| Some(Arc::default()), Clone::clone)
    }

    /// Whether there is no key, not even a revoked one, and no identity provider.
    pub(super) fn is_open(&self) -> bool {
        self.declared.is_empty() && self.stored.is_empty() && !self.takes_tokens
    }

    pub(super) fn lets_everybody_in(&self) -> bool {
        self.is_open() && self.may_be_open
    }

    pub(super) fn by_hash(&self, hash: &[u8; 32]) -> Option<&Entry> {
        self.by_hash.get(hash)
    }

    pub(super) fn by_id(&self, id: &str) -> Option<&Entry> {
        self.by_hash.get(self.by_id.get(id)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, replaced_by: Option<&str>) -> ApiKey {
        ApiKey {
            id: id.to_owned(),
            tenant: Tenant::default(),
            name: "web".to_owned(),
            hash: [0; 32],
            hint: String::new(),
            created_at: 0,
            expires_at: None,
            revoked_at: None,
            replaced_by: replaced_by.map(str::to_owned),
            terms: "{}".to_owned(),
        }
    }

    #[test]
    fn keys_know_whose_place_they_took() {
        let stored = [
            key("b", Some("c")),
            key("a", Some("b")),
            key("c", None),
            key("alone", None),
            // The one after it was forgotten.
            key("last", Some("gone")),
            // Nobody writes these, and nobody waits for their end.
            key("x", Some("y")),
            key("y", Some("x")),
        ];
        let lines = lines(&stored);
        for (id, expected) in [
            ("a", &["a", "b", "c"][..]),
            ("b", &["a", "b", "c"]),
            ("c", &["a", "b", "c"]),
            ("last", &["last"]),
            ("alone", &[]),
            ("x", &[]),
        ] {
            let line = lines.get(id).cloned().unwrap_or_default();
            assert_eq!(*line, *expected, "{id}");
        }
    }
}
