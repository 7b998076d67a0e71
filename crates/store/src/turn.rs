//! What goes in and what comes out: turns, items, histories, pages.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Claim, Lease, NewEvents, NewNotice};

/// Whose data it is: the first part of every key in every backend.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// A tenant by its name. Names are compared byte for byte.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    pub fn name(&self) -> &str {
        &self.0
    }

    /// The same, for whoever keeps it.
    pub fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The one tenant while there are no API keys.
impl Default for Tenant {
    fn default() -> Self {
        Self::new("default")
    }
}

/// An input or output item.
///
/// `body` is its JSON as it was sent or made; it is kept byte for byte. `id` is the name under
/// which it is found and listed. A client's item without an id gets one from the caller, *outside* the body: the same
/// item sent again then has the same bytes, and is stored once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub id: String,
    pub body: Bytes,
}

/// The status of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    Queued,
    InProgress,
    Completed,
    Incomplete,
    Failed,
    Cancelled,
}

impl Status {
    /// Whether the turn is over. Such a status never changes again.
    pub const fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::InProgress => false,
            Self::Completed | Self::Incomplete | Self::Failed | Self::Cancelled => true,
        }
    }

    /// Whether a conversation takes the turn's items.
    pub(crate) const fn is_kept_by_conversation(self) -> bool {
        matches!(self, Self::Completed | Self::Incomplete)
    }

    pub(crate) const fn code(self) -> i16 {
        match self {
            Self::Queued => 0,
            Self::InProgress => 1,
            Self::Completed => 2,
            Self::Incomplete => 3,
            Self::Failed => 4,
            Self::Cancelled => 5,
        }
    }

    pub(crate) const fn from_code(code: i64) -> Option<Self> {
        match code {
            0 => Some(Self::Queued),
            1 => Some(Self::InProgress),
            2 => Some(Self::Completed),
            3 => Some(Self::Incomplete),
            4 => Some(Self::Failed),
            5 => Some(Self::Cancelled),
            _ => None,
        }
    }
}

/// As the API spells it.
impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
}

/// What a turn continues.
#[derive(Debug, Clone, Default)]
pub enum Parent {
    /// Nothing: its input is the whole history.
    #[default]
    None,
    /// The response with this id.
    Response(String),
    /// A conversation, locked by [`crate::Tenanted::begin_turn`]. Storing the turn appends to it and ends the lease.
    Conversation(Lease),
}

/// A turn that is stored for the first time: one that has ended ([`crate::Tenanted::put`]), or one that begins
/// ([`crate::Tenanted::begin`]) and has no output yet.
#[derive(Debug, Clone)]
pub struct NewTurn {
    pub id: String,
    pub parent: Parent,
    pub status: Status,
    /// Unix milliseconds: when the turn began. What it continues must not have expired by then.
    pub created_at: i64,
    /// Unix milliseconds: from then on nobody finds the response, and a sweep removes it later. None is for ever.
    pub expires_at: Option<i64>,
    /// The response object without `output` (and without what is in `settings`), as `GET` is to return it.
    pub head: Bytes,
    /// What clients send again with every turn, such as instructions and tools. One copy is kept of equal settings.
    pub settings: Option<Bytes>,
    pub input: Vec<Item>,
    pub output: Vec<Item>,
    /// The first events, perhaps none, of its log; None if it has no log.
    pub events: Option<NewEvents>,
    /// The key that was claimed for it ([`crate::Tenanted::claim_key`]), if one was: with the turn it has its response, and
    /// a turn whose key is another's by now is not stored.
    pub key: Option<String>,
}

/// The end of a turn that was begun.
#[derive(Debug, Clone)]
pub struct TurnEnd {
    pub id: String,
    /// A final one. A conversation takes what is completed or incomplete; a turn that failed or was cancelled keeps its
    /// items to itself.
    pub status: Status,
    /// As [`NewTurn::head`]; it takes the place of what the turn began with.
    pub head: Bytes,
    /// As [`NewTurn::settings`]; they take the place of what the turn began with.
    pub settings: Option<Bytes>,
    pub output: Vec<Item>,
    /// The lease of the turn's conversation, which ends with it. A turn that a conversation takes needs it, unless its job
    /// has it.
    pub lease: Option<Lease>,
    /// The last events of its log, stored with the end or not at all: after it nothing can be appended.
    pub events: Option<NewEvents>,
    /// By what right the turn is ended: refused if it is not the newest. Without, it ends whoever runs it, and that one has
    /// lost it.
    pub claim: Option<Claim>,
    /// Whom to tell.
    pub notices: Vec<NewNotice>,
}

/// A response as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    pub id: String,
    pub previous_response_id: Option<String>,
    pub conversation_id: Option<String>,
    pub status: Status,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub head: Bytes,
    pub settings: Option<Bytes>,
    pub output: Vec<Item>,
}

/// How much history a caller accepts, and what of it.
#[derive(Debug, Clone, Copy)]
pub struct ChainLimits {
    /// Turns, the newest included.
    pub max_depth: u32,
    /// Whether [`Turn::settings`] is wanted (to replay instructions); it costs one more query.
    pub settings: bool,
}

/// Everything up to and including one response, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// The chain of responses. A conversation's items from before the chain belong to no turn of it.
    pub turns: Vec<Turn>,
    pub items: Vec<Item>,
}

/// One response of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub id: String,
    pub status: Status,
    /// Its own input, as places in [`History::items`].
    pub input: Range<usize>,
    /// Its output, as places in [`History::items`].
    pub output: Range<usize>,
    /// Only if asked for.
    pub settings: Option<Bytes>,
}

/// Which way a list runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    OldestFirst,
    NewestFirst,
}

/// Which part of a list.
#[derive(Debug, Clone)]
pub struct Page {
    pub limit: u32,
    pub order: Order,
    /// Bytes of bodies after which the page ends early; one item is always given out.
    pub max_bytes: usize,
    /// The id of the last item seen, in this order; the page begins after it.
    pub after: Option<String>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPage {
    pub items: Vec<Item>,
    pub has_more: bool,
}
