//! A turn that was begun: advanced, and finished once.

use rusqlite::{Connection, OptionalExtension, params};

use super::put::{append, end, keep_settings, leased, segment};
use super::{delete, events, failure, jobs, notices, sql};
use crate::job::fence;
use crate::prepared::{Base, PreparedEnd};
use crate::rows::{self, LiveTurn, prefix};
use crate::{Error, Lease, Status};

pub(crate) fn advance(connection: &Connection, tenant: &str, id: &str, status: Status, now: i64) -> Result<(), Error> {
    rows::running(self::status(connection, tenant, id, now)?)?;
    let mut update = connection.prepare_cached(sql::TURN_ADVANCE).map_err(failure)?;
    update.execute(params![tenant, id, status.code()]).map(drop).map_err(failure)
}

/// The code of the status of a response that is there.
pub(super) fn status(connection: &Connection, tenant: &str, id: &str, now: i64) -> Result<i64, Error> {
    let mut select = connection.prepare_cached(sql::RESPONSE_STATUS).map_err(failure)?;
    let found = select.query_row(params![tenant, id, now], |row| row.get(0));
    found.optional().map_err(failure)?.ok_or(Error::NotFound)
}

pub(crate) fn finish(
    connection: &Connection,
    tenant: &str,
    end: &PreparedEnd,
    now: i64,
    used: Option<i64>,
) -> Result<(), Error> {
    let turn = live(connection, tenant, &end.id, now)?;
    let job = jobs::job(connection, tenant, &end.id)?;
    end.claim.as_ref().map_or(Ok(()), |claim| fence(job.as_ref(), claim))?;
    let lease = end.lease.as_ref().or(job.as_ref().and_then(|job| job.lease.as_ref()));
    let placed = place(connection, tenant, &turn, end, lease, used)?;
    keep_settings(connection, tenant, end.settings.as_ref())?;
    let hash = end.settings.as_ref().map(|(hash, _)| hash);
    let mut update = connection.prepare_cached(sql::TURN_FINISH).map_err(failure)?;
    let row = params![
        tenant,
        end.id,
        placed.segment,
        placed.own,
        placed.middle,
        placed.upto,
        placed.tip,
        end.status.code(),
        hash,
        end.head,
    ];
    update.execute(row).map_err(failure)?;
    if turn.settings.as_deref() != hash.map(|hash| &hash[..]) {
        delete::forget_settings(connection, tenant, turn.settings)?;
    }
    events::end(connection, tenant, end, now)?;
    if job.is_some() {
        jobs::remove(connection, tenant, &end.id)?;
    }
    notices::add(connection, tenant, &end.notices)?;
    super::read::touch(connection, tenant, &end.id, used)
}

/// The turn, unless it is gone or has ended.
fn live(connection: &Connection, tenant: &str, id: &str, now: i64) -> Result<LiveTurn, Error> {
    let mut select = connection.prepare_cached(sql::TURN_LIVE).map_err(failure)?;
    let found = select.query_row(params![tenant, id, now], |row| {
        let turn = LiveTurn {
            segment: row.get(0)?,
            own: row.get(1)?,
            middle: row.get(2)?,
            prefix: prefix(row.get(3)?),
            conversation: row.get(4)?,
            settings: row.get(5)?,
        };
        Ok((turn, row.get::<_, i64>(6)?))
    });
    let (turn, status) = found.optional().map_err(failure)?.ok_or(Error::NotFound)?;
    rows::running(status)?;
    Ok(turn)
}

/// Where a finished turn's items are.
struct Placed {
    segment: i64,
    own: i64,
    middle: i64,
    upto: i64,
    tip: Option<crate::prefix::Prefix>,
}

/// Puts the output after the input: in the turn's own branch, or both into the conversation.
fn place(
    connection: &Connection,
    tenant: &str,
    turn: &LiveTurn,
    ending: &PreparedEnd,
    lease: Option<&Lease>,
    used: Option<i64>,
) -> Result<Placed, Error> {
    let prefixes = ending.prefixes(turn.prefix);
    let tip = prefixes.last().copied().unwrap_or(turn.prefix);
    if turn.conversation.is_some() && ending.status.is_kept_by_conversation() {
        let lease = lease.ok_or(Error::Locked)?;
        let (segment, own) = join_conversation(connection, tenant, turn, lease, used)?;
        let middle = own + (turn.middle - turn.own);
        let upto = append(connection, tenant, segment, middle, &ending.items, &[])?;
        end(connection, tenant, &lease.conversation, upto)?;
        return Ok(Placed { segment, own, middle, upto, tip: None });
    }
    if let Some(lease) = lease {
        super::conversations::end_turn(connection, tenant, lease)?;
    }
    let base = Base { segment: Some(turn.segment), at: turn.middle, prefix: turn.prefix, depth: 0 };
    let segment = segment(connection, tenant, base, false, ending.items.is_empty())?;
    let upto = append(connection, tenant, segment, turn.middle, &ending.items, &prefixes)?;
    Ok(Placed { segment, own: turn.own, middle: turn.middle, upto, tip })
}

/// Moves the input from the turn's branch to the end of its conversation, and says where that is. Nothing else was ever
/// built on the branch: what is not finished is not continued, and its items have no hash by which they could be shared.
fn join_conversation(
    connection: &Connection,
    tenant: &str,
    turn: &LiveTurn,
    lease: &Lease,
    used: Option<i64>,
) -> Result<(i64, i64), Error> {
    if turn.conversation.as_deref() != Some(lease.conversation()) {
        return Err(Error::Locked);
    }
    let base = match leased(connection, tenant, lease, used) {
        Err(Error::NotFound) => return Err(Error::Locked),
        base => base?,
    };
    let segment = base.segment.ok_or_else(|| Error::corrupt("a conversation without its segment"))?;
    let mut items = connection.prepare_cached(sql::ITEMS_MOVE).map_err(failure)?;
    items.execute(params![tenant, turn.segment, segment, base.at - turn.own, turn.own]).map_err(failure)?;
    let mut branch = connection.prepare_cached(sql::SEGMENT_DELETE).map_err(failure)?;
    branch.execute(params![tenant, turn.segment]).map_err(failure)?;
    Ok((segment, base.at))
}
