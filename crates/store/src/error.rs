//! What can go wrong, one variant per cause. A foreign id and an unknown id are the same `NotFound`.

use std::path::PathBuf;

use crate::Status;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such response, conversation or item for this tenant.
    #[error("not found")]
    NotFound,
    /// A turn of the chain was deleted: the history has a hole, and a shorter one is never given out.
    #[error("a response of this chain was deleted")]
    DeletedAncestor,
    /// The chain has more turns than the caller allows.
    #[error("the chain of responses is longer than {limit}")]
    TooDeep { limit: u32 },
    /// The caller has no room for what is to be read ([`crate::Room`]).
    #[error("there is no room for what is to be read")]
    NoRoom,
    /// `after` names no item of the list.
    #[error("no item of this list has that id")]
    NoSuchCursor,
    /// The id is taken.
    #[error("the id is taken")]
    Conflict,
    /// The response is still being made, and cannot be continued before it is finished.
    #[error("the response is not finished yet")]
    Running,
    /// The turn is over; how it ended never changes again.
    #[error("the turn has ended: it is {status}")]
    Ended { status: Status },
    /// A turn cannot begin, be advanced, be stored or end with this status.
    #[error("a turn cannot become {status} this way")]
    WrongStatus { status: Status },
    /// The events do not continue the log at the number with which it goes on.
    #[error("the next event of this log has the number {expected}")]
    OutOfOrder { expected: u64 },
    /// Another turn works on this conversation, or took it over after the lease ran out; or it was deleted while its
    /// turn ran.
    #[error("another turn works on this conversation")]
    Locked,
    /// The turn has no event log.
    #[error("the turn has no event log")]
    NoLog,
    /// As many background jobs of this tenant wait as may.
    #[error("no more background jobs may wait")]
    QueueFull,
    /// Somebody else took the job over, or it is gone.
    #[error("the job is not this worker's any more")]
    Lost,
    /// The idempotency key under which the turn was to be stored is not its own any more: another response has it, or it was
    /// given back. Nothing was stored.
    #[error("the idempotency key is not this response's any more")]
    KeyLost,
    /// No room: the disk is full, or memory has reached its limit.
    #[error("the session store is full")]
    Full,
    /// What was read is damaged; the text is for the operator.
    #[error("the session store is damaged: {0}")]
    Corrupt(Box<str>),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// A store that does not answer. It may come back: try again later.
#[derive(Debug, thiserror::Error)]
#[error("the session store does not answer")]
pub struct Unavailable {
    reason: Box<str>,
}

impl Unavailable {
    pub(crate) fn new(reason: impl Into<Box<str>>) -> Self {
        Self { reason: reason.into() }
    }

    /// What happened, for the operator's log. Never for a client.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl Error {
    pub(crate) fn unavailable(reason: impl Into<Box<str>>) -> Self {
        Self::Unavailable(Unavailable::new(reason))
    }

    pub(crate) fn corrupt(what: impl Into<Box<str>>) -> Self {
        Self::Corrupt(what.into())
    }
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot create the folder {path}")]
    Folder { path: PathBuf, source: std::io::Error },
    #[error("cannot use the lock file {path}")]
    LockFile { path: PathBuf, source: std::io::Error },
    #[error("the session database {path} is used by another process; stop it, or set session.sqlite.path")]
    Locked { path: PathBuf },
    #[error("the session database {name} was written by a newer version (schema {found}, this one knows {known})")]
    Newer { name: String, found: i64, known: i64 },
    #[error("the session database {name} has a migration that is not ours (number {number}); it was changed by hand")]
    Altered { name: String, number: i64 },
    #[error("the session database {path} is damaged: {finding}; restore a backup or move the file away")]
    Damaged { path: PathBuf, finding: String },
    #[error(
        "this build has SQLite {found}, which has a known fault in its write-ahead log; at least {wanted} is needed"
    )]
    OldSqlite { found: i32, wanted: i32 },
    #[error("cannot open the session database {path}")]
    Sqlite { path: PathBuf, source: rusqlite::Error },
    #[error("cannot start a thread for the session database: {0}")]
    Thread(std::io::Error),
    #[error("the address of the Postgres database is not understood: {0}")]
    Address(tokio_postgres::Error),
    #[error("TLS towards Postgres cannot be set up: {0}")]
    Tls(rustls::Error),
    #[error("the Postgres database does not answer: {reason}")]
    Postgres { reason: Box<str> },
    #[error("the session database {name} is encrypted, and session.encryption has no key")]
    Encrypted { name: String },
    #[error(
        "the session database {name} is encrypted with another key than those in session.encryption (the one whose id is \
         {wanted}); put that one into session.encryption.previous_keys"
    )]
    WrongKey { name: String, wanted: String },
    #[error("the session database {name} is damaged: its wrapped key does not open; restore a backup")]
    DamagedKey { name: String },
    #[error("the trace file {path} cannot be used: {problem}")]
    Traces { path: PathBuf, problem: String },
    #[error("the encryption key was refused")]
    KeyRefused,
    #[error("no randomness from the operating system")]
    Random,
}
