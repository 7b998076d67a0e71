//! Limits that several processes keep together. Each takes a share of what is left, spends it by itself, and comes back:
//! so nobody is ever served beyond the limit, and the database is asked once for many requests.
//!
//! What may be used per minute is counted in windows of a minute by the database's clock; the window before counts with
//! the part of it that is less than a minute ago. Places that are held (running turns) are held by a worker, for as long
//! as it says so in time.
//!
//! Only stores that are shared have this: see [`Store::is_shared`].

use std::time::Duration;

use crate::{Backend, Error, Store, Worker};

/// A share of what may be used per minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareWish {
    /// Whose limit, and which one: `key_…/rpm`.
    pub subject: String,
    /// Per minute.
    pub limit: u64,
    /// How much is wanted; less may be given. Negative: so much was taken and not used.
    pub wanted: i64,
    /// So much was used although it had not been given: it counts in any case.
    pub overdrawn: u64,
}

/// What was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub granted: u64,
    /// What is left for everybody, after this.
    pub left: u64,
    /// Until as much as was wanted may be there, in milliseconds; 0: it was given.
    pub wait: u64,
}

impl Store {
    /// Whether other processes may use the same store.
    pub const fn is_shared(&self) -> bool {
        matches!(self.backend, Backend::Postgres(_))
    }

    /// Takes shares, all in one round trip, in the order asked for.
    pub async fn take_shares(&self, wishes: Vec<ShareWish>) -> Result<Vec<Share>, Error> {
        let _ = wishes;
        Err(Error::unavailable("not built"))
    }

    /// This worker wants to hold so many places of the subject, of which there are `limit` for all workers together:
    /// gives how many it holds from now on, for `lease`. What it holds is never taken from it; fewer are always given.
    pub async fn hold_places(
        &self,
        worker: &Worker,
        subject: &str,
        wanted: u64,
        limit: u64,
        lease: Duration,
    ) -> Result<u64, Error> {
        let _ = (worker, subject, wanted, limit, lease);
        Err(Error::unavailable("not built"))
    }

    /// Extends all places that this worker holds.
    pub async fn keep_places(&self, worker: &Worker, lease: Duration) -> Result<(), Error> {
        let _ = (worker, lease);
        Err(Error::unavailable("not built"))
    }
}
