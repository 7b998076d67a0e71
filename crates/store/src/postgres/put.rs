//! Storing a turn, whole or begun; the same steps as in SQLite, and again if the connection was lost meanwhile.

use deadpool_postgres::Transaction;
use futures_util::future::{try_join, try_join4};
use tokio_postgres::Row;

use super::retry::Retry;
use super::{Database, Hold, column, events, failure, keys, sql, typed};
use crate::prefix::Prefix;
use crate::prepared::{Base, PackedItem, Prepared};
use crate::rows::{self, prefix};
use crate::{Error, Lease, Parent, Tenant};

impl Database {
    /// A lost connection may have lost only the answer. The id is ours alone: if it is taken at a later try, or what it
    /// continued or its key is gone by then, it depends on what is there.
    pub(crate) async fn store(&self, tenant: &Tenant, turn: &Prepared, now: i64) -> Result<(), Error> {
        let mut retry = Retry::new(self.options.retry);
        loop {
            let outcome =
                self.transaction(tenant, Hold::Shared, async |t| store(t, tenant.key(), turn, now).await).await;
            let outcome = match outcome {
                Err(error @ (Error::Conflict | Error::Locked | Error::NotFound | Error::KeyLost))
                    if retry.is_unsure() =>
                {
                    self.is_stored(tenant, turn).await.and_then(|stored| if stored { Ok(()) } else { Err(error) })
                }
                outcome => outcome,
            };
            if !retry.again(&outcome).await {
                return outcome;
            }
        }
    }

    /// Whether an earlier try of which nobody knows was the one that worked.
    pub(super) async fn is_stored(&self, tenant: &Tenant, turn: &Prepared) -> Result<bool, Error> {
        self.read(async |client| {
            let key = typed![tenant.key() => BYTEA, turn.id.as_bytes() => BYTEA];
            Ok(client.query_typed_opt(sql::RESPONSE_TAKEN, key).await.map_err(failure)?.is_some())
        })
        .await
    }
}

/// Stores a turn, the beginning of its log, and that its key has its response.
pub(super) async fn store(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    turn: &Prepared,
    now: i64,
) -> Result<(), Error> {
    keys::answer(transaction, tenant, turn).await?;
    put(transaction, tenant, turn, now).await?;
    events::begin(transaction, tenant, turn, now).await
}

async fn put(transaction: &Transaction<'_>, tenant: &[u8], turn: &Prepared, now: i64) -> Result<(), Error> {
    let begin = match &turn.parent {
        Parent::None => Base::ROOT,
        Parent::Response(id) => place_after(transaction, tenant, id, turn.began(now)).await?,
        Parent::Conversation(lease) => leased(transaction, tenant, lease).await?,
    };
    let prefixes = turn.prefixes(begin.prefix);
    // What continues something stays right after that place: the chain is found along its path.
    let (base, held) = match turn.parent {
        Parent::None => share(transaction, tenant, turn.inputs, &prefixes).await?,
        _ => (begin, 0),
    };
    let fresh = turn.items.get(held..).unwrap_or_default();
    let segment = match (&turn.parent, turn.status.is_final()) {
        (Parent::Conversation(_), true) => segment(transaction, tenant, base, true, fresh.is_empty()).await?,
        // The conversation does not have it before it is finished.
        (Parent::Conversation(_), false) => new_segment(transaction, tenant, base.segment, base.at, None).await?,
        (Parent::None | Parent::Response(_), _) => segment(transaction, tenant, base, false, fresh.is_empty()).await?,
    };
    let hashes = prefixes.get(held..).unwrap_or_default();
    let upto = base.at + i64::try_from(fresh.len()).unwrap_or(i64::MAX);
    let tip = prefixes.last().copied().unwrap_or(begin.prefix);
    try_join4(
        append(transaction, tenant, segment, base.at, fresh, hashes),
        keep(transaction, tenant, turn.settings.as_ref()),
        end_conversation(transaction, tenant, turn, upto),
        respond(transaction, tenant, turn, begin, segment, upto, tip),
    )
    .await
    .map(drop)
}

/// Settings are kept once, however many turns have them.
pub(super) async fn keep(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    settings: Option<&(Prefix, Vec<u8>)>,
) -> Result<(), Error> {
    let Some((hash, body)) = settings else { return Ok(()) };
    let row = typed![tenant => BYTEA, &hash[..] => BYTEA, body => BYTEA];
    transaction.execute_typed(sql::SETTINGS_KEEP, row).await.map(drop).map_err(failure)
}

/// A turn that has ended is in its conversation, and so the lease is over.
async fn end_conversation(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    turn: &Prepared,
    upto: i64,
) -> Result<(), Error> {
    match &turn.parent {
        Parent::Conversation(lease) if turn.status.is_final() => {
            end(transaction, tenant, &lease.conversation, upto).await
        }
        _ => Ok(()),
    }
}

async fn respond(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    turn: &Prepared,
    begin: Base,
    segment: i64,
    upto: i64,
    tip: Option<Prefix>,
) -> Result<(), Error> {
    let (previous, conversation) = match &turn.parent {
        Parent::None => (None, None),
        Parent::Response(id) => (Some(id.as_bytes()), None),
        Parent::Conversation(lease) => (None, Some(lease.conversation.as_bytes())),
    };
    let middle = begin.at + i64::try_from(turn.inputs).unwrap_or(i64::MAX);
    let row = typed![
        tenant => BYTEA,
        turn.id.as_bytes() => BYTEA,
        segment => INT8,
        begin.at => INT8,
        middle => INT8,
        upto => INT8,
        tip.as_ref().map(|tip| &tip[..]) => BYTEA,
        previous => BYTEA,
        conversation => BYTEA,
        i64::from(turn.status.code()) => INT8,
        begin.depth + 1 => INT8,
        turn.created => INT8,
        turn.expires => INT8,
        turn.settings.as_ref().map(|(hash, _)| &hash[..]) => BYTEA,
        turn.head => BYTEA,
    ];
    transaction.execute_typed(sql::RESPONSE_NEW, row).await.map(drop).map_err(failure)
}

/// The place after a response that is finished and had not expired by `began`.
async fn place_after(transaction: &Transaction<'_>, tenant: &[u8], id: &str, began: i64) -> Result<Base, Error> {
    let key = typed![tenant => BYTEA, id.as_bytes() => BYTEA, began => INT8];
    let row = transaction.query_typed_opt(sql::RESPONSE_PLACE, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
    if !rows::status(column(&row, 4)?)?.is_final() {
        return Err(Error::Running);
    }
    let (segment, at, depth) = (column(&row, 0)?, column(&row, 1)?, column(&row, 3)?);
    Ok(Base { segment: Some(segment), at, prefix: prefix(column(&row, 2)?), depth })
}

/// The end of a conversation whose lease is ours, or ran out without anybody else taking it.
pub(super) async fn leased(transaction: &Transaction<'_>, tenant: &[u8], lease: &Lease) -> Result<Base, Error> {
    let key = typed![tenant => BYTEA, lease.conversation.as_bytes() => BYTEA];
    let row = transaction.query_typed_opt(sql::LEASED, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
    if column::<Option<&[u8]>>(&row, 2)? != Some(&lease.token[..]) {
        return Err(Error::Locked);
    }
    Ok(Base { segment: Some(column(&row, 0)?), at: column(&row, 1)?, prefix: None, depth: 0 })
}

/// How much of the input is held already, and the place after that: one look for all beginnings of the list.
async fn share(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    inputs: usize,
    prefixes: &[Option<Prefix>],
) -> Result<(Base, usize), Error> {
    let hashes: Vec<&[u8]> = prefixes.iter().take(inputs).flatten().map(|hash| &hash[..]).collect();
    if hashes.is_empty() {
        return Ok((Base::ROOT, 0));
    }
    let found = transaction.query_typed_opt(sql::SHARED, typed![tenant => BYTEA, hashes => BYTEA_ARRAY]).await;
    let Some(row) = found.map_err(failure)? else { return Ok((Base::ROOT, 0)) };
    let (segment, pos) = (column::<i64>(&row, 0)?, column::<i64>(&row, 1)?);
    let held = usize::try_from(pos + 1).map_err(|_| Error::corrupt("an item before the first"))?;
    Ok((Base { segment: Some(segment), at: pos + 1, ..Base::ROOT }, held))
}

/// The segment to append to: the base's own if nothing follows there yet, else a new one. Who appends to the same
/// one waits here, and then sees what the other did.
pub(super) async fn segment(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    base: Base,
    conversation: bool,
    nothing: bool,
) -> Result<i64, Error> {
    if let Some(segment) = base.segment {
        if conversation || nothing {
            return Ok(segment);
        }
        // Sent together, but the second is run, and sees, after the first has the row.
        let (held, follows) = try_join(
            transaction.query_typed_opt(sql::SEGMENT_HOLD, typed![tenant => BYTEA, segment => INT8]),
            transaction
                .query_typed_one(sql::SEGMENT_FOLLOWED, typed![tenant => BYTEA, segment => INT8, base.at => INT8]),
        )
        .await
        .map_err(failure)?;
        let held = held.ok_or_else(|| Error::corrupt("a response without its segment"))?;
        if column(&held, 0)? && !column::<bool>(&follows, 0)? {
            return Ok(segment);
        }
    }
    new_segment(transaction, tenant, base.segment, base.at, None).await
}

pub(super) async fn new_segment(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    parent: Option<i64>,
    start: i64,
    conversation: Option<&[u8]>,
) -> Result<i64, Error> {
    let row = typed![tenant => BYTEA, parent => INT8, start => INT8, conversation => BYTEA];
    let row: Row = transaction.query_typed_one(sql::SEGMENT_NEW, row).await.map_err(failure)?;
    column(&row, 0)
}

/// Appends items and says where the list ends then.
pub(super) async fn append(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    segment: i64,
    at: i64,
    items: &[PackedItem],
    prefixes: &[Option<Prefix>],
) -> Result<i64, Error> {
    if !items.is_empty() {
        let ids: Vec<&[u8]> = items.iter().map(|item| item.id.as_bytes()).collect();
        let hash = |index: usize| prefixes.get(index).and_then(|hash| hash.as_ref().map(|hash| &hash[..]));
        let hashes: Vec<Option<&[u8]>> = (0..items.len()).map(hash).collect();
        let bodies: Vec<&[u8]> = items.iter().map(|item| &item.packed[..]).collect();
        let rows = typed![
            tenant => BYTEA,
            segment => INT8,
            at => INT8,
            ids => BYTEA_ARRAY,
            hashes => BYTEA_ARRAY,
            bodies => BYTEA_ARRAY,
        ];
        transaction.execute_typed(sql::ITEMS_NEW, rows).await.map_err(failure)?;
    }
    Ok(at + i64::try_from(items.len()).unwrap_or(i64::MAX))
}

/// Sets where a conversation ends, and ends its lease.
pub(super) async fn end(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    conversation: &str,
    upto: i64,
) -> Result<(), Error> {
    let row = typed![tenant => BYTEA, conversation.as_bytes() => BYTEA, upto => INT8];
    transaction.execute_typed(sql::CONVERSATION_ADVANCE, row).await.map(drop).map_err(failure)
}
