//! Turns that are jobs, and the keys that find them again.
//!
//! Whoever runs a job holds a [`Claim`] and gives it with everything that is written for the turn. A claim is never trusted
//! because of the time: only because nobody else took the job.

use std::time::Duration;

use super::{Tenanted, millis};
use crate::encryption::Place;
use crate::job::PreparedJob;
use crate::key::{PreparedKey, UsedKey};
use crate::prepared::Prepared;
use crate::{
    Backend, Begun, Claim, Error, JobKind, JobLimits, KeyClaim, NewJob, NewKey, NewTurn, Runs, Status, Worker, sqlite,
};

impl Tenanted {
    /// Stores a turn that begins, and its job, in one write. A background turn begins as queued: it is claimed at once while
    /// fewer than `limits.running` of this tenant's run, in all processes together, and none wait; else it waits. One in the
    /// foreground begins as in progress, is always claimed, and counts as dispatched.
    ///
    /// The claim and, if only this worker can run it, the place in the queue last for `lease`; [`crate::Store::heartbeat`]
    /// extends them. The lease of the turn's conversation lasts as long as the job.
    ///
    /// [`Error::QueueFull`] when as many wait as may. Else it fails as [`Self::begin`] does.
    pub async fn begin_job(
        &self,
        turn: NewTurn,
        job: NewJob,
        worker: &Worker,
        limits: JobLimits,
        lease: Duration,
    ) -> Result<Begun, Error> {
        let expected = match job.kind {
            JobKind::Background => Status::Queued,
            JobKind::Foreground => Status::InProgress,
        };
        if turn.status != expected || !turn.output.is_empty() {
            return Err(Error::WrongStatus { status: turn.status });
        }
        let cipher = self.writing().await?;
        let (turn, now) = (Prepared::new(&self.hasher, &cipher, turn)?, self.clock.now());
        let request = job.request.map(|request| cipher.pack(Place::job(&turn.id), &request)).transpose()?;
        let job = PreparedJob { kind: job.kind, request, worker: *worker, limits, millis: millis(lease) };
        call!(self, write, begin_job(&turn, &job, now), used)
    }

    /// Says, durably, that an upstream is about to be asked: from now on the job is never run again, and its response is in
    /// progress. To be called before that, and a second time it does nothing.
    ///
    /// [`Error::Lost`] if somebody else has the job, [`Error::Ended`] if the turn is over, [`Error::NotFound`] if it is gone.
    pub async fn dispatch(&self, claim: &Claim) -> Result<(), Error> {
        let (claim, now) = (claim.clone(), self.clock.now());
        call!(self, write, dispatch(&claim, now))
    }

    /// Asks whoever runs the turn to cancel it, and says who that is. They learn it from [`crate::Store::heartbeat`]; one
    /// that nobody runs is for the caller to end, by [`Self::finish`] without a claim. So is one whose worker does not react.
    ///
    /// [`Error::Ended`] if the turn is over.
    pub async fn ask_to_cancel(&self, id: &str) -> Result<Runs, Error> {
        let (id, now) = (id.to_owned(), self.clock.now());
        call!(self, write, ask_to_cancel(&id, now))
    }

    /// Claims a key for the response that a request will make. Of many who claim it at once, exactly one gets
    /// [`KeyClaim::New`].
    ///
    /// Whoever stores the response names the key with it ([`NewTurn::key`]), and is refused if the key was taken over meanwhile.
    ///
    /// A key is kept for `keep` after it was claimed. It is free again when it was released, when its worker is gone (for
    /// `lease`, which [`crate::Store::heartbeat`] extends) without having stored the response, and when that response is
    /// deleted or has expired: what it said is not there to be said again, and nobody else may be given its place.
    pub async fn claim_key(&self, key: NewKey<'_>, lease: Duration, keep: Duration) -> Result<KeyClaim, Error> {
        let NewKey { key, fingerprint, response_id, worker } = key;
        let (key, response) = (key.to_owned(), response_id.to_owned());
        let key = PreparedKey { key, fingerprint, response, worker, millis: millis(lease), keep: millis(keep) };
        let now = self.clock.now();
        call!(self, write, claim_key(&key, now))
    }

    /// Gives a key back that was claimed for this response: the request failed before anything was stored. Of a key that is
    /// somebody else's by now, nothing changes; nor of one that has its response, which a failed [`Self::put`] may have stored
    /// after all.
    pub async fn release_key(&self, key: &str, response_id: &str) -> Result<(), Error> {
        let (key, response) = (key.to_owned(), response_id.to_owned());
        call!(self, write, release_key(&key, &response))
    }

    /// Uses a key up, in the name of this response: nobody else gets it for `keep`, whatever becomes of the response and of
    /// this process. None if it is ours now, as it also is when this response uses it again; else the response that used it.
    ///
    /// A key that is claimed is another than one that is used: they must not have the same name.
    pub async fn use_key(&self, key: &str, response_id: &str, keep: Duration) -> Result<Option<String>, Error> {
        let key = UsedKey { key: key.to_owned(), response: response_id.to_owned(), keep: millis(keep) };
        call!(self, write, use_key(&key))
    }

    /// The response that has used a key up, if one has.
    pub async fn key_user(&self, key: &str) -> Result<Option<String>, Error> {
        let key = key.to_owned();
        call!(self, read, key_user(&key))
    }
}
