//! The outbox.

use rusqlite::{Connection, Row, params};

use super::{failure, jobs, sql};
use crate::notice::PreparedNotice;
use crate::{Error, Notice, Tenant};

pub(super) fn add(connection: &Connection, tenant: &str, notices: &[PreparedNotice]) -> Result<(), Error> {
    if notices.is_empty() {
        return Ok(());
    }
    let now = jobs::now(connection)?;
    let mut insert = connection.prepare_cached(sql::NOTICE_NEW).map_err(failure)?;
    for notice in notices {
        insert.execute(params![tenant, notice.id, notice.endpoint, now, notice.packed]).map_err(failure)?;
    }
    Ok(())
}

pub(crate) fn due_notices(connection: &Connection, most: usize, millis: i64) -> Result<Vec<Notice>, Error> {
    let (now, most) = (jobs::now(connection)?, i64::try_from(most).unwrap_or(i64::MAX));
    let mut update = connection.prepare_cached(sql::NOTICES_DUE).map_err(failure)?;
    let read = |row: &Row<'_>| {
        let tenant = Tenant::new(&row.get::<_, String>(0)?);
        // As it is in the database: whoever asked opens it.
        let body = row.get::<_, Vec<u8>>(4)?.into();
        Ok(Notice { tenant, id: row.get(1)?, endpoint: row.get(2)?, body, tries: row.get(3)? })
    };
    let found = update.query_map(params![now, most, now.saturating_add(millis)], read).map_err(failure)?;
    found.collect::<Result<_, _>>().map_err(failure)
}

pub(crate) fn notice_done(connection: &Connection, tenant: &Tenant, id: &str) -> Result<(), Error> {
    let mut delete = connection.prepare_cached(sql::NOTICE_DONE).map_err(failure)?;
    delete.execute(params![tenant.name(), id]).map(drop).map_err(failure)
}

pub(crate) fn notice_retry(connection: &Connection, tenant: &Tenant, id: &str, millis: i64) -> Result<(), Error> {
    let due = jobs::now(connection)?.saturating_add(millis);
    let mut update = connection.prepare_cached(sql::NOTICE_RETRY).map_err(failure)?;
    update.execute(params![tenant.name(), id, due]).map(drop).map_err(failure)
}
