//! Jobs: not there yet.

use tokio::sync::mpsc;

use super::Database;
use crate::job::{PreparedJob, TakenJob};
use crate::key::PreparedKey;
use crate::prepared::Prepared;
use crate::{Beat, Begun, Claim, ClaimedJob, Error, JobLimits, KeyClaim, Notice, Runs, Tenant, Worker};

macro_rules! later {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl Database {
            $(pub(crate) async fn $name(&self, $($argument: $type),*) -> Result<$result, Error> {
                $(let _ = $argument;)*
                Err(Error::unavailable("not on Postgres yet"))
            })*
        }
    };
}

later! {
    begin_job(tenant: &Tenant, turn: &Prepared, job: &PreparedJob, now: i64) -> Begun;
    dispatch(tenant: &Tenant, claim: &Claim, now: i64) -> ();
    ask_to_cancel(tenant: &Tenant, id: &str, now: i64) -> Runs;
    claim_key(tenant: &Tenant, key: &PreparedKey, now: i64) -> KeyClaim;
    release_key(tenant: &Tenant, key: &str, response: &str) -> ();
    sweep_logs(before: i64, batch: usize) -> usize;
    sweep_keys(batch: usize) -> usize;
    claim(worker: Worker, limits: JobLimits, most: usize, millis: i64) -> Vec<ClaimedJob>;
    heartbeat(worker: Worker, millis: i64) -> Vec<Beat>;
    recover(worker: Worker, most: usize, millis: i64) -> (Vec<TakenJob>, usize);
    due_notices(most: usize, millis: i64) -> Vec<Notice>;
    notice_done(tenant: &Tenant, id: &str) -> ();
    notice_retry(tenant: &Tenant, id: &str, millis: i64) -> ();
}

impl Database {
    pub(crate) async fn store(&self, tenant: &Tenant, turn: &Prepared, now: i64) -> Result<(), Error> {
        self.put(tenant, turn, now).await
    }
    pub(crate) fn tell(&self, _: &str) {}
    pub(crate) fn hints(&self) -> Option<mpsc::Receiver<String>> {
        None
    }
}
