//! Traces: one row for each request that is over, in a SQLite file of their own or in Postgres, for as long and as many as
//! is wanted. What they are for is found out later, so whatever cannot be written is lost without harm; and nothing but
//! the operator reads them: a row says whose it is.
//!
//! A row has what is searched and drawn as columns, the rest as one JSON document, and bodies, if they are captured, apart
//! from it: a list reads neither.

use std::path::Path;

use bytes::Bytes;

use crate::{Encryption, Error, OpenError, Store, Tenant};

/// The number of a trace: newer ones have higher ones.
pub type TraceNumber = i64;

/// What is searched, listed and drawn of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceRow {
    /// In microseconds since 1970.
    pub began_at: i64,
    pub took_micros: i64,
    pub first_token_micros: Option<i64>,
    /// Until the last byte of the upstream, of that the time that was waited for it.
    pub upstream_micros: Option<i64>,
    pub tenant: String,
    /// The name of the API key.
    pub key: Option<String>,
    pub request_id: String,
    pub response_id: Option<String>,
    pub previous_response_id: Option<String>,
    pub conversation_id: Option<String>,
    /// How it was driven: `sync`, `stream`, `websocket`, `background`, or a path for what makes no response.
    pub kind: String,
    pub client: String,
    /// As it was asked for.
    pub model: Option<String>,
    pub provider: Option<String>,
    pub upstream_model: Option<String>,
    pub status: Option<u16>,
    pub outcome: String,
    /// The domain code.
    pub error: Option<String>,
    pub attempts: u32,
    pub rounds: u32,
    pub input_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    /// None: no price is known.
    pub nanodollars: Option<u64>,
    /// The codes of what was not done as asked, each once, with blanks between.
    pub notes: String,
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTrace {
    pub row: TraceRow,
    /// A JSON object.
    pub document: Bytes,
    pub payloads: Vec<Payload>,
}

/// One with all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTrace {
    pub number: TraceNumber,
    pub row: TraceRow,
    pub document: Bytes,
    pub payloads: Vec<Payload>,
}

/// Which are wanted; all, where nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceFilter {
    pub tenant: Option<String>,
    pub key: Option<String>,
    /// As asked for, or as the upstream knows it.
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
    pub age_micros: i64,
    pub bytes: u64,
}

/// Where traces are. Clones are the same.
#[derive(Debug, Clone)]
pub struct TraceStore {}

impl TraceStore {
    /// A SQLite file of its own, which is not worth a wait for the disk. Bodies are encrypted where there is a key.
    pub fn sqlite(path: &Path, encryption: &Encryption) -> Result<Self, OpenError> {
        let _ = (path, encryption);
        Ok(Self {})
    }

    /// In the Postgres of that store.
    pub fn shared(store: &Store) -> Option<Self> {
        let _ = store;
        None
    }

    /// In memory, up to so many bytes: where sessions are, too.
    pub fn memory(bytes: u64) -> Self {
        let _ = bytes;
        Self {}
    }

    /// Writes all of them, or none.
    pub async fn add(&self, traces: Vec<NewTrace>) -> Result<(), Error> {
        drop(traces);
        Ok(())
    }

    /// A part of a list, without documents and bodies.
    pub async fn list(&self, filter: TraceFilter, page: TracePage) -> Result<Vec<(TraceNumber, TraceRow)>, Error> {
        let _ = (filter, page);
        Ok(Vec::new())
    }

    /// One by its number.
    pub async fn get(&self, number: TraceNumber) -> Result<Option<StoredTrace>, Error> {
        let _ = number;
        Ok(None)
    }

    /// The newest one of a response or of a request.
    pub async fn find(&self, id: String) -> Result<Option<StoredTrace>, Error> {
        drop(id);
        Ok(None)
    }

    /// All turns of the tree of this response, as far as they are here, oldest first, and at most so many: what it
    /// continues, whatever continues that, and so on.
    pub async fn chain(
        &self,
        tenant: String,
        response_id: String,
        limit: u32,
    ) -> Result<Vec<(TraceNumber, TraceRow)>, Error> {
        let _ = (tenant, response_id, limit);
        Ok(Vec::new())
    }

    /// Sums in steps of that many microseconds, from `filter.since` to `filter.until`, at most 500 of them.
    pub async fn series(&self, filter: TraceFilter, step_micros: i64) -> Result<Vec<TracePoint>, Error> {
        let _ = (filter, step_micros);
        Ok(Vec::new())
    }

    /// Drops what is too old or too much, a little at a time; true: there is more.
    pub async fn prune(&self, retention: TraceRetention) -> Result<bool, Error> {
        let _ = retention;
        Ok(false)
    }

    /// Leaves nothing of a tenant.
    pub async fn erase(&self, tenant: Tenant) -> Result<u64, Error> {
        drop(tenant);
        Ok(0)
    }
}
