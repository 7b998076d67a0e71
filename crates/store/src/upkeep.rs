//! What a process does for all tenants at once: it runs jobs, looks after those of others, and removes what is over.
//!
//! Nothing here gives out what is a tenant's without saying whose it is.

use std::time::Duration;

use tokio::sync::mpsc;
use tracing::error;

use crate::encryption::Place;
use crate::tenanted::millis;
use crate::{Backend, Beat, ClaimedJob, Error, JobLimits, Notice, Recovered, Store, Worker, sqlite};

/// Runs the call on whichever backend it is.
macro_rules! upkeep {
    ($self:ident, $how:ident, $name:ident($($argument:expr),*)) => {
        match &$self.backend {
            Backend::Sqlite(database) => {
                database.$how(move |connection| sqlite::$name(connection, $($argument),*)).await
            }
            Backend::Postgres(database) => database.$name($($argument),*).await,
        }
    };
}
pub(crate) use upkeep;

impl Store {
    /// Removes up to `batch` responses of any tenant that expired by `now_ms` (Unix milliseconds), in one short
    /// transaction; says how many. Call it until it says less than `batch`. Nobody finds them any more since they
    /// expired; a caller that sweeps a while later leaves what turns under way continue.
    pub async fn sweep(&self, now_ms: i64, batch: usize) -> Result<usize, Error> {
        upkeep!(self, erase, sweep(now_ms, batch))
    }

    /// Drops up to `batch` event logs of turns that ended before that moment (Unix milliseconds); says how many. Their
    /// responses remember the number of the last event.
    pub async fn sweep_logs(&self, ended_before_ms: i64, batch: usize) -> Result<usize, Error> {
        upkeep!(self, erase, sweep_logs(ended_before_ms, batch))
    }

    /// Forgets up to `batch` idempotency keys that were kept long enough; says how many.
    pub async fn sweep_keys(&self, batch: usize) -> Result<usize, Error> {
        upkeep!(self, write, sweep_keys(batch))
    }

    /// Claims up to `most` jobs that wait, the oldest first, of any tenant that has a place free: those that anybody may run,
    /// and those that only this worker can. To be called when a job ended, and now and then.
    pub async fn claim(
        &self,
        worker: &Worker,
        limits: JobLimits,
        most: usize,
        lease: Duration,
    ) -> Result<Vec<ClaimedJob>, Error> {
        let (worker, millis) = (*worker, millis(lease));
        let claimed = upkeep!(self, write, claim(worker, limits, most, millis))?;
        let mut opened = Vec::with_capacity(claimed.len());
        for job in claimed {
            match self.open_job(job).await {
                Err(Error::Corrupt(what)) => error!("a background job cannot be read, and is left alone: {what}"),
                job => opened.push(job?),
            }
        }
        Ok(opened)
    }

    /// How many jobs wait, of all tenants together; no more than `most` are counted.
    pub async fn jobs_queued(&self, most: u32) -> Result<u64, Error> {
        let queued: i64 = upkeep!(self, read, jobs_queued(most))?;
        Ok(u64::try_from(queued).unwrap_or_default())
    }

    /// Extends everything that is this worker's, jobs and keys, and lists its jobs. One that it believes to run and that is
    /// not in the list is lost: somebody else has it, or it has ended.
    pub async fn heartbeat(&self, worker: &Worker, lease: Duration) -> Result<Vec<Beat>, Error> {
        let (worker, millis) = (*worker, millis(lease));
        upkeep!(self, write, heartbeat(worker, millis))
    }

    /// Looks for up to `most` jobs whose worker is gone. One that reached no upstream and can be run by anybody waits again;
    /// the others are this worker's now, to be ended, each by exactly one of all who look.
    ///
    /// A process that opened a SQLite file has it alone, so whatever was another process's is found at once.
    pub async fn recover(&self, worker: &Worker, most: usize, lease: Duration) -> Result<Recovered, Error> {
        let (worker, millis) = (*worker, millis(lease));
        let (taken, requeued) = upkeep!(self, write, recover(worker, most, millis))?;
        let mut recovered = Recovered { abandoned: Vec::with_capacity(taken.len()), requeued };
        for job in taken {
            match self.for_tenant(job.tenant.clone()).response(job.claim.response_id()).await {
                Ok(response) => recovered.abandoned.push(job.with(response)),
                // It has expired meanwhile, and its job goes when it is swept.
                Err(Error::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(recovered)
    }

    /// Up to `most` notices whose time has come, each for one caller alone for that long: until then it should be
    /// [done](Self::notice_done) or [put off](Self::notice_retry).
    pub async fn due_notices(&self, most: usize, lease: Duration) -> Result<Vec<Notice>, Error> {
        let millis = millis(lease);
        let due = upkeep!(self, write, due_notices(most, millis))?;
        let mut opened = Vec::with_capacity(due.len());
        for notice in due {
            match self.open_notice(notice).await {
                Err(Error::Corrupt(what)) => error!("a notice cannot be read, and is left alone: {what}"),
                notice => opened.push(notice?),
            }
        }
        Ok(opened)
    }

    /// With its request as it was given, and not as it is in the database.
    async fn open_job(&self, job: ClaimedJob) -> Result<ClaimedJob, Error> {
        let Some(packed) = job.request else { return Ok(job) };
        let cipher = self.vault.reading(&self.backend, &job.tenant).await?;
        let request = cipher.unpack(Place::job(job.claim.response_id()), packed.into())?;
        Ok(ClaimedJob { request: Some(request), ..job })
    }

    /// With its body as it was given, and not as it is in the database.
    async fn open_notice(&self, notice: Notice) -> Result<Notice, Error> {
        let cipher = self.vault.reading(&self.backend, &notice.tenant).await?;
        let body = cipher.unpack(Place::notice(&notice.id), notice.body.into())?;
        Ok(Notice { body, ..notice })
    }

    /// Forgets a notice: it was sent, or given up.
    pub async fn notice_done(&self, notice: &Notice) -> Result<(), Error> {
        let (tenant, id) = (notice.tenant.clone(), notice.id.clone());
        upkeep!(self, write, notice_done(&tenant, &id))
    }

    /// Puts a notice off.
    pub async fn notice_retry(&self, notice: &Notice, after: Duration) -> Result<(), Error> {
        let (tenant, id, millis) = (notice.tenant.clone(), notice.id.clone(), millis(after));
        upkeep!(self, write, notice_retry(&tenant, &id, millis))
    }

    /// Tells other processes that something happened to a response, soon and perhaps: it is a hint, several are sent
    /// together, and any of them may get lost. It never waits. Where there are no other processes it does nothing.
    pub fn tell(&self, response_id: &str) {
        if let Backend::Postgres(database) = &self.backend {
            database.tell(response_id);
        }
    }

    /// The ids that other processes tell, to be asked for once and within a runtime; None where there are no other
    /// processes. A receiver that does not keep up loses hints.
    pub fn hints(&self) -> Option<mpsc::Receiver<String>> {
        match &self.backend {
            Backend::Sqlite(_) => None,
            Backend::Postgres(database) => database.hints(),
        }
    }
}
