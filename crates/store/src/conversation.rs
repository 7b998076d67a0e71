//! Conversations: a list of items with metadata, and the lease of the one turn that may append to it.

use bytes::Bytes;

use crate::Item;

/// A conversation to be made.
#[derive(Debug, Clone)]
pub struct NewConversation {
    pub id: String,
    /// Unix milliseconds.
    pub created_at: i64,
    /// The metadata object as JSON; kept byte for byte.
    pub metadata: Bytes,
    pub items: Vec<Item>,
}

/// A conversation as it was stored, without its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredConversation {
    pub id: String,
    pub created_at: i64,
    pub metadata: Bytes,
}

/// The right to append one turn to a conversation. Others are refused while it lasts, by the store's clock.
///
/// Storing the turn ends it, [`crate::Tenanted::end_turn`] gives it back. A lease that ran out is still good as long
/// as nobody else took the conversation; if somebody did, storing is refused.
#[derive(Debug, Clone)]
pub struct Lease {
    pub(crate) conversation: String,
    pub(crate) token: [u8; 16],
}

impl Lease {
    pub fn conversation(&self) -> &str {
        &self.conversation
    }
}
