//! What a stored response was given: its own input, and everything before that. For whoever wants to see it planned again;
//! nothing is taken or locked.

use std::sync::Arc;

use store::{ChainLimits, History, Item, StoredResponse};

use super::context::with_instructions;
use super::{Session, join, joined_length};
use crate::body::Room;
use crate::error::ApiError;

/// What a response was given.
#[derive(Debug)]
pub(crate) struct Given {
    /// Oldest first.
    pub(crate) past: Vec<Item>,
    pub(crate) input: Vec<Item>,
    /// Has to stay as long as these do.
    pub(crate) room: Arc<Room>,
}

impl Session {
    /// The response as it is stored; None if it is not.
    pub(crate) async fn stored(&self, id: &str) -> Result<Option<StoredResponse>, ApiError> {
        match self.reading(&self.room()).response(id).await {
            Err(store::Error::NotFound) => Ok(None),
            found => self.observe(found, || ApiError::response_not_found(id)).map(Some),
        }
    }

    /// The object of a stored response; None if it is damaged.
    pub(crate) fn object(stored: &StoredResponse) -> Option<Vec<u8>> {
        let mut object = Vec::with_capacity(joined_length(stored));
        join(stored, &mut object).map(|()| object)
    }

    /// What that response was given. [`ApiError`] if part of it was deleted.
    pub(crate) async fn given(&self, id: &str) -> Result<Given, ApiError> {
        let chain = self.all.config.chain;
        let max_depth = u32::try_from(chain.max_depth).unwrap_or(u32::MAX);
        let limits = ChainLimits { max_depth, settings: chain.replay_instructions };
        let room = self.room();
        let history = self.reading(&room).history(id, limits).await;
        let History { mut turns, mut items } = self.observe(history, || ApiError::response_not_found(id))?;
        let at = turns.iter().position(|turn| turn.id == id).ok_or_else(|| ApiError::response_not_found(id))?;
        let own = turns[at].input.clone();
        turns.truncate(at);
        items.truncate(own.end);
        let input = items.split_off(own.start.min(items.len()));
        let past = if chain.replay_instructions { with_instructions(History { turns, items }, &room)? } else { items };
        Ok(Given { past, input, room })
    }
}
