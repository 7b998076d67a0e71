//! Taking away, with the tenant held alone; the same rules as in SQLite.

use std::collections::BTreeMap;

use deadpool_postgres::Transaction;

use super::conversations::forget_hidden;
use super::{Database, Hold, column, failure, maybe_text, text, typed};
use crate::erasure::{Candidate, Owner, Segment, erasure, owners};
use crate::rows::gone;
use crate::{Error, Tenant};

/// How long a deleted id is remembered, so that a late writer cannot bring it back.
const REMEMBERED_MS: i64 = 24 * 60 * 60 * 1000;

const TREE: &str = "
    WITH RECURSIVE up (segment, parent, start) AS (
      SELECT segment, parent, start FROM godex.segment WHERE tenant = $1 AND segment = $2
      UNION ALL
      SELECT s.segment, s.parent, s.start FROM up JOIN godex.segment s ON s.tenant = $1 AND s.segment = up.parent
      WHERE up.start > $3),
    tree (segment, parent, start, conversation) AS (
      SELECT s.segment, s.parent, s.start, s.conversation FROM up
      JOIN godex.segment s ON s.tenant = $1 AND s.segment = up.segment WHERE up.start <= $3
      UNION ALL
      SELECT s.segment, s.parent, s.start, s.conversation FROM tree
      JOIN godex.segment s ON s.tenant = $1 AND s.parent = tree.segment WHERE s.start > $3)
    SELECT segment, parent, start, conversation IS NOT NULL FROM tree";

impl Database {
    pub(crate) async fn delete_response(&self, tenant: &Tenant, id: &str) -> Result<(), Error> {
        self.transaction(tenant, Hold::Alone, async |t| delete(t, tenant.key(), id).await).await
    }

    /// Tenant by tenant, so that none is held for the whole batch.
    pub(crate) async fn sweep(&self, now: i64, batch: usize) -> Result<usize, Error> {
        let limit = i64::try_from(batch).unwrap_or(i64::MAX);
        let due = self.read(async |client| {
            let select = "SELECT tenant, id FROM godex.response WHERE expires IS NOT NULL AND expires <= $1 \
                          ORDER BY expires LIMIT $2";
            client.query_typed(select, typed![now => INT8, limit => INT8]).await.map_err(failure)
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

async fn delete(transaction: &Transaction<'_>, tenant: &[u8], id: &str) -> Result<(), Error> {
    let select = "SELECT segment, own, upto, settings FROM godex.response WHERE tenant = $1 AND id = $2 AND gone = 0";
    let key = typed![tenant => BYTEA, id.as_bytes() => BYTEA];
    let row = transaction.query_typed_opt(select, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
    let victim = Owner { segment: column(&row, 0)?, own: column(&row, 1)?, upto: column(&row, 2)? };
    let update = "UPDATE godex.response SET gone = $3, settings = NULL, head = '', \
                  expires = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $4 \
                  WHERE tenant = $1 AND id = $2";
    let row_gone = typed![
        tenant => BYTEA,
        id.as_bytes() => BYTEA,
        gone::DELETED => INT8,
        REMEMBERED_MS => INT8,
    ];
    transaction.execute_typed(update, row_gone).await.map_err(failure)?;
    erase(transaction, tenant, victim).await?;
    forget_settings(transaction, tenant, column(&row, 3)?).await?;
    trim(transaction, tenant, victim.segment).await
}

async fn erase(transaction: &Transaction<'_>, tenant: &[u8], victim: Owner) -> Result<(), Error> {
    let root = typed![tenant => BYTEA, victim.segment => INT8, victim.own => INT8];
    let rows = transaction.query_typed(TREE, root).await.map_err(failure)?;
    let mut tree = Vec::with_capacity(rows.len());
    for row in &rows {
        let (id, parent) = (column(row, 0)?, column(row, 1)?);
        tree.push(Segment { id, parent, start: column(row, 2)?, conversation: column(row, 3)? });
    }
    let segments: Vec<i64> = tree.iter().map(|segment| segment.id).collect();
    let select = "SELECT segment, own, upto, id, previous, gone FROM godex.response \
                  WHERE tenant = $1 AND segment = ANY($2) AND upto > $3 AND gone <> $4";
    let key = typed![tenant => BYTEA, segments => INT8_ARRAY, victim.own => INT8, gone::DELETED => INT8];
    let rows = transaction.query_typed(select, key).await.map_err(failure)?;
    let mut candidates = Vec::with_capacity(rows.len());
    for row in &rows {
        let owner = Owner { segment: column(row, 0)?, own: column(row, 1)?, upto: column(row, 2)? };
        candidates.push(Candidate { owner, id: text(row, 3)?, previous: maybe_text(row, 4)?, gone: column(row, 5)? });
    }
    let erasure = erasure(tree, &owners(candidates), victim);
    for (segment, places) in erasure.erase {
        let update = "UPDATE godex.item SET body = NULL \
                      WHERE tenant = $1 AND segment = $2 AND pos >= $3 AND pos < $4";
        let range = typed![tenant => BYTEA, segment => INT8, places.start => INT8, places.end => INT8];
        transaction.execute_typed(update, range).await.map_err(failure)?;
    }
    let Some((_, from)) = erasure.unshare.first().copied() else { return Ok(()) };
    let behind: Vec<i64> = erasure.unshare.into_iter().map(|(segment, _)| segment).collect();
    let items = "UPDATE godex.item SET prefix = NULL WHERE tenant = $1 AND segment = ANY($2) AND pos >= $3 \
                 AND prefix IS NOT NULL";
    let tips = "UPDATE godex.response SET prefix = NULL WHERE tenant = $1 AND segment = ANY($2) AND upto > $3 \
                AND prefix IS NOT NULL";
    for update in [items, tips] {
        let key = typed![tenant => BYTEA, behind => INT8_ARRAY, from => INT8];
        transaction.execute_typed(update, key).await.map_err(failure)?;
    }
    Ok(())
}

/// Removes the end of a segment that no living response, branch or conversation reaches; an empty one goes, and then
/// its parent is looked at.
pub(super) async fn trim(transaction: &Transaction<'_>, tenant: &[u8], segment: i64) -> Result<(), Error> {
    let mut next = Some(segment);
    while let Some(segment) = next {
        let select = "SELECT parent, conversation IS NOT NULL, greatest( \
                      (SELECT max(upto) FROM godex.response WHERE tenant = $1 AND segment = $2 AND gone = 0), \
                      (SELECT max(start) FROM godex.segment WHERE tenant = $1 AND parent = $2)) \
                      FROM godex.segment WHERE tenant = $1 AND segment = $2";
        let key = typed![tenant => BYTEA, segment => INT8];
        let Some(row) = transaction.query_typed_opt(select, key).await.map_err(failure)? else { return Ok(()) };
        let (parent, conversation, reached) = (column(&row, 0)?, column::<bool>(&row, 1)?, column(&row, 2)?);
        if conversation {
            return forget_hidden(transaction, tenant, segment).await;
        }
        cut(transaction, tenant, segment, reached).await?;
        if reached.is_some() {
            return Ok(());
        }
        let delete = "DELETE FROM godex.segment WHERE tenant = $1 AND segment = $2";
        transaction.execute_typed(delete, key).await.map_err(failure)?;
        next = parent;
    }
    Ok(())
}

/// Removes what is at or behind `reached`, or everything. Deleted ids stay until their time is over.
async fn cut(transaction: &Transaction<'_>, tenant: &[u8], segment: i64, reached: Option<i64>) -> Result<(), Error> {
    let items = "DELETE FROM godex.item WHERE tenant = $1 AND segment = $2 AND pos >= $3";
    let key = typed![tenant => BYTEA, segment => INT8, reached.unwrap_or(0) => INT8];
    transaction.execute_typed(items, key).await.map_err(failure)?;
    let turns = "DELETE FROM godex.response WHERE tenant = $1 AND segment = $2 AND upto > $3 AND gone = $4 \
                 RETURNING settings";
    let from = reached.unwrap_or(-1);
    let key = typed![tenant => BYTEA, segment => INT8, from => INT8, gone::EXPIRED => INT8];
    for row in transaction.query_typed(turns, key).await.map_err(failure)? {
        forget_settings(transaction, tenant, column(&row, 0)?).await?;
    }
    Ok(())
}

async fn forget_settings(transaction: &Transaction<'_>, tenant: &[u8], hash: Option<&[u8]>) -> Result<(), Error> {
    let Some(hash) = hash else { return Ok(()) };
    let delete = "DELETE FROM godex.settings WHERE tenant = $1 AND hash = $2 \
                  AND NOT EXISTS (SELECT 1 FROM godex.response WHERE tenant = $1 AND settings = $2)";
    let key = typed![tenant => BYTEA, hash => BYTEA];
    transaction.execute_typed(delete, key).await.map(drop).map_err(failure)
}

/// Lets go of those that are still due now that the tenant is held.
async fn expire(transaction: &Transaction<'_>, tenant: &[u8], now: i64, ids: &[Vec<u8>]) -> Result<(), Error> {
    let update = "UPDATE godex.response SET gone = $4, expires = NULL, head = '' \
                  WHERE tenant = $1 AND id = ANY($2) AND expires <= $3 AND gone = 0 RETURNING segment";
    let key = typed![tenant => BYTEA, ids => BYTEA_ARRAY, now => INT8, gone::EXPIRED => INT8];
    let rows = transaction.query_typed(update, key).await.map_err(failure)?;
    let mut segments = rows.iter().map(|row| column(row, 0)).collect::<Result<Vec<i64>, _>>()?;
    segments.sort_unstable();
    segments.dedup();
    for segment in segments {
        trim(transaction, tenant, segment).await?;
    }
    let delete = "DELETE FROM godex.response WHERE tenant = $1 AND id = ANY($2) AND expires <= $3 AND gone = $4";
    let key = typed![tenant => BYTEA, ids => BYTEA_ARRAY, now => INT8, gone::DELETED => INT8];
    transaction.execute_typed(delete, key).await.map(drop).map_err(failure)
}
