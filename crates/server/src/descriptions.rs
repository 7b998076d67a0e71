//! What images show, in words, as a model that sees has said: remembered, so that the same image is the same words in every
//! later turn.

use std::sync::Arc;

use bridge::ImageTexts;
use store::Tenant;
use tokio::sync::Semaphore;

use crate::remembered::{Remembered, RememberedKey};

/// Bytes of words that are remembered.
const ROOM: usize = 16 << 20;
/// How many are described at the same time, over all requests.
const AT_ONCE: usize = 8;

/// An image of a tenant, as one model sees it.
pub(crate) fn image_key(tenant: &Tenant, model: &str, url: &str) -> RememberedKey {
    RememberedKey::new([tenant.name(), model, url])
}

/// All that is remembered.
#[derive(Debug)]
pub(crate) struct Descriptions {
    pub(crate) known: Remembered<Arc<str>>,
    /// Whoever describes holds one.
    pub(crate) turns: Semaphore,
}

impl Default for Descriptions {
    fn default() -> Self {
        Self { known: Remembered::new(ROOM), turns: Semaphore::new(AT_ONCE) }
    }
}

impl Descriptions {
    /// Forgets all that is not being asked for.
    pub(crate) fn forget(&self) {
        self.known.forget();
    }

    /// As one tenant sees them.
    pub(crate) fn of<'d>(&'d self, tenant: &'d Tenant, model: &'d str) -> TenantDescriptions<'d> {
        TenantDescriptions { all: self, tenant, model }
    }
}

/// What one tenant's images show, as one model sees them.
#[derive(Debug)]
pub(crate) struct TenantDescriptions<'d> {
    all: &'d Descriptions,
    tenant: &'d Tenant,
    model: &'d str,
}

impl ImageTexts for TenantDescriptions<'_> {
    fn of(&self, url: &str) -> Option<Arc<str>> {
        self.all.known.get(image_key(self.tenant, self.model, url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_to_whom_it_was_described_only() {
        let (one, two) = (Tenant::new("one"), Tenant::new("two"));
        let descriptions = Descriptions::default();
        descriptions.known.put(image_key(&one, "seer", "data:a"), Some("a cat".into()));
        let found = |tenant: &Tenant, model: &str, url: &str| descriptions.of(tenant, model).of(url);
        assert_eq!(found(&one, "seer", "data:a").as_deref(), Some("a cat"));
        assert_eq!(found(&two, "seer", "data:a"), None);
        assert_eq!(found(&one, "other", "data:a"), None);
        assert_eq!(found(&one, "seer", "data:b"), None);
    }
}
