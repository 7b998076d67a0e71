//! Jobs: who runs which turn.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::put::put;
use super::{events, failure, keys, sql, turns};
use crate::job::{JobRow, PreparedJob, TakenJob, fence, lease, state};
use crate::prepared::Prepared;
use crate::rows;
use crate::{Beat, Begun, Claim, ClaimedJob, Error, JobLimits, Parent, Runs, Status, Tenant, Worker};

/// Stores a turn, the beginning of its log, and that its key has its response.
pub(crate) fn store(
    connection: &Connection,
    tenant: &str,
    turn: &Prepared,
    now: i64,
    used: Option<i64>,
) -> Result<(), Error> {
    keys::answer(connection, tenant, turn)?;
    put(connection, tenant, turn, now, used)?;
    match &turn.log {
        Some(first) => events::begin(connection, tenant, turn, first, now),
        None => Ok(()),
    }
}

pub(crate) fn begin_job(
    connection: &Connection,
    tenant: &str,
    turn: &Prepared,
    job: &PreparedJob,
    now: i64,
    used: Option<i64>,
) -> Result<Begun, Error> {
    let (mut running, mut waiting, mut claimed) = (0, 0, 0);
    if job.is_background() {
        running = count(connection, sql::JOBS_RUNNING, tenant, job.limits.running)?;
        waiting = count(connection, sql::JOBS_WAITING, tenant, job.limits.queued.max(1))?;
        claimed = count(connection, sql::JOBS_CLAIMED, tenant, job.limits.queued)?;
    }
    let state = job.place(running, waiting, claimed)?;
    store(connection, tenant, turn, now, used)?;
    let until = self::now(connection)?.saturating_add(job.millis);
    let owner = job.owner(state);
    let (conversation, token) = match &turn.parent {
        Parent::Conversation(lease) => (Some(&lease.conversation), Some(lease.token)),
        Parent::None | Parent::Response(_) => (None, None),
    };
    let mut insert = connection.prepare_cached(sql::JOB_NEW).map_err(failure)?;
    let row = params![
        tenant,
        turn.id,
        job.is_background(),
        state,
        PreparedJob::FIRST,
        owner.map(|worker| worker.0),
        owner.map(|_| until),
        turn.created,
        conversation,
        token,
        job.request,
    ];
    insert.execute(row).map_err(failure)?;
    Ok(job.begun(&turn.id, state))
}

/// How many there are, counted no further than this.
fn count(connection: &Connection, sql: &str, tenant: &str, most: u32) -> Result<i64, Error> {
    let mut select = connection.prepare_cached(sql).map_err(failure)?;
    select.query_row(params![tenant, most], |row| row.get(0)).map_err(failure)
}

/// How many wait, of all tenants.
pub(crate) fn jobs_queued(connection: &Connection, most: u32) -> Result<i64, Error> {
    let mut select = connection.prepare_cached(sql::JOBS_QUEUED).map_err(failure)?;
    select.query_row(params![most], |row| row.get(0)).map_err(failure)
}

/// By the database's clock.
pub(super) fn now(connection: &Connection) -> Result<i64, Error> {
    let mut select = connection.prepare_cached(sql::NOW).map_err(failure)?;
    select.query_row([], |row| row.get(0)).map_err(failure)
}

/// The turn's job, if it has one.
pub(super) fn job(connection: &Connection, tenant: &str, id: &str) -> Result<Option<JobRow>, Error> {
    let mut select = connection.prepare_cached(sql::JOB).map_err(failure)?;
    let found = select.query_row(params![tenant, id], |row| {
        let (state, attempt, worker) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((state, attempt, worker, row.get(3)?, row.get(4)?))
    });
    let Some((state, attempt, worker, conversation, token)) = found.optional().map_err(failure)? else {
        return Ok(None);
    };
    Ok(Some(JobRow { state, attempt, worker, lease: lease(conversation, token)? }))
}

/// Whether it runs, or waits, as a background job.
pub(super) fn is_background(connection: &Connection, tenant: &str, id: &str) -> Result<bool, Error> {
    let mut select = connection.prepare_cached(sql::JOB_BACKGROUND).map_err(failure)?;
    select.exists(params![tenant, id]).map_err(failure)
}

pub(super) fn remove(connection: &Connection, tenant: &str, id: &str) -> Result<(), Error> {
    let mut delete = connection.prepare_cached(sql::JOB_REMOVE).map_err(failure)?;
    delete.execute(params![tenant, id]).map(drop).map_err(failure)
}

pub(crate) fn dispatch(connection: &Connection, tenant: &str, claim: &Claim, now: i64) -> Result<(), Error> {
    rows::running(turns::status(connection, tenant, &claim.response, now)?)?;
    fence(job(connection, tenant, &claim.response)?.as_ref(), claim)?;
    turns::advance(connection, tenant, &claim.response, Status::InProgress, now)?;
    let mut update = connection.prepare_cached(sql::JOB_DISPATCH).map_err(failure)?;
    update.execute(params![tenant, claim.response]).map(drop).map_err(failure)
}

pub(crate) fn ask_to_cancel(connection: &Connection, tenant: &str, id: &str, now: i64) -> Result<Runs, Error> {
    rows::running(turns::status(connection, tenant, id, now)?)?;
    let mut update = connection.prepare_cached(sql::JOB_CANCEL).map_err(failure)?;
    update.execute(params![tenant, id]).map_err(failure)?;
    job(connection, tenant, id)?.map_or(Ok(Runs::Nobody), |job| job.runs())
}

pub(crate) fn claim(
    connection: &Connection,
    worker: Worker,
    limits: JobLimits,
    most: usize,
    millis: i64,
) -> Result<Vec<ClaimedJob>, Error> {
    let mut select = connection.prepare_cached(sql::JOB_TENANTS).map_err(failure)?;
    let tenants = select.query_map([], |row| row.get(0)).map_err(failure)?;
    let tenants: Vec<String> = tenants.collect::<Result<_, _>>().map_err(failure)?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut oldest: Vec<i64> = Vec::new();
    for tenant in &tenants {
        let free = i64::from(limits.running) - count(connection, sql::JOBS_RUNNING, tenant, limits.running)?;
        let mut select = connection.prepare_cached(sql::JOBS_OLDEST).map_err(failure)?;
        let numbers = select.query_map(params![tenant, worker.0, free.min(most)], |row| row.get(0)).map_err(failure)?;
        oldest.extend(numbers.collect::<Result<Vec<i64>, _>>().map_err(failure)?);
    }
    oldest.sort_unstable();
    oldest.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    let until = now(connection)?.saturating_add(millis);
    oldest.into_iter().map(|number| claim_one(connection, number, worker, until)).collect()
}

fn claim_one(connection: &Connection, number: i64, worker: Worker, until: i64) -> Result<ClaimedJob, Error> {
    let mut update = connection.prepare_cached(sql::JOB_CLAIM).map_err(failure)?;
    let read = |row: &Row<'_>| {
        let job = (row.get::<_, Option<Vec<u8>>>(5)?, row.get(6)?, row.get(7)?);
        Ok((taken(row)?, job))
    };
    let ((tenant, response, attempt, token), (request, created_at, cancel)) =
        update.query_row(params![number, worker.0, until], read).map_err(failure)?;
    let log = events::next(connection, &tenant, &response)?;
    Ok(ClaimedJob {
        tenant: Tenant::new(&tenant),
        claim: Claim { response, attempt, worker },
        // As it is in the database: whoever asked opens it.
        request: request.map(Into::into),
        lease: lease(token.0, token.1)?,
        has_log: log.is_some(),
        next_event: u64::try_from(log.unwrap_or(0)).unwrap_or(0),
        created_at,
        cancel,
    })
}

type Taken = (String, String, i64, (Option<String>, Option<Vec<u8>>));

/// The columns with which every row of a job that is taken begins.
fn taken(row: &Row<'_>) -> rusqlite::Result<Taken> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, (row.get(3)?, row.get(4)?)))
}

pub(crate) fn heartbeat(connection: &Connection, worker: Worker, millis: i64) -> Result<Vec<Beat>, Error> {
    let now = now(connection)?;
    let until = now.saturating_add(millis);
    keys::extend(connection, worker, now, until)?;
    let mut update = connection.prepare_cached(sql::JOBS_EXTEND).map_err(failure)?;
    let beat = |row: &Row<'_>| {
        let tenant = Tenant::new(&row.get::<_, String>(0)?);
        Ok(Beat { tenant, response_id: row.get(1)?, attempt: row.get(2)?, cancel: row.get(3)? })
    };
    let beats = update.query_map(params![worker.0, until], beat).map_err(failure)?;
    beats.collect::<Result<_, _>>().map_err(failure)
}

/// A job whose lease ran out: its number, its state, whether anybody could run it, whether it is to be cancelled.
type Late = (i64, i64, bool, bool);

/// What was taken, and how many wait again.
pub(crate) fn recover(
    connection: &Connection,
    worker: Worker,
    most: usize,
    millis: i64,
) -> Result<(Vec<TakenJob>, usize), Error> {
    let now = now(connection)?;
    let mut select = connection.prepare_cached(sql::JOBS_LATE).map_err(failure)?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let late = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let late: Vec<Late> = select.query_map(params![now, most], late).and_then(Iterator::collect).map_err(failure)?;
    let (mut found, mut requeued) = (Vec::new(), 0);
    for (number, state, anybody, cancel) in late {
        if state != state::DISPATCHED && anybody && !cancel {
            let mut update = connection.prepare_cached(sql::JOB_REQUEUE).map_err(failure)?;
            update.execute([number]).map_err(failure)?;
            requeued += 1;
        } else {
            let dispatched = state == state::DISPATCHED;
            let job = take(connection, number, worker, now.saturating_add(millis))?;
            found.push(TakenJob { cancel, dispatched, ..job });
        }
    }
    Ok((found, requeued))
}

fn take(connection: &Connection, number: i64, worker: Worker, until: i64) -> Result<TakenJob, Error> {
    let mut update = connection.prepare_cached(sql::JOB_TAKE).map_err(failure)?;
    let (tenant, response, attempt, token) =
        update.query_row(params![number, worker.0, until], taken).map_err(failure)?;
    let log = events::next(connection, &tenant, &response)?;
    Ok(TakenJob {
        tenant: Tenant::new(&tenant),
        claim: Claim { response, attempt, worker },
        lease: lease(token.0, token.1)?,
        log: log.map(|next| u64::try_from(next).unwrap_or(0)),
        cancel: false,
        dispatched: false,
    })
}
