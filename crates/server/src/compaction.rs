//! Compaction: the conversation becomes a summary, which the model that was asked for writes itself, sealed into an item
//! that the client carries, or the store. And truncation, which leaves the oldest turns out without a word about them.
//!
//! What a compaction item means when it comes back is the bridge's business. Nothing here is stored, shown or sent to a
//! client; an answer that is no summary is a failure, never an empty summary.

mod fold;
mod history;
mod shorten;
mod size;
mod truncate;
mod units;

use bridge::{Action, Failure, FailureClass, Note, Seal, SealedSummary};
use wire::id::{Id, IdKind, Ids};
use wire::json::Text;
use wire::responses::{CreateResponse, InputItem, Item, Message, Usage};

use crate::ask::NoAnswer;
use crate::items;
use crate::request::RequestContext;
use crate::upstream::Failover;
use fold::{Fold, Summary};
use history::{History, Tail};
pub(crate) use size::body_tokens;
pub(crate) use truncate::Truncation;

/// What is kept beside a summary: so many tokens at most. The last message of the user and what came last may be more.
const MOST_KEPT: u64 = 20_000;

/// The longest `encrypted_content` that a client may send back.
const LONGEST_SEAL: usize = 20 << 20;

/// What a summary is to take the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything before it; what has to stay as it is, is kept in the item itself. With the number of tokens that the
    /// context should stay well below.
    Everything(u64),
    /// Everything before it, and nothing is kept: the client wants a summary, and cannot leave anything out itself.
    EverythingStored,
    /// The client keeps what it wants to keep in front of the item.
    WhatIsLeftOut,
    /// The same, and everything that the client's connection remembers, unless the client goes on from a history of its own.
    WhatIsRemembered,
}

/// A summary under its seal.
#[derive(Debug)]
pub(crate) struct Compacted {
    pub(crate) sealed: String,
    /// Of all questions that it took.
    pub(crate) usage: Option<Usage>,
    /// What could not be taken over as it was.
    pub(crate) notes: Vec<Note>,
}

impl Compacted {
    /// The item under this id.
    pub(crate) fn item(&self, id: &Id) -> String {
        items::item(|item| {
            item.text("type", "compaction").text("id", id.as_str()).text("encrypted_content", &self.sealed);
        })
    }
}

/// Why there is no summary.
#[derive(Debug)]
pub(crate) enum NotCompacted {
    /// All of it would have to be kept.
    NothingToDo,
    NoAnswer(NoAnswer),
}

impl From<Failure> for NotCompacted {
    fn from(failure: Failure) -> Self {
        Self::NoAnswer(failure.into())
    }
}

/// Asks for a summary of everything that a request has and continues. `accepted` is called as soon as anybody has begun to
/// write it.
pub(crate) async fn compact(
    context: &RequestContext,
    failover: &mut Failover,
    request: &CreateResponse<'_>,
    past: &[InputItem<'_>],
    scope: Scope,
    accepted: &(dyn Fn() + Send + Sync),
) -> Result<Compacted, NotCompacted> {
    let seal = context.app.runtime.seal(&context.caller);
    let window = failover.context_window();
    let mut history = History::read(request, past, &seal);
    let _room = context
        .app
        .runtime
        .budget
        .reserve(history.bytes())
        .map_err(|error| NotCompacted::from(Failure::new(FailureClass::Overloaded, error.message)))?;
    let mut limit = None;
    let tail = match scope {
        Scope::Everything(below) => {
            let below = window.map_or(below, |window| window.min(below));
            limit = Some(below);
            history.keep_tail(below / 3, (below / 4).min(MOST_KEPT))
        }
        _ => Tail { items: Vec::new(), shortened: false },
    };
    let after = if scope == Scope::WhatIsRemembered { newest_of_model(past) } else { String::new() };
    let stands_for_all = matches!(scope, Scope::Everything(_) | Scope::EverythingStored);
    if !history.says_anything() {
        return Err(NotCompacted::NothingToDo);
    }
    let instructions = history.instructions();
    let fold = Fold::new(context, failover, request, history, window, limit);
    let Summary { text, usage, cut } = fold.run(accepted).await.map_err(NotCompacted::NoAnswer)?;
    let list = |items: &[String]| format!("[{}]", items.join(","));
    let (instructions, kept) = (list(&instructions), list(&tail.items));
    let summary = SealedSummary { text, stands_for_all, after, instructions, kept };
    let sealed = seal.seal(&summary.encode());
    if sealed.is_empty() || sealed.len() > LONGEST_SEAL {
        return Err(Failure::new(FailureClass::Server, "The summary could not be sealed.").into());
    }
    let note = |message: &'static str| Note::new(Action::Degraded, "input", message);
    let shortened = tail.shortened.then(|| note("the newest message or tool output has lost its middle: too long"));
    let cut = cut.then(|| note("the summary of the context was longer than there is room for: its middle is left out"));
    Ok(Compacted { sealed, usage, notes: shortened.into_iter().chain(cut).collect() })
}

/// The id of the newest item that the model made; empty if there is none.
fn newest_of_model(past: &[InputItem<'_>]) -> String {
    let is_users = |item: &Item<'_>| matches!(item, Item::Message(Message { role, .. }) if role.is_none_or(|role| !role.is("assistant")));
    let ids = past.iter().rev().filter(|item| !is_users(&item.value)).filter_map(|item| item.raw.get("id")?.text());
    ids.map(|id| id.decode().into_owned()).next().unwrap_or_default()
}

/// The newest messages of the user that stay in front of a compaction item, as they are listed: within a budget of
/// tokens; of the newest that is too long by itself, its beginning and its end.
pub(crate) fn retained(
    context: &RequestContext,
    request: &CreateResponse<'_>,
    past: &[InputItem<'_>],
    window: Option<u64>,
    ids: &mut Ids,
) -> Vec<store::Item> {
    let seal = context.app.runtime.seal(&context.caller);
    let budget = window.map_or(MOST_KEPT, |window| (window / 4).min(MOST_KEPT));
    let messages = History::read(request, past, &seal).newest_of_user(budget);
    let item = |json: String| {
        let id = wire::json::Raw::parse(&json).ok().and_then(|raw| raw.get("id")?.text().map(Text::decode));
        let id = id.and_then(|id| Id::given(&id)).unwrap_or_else(|| ids.make(IdKind::Message)).to_string();
        store::Item { id, body: json.into() }
    };
    messages.into_iter().map(item).collect()
}
