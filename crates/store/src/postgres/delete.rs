//! Taking away, with the tenant held alone; the same rules as in SQLite.

use std::collections::BTreeMap;

use deadpool_postgres::Transaction;

use super::conversations::forget_hidden;
use super::{Database, Hold, column, failure, jobs, maybe_text, sql, text, typed};
use crate::erasure::{Candidate, Owner, Segment, erasure, owners};
use crate::rows::gone;
use crate::{Error, Tenant};

/// How long a deleted id is remembered, so that a late writer cannot bring it back.
const REMEMBERED_MS: i64 = 24 * 60 * 60 * 1000;

impl Database {
    pub(crate) async fn delete_response(&self, tenant: &Tenant, id: &str, now: i64) -> Result<(), Error> {
        self.transaction(tenant, Hold::Alone, async |t| delete(t, tenant.key(), id, now).await).await
    }

    /// Tenant by tenant, so that none is held for the whole batch.
    pub(crate) async fn sweep(&self, now: i64, batch: usize) -> Result<usize, Error> {
        let limit = i64::try_from(batch).unwrap_or(i64::MAX);
        let due = self.read(async |client| {
            client.query_typed(sql::DUE, typed![now => INT8, limit => INT8]).await.map_err(failure)
        });
        let due = due.await?;
        let mut tenants: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for row in &due {
            tenants.entry(text(row, 0)?).or_default().push(column(row, 1)?);
        }
        for (name, ids) in &tenants {
            let tenant = Tenant::new(name);
            self.transaction(&tenant, Hold::Alone, async |t| expire(t, tenant.key(), now, ids).await).await?;
        }
        Ok(due.len())
    }
}

async fn delete(transaction: &Transaction<'_>, tenant: &[u8], id: &str, now: i64) -> Result<(), Error> {
    let key = typed![tenant => BYTEA, id.as_bytes() => BYTEA, now => INT8];
    let row = transaction.query_typed_opt(sql::VICTIM, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
    if jobs::is_background(transaction, tenant, id).await? {
        return Err(Error::Running);
    }
    let victim = Owner { segment: column(&row, 0)?, own: column(&row, 1)?, upto: column(&row, 2)? };
    let row_gone = typed![
        tenant => BYTEA,
        id.as_bytes() => BYTEA,
        gone::DELETED => INT8,
        REMEMBERED_MS => INT8,
    ];
    transaction.execute_typed(sql::RESPONSE_DELETE, row_gone).await.map_err(failure)?;
    erase(transaction, tenant, victim).await?;
    forget_settings(transaction, tenant, column(&row, 3)?).await?;
    trim(transaction, tenant, victim.segment).await
}

async fn erase(transaction: &Transaction<'_>, tenant: &[u8], victim: Owner) -> Result<(), Error> {
    let root = typed![tenant => BYTEA, victim.segment => INT8, victim.own => INT8];
    let rows = transaction.query_typed(sql::TREE, root).await.map_err(failure)?;
    let mut tree = Vec::with_capacity(rows.len());
    for row in &rows {
        let (id, parent) = (column(row, 0)?, column(row, 1)?);
        tree.push(Segment { id, parent, start: column(row, 2)?, conversation: column(row, 3)? });
    }
    let segments: Vec<i64> = tree.iter().map(|segment| segment.id).collect();
    let key = typed![tenant => BYTEA, segments => INT8_ARRAY, victim.own => INT8, gone::DELETED => INT8];
    let rows = transaction.query_typed(sql::OWNERS, key).await.map_err(failure)?;
    let mut candidates = Vec::with_capacity(rows.len());
    for row in &rows {
        let owner = Owner { segment: column(row, 0)?, own: column(row, 1)?, upto: column(row, 2)? };
        candidates.push(Candidate { owner, id: text(row, 3)?, previous: maybe_text(row, 4)?, gone: column(row, 5)? });
    }
    let erasure = erasure(tree, &owners(candidates), victim);
    for (segment, places) in erasure.erase {
        let range = typed![tenant => BYTEA, segment => INT8, places.start => INT8, places.end => INT8];
        transaction.execute_typed(sql::ITEMS_ERASE, range).await.map_err(failure)?;
    }
    let Some((_, from)) = erasure.unshare.first().copied() else { return Ok(()) };
    let after: Vec<i64> = erasure.unshare.into_iter().map(|(segment, _)| segment).collect();
    for update in [sql::ITEMS_UNSHARE, sql::RESPONSES_UNSHARE] {
        let key = typed![tenant => BYTEA, after => INT8_ARRAY, from => INT8];
        transaction.execute_typed(update, key).await.map_err(failure)?;
    }
    Ok(())
}

/// Removes the end of a segment that no living response, branch or conversation reaches; an empty one goes, and then
/// its parent is looked at.
pub(super) async fn trim(transaction: &Transaction<'_>, tenant: &[u8], segment: i64) -> Result<(), Error> {
    let mut next = Some(segment);
    while let Some(segment) = next {
        let key = typed![tenant => BYTEA, segment => INT8];
        let Some(row) = transaction.query_typed_opt(sql::REACH, key).await.map_err(failure)? else { return Ok(()) };
        let (parent, conversation, reached) = (column(&row, 0)?, column::<bool>(&row, 1)?, column(&row, 2)?);
        if conversation {
            return forget_hidden(transaction, tenant, segment).await;
        }
        cut(transaction, tenant, segment, reached).await?;
        if reached.is_some() {
            return Ok(());
        }
        transaction.execute_typed(sql::SEGMENT_DELETE, key).await.map_err(failure)?;
        next = parent;
    }
    Ok(())
}

/// Removes what is at or after `reached`, or everything. Deleted ids stay until their time is over.
async fn cut(transaction: &Transaction<'_>, tenant: &[u8], segment: i64, reached: Option<i64>) -> Result<(), Error> {
    let key = typed![tenant => BYTEA, segment => INT8, reached.unwrap_or(0) => INT8];
    transaction.execute_typed(sql::ITEMS_CUT, key).await.map_err(failure)?;
    let from = reached.unwrap_or(-1);
    let key = typed![tenant => BYTEA, segment => INT8, from => INT8, gone::EXPIRED => INT8];
    for row in transaction.query_typed(sql::RESPONSES_CUT, key).await.map_err(failure)? {
        forget_settings(transaction, tenant, column(&row, 0)?).await?;
    }
    Ok(())
}

pub(super) async fn forget_settings(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    hash: Option<&[u8]>,
) -> Result<(), Error> {
    let Some(hash) = hash else { return Ok(()) };
    let key = typed![tenant => BYTEA, hash => BYTEA];
    transaction.execute_typed(sql::SETTINGS_FORGET, key).await.map(drop).map_err(failure)
}

/// Expires those that are still due now that the tenant is held.
async fn expire(transaction: &Transaction<'_>, tenant: &[u8], now: i64, ids: &[Vec<u8>]) -> Result<(), Error> {
    let key = typed![tenant => BYTEA, ids => BYTEA_ARRAY, now => INT8, gone::EXPIRED => INT8];
    let rows = transaction.query_typed(sql::RESPONSES_EXPIRE, key).await.map_err(failure)?;
    let mut segments = rows.iter().map(|row| column(row, 0)).collect::<Result<Vec<i64>, _>>()?;
    segments.sort_unstable();
    segments.dedup();
    for segment in segments {
        trim(transaction, tenant, segment).await?;
    }
    let key = typed![tenant => BYTEA, ids => BYTEA_ARRAY, now => INT8, gone::DELETED => INT8];
    transaction.execute_typed(sql::RESPONSES_FORGET, key).await.map(drop).map_err(failure)
}
