//! Limits that several processes keep together. Each takes a share of what is left, spends it by itself, and comes back:
//! so nobody is ever served beyond the limit, and the database is asked once for many requests.
//!
//! What may be used per minute is counted in windows of a minute by the database's clock; the window before counts with
//! the part of it that is less than a minute ago. Places that are held (running turns) are held by a worker, for as long
//! as it says so in time.
//!
//! Only stores that are shared have this: see [`Store::is_shared`].

use std::time::Duration;

use crate::tenanted::millis;
use crate::{Backend, Error, Store, Worker, postgres};

/// The length of a window.
const MINUTE_MS: i64 = 60_000;

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
    ///
    /// What is given back is taken off the running minute, as if it had never been given in it: it should be given back soon.
    pub async fn take_shares(&self, wishes: Vec<ShareWish>) -> Result<Vec<Share>, Error> {
        self.shared()?.take_shares(&wishes, MINUTE_MS).await
    }

    /// This worker wants to hold so many places of the subject, of which there are `limit` for all workers together:
    /// gives how many it holds from now on, for `lease`. What it holds is never taken from it; fewer are always given.
    /// Places whose lease ran out are not held any more.
    pub async fn hold_places(
        &self,
        worker: &Worker,
        subject: &str,
        wanted: u64,
        limit: u64,
        lease: Duration,
    ) -> Result<u64, Error> {
        self.shared()?.hold_places(*worker, subject, wanted, limit, millis(lease)).await
    }

    /// Extends all places that this worker holds. To be called often enough: it also forgets what nobody has used for an
    /// hour.
    pub async fn keep_places(&self, worker: &Worker, lease: Duration) -> Result<(), Error> {
        self.shared()?.keep_places(*worker, millis(lease)).await
    }

    fn shared(&self) -> Result<&postgres::Database, Error> {
        match &self.backend {
            Backend::Postgres(database) => Ok(database),
            Backend::Sqlite(_) => {
                Err(Error::unavailable("limits are shared by processes, and this store is one's alone"))
            }
        }
    }
}

/// How much may be counted, so that no arithmetic in the database overflows.
const MOST: i64 = 1 << 53;

pub(crate) fn counted(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(MOST).min(MOST)
}

impl ShareWish {
    pub(crate) fn counted_wanted(&self) -> i64 {
        self.wanted.clamp(-MOST, MOST)
    }
}
