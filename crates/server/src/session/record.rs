//! What is stored of a turn: all of it when it ends, or its beginning first and its end later.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use store::{Begun, Claim, Error, Item, JobLimits, NewEvents, NewJob, NewTurn, Parent, Status, TurnEnd, Worker};
use tokio::time::Instant;

use super::Session;
use super::context::Continues;
use super::lease::LEASE;
use super::object::{self, Beside};
use crate::body::Room;
use crate::clock;

/// How long the end of a turn that was begun is tried to be stored. Then others find that it has no end, and give it one.
const PATIENCE: Duration = Duration::from_secs(30);

/// A turn that is stored when it ends.
#[derive(Debug)]
pub(crate) enum Record {
    New(NewRecord),
    Begun(BegunRecord),
}

/// A turn of which nothing is stored before it ends. Dropped before that, nothing is, and its conversation is free again.
#[derive(Debug)]
pub(crate) struct NewRecord {
    session: Session,
    continues: Continues,
    created_at: u64,
    input: Vec<Item>,
    /// That it answers: it is stored with that or not at all.
    key: Option<String>,
    /// Of the items among the input that were read from the store.
    room: Arc<Room>,
}

/// A turn whose beginning is stored, and which this process may end.
#[derive(Debug)]
pub(crate) struct BegunRecord {
    pub(crate) session: Session,
    pub(crate) claim: Claim,
}

/// Storing under way: whether it worked.
pub(crate) type Commit = Pin<Box<dyn Future<Output = Result<(), NotKept>> + Send>>;

/// A turn that could not be stored.
#[derive(Debug)]
pub(crate) struct NotKept {
    pub(crate) error: Error,
    /// The client was promised that it would be: the turn fails. Otherwise the response says that it was not.
    pub(crate) fatal: bool,
}

/// The end of a turn, as it is stored.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) id: String,
    pub(crate) status: Status,
    pub(crate) object: Bytes,
    /// What is kept beside its items.
    pub(crate) kept: Vec<Beside>,
    /// The last of its events, where they are logged.
    pub(crate) events: Option<NewEvents>,
}

impl Record {
    /// Whether the turn's beginning is stored.
    pub(crate) const fn is_begun(&self) -> bool {
        matches!(self, Self::Begun(_))
    }

    /// Nothing will be stored: the conversation is free again.
    pub(crate) async fn release(self) {
        if let Self::New(NewRecord { continues: Continues::Conversation(held), .. }) = self {
            held.release().await;
        }
    }

    /// Stores the end of the turn. Durable, and visible to every instance, when it is ready.
    pub(crate) fn commit(self, end: End) -> Commit {
        match self {
            Self::New(new) => Box::pin(new.store(end)),
            Self::Begun(begun) => Box::pin(begun.finish(end)),
        }
    }
}

impl NewRecord {
    pub(super) fn new(
        session: Session,
        continues: Continues,
        input: Vec<Item>,
        key: Option<String>,
        room: Arc<Room>,
    ) -> Self {
        Self { session, continues, created_at: clock::unix_millis(), input, key, room }
    }

    /// As the response says it.
    pub(crate) const fn created_at_seconds(&self) -> u64 {
        self.created_at / 1000
    }

    /// Unix milliseconds.
    pub(crate) fn created_at(&self) -> i64 {
        i64::try_from(self.created_at).unwrap_or(i64::MAX)
    }

    /// The turn as the store takes it; what it continues is named, and held until it is stored.
    fn turn(self, id: String, status: Status, object: &Bytes, kept: &[Beside], parent: Parent) -> NewTurn {
        let object::Parts { head, settings, output } = object::split(object, kept);
        let created_at = self.created_at();
        let lives = self.session.all.config.ttl.map(|ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        NewTurn {
            id,
            parent,
            status,
            created_at,
            expires_at: lives.map(|lives| created_at.saturating_add(lives)),
            head,
            settings,
            input: self.input,
            output,
            events: None,
            key: self.key,
        }
    }

    /// Stores the beginning of the turn as this object shows it: from now on it is a job of this process, or waits for
    /// anybody. Its conversation is the job's.
    pub(crate) async fn begin(
        mut self,
        id: &str,
        status: Status,
        object: &Bytes,
        events: Option<NewEvents>,
        job: NewJob,
        (worker, limits): (&Worker, JobLimits),
    ) -> Result<Begun, Error> {
        let session = self.session.clone();
        let continues = std::mem::take(&mut self.continues);
        let (parent, held) = match continues {
            Continues::Nothing => (Parent::None, None),
            Continues::Response(id) => (Parent::Response(id), None),
            Continues::Conversation(held) => (Parent::Conversation(held.lease.clone()), Some(held)),
        };
        let turn = NewTurn { events, ..self.turn(id.to_owned(), status, object, &[], parent) };
        let begun = session.all.observe(session.store.begin_job(turn, job, worker, limits, LEASE).await);
        match (&begun, held) {
            (Ok(_), Some(held)) => held.lease_is_over(),
            (Err(_), Some(held)) => held.release().await,
            (_, None) => {}
        }
        begun
    }

    async fn store(mut self, end: End) -> Result<(), NotKept> {
        let End { id, status, object, kept, .. } = end;
        let session = self.session.clone();
        let (parent, held) = match std::mem::take(&mut self.continues) {
            Continues::Nothing => (Parent::None, None),
            Continues::Response(id) => (Parent::Response(id), None),
            // A conversation takes what succeeded; what failed is still found by its id.
            Continues::Conversation(held) if status == Status::Failed => {
                held.release().await;
                (Parent::None, None)
            }
            Continues::Conversation(held) => (Parent::Conversation(held.lease.clone()), Some(held)),
        };
        // Whoever sends the request again under its key is to get this response, and no other.
        let fatal = session.all.config.strict || held.is_some() || self.key.is_some();
        let room = Arc::clone(&self.room);
        let turn = self.turn(id.clone(), status, &object, &kept, parent);
        let kept = session.all.observe(session.store.put(turn).await);
        drop(room);
        match kept {
            Ok(()) => {
                held.into_iter().for_each(super::lease::Held::lease_is_over);
                Ok(())
            }
            Err(error) => {
                if let Some(held) = held {
                    held.release().await;
                }
                session.all.not_kept(&id, &error);
                Err(NotKept { error, fatal })
            }
        }
    }
}

impl BegunRecord {
    async fn finish(self, end: End) -> Result<(), NotKept> {
        let Self { session, claim } = self;
        let End { id, status, object, kept, events } = end;
        let object::Parts { head, settings, output } = object::split(&object, &kept);
        let notices = session.notices(&id, status, &head);
        let mut end = TurnEnd {
            id: id.clone(),
            status,
            head,
            settings,
            output,
            lease: None,
            events,
            claim: Some(claim),
            notices,
        };
        let began = Instant::now();
        loop {
            match session.all.observe(session.finish(end.clone()).await) {
                Err(Error::Unavailable(_)) if began.elapsed() < PATIENCE => {
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                Ok(()) => return Ok(()),
                Err(error) => {
                    let mended = match &end.events {
                        Some(events) => session.live().channel(&id).mended(&error, events),
                        _ => None,
                    };
                    let Some(mended) = mended else {
                        session.all.not_kept(&id, &error);
                        return Err(NotKept { error, fatal: true });
                    };
                    end.events = Some(mended);
                }
            }
        }
    }
}
