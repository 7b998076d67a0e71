//! What is stored of a turn, kept until it ends.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use store::{Error, Item, NewTurn, Parent, Status};

use super::context::Continues;
use super::{Session, object};
use crate::body::Room;
use crate::clock;

/// A turn that will be stored when it ends. Dropped before that, nothing is, and its conversation is free again.
#[derive(Debug)]
pub(crate) struct Record {
    session: Session,
    continues: Continues,
    created_at: u64,
    input: Vec<Item>,
    /// Of the items among the input that were read from the store.
    room: Arc<Room>,
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

impl Record {
    pub(super) fn new(session: Session, continues: Continues, input: Vec<Item>, room: Arc<Room>) -> Self {
        Self { session, continues, created_at: clock::unix_millis(), input, room }
    }

    /// Nothing will be stored: the conversation is free again.
    pub(crate) async fn release(self) {
        if let Continues::Conversation(held) = self.continues {
            held.release().await;
        }
    }

    /// Stores the turn as this object shows it. Durable, and visible to every instance, when it is ready.
    pub(crate) fn commit(self, id: String, status: wire::responses::Status, object: Bytes) -> Commit {
        Box::pin(self.store(id, status, object))
    }

    async fn store(self, id: String, status: wire::responses::Status, object: Bytes) -> Result<(), NotKept> {
        let Self { session, continues, created_at, input, room: _room } = self;
        let status = match status {
            wire::responses::Status::Completed => Status::Completed,
            wire::responses::Status::Incomplete => Status::Incomplete,
            wire::responses::Status::Cancelled => Status::Cancelled,
            wire::responses::Status::Failed | wire::responses::Status::Queued | wire::responses::Status::InProgress => {
                Status::Failed
            }
        };
        let (parent, held) = match continues {
            Continues::Nothing => (Parent::None, None),
            Continues::Response(id) => (Parent::Response(id), None),
            // A conversation takes what succeeded; what did not is still found by its id.
            Continues::Conversation(held) if matches!(status, Status::Failed | Status::Cancelled) => {
                held.release().await;
                (Parent::None, None)
            }
            Continues::Conversation(held) => (Parent::Conversation(held.lease.clone()), Some(held)),
        };
        let object::Parts { head, settings, output } = object::split(&object);
        let config = &session.all.config;
        let created_at = i64::try_from(created_at).unwrap_or(i64::MAX);
        let lives = config.ttl.map(|ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        let turn = NewTurn {
            id: id.clone(),
            parent,
            status,
            created_at,
            expires_at: lives.map(|lives| created_at.saturating_add(lives)),
            head,
            settings,
            input,
            output,
            events: None,
        };
        let kept = session.all.observe(session.store.put(turn).await);
        let fatal = config.strict || held.is_some();
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
