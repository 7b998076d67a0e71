//! Who asks: found once, in the route, and handed to every handler, to the sessions and to the seal.

use http::HeaderMap;
use store::Tenant;

use crate::client::{Client, Profile};

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    tenant: Tenant,
    client: Client,
}

impl Caller {
    /// Everybody is one tenant until there are keys; nothing that a client sends says which.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self { tenant: Tenant::default(), client: Client::of(headers) }
    }

    /// Somebody who asked earlier.
    pub(crate) const fn new(tenant: Tenant, client: Client) -> Self {
        Self { tenant, client }
    }

    /// Whose data it may see: the one name under which the store and the seal know it.
    pub(crate) const fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    pub(crate) const fn client(&self) -> Client {
        self.client
    }

    /// What is done otherwise for its client.
    pub(crate) const fn profile(&self) -> &'static Profile {
        self.client.profile()
    }
}
