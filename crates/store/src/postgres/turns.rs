//! A turn that was begun: advanced, and finished once; the same steps as in SQLite. Its row is the lock of whatever happens
//! to it.

use deadpool_postgres::{Object, Transaction};

use super::put::{append, end, keep, leased, segment};
use super::retry::Retry;
use super::{Database, Hold, column, delete, events, failure, jobs, maybe_text, notices, sql, typed};
use crate::prefix::Prefix;
use crate::prepared::{Base, PreparedEnd};
use crate::rows::{self, LiveTurn, prefix};
use crate::{Error, Lease, Status, Tenant};

impl Database {
    pub(crate) async fn advance(&self, tenant: &Tenant, id: &str, status: Status, now: i64) -> Result<(), Error> {
        self.read(async |client| {
            let code = i64::from(status.code());
            let row = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA, now => INT8, code => INT8];
            if client.execute_typed(sql::TURN_ADVANCE, row).await.map_err(failure)? == 1 {
                return Ok(());
            }
            // Refused: because it is not there, or because it has ended.
            rows::running(self::status(client, tenant, id, now).await?)?;
            Err(Error::unavailable("a turn changed while it was advanced"))
        })
        .await
    }

    /// A lost connection may have lost only the answer: if the turn has ended when this is tried again, it depends on
    /// whether it is our end.
    pub(crate) async fn finish(&self, tenant: &Tenant, end: &PreparedEnd, now: i64) -> Result<(), Error> {
        let mut retry = Retry::new(self.options.retry);
        loop {
            let outcome =
                self.transaction(tenant, Hold::Shared, async |t| finish(t, tenant.key(), end, now).await).await;
            let outcome = match outcome {
                Err(error @ Error::Ended { .. }) if retry.is_unsure() => {
                    self.is_ended_so(tenant, end, now).await.and_then(|ours| if ours { Ok(()) } else { Err(error) })
                }
                outcome => outcome,
            };
            if !retry.again(&outcome).await {
                return outcome;
            }
        }
    }

    async fn is_ended_so(&self, tenant: &Tenant, end: &PreparedEnd, now: i64) -> Result<bool, Error> {
        self.read(async |client| {
            let key = typed![tenant.key() => BYTEA, end.id.as_bytes() => BYTEA, now => INT8];
            let Some(row) = client.query_typed_opt(sql::RESPONSE, key).await.map_err(failure)? else {
                return Ok(false);
            };
            Ok(column::<i64>(&row, 2)? == i64::from(end.status.code()) && column::<&[u8]>(&row, 6)? == end.head)
        })
        .await
    }
}

/// The code of the status of a response that is there.
pub(super) async fn status(client: &Object, tenant: &Tenant, id: &str, now: i64) -> Result<i64, Error> {
    let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA, now => INT8];
    let row = client.query_typed_opt(sql::RESPONSE_STATUS, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
    column(&row, 0)
}

async fn finish(transaction: &Transaction<'_>, tenant: &[u8], end: &PreparedEnd, now: i64) -> Result<(), Error> {
    let turn = live(transaction, tenant, &end.id, now).await?;
    let held = jobs::remove(transaction, tenant, end).await?;
    let placed = place(transaction, tenant, &turn, end, end.lease.as_ref().or(held.as_ref())).await?;
    keep(transaction, tenant, end.settings.as_ref()).await?;
    let hash = end.settings.as_ref().map(|(hash, _)| &hash[..]);
    let row = typed![
        tenant => BYTEA,
        end.id.as_bytes() => BYTEA,
        placed.segment => INT8,
        placed.own => INT8,
        placed.middle => INT8,
        placed.upto => INT8,
        placed.tip.as_ref().map(|tip| &tip[..]) => BYTEA,
        i64::from(end.status.code()) => INT8,
        hash => BYTEA,
        end.head => BYTEA,
    ];
    transaction.execute_typed(sql::TURN_FINISH, row).await.map_err(failure)?;
    if turn.settings.as_deref() != hash {
        delete::forget_settings(transaction, tenant, turn.settings.as_deref()).await?;
    }
    events::end(transaction, tenant, end, now).await?;
    notices::add(transaction, tenant, &end.notices).await
}

/// The turn, held for this transaction, unless it is gone or has ended.
async fn live(transaction: &Transaction<'_>, tenant: &[u8], id: &str, now: i64) -> Result<LiveTurn, Error> {
    let key = typed![tenant => BYTEA, id.as_bytes() => BYTEA, now => INT8];
    let row = transaction.query_typed_opt(sql::TURN_LIVE, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
    rows::running(column(&row, 6)?)?;
    Ok(LiveTurn {
        segment: column(&row, 0)?,
        own: column(&row, 1)?,
        middle: column(&row, 2)?,
        prefix: prefix(column(&row, 3)?),
        conversation: maybe_text(&row, 4)?,
        settings: column(&row, 5)?,
    })
}

/// Where a finished turn's items are.
struct Placed {
    segment: i64,
    own: i64,
    middle: i64,
    upto: i64,
    tip: Option<Prefix>,
}

/// Puts the output after the input: in the turn's own branch, or both into the conversation.
async fn place(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    turn: &LiveTurn,
    ending: &PreparedEnd,
    lease: Option<&Lease>,
) -> Result<Placed, Error> {
    let prefixes = ending.prefixes(turn.prefix);
    let tip = prefixes.last().copied().unwrap_or(turn.prefix);
    if turn.conversation.is_some() && ending.status.is_kept_by_conversation() {
        let lease = lease.ok_or(Error::Locked)?;
        let (segment, own) = join_conversation(transaction, tenant, turn, lease).await?;
        let middle = own + (turn.middle - turn.own);
        let upto = append(transaction, tenant, segment, middle, &ending.items, &[]).await?;
        end(transaction, tenant, &lease.conversation, upto).await?;
        return Ok(Placed { segment, own, middle, upto, tip: None });
    }
    if let Some(lease) = lease {
        let key = typed![tenant => BYTEA, lease.conversation.as_bytes() => BYTEA, &lease.token[..] => BYTEA];
        transaction.execute_typed(sql::LEASE_END, key).await.map_err(failure)?;
    }
    let base = Base { segment: Some(turn.segment), at: turn.middle, prefix: turn.prefix, depth: 0 };
    let segment = segment(transaction, tenant, base, false, ending.items.is_empty()).await?;
    let upto = append(transaction, tenant, segment, turn.middle, &ending.items, &prefixes).await?;
    Ok(Placed { segment, own: turn.own, middle: turn.middle, upto, tip })
}

/// Moves the input from the turn's branch to the end of its conversation, and says where that is. Nothing else was ever
/// built on the branch, so it may go although the tenant is not held alone.
async fn join_conversation(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    turn: &LiveTurn,
    lease: &Lease,
) -> Result<(i64, i64), Error> {
    if turn.conversation.as_deref() != Some(lease.conversation()) {
        return Err(Error::Locked);
    }
    let base = match leased(transaction, tenant, lease).await {
        Err(Error::NotFound) => return Err(Error::Locked),
        base => base?,
    };
    let segment = base.segment.ok_or_else(|| Error::corrupt("a conversation without its segment"))?;
    let row = typed![
        tenant => BYTEA,
        turn.segment => INT8,
        segment => INT8,
        base.at - turn.own => INT8,
        turn.own => INT8,
    ];
    transaction.execute_typed(sql::ITEMS_MOVE, row).await.map_err(failure)?;
    let branch = typed![tenant => BYTEA, turn.segment => INT8];
    transaction.execute_typed(sql::SEGMENT_DELETE, branch).await.map_err(failure)?;
    Ok((segment, base.at))
}
