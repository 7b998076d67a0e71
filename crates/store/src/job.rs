//! Jobs: turns that outlive the request that asked for them, and the rights and duties of whoever runs one.
//!
//! A job exists as long as its turn runs. It waits, or it is claimed by one worker, and once it is dispatched, somebody may
//! have been asked for an answer that costs money: it is never run again. Leases run by the database's clock; a claim is
//! good as long as nobody else has taken the job, which is what its attempt says.

use bytes::Bytes;

use crate::{Error, Lease, StoredResponse, Tenant};

/// A process that runs jobs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Worker(pub(crate) [u8; 16]);

impl Worker {
    /// One that nobody else is.
    pub fn random() -> Result<Self, Error> {
        let mut name = [0; 16];
        getrandom::fill(&mut name).map_err(|_| Error::unavailable("no randomness from the operating system"))?;
        Ok(Self(name))
    }

    pub(crate) fn from_bytes(name: &[u8]) -> Result<Self, Error> {
        name.try_into().map(Self).map_err(|_| Error::corrupt("a worker's name has the wrong length"))
    }
}

/// Short, for logs.
impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The right to write for one turn, as long as nobody else took it: whatever is done with a claim that is not the newest
/// is refused with [`Error::Lost`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub(crate) response: String,
    pub(crate) attempt: i64,
    pub(crate) worker: Worker,
}

impl Claim {
    pub fn response_id(&self) -> &str {
        &self.response
    }

    /// Counted from 1; each claim of one job has its own.
    pub const fn attempt(&self) -> i64 {
        self.attempt
    }

    pub const fn worker(&self) -> Worker {
        self.worker
    }
}

/// Who waits for the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// Nobody: it may wait, and counts towards what a tenant may have running.
    Background,
    /// A client that is connected: it runs at once, and is as good as dispatched from the start.
    Foreground,
}

/// What is kept of a turn that runs.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub kind: JobKind,
    /// What another process needs to run it. None if that may not be written anywhere (credentials for tools): then only the
    /// worker that took it can run it, and it fails with that worker.
    pub request: Option<Bytes>,
}

/// How many background jobs a tenant may have, over all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobLimits {
    pub running: u32,
    /// Waiting for others to end: not claimed, or claimed after that and not dispatched yet.
    pub queued: u32,
}

/// What became of a job that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It is to be run now, by this worker.
    Claimed(Claim),
    /// It waits: [`crate::Store::claim`] gives it out when there is a place.
    Queued,
}

/// A job that waited and is now to be run.
#[derive(Debug, Clone)]
pub struct ClaimedJob {
    pub tenant: Tenant,
    pub claim: Claim,
    /// As it was stored. None: it is in this worker's memory.
    pub request: Option<Bytes>,
    /// Of the turn's conversation. It lasts as long as the job.
    pub lease: Option<Lease>,
    pub has_log: bool,
    /// The number with which the log goes on.
    pub next_event: u64,
    /// Unix milliseconds: when the turn was created.
    pub created_at: i64,
    /// Somebody asked to cancel it before anybody ran it.
    pub cancel: bool,
}

/// A job whose worker is gone, taken to be ended: as cancelled if that was asked for, else as failed.
#[derive(Debug, Clone)]
pub struct Abandoned {
    pub tenant: Tenant,
    pub claim: Claim,
    pub lease: Option<Lease>,
    pub has_log: bool,
    /// The number with which the log goes on.
    pub next_event: u64,
    /// Whether somebody asked to cancel it.
    pub cancel: bool,
    /// Whether it may have reached an upstream.
    pub dispatched: bool,
    /// As it was stored when it began.
    pub response: StoredResponse,
}

/// What a look for lost workers found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// To be ended by the caller.
    pub abandoned: Vec<Abandoned>,
    /// How many wait again, for anybody to claim.
    pub requeued: usize,
}

/// Who runs a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// It waits. Whoever wants its end may write it.
    Nobody,
    By(Worker),
}

/// A job that is still the worker's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    pub tenant: Tenant,
    pub response_id: String,
    /// That of the newest claim; of a job that waits for this worker and was never claimed, 1, as of one that was claimed when
    /// it was begun.
    pub attempt: i64,
    /// Somebody asked to cancel it.
    pub cancel: bool,
}

/// As jobs are in the database.
pub(crate) mod state {
    pub(crate) const WAITING: i64 = 0;
    pub(crate) const CLAIMED: i64 = 1;
    pub(crate) const DISPATCHED: i64 = 2;
}

/// A job made ready for the writer.
#[derive(Debug)]
pub(crate) struct PreparedJob {
    pub(crate) kind: JobKind,
    pub(crate) request: Option<Vec<u8>>,
    pub(crate) worker: Worker,
    pub(crate) limits: JobLimits,
    /// Of the lease.
    pub(crate) millis: i64,
}

impl PreparedJob {
    pub(crate) fn is_background(&self) -> bool {
        self.kind == JobKind::Background
    }

    /// What becomes of it, by how many of the tenant's run and wait, and how many were claimed after they had waited and are
    /// not dispatched: they wait for something else. One that comes while others wait for a claim comes after them.
    pub(crate) fn place(&self, running: i64, waiting: i64, claimed: i64) -> Result<i64, Error> {
        match self.kind {
            JobKind::Foreground => Ok(state::DISPATCHED),
            JobKind::Background if waiting == 0 && running < i64::from(self.limits.running) => Ok(state::CLAIMED),
            JobKind::Background if waiting.saturating_add(claimed) < i64::from(self.limits.queued) => {
                Ok(state::WAITING)
            }
            JobKind::Background => Err(Error::QueueFull),
        }
    }

    /// The attempt with which it begins. Also one that waits begins with the first: so what is claimed with a later one was
    /// claimed after it had waited.
    pub(crate) const FIRST: i64 = 1;

    /// Whose it is: nobody's, if it waits and anybody may run it.
    pub(crate) fn owner(&self, state: i64) -> Option<Worker> {
        (state != state::WAITING || self.request.is_none()).then_some(self.worker)
    }

    pub(crate) fn begun(&self, response: &str, state: i64) -> Begun {
        if state == state::WAITING {
            return Begun::Queued;
        }
        Begun::Claimed(Claim { response: response.to_owned(), attempt: Self::FIRST, worker: self.worker })
    }
}

/// Who has a job, and the lease that goes with it.
#[derive(Debug)]
pub(crate) struct JobRow {
    pub(crate) state: i64,
    pub(crate) attempt: i64,
    pub(crate) worker: Option<Vec<u8>>,
    pub(crate) lease: Option<Lease>,
}

impl JobRow {
    fn is_claimed_by(&self, claim: &Claim) -> bool {
        self.state != state::WAITING
            && self.attempt == claim.attempt
            && self.worker.as_deref() == Some(&claim.worker.0[..])
    }

    pub(crate) fn runs(&self) -> Result<Runs, Error> {
        match &self.worker {
            Some(worker) if self.state != state::WAITING => Worker::from_bytes(worker).map(Runs::By),
            _ => Ok(Runs::Nobody),
        }
    }
}

/// [`Error::Lost`] unless the job is there, and this claim is its newest.
pub(crate) fn fence(job: Option<&JobRow>, claim: &Claim) -> Result<(), Error> {
    if job.is_some_and(|job| job.is_claimed_by(claim)) { Ok(()) } else { Err(Error::Lost) }
}

/// A lease from the two columns that hold it.
pub(crate) fn lease(conversation: Option<String>, token: Option<Vec<u8>>) -> Result<Option<Lease>, Error> {
    let Some((conversation, token)) = conversation.zip(token) else { return Ok(None) };
    let token = token.try_into().map_err(|_| Error::corrupt("a lease has the wrong length"))?;
    Ok(Some(Lease { conversation, token }))
}

/// A job that was taken from a worker that is gone, before its response is read.
#[derive(Debug)]
pub(crate) struct TakenJob {
    pub(crate) tenant: Tenant,
    pub(crate) claim: Claim,
    pub(crate) lease: Option<Lease>,
    pub(crate) log: Option<u64>,
    pub(crate) cancel: bool,
    pub(crate) dispatched: bool,
}

impl TakenJob {
    pub(crate) fn with(self, response: StoredResponse) -> Abandoned {
        let Self { tenant, claim, lease, log, cancel, dispatched } = self;
        let (has_log, next_event) = (log.is_some(), log.unwrap_or(0));
        Abandoned { tenant, claim, lease, has_log, next_event, cancel, dispatched, response }
    }
}
