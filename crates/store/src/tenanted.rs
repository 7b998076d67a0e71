//! One tenant's store: the same calls for every backend.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::prefix::Hasher;
use crate::prepared::{PackedItem, Prepared};
use crate::room::{Endless, Room};
use crate::{
    Backend, ChainLimits, Error, History, Item, ItemPage, Lease, NewConversation, NewTurn, Page, StoredConversation,
    StoredResponse, Tenant, sqlite,
};

/// Items that one query looks up.
const AT_ONCE: usize = 256;

/// Everything that is one tenant's, and nothing else.
#[derive(Debug, Clone)]
pub struct Tenanted {
    backend: Backend,
    hasher: Hasher,
    tenant: Tenant,
    room: Arc<dyn Room>,
}

/// Runs the call on whichever backend it is. On SQLite it is a job for a thread, which needs its own copy of names.
macro_rules! call {
    ($self:ident, $how:ident, $name:ident($($argument:expr),*) $(, $used:ident)?) => {
        match &$self.backend {
            Backend::Sqlite(database) => {
                let tenant = $self.tenant.clone();
                $(let $used = database.now_used();)?
                database.$how(move |connection| {
                    sqlite::$name(connection, tenant.name(), $($argument,)* $($used)?)
                }).await
            }
            Backend::Postgres(database) => database.$name(&$self.tenant, $($argument),*).await,
        }
    };
}

impl Tenanted {
    pub(crate) fn new(backend: Backend, hasher: Hasher, tenant: Tenant) -> Self {
        Self { backend, hasher, tenant, room: Arc::new(Endless) }
    }

    /// The same, for reads whose bodies need room: [`Error::NoRoom`] as soon as there is none.
    #[must_use]
    pub fn within(&self, room: Arc<dyn Room>) -> Self {
        Self { room, ..self.clone() }
    }

    /// Stores a finished turn. When this returns, it is durable and any instance finds it.
    ///
    /// [`Error::NotFound`] if what it continues is gone by now, [`Error::Locked`] if its lease was lost,
    /// [`Error::Conflict`] if the id is taken.
    pub async fn put(&self, turn: NewTurn) -> Result<(), Error> {
        let turn = Prepared::new(&self.hasher, turn);
        call!(self, write, put(&turn), used)
    }

    /// Everything up to and including that response, oldest first.
    ///
    /// [`Error::NotFound`] if there is no such response, [`Error::DeletedAncestor`] if something of its history was
    /// deleted, [`Error::TooDeep`] if the chain is longer than allowed.
    pub async fn history(&self, response_id: &str, limits: ChainLimits) -> Result<History, Error> {
        let (id, room) = (response_id.to_owned(), Arc::clone(&self.room));
        call!(self, read, history(&id, limits, &room), used)
    }

    /// The response as it was stored, with its output items.
    pub async fn response(&self, id: &str) -> Result<StoredResponse, Error> {
        let (id, room) = (id.to_owned(), Arc::clone(&self.room));
        call!(self, read, response(&id, &room), used)
    }

    /// Erases the response, and its own items unless another response or a conversation has them too. What continues
    /// it stays, but has a hole in its history.
    pub async fn delete_response(&self, id: &str) -> Result<(), Error> {
        let id = id.to_owned();
        call!(self, erase, delete_response(&id))
    }

    /// A page of what the response was given: its own input and the history before it.
    pub async fn input_items(&self, id: &str, page: Page) -> Result<ItemPage, Error> {
        let (id, room) = (id.to_owned(), Arc::clone(&self.room));
        call!(self, read, input_items(&id, &page, &room))
    }

    /// Stored items by their ids, for item references, in the order asked for; of several with one id the newest.
    pub async fn items(&self, ids: Vec<String>) -> Result<Vec<Option<Item>>, Error> {
        let mut found = Vec::with_capacity(ids.len());
        // One query for many, but not for all: others who read have their turn in between.
        for some in ids.chunks(AT_ONCE) {
            let (some, room) = (some.to_vec(), Arc::clone(&self.room));
            found.extend(call!(self, read, items_by_id(&some, &room))?);
        }
        Ok(found)
    }

    pub async fn item(&self, item_id: &str) -> Result<Item, Error> {
        self.items(vec![item_id.to_owned()]).await?.pop().flatten().ok_or(Error::NotFound)
    }

    pub async fn create_conversation(&self, mut new: NewConversation) -> Result<(), Error> {
        let items = self.pack(std::mem::take(&mut new.items));
        call!(self, write, create_conversation(&new, &items), used)
    }

    pub async fn conversation(&self, id: &str) -> Result<StoredConversation, Error> {
        let id = id.to_owned();
        call!(self, read, conversation(&id))
    }

    /// Replaces the metadata.
    pub async fn update_conversation(&self, id: &str, metadata: Bytes) -> Result<StoredConversation, Error> {
        let id = id.to_owned();
        call!(self, write, update_conversation(&id, &metadata))
    }

    /// The responses that were made in it stay, with their items.
    pub async fn delete_conversation(&self, id: &str) -> Result<(), Error> {
        let id = id.to_owned();
        call!(self, erase, delete_conversation(&id))
    }

    /// Appends outside a turn. [`Error::Locked`] while a turn is on.
    pub async fn append_items(&self, id: &str, items: Vec<Item>) -> Result<(), Error> {
        let (id, items) = (id.to_owned(), self.pack(items));
        call!(self, write, append_items(&id, &items))
    }

    pub async fn conversation_items(&self, id: &str, page: Page) -> Result<ItemPage, Error> {
        let (id, room) = (id.to_owned(), Arc::clone(&self.room));
        call!(self, read, conversation_items(&id, &page, &room))
    }

    /// All items of a conversation, oldest first. For a turn, read them after [`Self::begin_turn`].
    pub async fn conversation_history(&self, id: &str) -> Result<Vec<Item>, Error> {
        let (id, room) = (id.to_owned(), Arc::clone(&self.room));
        call!(self, read, conversation_history(&id, &room))
    }

    pub async fn conversation_item(&self, id: &str, item_id: &str) -> Result<Item, Error> {
        let (id, item, room) = (id.to_owned(), item_id.to_owned(), Arc::clone(&self.room));
        call!(self, read, conversation_item(&id, &item, &room))
    }

    /// Which of these ids items of the conversation have.
    pub async fn conversation_has(&self, id: &str, ids: Vec<String>) -> Result<HashSet<String>, Error> {
        let id = id.to_owned();
        call!(self, read, conversation_has(&id, &ids))
    }

    /// Takes an item out of the conversation, and so out of what later turns and pages show.
    pub async fn delete_conversation_item(&self, id: &str, item_id: &str) -> Result<StoredConversation, Error> {
        let (id, item) = (id.to_owned(), item_id.to_owned());
        call!(self, erase, delete_conversation_item(&id, &item))
    }

    /// Takes the conversation for one turn. [`Error::Locked`] while somebody else's lease lasts.
    pub async fn begin_turn(&self, conversation_id: &str, lease_for: Duration) -> Result<Lease, Error> {
        let lease = Self::new_lease(conversation_id)?;
        self.take(&lease, lease_for).await?;
        Ok(lease)
    }

    /// A lease that holds nothing yet. Whoever may be interrupted in [`Self::take`] knows by it what to give back.
    pub fn new_lease(conversation_id: &str) -> Result<Lease, Error> {
        let mut token = [0; 16];
        getrandom::fill(&mut token).map_err(|_| Error::unavailable("no randomness from the operating system"))?;
        Ok(Lease { conversation: conversation_id.to_owned(), token })
    }

    /// Takes the conversation with this lease. [`Error::Locked`] while somebody else's lasts.
    pub async fn take(&self, lease: &Lease, lease_for: Duration) -> Result<(), Error> {
        let (lease, millis) = (lease.clone(), millis(lease_for));
        call!(self, write, begin_turn(&lease, millis))
    }

    /// Makes the lease last that long from now. [`Error::Locked`] if it was lost.
    pub async fn extend_turn(&self, lease: &Lease, lease_for: Duration) -> Result<(), Error> {
        let (lease, millis) = (lease.clone(), millis(lease_for));
        call!(self, write, extend_turn(&lease, millis))
    }

    /// Gives the conversation back without a turn: the turn failed, or is not to be stored.
    pub async fn end_turn(&self, lease: &Lease) -> Result<(), Error> {
        let lease = lease.clone();
        call!(self, write, end_turn(&lease))
    }

    fn pack(&self, items: Vec<Item>) -> Vec<PackedItem> {
        items.into_iter().map(|item| PackedItem::new(&self.hasher, item)).collect()
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
