//! Who asks: found once, in the route, and handed to every handler, to the sessions and to the seal.

use http::HeaderMap;
use store::Tenant;

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    tenant: Tenant,
    client: ClientKind,
}

/// The program that asks, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientKind {
    Codex,
    Other,
}

impl Caller {
    /// Everybody is one tenant until there are keys; nothing that a client sends says which.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let originator = headers.get("originator").and_then(|value| value.to_str().ok());
        let is_codex = originator.is_some_and(|name| name.starts_with("codex"));
        Self { tenant: Tenant::default(), client: if is_codex { ClientKind::Codex } else { ClientKind::Other } }
    }

    /// Somebody who asked earlier.
    pub(crate) const fn new(tenant: Tenant, client: ClientKind) -> Self {
        Self { tenant, client }
    }

    /// Whose data it may see: the one name under which the store and the seal know it.
    pub(crate) const fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    pub(crate) const fn client(&self) -> ClientKind {
        self.client
    }
}

impl ClientKind {
    /// By the name that the log has.
    pub(crate) fn named(name: &str) -> Self {
        if name == Self::Codex.name() { Self::Codex } else { Self::Other }
    }

    /// As the log has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Other => "other",
        }
    }
}
