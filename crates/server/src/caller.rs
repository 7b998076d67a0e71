//! Who asks: found once, in the route, and handed to every handler, to the sessions and to the seal.

use std::sync::Arc;

use http::HeaderMap;
use store::Tenant;

use crate::access::Grant;
use crate::client::{Client, Profile};

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    tenant: Tenant,
    client: Client,
    grant: Option<Arc<Grant>>,
    /// Whether the operator asks, who needs no key.
    operates: bool,
}

impl Caller {
    /// Whoever has shown this, or nothing, where nothing has to be shown. Nothing else that a client sends says whose
    /// data it may see.
    pub(crate) fn new(grant: Option<Arc<Grant>>, headers: &HeaderMap) -> Self {
        Self::earlier(grant.as_ref().map(|grant| grant.tenant.clone()).unwrap_or_default(), grant, Client::of(headers))
    }

    /// Somebody who asked earlier.
    pub(crate) const fn earlier(tenant: Tenant, grant: Option<Arc<Grant>>, client: Client) -> Self {
        Self { tenant, client, grant, operates: false }
    }

    /// The operator, who asks as somebody without a key does, also where everybody else needs one.
    pub(crate) fn operator(client: Client) -> Self {
        Self { operates: true, ..Self::earlier(Tenant::default(), None, client) }
    }

    /// The same, with what it may do by now.
    pub(crate) fn with(&self, grant: Option<Arc<Grant>>) -> Self {
        Self { grant, ..self.clone() }
    }

    /// Whose data it may see: the one name under which the store and the seal know it.
    pub(crate) const fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// What it has shown; None where nothing has to be shown.
    pub(crate) const fn grant(&self) -> Option<&Arc<Grant>> {
        self.grant.as_ref()
    }

    pub(crate) const fn operates(&self) -> bool {
        self.operates
    }

    pub(crate) const fn client(&self) -> Client {
        self.client
    }

    /// What is done otherwise for its client.
    pub(crate) const fn profile(&self) -> &'static Profile {
        self.client.profile()
    }
}
