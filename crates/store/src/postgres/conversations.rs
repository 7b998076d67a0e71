//! Conversations: a segment of their own that only they append to. Their row is the lock of their list.

use std::collections::HashSet;
use std::ops::Range;

use deadpool_postgres::{Object, Transaction};

use super::delete::trim;
use super::put::{append, end, new_segment};
use super::read::{bodies, item_row};
use super::{Database, Hold, column, failure, sql, text, typed};
use crate::encryption::{Cipher, Place};
use crate::packed::length;
use crate::prepared::PackedItem;
use crate::room::{Meter, Reading};
use crate::rows::{self, ItemRow, Pager};
use crate::{Error, Item, ItemPage, Lease, NewConversation, Order, Page, StoredConversation, Tenant};

impl Database {
    pub(crate) async fn create_conversation(
        &self,
        tenant: &Tenant,
        new: &NewConversation,
        items: &[PackedItem],
    ) -> Result<(), Error> {
        let (tenant_key, id) = (tenant.key(), new.id.as_bytes());
        self.transaction(tenant, Hold::Shared, async |transaction| {
            let segment = new_segment(transaction, tenant_key, None, 0, Some(id)).await?;
            let upto = append(transaction, tenant_key, segment, 0, items, &[]).await?;
            let row = typed![
                tenant_key => BYTEA,
                id => BYTEA,
                segment => INT8,
                upto => INT8,
                new.created_at => INT8,
                &new.metadata[..] => BYTEA,
            ];
            transaction.execute_typed(sql::CONVERSATION_NEW, row).await.map(drop).map_err(failure)
        })
        .await
    }

    pub(crate) async fn conversation(
        &self,
        tenant: &Tenant,
        id: &str,
        cipher: &Cipher,
    ) -> Result<StoredConversation, Error> {
        self.read(async |client| conversation(client, tenant, id, cipher).await).await
    }

    pub(crate) async fn update_conversation(
        &self,
        tenant: &Tenant,
        id: &str,
        metadata: &[u8],
        cipher: &Cipher,
    ) -> Result<StoredConversation, Error> {
        self.read(async |client| {
            let row = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA, metadata => BYTEA];
            client.execute_typed(sql::CONVERSATION_METADATA, row).await.map_err(failure)?;
            conversation(client, tenant, id, cipher).await
        })
        .await
    }

    /// The conversation goes; items that a stored response shows stay with it.
    pub(crate) async fn delete_conversation(&self, tenant: &Tenant, id: &str) -> Result<(), Error> {
        let key = tenant.key();
        self.transaction(tenant, Hold::Alone, async |transaction| {
            let row = transaction
                .query_typed_opt(sql::CONVERSATION_DELETE, typed![key => BYTEA, id.as_bytes() => BYTEA])
                .await;
            let segment: i64 = column(&row.map_err(failure)?.ok_or(Error::NotFound)?, 0)?;
            transaction
                .execute_typed(sql::SEGMENT_DISOWN, typed![key => BYTEA, segment => INT8])
                .await
                .map_err(failure)?;
            trim(transaction, key, segment).await
        })
        .await
    }

    pub(crate) async fn append_items(&self, tenant: &Tenant, id: &str, items: &[PackedItem]) -> Result<(), Error> {
        let key = tenant.key();
        self.transaction(tenant, Hold::Shared, async |transaction| {
            let (segment, upto) = free(transaction, key, id).await?;
            let upto = append(transaction, key, segment, upto, items, &[]).await?;
            end(transaction, key, id, upto).await
        })
        .await
    }

    pub(crate) async fn conversation_items(
        &self,
        tenant: &Tenant,
        id: &str,
        page: &Page,
        reading: &Reading,
    ) -> Result<ItemPage, Error> {
        self.read(async |client| {
            let (segment, upto) = place(client, tenant, id).await?;
            let mut cursor = None;
            if let Some(after) = &page.after {
                let key = typed![tenant.key() => BYTEA, segment => INT8, after.as_bytes() => BYTEA];
                let row = client.query_typed_one(sql::CONVERSATION_CURSOR, key).await.map_err(failure)?;
                let pos: Option<i64> = column(&row, usize::from(page.order == Order::OldestFirst))?;
                cursor = Some(pos.ok_or(Error::NoSuchCursor)?);
            }
            let mut pager = Pager::new(page, upto, cursor, reading);
            while let Some(places) = pager.next() {
                let rows = range(client, tenant, segment, places.clone(), &mut pager.meter).await;
                pager.take(places, rows)?;
            }
            Ok(pager.finish())
        })
        .await
    }

    pub(crate) async fn conversation_history(
        &self,
        tenant: &Tenant,
        id: &str,
        reading: &Reading,
    ) -> Result<Vec<Item>, Error> {
        self.read(async |client| {
            let (segment, upto) = place(client, tenant, id).await?;
            let rows = range(client, tenant, segment, 0..upto, &mut Meter::new(&reading.room)).await?;
            Ok(rows::complete(&reading.cipher, rows, 0..upto)?.0)
        })
        .await
    }

    pub(crate) async fn conversation_item(
        &self,
        tenant: &Tenant,
        id: &str,
        item: &str,
        reading: &Reading,
    ) -> Result<Item, Error> {
        self.read(async |client| {
            let (segment, _) = place(client, tenant, id).await?;
            let key = typed![tenant.key() => BYTEA, segment => INT8, item.as_bytes() => BYTEA];
            let row =
                client.query_typed_opt(sql::CONVERSATION_ITEM, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
            Meter::new(&reading.room).take(length(column(&row, 0)?))?;
            rows::row_item(&reading.cipher, item.to_owned(), column(&row, 0)?)
        })
        .await
    }

    /// Which of these ids items of the conversation have.
    pub(crate) async fn conversation_has(
        &self,
        tenant: &Tenant,
        id: &str,
        ids: &[String],
    ) -> Result<HashSet<String>, Error> {
        self.read(async |client| {
            let (segment, _) = place(client, tenant, id).await?;
            let wanted: Vec<&[u8]> = ids.iter().map(String::as_bytes).collect();
            let key = typed![tenant.key() => BYTEA, segment => INT8, wanted => BYTEA_ARRAY];
            let rows = client.query_typed(sql::CONVERSATION_HAS, key).await.map_err(failure)?;
            rows.iter().map(|row| text(row, 0)).collect()
        })
        .await
    }

    /// Takes an item out of the list. Its place stays, so that later places keep their numbers; responses from before
    /// have it still.
    pub(crate) async fn delete_conversation_item(
        &self,
        tenant: &Tenant,
        id: &str,
        item: &str,
        cipher: &Cipher,
    ) -> Result<StoredConversation, Error> {
        let key = tenant.key();
        self.transaction(tenant, Hold::Alone, async |transaction| {
            let row = transaction
                .query_typed_opt(sql::CONVERSATION_PLACE, typed![key => BYTEA, id.as_bytes() => BYTEA])
                .await;
            let row = row.map_err(failure)?.ok_or(Error::NotFound)?;
            let (segment, upto): (i64, i64) = (column(&row, 0)?, column(&row, 1)?);
            let row = typed![key => BYTEA, segment => INT8, item.as_bytes() => BYTEA, upto => INT8];
            if transaction.execute_typed(sql::CONVERSATION_HIDE, row).await.map_err(failure)? == 0 {
                return Err(Error::NotFound);
            }
            forget_hidden(transaction, key, segment).await
        })
        .await?;
        self.conversation(tenant, id, cipher).await
    }

    pub(crate) async fn begin_turn(&self, tenant: &Tenant, lease: &Lease, millis: i64) -> Result<(), Error> {
        self.read(async |client| {
            let id = lease.conversation.as_bytes();
            #[expect(clippy::cast_precision_loss, reason = "a lease of centuries may be a millisecond off")]
            let row = typed![
                tenant.key() => BYTEA,
                id => BYTEA,
                &lease.token[..] => BYTEA,
                millis.min(i64::from(u32::MAX)) as f64 => FLOAT8,
            ];
            if client.execute_typed(sql::LEASE_BEGIN, row).await.map_err(failure)? == 1 {
                return Ok(());
            }
            // Refused: because it is taken, or because it is not there.
            place(client, tenant, &lease.conversation).await?;
            Err(Error::Locked)
        })
        .await
    }

    pub(crate) async fn extend_turn(&self, tenant: &Tenant, lease: &Lease, millis: i64) -> Result<(), Error> {
        self.read(async |client| {
            #[expect(clippy::cast_precision_loss, reason = "a lease of centuries may be a millisecond off")]
            let row = typed![
                tenant.key() => BYTEA,
                lease.conversation.as_bytes() => BYTEA,
                &lease.token[..] => BYTEA,
                millis.min(i64::from(u32::MAX)) as f64 => FLOAT8,
            ];
            match client.execute_typed(sql::LEASE_EXTEND, row).await.map_err(failure)? {
                0 => Err(Error::Locked),
                _ => Ok(()),
            }
        })
        .await
    }

    pub(crate) async fn end_turn(&self, tenant: &Tenant, lease: &Lease) -> Result<(), Error> {
        self.read(async |client| {
            let row = typed![
                tenant.key() => BYTEA,
                lease.conversation.as_bytes() => BYTEA,
                &lease.token[..] => BYTEA,
            ];
            client.execute_typed(sql::LEASE_END, row).await.map(drop).map_err(failure)
        })
        .await
    }
}

async fn conversation(
    client: &Object,
    tenant: &Tenant,
    id: &str,
    cipher: &Cipher,
) -> Result<StoredConversation, Error> {
    let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA];
    let row = client.query_typed_opt(sql::CONVERSATION, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
    let metadata = cipher.unpack(Place::conversation(id), column(&row, 1)?)?;
    Ok(StoredConversation { id: id.to_owned(), created_at: column(&row, 0)?, metadata })
}

async fn place(client: &Object, tenant: &Tenant, id: &str) -> Result<(i64, i64), Error> {
    let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA];
    let row = client.query_typed_opt(sql::CONVERSATION_PLACE, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
    Ok((column(&row, 0)?, column(&row, 1)?))
}

/// Empties what was taken out of a conversation and no living history has any more.
pub(super) async fn forget_hidden(transaction: &Transaction<'_>, tenant: &[u8], segment: i64) -> Result<(), Error> {
    let key = typed![tenant => BYTEA, segment => INT8];
    transaction.execute_typed(sql::HIDDEN_FORGET, key).await.map(drop).map_err(failure)
}

/// The end of a conversation that nobody has a lease of, held for this transaction.
async fn free(transaction: &Transaction<'_>, tenant: &[u8], id: &str) -> Result<(i64, i64), Error> {
    let key = typed![tenant => BYTEA, id.as_bytes() => BYTEA];
    let row =
        transaction.query_typed_opt(sql::CONVERSATION_FREE, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
    if column::<bool>(&row, 2)? { Err(Error::Locked) } else { Ok((column(&row, 0)?, column(&row, 1)?)) }
}

async fn range(
    client: &Object,
    tenant: &Tenant,
    segment: i64,
    places: Range<i64>,
    meter: &mut Meter,
) -> Result<Vec<ItemRow>, Error> {
    let key = typed![tenant.key() => BYTEA, segment => INT8, places.start => INT8, places.end => INT8];
    bodies(client, sql::CONVERSATION_RANGE, key, 2, meter, item_row).await
}
