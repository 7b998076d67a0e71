//! Traces: one row for each request that is over, in a SQLite file of their own or in Postgres, for as long and as many as
//! is wanted. What they are for is found out later, so whatever cannot be written is lost without harm; and nothing but
//! the operator reads them: a row says whose it is.
//!
//! Writing must cost next to nothing, for each request pays for it; reading is rare. So there is no index for each thing
//! that may be asked for. Rows come in blocks of a few hundred, written as they are, and beside each block is a summary: which
//! names are in it, from when to when, and a fingerprint of each id. Whoever looks for something walks the summaries,
//! which are small, and takes apart only the blocks that may have it. What matters of a trace beyond its row is a JSON document,
//! and bodies, if they are captured: both are apart from the blocks, and encrypted where there is a key.

mod batch;
mod block;
mod chain;
mod coding;
mod document;
mod members;
mod memory;
mod parts;
mod plain_turn;
mod query;
mod response_id;
mod seal;
mod series;
mod store;
mod walk;
mod write;

use std::borrow::Cow;

use bytes::Bytes;

pub use batch::{NewTrace, TraceBatch};
pub(crate) use block::{Block, Header};
pub(crate) use document::{Chunk, PayloadRow, Stored};
pub use members::{TraceDocument, member};
pub use plain_turn::{PlainTurn, TRACE_TIMES};
pub(crate) use seal::{Place as SealPlace, Renewed, renew};
pub use store::{TraceRekeyed, TraceStore};
pub(crate) use walk::{Visit, Walk};
pub(crate) use write::{Remains, may_have, prepare, without};

/// The number of a trace: newer ones have higher ones.
pub type TraceNumber = i64;

/// What is searched, listed and drawn of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceRow<'a> {
    /// In microseconds since 1970.
    pub began_at: i64,
    pub took_micros: i64,
    pub first_token_micros: Option<i64>,
    /// Until the last byte of the upstream, of that the time that was waited for it.
    pub upstream_micros: Option<i64>,
    pub tenant: Cow<'a, str>,
    /// The name of the API key.
    pub key: Option<Cow<'a, str>>,
    pub request_id: Cow<'a, str>,
    pub response_id: Option<Cow<'a, str>>,
    pub previous_response_id: Option<Cow<'a, str>>,
    pub conversation_id: Option<Cow<'a, str>>,
    /// How it was driven: `sync`, `stream`, `websocket`, `background`, or a path for what makes no response.
    pub kind: Cow<'a, str>,
    pub client: Cow<'a, str>,
    /// As it was asked for.
    pub model: Option<Cow<'a, str>>,
    pub provider: Option<Cow<'a, str>>,
    pub upstream_model: Option<Cow<'a, str>>,
    pub status: Option<u16>,
    pub outcome: Cow<'a, str>,
    /// The domain code.
    pub error: Option<Cow<'a, str>>,
    pub attempts: u32,
    pub rounds: u32,
    pub input_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    /// None: no price is known.
    pub nanodollars: Option<u64>,
    /// The codes of what was not done as asked, each once, with blanks between.
    pub notes: Cow<'a, str>,
}

impl TraceRow<'_> {
    /// Whether it failed or was refused. A request that somebody cancelled, or whose client left, did neither.
    pub fn is_error(&self) -> bool {
        self.error.is_some()
            || self.status.is_some_and(|status| status >= 400)
            || ["failed", "late", "stopped"].contains(&&*self.outcome)
    }
}

/// A body that was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// `request`, `chat_request`, `chat_response`, `response`, `events`; with `.N` for the attempt or round it is of, from 1.
    pub name: String,
    pub bytes: Bytes,
    /// How long it was, if only its beginning is here.
    pub cut_from: Option<u64>,
}

/// One with all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTrace {
    pub number: TraceNumber,
    pub row: TraceRow<'static>,
    /// A JSON object, an empty one if it is unreadable.
    pub document: Bytes,
    pub payloads: Vec<Payload>,
    /// Whether there was more, which no key opens or which is gone.
    pub unreadable: bool,
}

/// Which are wanted; all, where nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceFilter {
    pub tenant: Option<String>,
    pub key: Option<String>,
    /// As asked for, as the upstream knows it, or as `provider/model`.
    pub model: Option<String>,
    pub provider: Option<String>,
    pub outcome: Option<String>,
    /// Only those that failed or were refused.
    pub errors: bool,
    /// Only those with this note; empty: with any.
    pub note: Option<String>,
    /// A response's, a request's or a conversation's id.
    pub id: Option<String>,
    /// In microseconds since 1970; from, and before.
    pub since: Option<i64>,
    pub until: Option<i64>,
    pub slower_than_micros: Option<i64>,
}

/// Which part of a list, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracePage {
    /// Only older ones than this.
    pub before: Option<TraceNumber>,
    /// Only newer ones than this: for whoever follows. Then the oldest of them come, oldest first.
    pub after: Option<TraceNumber>,
    pub limit: u32,
}

/// What is drawn: sums of a step of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracePoint {
    /// When the step begins, in microseconds since 1970.
    pub at: i64,
    pub requests: u64,
    pub errors: u64,
    pub input_tokens: u64,
    pub cached_tokens: u64,
    pub output_tokens: u64,
    pub nanodollars: u64,
    /// Half of them, and 95 of 100, took no longer; of at most some thousands of each step.
    pub took_p50_micros: Option<i64>,
    pub took_p95_micros: Option<i64>,
    pub first_token_p50_micros: Option<i64>,
}

/// For how long, and how much, traces are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRetention {
    /// Whole blocks go: those whose newest trace is older. None has traces of more than an hour.
    pub age_micros: i64,
    /// Of what is stored, without what the database needs around it, which is about a tenth.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::TraceRow;

    /// A row that has everything, and not always the same.
    pub(super) fn row(number: i64) -> TraceRow<'static> {
        let some = |every: i64, text: String| (number % every != 0).then(|| text.into());
        let count = number.unsigned_abs();
        TraceRow {
            began_at: 1_700_000_000_000_000 + number * 1_000,
            took_micros: 1_000 + number * 37 % 5_000,
            first_token_micros: (number % 4 != 0).then_some(number),
            upstream_micros: (number % 5 != 0).then_some(number),
            tenant: format!("t{}", number % 3).into(),
            key: some(7, format!("key {}", number % 5)),
            request_id: format!("req_{number}").into(),
            response_id: some(6, format!("resp_{number}")),
            previous_response_id: some(2, format!("resp_{}", number - 1)),
            conversation_id: some(9, format!("conv_{}", number / 10)),
            kind: "stream".into(),
            client: "codex".into(),
            model: some(11, format!("model-{}", number % 4)),
            provider: some(8, "zhipu".into()),
            upstream_model: some(8, format!("glm-{}", number % 4)),
            status: (number % 5 != 0).then_some(if number % 10 == 1 { 429 } else { 200 }),
            outcome: if number % 10 == 2 { "failed" } else { "completed" }.into(),
            error: (number % 10 == 1).then(|| "upstream.rate_limited".into()),
            attempts: 1 + u32::try_from(number % 3).unwrap(),
            rounds: 1,
            input_tokens: (number % 3 != 0).then_some(count),
            cached_tokens: (number % 3 != 0).then_some(count / 2),
            output_tokens: (number % 3 != 0).then_some(count * 2),
            reasoning_tokens: (number % 6 == 1).then_some(count),
            nanodollars: (number % 4 != 0).then_some(count * 1_000),
            notes: match number % 20 {
                3 => "degraded.tool dropped.param".into(),
                4 => "dropped.param".into(),
                _ => "".into(),
            },
        }
    }
}
