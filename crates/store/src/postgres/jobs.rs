//! Jobs: who runs which turn, over all instances.
//!
//! Whoever raises the number of a tenant's jobs that run or wait holds the tenant's job lock, so the caps are exact. The rest
//! needs no lock: a turn's row decides about its end, and whoever looks for work takes only what nobody else is taking.

use std::collections::BTreeMap;

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;

use super::put::store;
use super::retry::Retry;
use super::{Database, Hold, column, connect, failure, maybe_text, sql, text, turns, typed};
use crate::job::{JobRow, PreparedJob, TakenJob, fence, lease, state};
use crate::prepared::{Prepared, PreparedEnd};
use crate::rows;
use crate::{Beat, Begun, Claim, ClaimedJob, Error, JobLimits, Lease, Parent, Runs, Tenant, Worker};

impl Database {
    /// Tried again as [`Database::store`] is.
    pub(crate) async fn begin_job(
        &self,
        tenant: &Tenant,
        turn: &Prepared,
        job: &PreparedJob,
        now: i64,
    ) -> Result<Begun, Error> {
        let mut retry = Retry::new(self.options.retry);
        loop {
            let outcome = self
                .transaction(tenant, Hold::Shared, async |transaction| begin(transaction, tenant, turn, job, now).await)
                .await;
            let outcome = match outcome {
                Err(
                    error @ (Error::Conflict | Error::Locked | Error::NotFound | Error::QueueFull | Error::KeyLost),
                ) if retry.is_unsure() => self.begun(tenant, turn, job).await.and_then(|begun| begun.ok_or(error)),
                outcome => outcome,
            };
            if !retry.again(&outcome).await {
                return outcome;
            }
        }
    }

    /// What became of the job in an earlier try of which nobody knows, if it was stored. It is whoever's claimed it later,
    /// also in this process, and one that has ended has ended: to whoever stored it, both were queued.
    async fn begun(&self, tenant: &Tenant, turn: &Prepared, job: &PreparedJob) -> Result<Option<Begun>, Error> {
        if !self.is_stored(tenant, turn).await? {
            return Ok(None);
        }
        match self.read(async |client| self::job(client, tenant, &turn.id).await).await? {
            Some(JobRow { state, attempt: PreparedJob::FIRST, worker, .. })
                if state != state::WAITING && worker.as_deref() == Some(&job.worker.0[..]) =>
            {
                Ok(Some(job.begun(&turn.id, state)))
            }
            _ if job.is_background() => Ok(Some(Begun::Queued)),
            _ => Err(Error::Lost),
        }
    }

    pub(crate) async fn dispatch(&self, tenant: &Tenant, claim: &Claim, now: i64) -> Result<(), Error> {
        self.read(async |client| {
            let row = typed![
                tenant.key() => BYTEA,
                claim.response.as_bytes() => BYTEA,
                claim.attempt => INT8,
                &claim.worker.0[..] => BYTEA,
                now => INT8,
            ];
            if client.execute_typed(sql::JOB_DISPATCH, row).await.map_err(failure)? == 1 {
                return Ok(());
            }
            rows::running(turns::status(client, tenant, &claim.response, now).await?)?;
            fence(job(client, tenant, &claim.response).await?.as_ref(), claim)?;
            Err(Error::unavailable("a turn changed while it was dispatched"))
        })
        .await
    }

    pub(crate) async fn ask_to_cancel(&self, tenant: &Tenant, id: &str, now: i64) -> Result<Runs, Error> {
        self.read(async |client| {
            rows::running(turns::status(client, tenant, id, now).await?)?;
            let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA];
            match client.query_typed_opt(sql::JOB_CANCEL, key).await.map_err(failure)? {
                Some(row) => job_row(&row)?.runs(),
                // One without a job, or one that has ended meanwhile.
                None => rows::running(turns::status(client, tenant, id, now).await?).map(|_| Runs::Nobody),
            }
        })
        .await
    }

    /// Tenant by tenant, so that no two who claim wait for each other.
    pub(crate) async fn claim(
        &self,
        worker: Worker,
        limits: JobLimits,
        most: usize,
        millis: i64,
    ) -> Result<Vec<ClaimedJob>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let running = i64::from(limits.running);
        let tenants = self.read(async |client| {
            let key = typed![&worker.0[..] => BYTEA, running => INT8, most => INT8];
            client.query_typed(sql::JOBS_CLAIMABLE, key).await.map_err(failure)
        });
        let mut tenants_wanted: BTreeMap<String, i64> = BTreeMap::new();
        for row in tenants.await? {
            *tenants_wanted.entry(text(&row, 0)?).or_default() += 1;
        }
        let mut found = Vec::new();
        for (name, wanted) in tenants_wanted {
            let tenant = Tenant::new(&name);
            let claimed = self.transaction(&tenant, Hold::Shared, async |transaction| {
                hold(transaction, &tenant).await?;
                let row = typed![
                    tenant.key() => BYTEA,
                    &worker.0[..] => BYTEA,
                    running => INT8,
                    wanted => INT8,
                    span(millis) => FLOAT8,
                ];
                transaction.query_typed(sql::JOBS_CLAIM, row).await.map_err(failure)
            });
            for row in claimed.await? {
                found.push((column::<i64>(&row, 7)?, claimed_job(&row, worker)?));
            }
        }
        found.sort_by_key(|(number, _)| *number);
        Ok(found.into_iter().map(|(_, job)| job).collect())
    }

    pub(crate) async fn heartbeat(&self, worker: Worker, millis: i64) -> Result<Vec<Beat>, Error> {
        self.read(async |client| {
            let key = typed![&worker.0[..] => BYTEA, span(millis) => FLOAT8];
            let rows = client.query_typed(sql::HEARTBEAT, key).await.map_err(failure)?;
            let beat = |row: &Row| {
                let (tenant, response_id) = (Tenant::new(&text(row, 0)?), text(row, 1)?);
                Ok(Beat { tenant, response_id, attempt: column(row, 2)?, cancel: column(row, 3)? })
            };
            rows.iter().map(beat).collect()
        })
        .await
    }

    /// How many wait, of all tenants.
    pub(crate) async fn jobs_queued(&self, most: u32) -> Result<i64, Error> {
        self.read(async |client| {
            let key = typed![i64::from(most) => INT8];
            let row = client.query_typed_one(sql::JOBS_QUEUED, key).await.map_err(failure)?;
            column(&row, 0)
        })
        .await
    }

    /// What was taken, and how many wait again.
    pub(crate) async fn recover(
        &self,
        worker: Worker,
        most: usize,
        millis: i64,
    ) -> Result<(Vec<TakenJob>, usize), Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.read(async |client| {
            let key = typed![&worker.0[..] => BYTEA, most => INT8, span(millis) => FLOAT8];
            let rows = client.query_typed(sql::JOBS_RECOVER, key).await.map_err(failure)?;
            let (mut found, mut requeued) = (Vec::new(), 0);
            for row in &rows {
                if column(row, 8)? {
                    requeued += 1;
                } else {
                    found.push(taken(row, worker)?);
                }
            }
            Ok((found, requeued))
        })
        .await
    }
}

async fn begin(
    transaction: &Transaction<'_>,
    tenant: &Tenant,
    turn: &Prepared,
    job: &PreparedJob,
    now: i64,
) -> Result<Begun, Error> {
    let (mut running, mut waiting, mut claimed) = (0, 0, 0);
    if job.is_background() {
        hold(transaction, tenant).await?;
        let (most, queue) = (i64::from(job.limits.running), i64::from(job.limits.queued.max(1)));
        let key = typed![tenant.key() => BYTEA, most => INT8, queue => INT8];
        let row = transaction.query_typed_one(sql::JOBS_COUNT, key).await.map_err(failure)?;
        (running, waiting, claimed) = (column(&row, 0)?, column(&row, 1)?, column(&row, 2)?);
    }
    let state = job.place(running, waiting, claimed)?;
    store(transaction, tenant.key(), turn, now).await?;
    let lease = match &turn.parent {
        Parent::Conversation(lease) => Some(lease),
        Parent::None | Parent::Response(_) => None,
    };
    let owner = job.owner(state);
    let row = typed![
        tenant.key() => BYTEA,
        turn.id.as_bytes() => BYTEA,
        job.is_background() => BOOL,
        state => INT8,
        PreparedJob::FIRST => INT8,
        owner.as_ref().map(|worker| &worker.0[..]) => BYTEA,
        span(job.millis) => FLOAT8,
        turn.created => INT8,
        lease.map(|lease| lease.conversation.as_bytes()) => BYTEA,
        lease.map(|lease| &lease.token[..]) => BYTEA,
        job.request => BYTEA,
    ];
    transaction.execute_typed(sql::JOB_NEW, row).await.map_err(failure)?;
    Ok(job.begun(&turn.id, state))
}

/// Until the end of the transaction nobody else raises the number of the tenant's jobs.
async fn hold(transaction: &Transaction<'_>, tenant: &Tenant) -> Result<(), Error> {
    let lock = typed![connect::jobs_lock(tenant) => INT8];
    transaction.query_typed(sql::JOBS_HOLD, lock).await.map(drop).map_err(failure)
}

/// The turn's job, if it has one; without its lease.
pub(super) async fn job(client: &Object, tenant: &Tenant, id: &str) -> Result<Option<JobRow>, Error> {
    let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA];
    client.query_typed_opt(sql::JOB, key).await.map_err(failure)?.as_ref().map(job_row).transpose()
}

fn job_row(row: &Row) -> Result<JobRow, Error> {
    Ok(JobRow { state: column(row, 0)?, attempt: column(row, 1)?, worker: column(row, 2)?, lease: None })
}

/// Whether it runs, or waits, as a background job.
pub(super) async fn is_background(transaction: &Transaction<'_>, tenant: &[u8], id: &str) -> Result<bool, Error> {
    let key = typed![tenant => BYTEA, id.as_bytes() => BYTEA];
    Ok(transaction.query_typed_opt(sql::JOB_BACKGROUND, key).await.map_err(failure)?.is_some())
}

/// Ends the job of a turn that ends, if that is its claim's to do, and gives its lease. Its turn is held.
pub(super) async fn remove(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    end: &PreparedEnd,
) -> Result<Option<Lease>, Error> {
    let claim = end.claim.as_ref();
    let key = typed![
        tenant => BYTEA,
        end.id.as_bytes() => BYTEA,
        claim.map(|claim| claim.attempt) => INT8,
        claim.map(|claim| &claim.worker.0[..]) => BYTEA,
    ];
    match transaction.query_typed_opt(sql::JOB_REMOVE, key).await.map_err(failure)? {
        Some(row) => lease(maybe_text(&row, 0)?, column(&row, 1)?),
        None if claim.is_some() => Err(Error::Lost),
        None => Ok(None),
    }
}

/// The columns with which every row of a job that is taken begins.
fn taken(row: &Row, worker: Worker) -> Result<TakenJob, Error> {
    let (tenant, response) = (Tenant::new(&text(row, 0)?), text(row, 1)?);
    let log: Option<i64> = column(row, 6)?;
    Ok(TakenJob {
        tenant,
        claim: Claim { response, attempt: column(row, 2)?, worker },
        lease: lease(maybe_text(row, 3)?, column(row, 4)?)?,
        cancel: column(row, 5)?,
        log: log.map(|next| u64::try_from(next).unwrap_or(0)),
        dispatched: column(row, 7)?,
    })
}

fn claimed_job(row: &Row, worker: Worker) -> Result<ClaimedJob, Error> {
    let (tenant, response) = (Tenant::new(&text(row, 0)?), text(row, 1)?);
    let (log, request): (Option<i64>, Option<Vec<u8>>) = (column(row, 6)?, column(row, 8)?);
    Ok(ClaimedJob {
        tenant,
        claim: Claim { response, attempt: column(row, 2)?, worker },
        // As it is in the database: whoever asked opens it.
        request: request.map(Into::into),
        lease: lease(maybe_text(row, 3)?, column(row, 4)?)?,
        has_log: log.is_some(),
        next_event: u64::try_from(log.unwrap_or(0)).unwrap_or(0),
        created_at: column(row, 9)?,
        cancel: column(row, 5)?,
    })
}

/// Milliseconds as an interval is made of them.
#[expect(clippy::cast_precision_loss, reason = "a lease of centuries may be a millisecond off")]
pub(super) fn span(millis: i64) -> f64 {
    millis.min(i64::from(u32::MAX)) as f64
}
