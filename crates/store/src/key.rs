//! Idempotency keys: which response answers a key, so that a request that is sent again asks nobody again.

use crate::Worker;

/// A key to be claimed for the response that a request will make.
#[derive(Debug, Clone, Copy)]
pub struct NewKey<'a> {
    pub key: &'a str,
    /// Of everything that makes two requests the same.
    pub fingerprint: [u8; 32],
    /// The response that will answer it.
    pub response_id: &'a str,
    pub worker: Worker,
}

/// What a key means to the one who brings it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyClaim {
    /// It is ours now.
    New,
    /// The same request runs, and its response is not stored yet.
    Running,
    /// The same request was answered, or is being answered, by this response.
    Known(String),
    /// Another request has this key.
    Different,
}

/// A key made ready for the writer.
#[derive(Debug)]
pub(crate) struct PreparedKey {
    pub(crate) key: String,
    pub(crate) fingerprint: [u8; 32],
    pub(crate) response: String,
    pub(crate) worker: Worker,
    /// Of the lease.
    pub(crate) millis: i64,
    pub(crate) keep: i64,
}

/// A key that is to be used up.
#[derive(Debug)]
pub(crate) struct UsedKey {
    pub(crate) key: String,
    pub(crate) response: String,
    pub(crate) keep: i64,
}

/// A key that is somebody's, as it was found.
#[derive(Debug)]
pub(crate) struct KeyRow {
    pub(crate) fingerprint: Vec<u8>,
    pub(crate) response: String,
    /// Whether that response is there.
    pub(crate) known: bool,
}

impl PreparedKey {
    /// What a key that is somebody else's means.
    pub(crate) fn against(&self, row: KeyRow) -> KeyClaim {
        match row {
            row if row.fingerprint != self.fingerprint => KeyClaim::Different,
            row if row.known => KeyClaim::Known(row.response),
            _ => KeyClaim::Running,
        }
    }
}
