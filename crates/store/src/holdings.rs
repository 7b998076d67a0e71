//! What a tenant has in the store: counted, listed, given out whole, erased.

use bytes::Bytes;

use crate::upkeep::upkeep;
use crate::{Backend, Error, Item, Status, Store, StoredResponse, Tenant, Tenanted, sqlite};

/// How much a tenant has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holdings {
    pub tenant: Tenant,
    pub responses: u64,
    pub conversations: u64,
}

/// A response or a conversation, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// `resp_…` or `conv_…`.
    pub id: String,
    /// Unix milliseconds.
    pub created_at: i64,
    pub expires_at: Option<i64>,
    /// Of a response.
    pub status: Option<Status>,
    pub previous_response: Option<String>,
    pub conversation: Option<String>,
}

impl Holding {
    pub(crate) const fn conversation(id: String, created_at: i64) -> Self {
        Self { id, created_at, expires_at: None, status: None, previous_response: None, conversation: None }
    }
}

/// One thing of a tenant, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exported {
    /// As it was stored, with its output, and its own input items.
    Response {
        holding: Holding,
        response: StoredResponse,
        input: Vec<Item>,
    },
    Conversation {
        holding: Holding,
        metadata: Bytes,
        items: Vec<Item>,
    },
}

/// What was erased.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    pub responses: u64,
    pub conversations: u64,
    pub items: u64,
    /// Of any other kind: events, jobs, idempotency keys, notices, usage.
    pub others: u64,
}

/// Rows that one write takes away: others have their turn in between, and no statement takes long.
pub(crate) const BATCH: i64 = 1_000;

/// Rows that are counted at once.
pub(crate) const COUNTED: i64 = 20_000;

/// How often everything of a tenant is gone through, while somebody goes on writing in its name.
pub(crate) const PASSES: usize = 100;

/// What rows of a table are, once they are erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Response,
    Conversation,
    Item,
    Other,
}

impl Erased {
    /// Of the rows of a table, some were there; what else goes is of another kind.
    pub(crate) fn add(&mut self, kind: Kind, there: u64, rows: u64) {
        let into = match kind {
            Kind::Response => &mut self.responses,
            Kind::Conversation => &mut self.conversations,
            Kind::Item => &mut self.items,
            Kind::Other => &mut self.others,
        };
        *into += there;
        self.others += rows.saturating_sub(there);
    }
}

/// A tenant that has anything, and the rows of a few of its responses or conversations.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) there: i64,
    pub(crate) rows: i64,
    pub(crate) last: Option<String>,
}

impl Store {
    /// Every tenant that has anything, by name.
    pub async fn holdings(&self) -> Result<Vec<Holdings>, Error> {
        let mut found = Vec::new();
        let mut last = String::new();
        loop {
            let after = last.clone();
            let Some(name) = upkeep!(self, read, tenant_after(&after))? else { return Ok(found) };
            let (responses, conversations) = (self.count(&name, true).await?, self.count(&name, false).await?);
            found.push(Holdings { tenant: Tenant::new(&name), responses, conversations });
            last = name;
        }
    }

    /// How many responses or conversations a tenant has.
    async fn count(&self, tenant: &str, responses: bool) -> Result<u64, Error> {
        let (mut there, mut last) = (0, String::new());
        loop {
            let (tenant, after, now) = (tenant.to_owned(), last, self.clock.now());
            let count = if responses {
                upkeep!(self, read, count_responses(&tenant, &after, now))?
            } else {
                upkeep!(self, read, count_conversations(&tenant, &after))?
            };
            there += u64::try_from(count.there).unwrap_or(0);
            match count.last {
                Some(id) if count.rows == COUNTED => last = id,
                _ => return Ok(there),
            }
        }
    }

    /// Erases everything that is the tenant's, but its API keys and what is said of it: when this returns, no byte of it is
    /// in SQLite's files, and no row of it on Postgres. What runs in its name is lost.
    ///
    /// SQLite writes its file anew for this, so it takes as long as copying it, and as much room; meanwhile others wait with
    /// what they write. Who goes on writing in the tenant's name begins anew: its keys should be revoked before.
    pub async fn erase_tenant(&self, tenant: &Tenant) -> Result<Erased, Error> {
        match &self.backend {
            Backend::Sqlite(database) => database.erase_tenant(tenant).await,
            Backend::Postgres(database) => database.erase_tenant(tenant).await,
        }
    }
}

impl Tenanted {
    /// Up to `most` conversations and responses after the one that was listed last: first the conversations, then the
    /// responses, each in the order of their ids.
    pub async fn held(&self, after: Option<Holding>, most: usize) -> Result<Vec<Holding>, Error> {
        let (after, in_responses) = match after {
            Some(holding) => (holding.id, holding.status.is_some()),
            None => (String::new(), false),
        };
        let mut found = Vec::new();
        if !in_responses {
            found = self.held_conversations(after.clone(), most).await?;
        }
        let left = most.saturating_sub(found.len());
        if left > 0 {
            let after = if in_responses { after } else { String::new() };
            found.extend(self.held_responses(after, left).await?);
        }
        Ok(found)
    }

    /// One of them, whole; None if it is gone by now.
    pub async fn export(&self, holding: Holding) -> Result<Option<Exported>, Error> {
        let whole = if holding.status.is_some() {
            self.export_response(holding).await
        } else {
            self.export_conversation(holding).await
        };
        match whole {
            Err(Error::NotFound) => Ok(None),
            whole => whole.map(Some),
        }
    }

    async fn export_response(&self, holding: Holding) -> Result<Exported, Error> {
        let response = self.response(&holding.id).await?;
        let input = self.own_input(&holding.id).await?;
        Ok(Exported::Response { holding, response, input })
    }

    async fn export_conversation(&self, holding: Holding) -> Result<Exported, Error> {
        let metadata = self.conversation(&holding.id).await?.metadata;
        let items = self.conversation_history(&holding.id).await?;
        Ok(Exported::Conversation { holding, metadata, items })
    }
}
