//! One tenant's store: the same calls for every backend.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::encryption::{Cipher, Place, Vault};
use crate::event::{EventReader, PackedEvents};
use crate::prefix::Hasher;
use crate::prepared::{PackedItem, Prepared, PreparedEnd};
use crate::room::{Endless, Reading, Room};
use crate::{
    Backend, ChainLimits, Claim, Clock, Error, EventLimits, EventPage, History, Holding, Item, ItemPage, Lease,
    NewConversation, NewEvents, NewTurn, Page, Status, StoredConversation, StoredResponse, Tenant, TurnEnd, sqlite,
};

/// Items that one query looks up.
const AT_ONCE: usize = 256;

/// Everything that is one tenant's, and nothing else.
#[derive(Debug, Clone)]
pub struct Tenanted {
    backend: Backend,
    clock: Clock,
    hasher: Hasher,
    vault: Vault,
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

mod jobs;

impl Tenanted {
    pub(crate) fn new(backend: Backend, clock: Clock, hasher: Hasher, vault: Vault, tenant: Tenant) -> Self {
        Self { backend, clock, hasher, vault, tenant, room: Arc::new(Endless) }
    }

    /// To seal what is written.
    async fn writing(&self) -> Result<Cipher, Error> {
        self.vault.writing(&self.backend, &self.tenant).await
    }

    /// To open what is read.
    async fn reading(&self) -> Result<Reading, Error> {
        let cipher = self.vault.reading(&self.backend, &self.tenant).await?;
        Ok(Reading { cipher, room: Arc::clone(&self.room) })
    }

    /// The same, for reads whose bodies need room: [`Error::NoRoom`] as soon as there is none.
    #[must_use]
    pub fn within(&self, room: Arc<dyn Room>) -> Self {
        Self { room, ..self.clone() }
    }

    /// Stores a turn that has ended, in one write. When this returns, it is durable and any instance finds it.
    ///
    /// [`Error::NotFound`] if what it continues is gone by now, [`Error::Running`] if that is not finished,
    /// [`Error::Locked`] if its lease was lost, [`Error::KeyLost`] if its key was, [`Error::Conflict`] if the id is taken.
    pub async fn put(&self, turn: NewTurn) -> Result<(), Error> {
        if !turn.status.is_final() {
            return Err(Error::WrongStatus { status: turn.status });
        }
        self.store(turn).await
    }

    /// Stores a turn that begins: queued or in progress, without output. It can be found, listed, deleted and expire,
    /// but not be continued before [`Self::finish`]. In a conversation its input waits beside the items until then; the
    /// lease goes on.
    ///
    /// Fails as [`Self::put`] does.
    pub async fn begin(&self, turn: NewTurn) -> Result<(), Error> {
        if turn.status.is_final() || !turn.output.is_empty() {
            return Err(Error::WrongStatus { status: turn.status });
        }
        self.store(turn).await
    }

    async fn store(&self, turn: NewTurn) -> Result<(), Error> {
        let cipher = self.writing().await?;
        let (turn, now) = (Prepared::new(&self.hasher, &cipher, turn)?, self.clock.now());
        call!(self, write, store(&turn, now), used)
    }

    /// Sets the status of a turn that has not ended, to another one that is not final.
    ///
    /// [`Error::Ended`] once it has ended.
    pub async fn advance(&self, id: &str, status: Status) -> Result<(), Error> {
        if status.is_final() {
            return Err(Error::WrongStatus { status });
        }
        let (id, now) = (id.to_owned(), self.clock.now());
        call!(self, write, advance(&id, status, now))
    }

    /// Ends a turn that was begun: the only way to a final status, and only once.
    ///
    /// Its job is over with it, whoever ran it. An end by claim is refused with [`Error::Lost`] if that is not the newest.
    ///
    /// [`Error::Ended`] if it has ended before, [`Error::NotFound`] if it was deleted or has expired. [`Error::Locked`]
    /// if its conversation was lost or deleted meanwhile: it can still end as failed. [`Error::OutOfOrder`] and
    /// [`Error::NoLog`] as [`Self::append_events`]. Whatever is refused changes nothing.
    pub async fn finish(&self, end: TurnEnd) -> Result<(), Error> {
        if !end.status.is_final() {
            return Err(Error::WrongStatus { status: end.status });
        }
        let cipher = self.writing().await?;
        let (end, now) = (PreparedEnd::new(&self.hasher, &cipher, end)?, self.clock.now());
        call!(self, write, finish(&end, now), used)
    }

    /// Appends to the event log of a turn that has not ended. [`Error::OutOfOrder`] unless the events go on where the log
    /// ends, [`Error::NoLog`] if the turn began without one, [`Error::Lost`] if it is done by a claim that is not the newest.
    ///
    /// When this returns, they are durable, and every instance reads them.
    pub async fn append_events(&self, id: &str, events: &NewEvents, claim: Option<&Claim>) -> Result<(), Error> {
        let cipher = self.writing().await?;
        let Some(events) = PackedEvents::new(&cipher, id, events)? else { return Ok(()) };
        let (id, claim, now) = (id.to_owned(), claim.cloned(), self.clock.now());
        call!(self, write, append_events(&id, &events, claim.as_ref(), now))
    }

    /// A page of the turn's event log, from the event after number `after` on, or from the first.
    pub async fn events_after(&self, id: &str, after: Option<u64>, limits: EventLimits) -> Result<EventPage, Error> {
        let (id, reader, now) = (id.to_owned(), EventReader::new(after, limits), self.clock.now());
        let reading = self.reading().await?;
        call!(self, read, events_after(&id, reader, now, &reading))
    }

    /// Everything up to and including that response, oldest first.
    ///
    /// [`Error::NotFound`] if there is no such response, [`Error::DeletedAncestor`] if something of its history was
    /// deleted, [`Error::TooDeep`] if the chain is longer than allowed.
    pub async fn history(&self, response_id: &str, limits: ChainLimits) -> Result<History, Error> {
        let (id, now, reading) = (response_id.to_owned(), self.clock.now(), self.reading().await?);
        call!(self, read, history(&id, limits, now, &reading), used)
    }

    /// The response as it was stored, with its output items.
    pub async fn response(&self, id: &str) -> Result<StoredResponse, Error> {
        let (id, now, reading) = (id.to_owned(), self.clock.now(), self.reading().await?);
        call!(self, read, response(&id, now, &reading), used)
    }

    /// Erases the response, and its own items unless another response or a conversation has them too. What continues
    /// it stays, but has a hole in its history. A turn that runs in the foreground loses what it is about to say.
    ///
    /// [`Error::Running`] while it runs or waits as a background job.
    pub async fn delete_response(&self, id: &str) -> Result<(), Error> {
        let (id, now) = (id.to_owned(), self.clock.now());
        call!(self, erase, delete_response(&id, now))
    }

    /// A page of what the response was given: its own input and the history before it.
    pub async fn input_items(&self, id: &str, page: Page) -> Result<ItemPage, Error> {
        let (id, now, reading) = (id.to_owned(), self.clock.now(), self.reading().await?);
        call!(self, read, input_items(&id, &page, now, &reading))
    }

    /// Stored items by their ids, for item references, in the order asked for; of several with one id the newest that
    /// has not expired with its response.
    pub async fn items(&self, ids: Vec<String>) -> Result<Vec<Option<Item>>, Error> {
        let mut found = Vec::with_capacity(ids.len());
        // One query for many, but not for all: others who read have their turn in between.
        for some in ids.chunks(AT_ONCE) {
            let (some, now, reading) = (some.to_vec(), self.clock.now(), self.reading().await?);
            found.extend(call!(self, read, items_by_id(&some, now, &reading))?);
        }
        Ok(found)
    }

    pub async fn item(&self, item_id: &str) -> Result<Item, Error> {
        self.items(vec![item_id.to_owned()]).await?.pop().flatten().ok_or(Error::NotFound)
    }

    pub async fn create_conversation(&self, mut new: NewConversation) -> Result<(), Error> {
        let cipher = self.writing().await?;
        let items = self.pack(&cipher, std::mem::take(&mut new.items))?;
        new.metadata = cipher.pack(Place::conversation(&new.id), &new.metadata)?.into();
        call!(self, write, create_conversation(&new, &items), used)
    }

    pub async fn conversation(&self, id: &str) -> Result<StoredConversation, Error> {
        let (id, cipher) = (id.to_owned(), self.reading().await?.cipher);
        call!(self, read, conversation(&id, &cipher))
    }

    /// Replaces the metadata.
    pub async fn update_conversation(&self, id: &str, metadata: Bytes) -> Result<StoredConversation, Error> {
        let (id, cipher) = (id.to_owned(), self.writing().await?);
        let metadata = cipher.pack(Place::conversation(&id), &metadata)?;
        call!(self, write, update_conversation(&id, &metadata, &cipher))
    }

    /// The responses that were made in it stay, with their items.
    pub async fn delete_conversation(&self, id: &str) -> Result<(), Error> {
        let id = id.to_owned();
        call!(self, erase, delete_conversation(&id))
    }

    /// Appends outside a turn. [`Error::Locked`] while a turn is on.
    pub async fn append_items(&self, id: &str, items: Vec<Item>) -> Result<(), Error> {
        let cipher = self.writing().await?;
        let (id, items) = (id.to_owned(), self.pack(&cipher, items)?);
        call!(self, write, append_items(&id, &items))
    }

    pub async fn conversation_items(&self, id: &str, page: Page) -> Result<ItemPage, Error> {
        let (id, reading) = (id.to_owned(), self.reading().await?);
        call!(self, read, conversation_items(&id, &page, &reading))
    }

    /// All items of a conversation, oldest first. For a turn, read them after [`Self::begin_turn`].
    pub async fn conversation_history(&self, id: &str) -> Result<Vec<Item>, Error> {
        let (id, reading) = (id.to_owned(), self.reading().await?);
        call!(self, read, conversation_history(&id, &reading))
    }

    pub async fn conversation_item(&self, id: &str, item_id: &str) -> Result<Item, Error> {
        let (id, item, reading) = (id.to_owned(), item_id.to_owned(), self.reading().await?);
        call!(self, read, conversation_item(&id, &item, &reading))
    }

    /// Which of these ids items of the conversation have.
    pub async fn conversation_has(&self, id: &str, ids: Vec<String>) -> Result<HashSet<String>, Error> {
        let id = id.to_owned();
        call!(self, read, conversation_has(&id, &ids))
    }

    /// Takes an item out of the conversation, and so out of what later turns and pages show.
    pub async fn delete_conversation_item(&self, id: &str, item_id: &str) -> Result<StoredConversation, Error> {
        let (id, item, cipher) = (id.to_owned(), item_id.to_owned(), self.reading().await?.cipher);
        call!(self, erase, delete_conversation_item(&id, &item, &cipher))
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

    /// The input that came with the response itself.
    pub(crate) async fn own_input(&self, id: &str) -> Result<Vec<Item>, Error> {
        let (id, now, reading) = (id.to_owned(), self.clock.now(), self.reading().await?);
        call!(self, read, own_input(&id, now, &reading))
    }

    pub(crate) async fn held_responses(&self, after: String, most: usize) -> Result<Vec<Holding>, Error> {
        let now = self.clock.now();
        call!(self, read, held_responses(&after, most, now))
    }

    pub(crate) async fn held_conversations(&self, after: String, most: usize) -> Result<Vec<Holding>, Error> {
        call!(self, read, held_conversations(&after, most))
    }

    fn pack(&self, cipher: &Cipher, items: Vec<Item>) -> Result<Vec<PackedItem>, Error> {
        items.into_iter().map(|item| PackedItem::new(&self.hasher, cipher, item)).collect()
    }
}

pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
