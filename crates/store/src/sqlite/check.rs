//! Whether a file is whole: by SQLite's own rules, by those of our schema, by what must hold between the rows, and, of one
//! that nobody has open, whether bodies are what they must be (`whole`). It reads everything and changes nothing.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::encryption::is_encrypted;
use super::threads::LongRead;
use super::{Database, data_keys, failure, look, migrate, open, tenant_after, threads};
use crate::encryption::{BodyTable, Cipher, Cursor, DataKey};
use crate::whole::{Findings, Looker};
use crate::{Encryption, Error, OpenError, Tenant};

/// Findings of one kind; whoever has more has enough.
pub(super) const MOST: usize = 20;

/// The rules between rows: a line that says what is wrong, and the statement that finds it.
pub(super) const RULES: &str = include_str!("sql/check.sql");

/// What is wrong with the database of this connection; nothing, if it is empty.
pub(super) fn findings(connection: &Connection) -> Result<Vec<String>, Error> {
    // One view for all of it.
    let view = connection.unchecked_transaction().map_err(failure)?;
    let mut found = integrity(&view)?;
    // What is torn is not worth being read on.
    if found.is_empty() {
        found.extend(migrate::problem(&view));
    }
    if found.is_empty() {
        found.extend(foreign_keys(&view)?);
        for rule in RULES.split("\n--- ").skip(1) {
            found.extend(broken(&view, rule)?);
        }
    }
    Ok(found)
}

fn integrity(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut check = match connection.prepare(&format!("PRAGMA integrity_check({MOST})")) {
        // A file whose first page is torn cannot even be asked.
        Err(error) => return Ok(vec![error.to_string()]),
        Ok(check) => check,
    };
    let lines: Result<Vec<String>, _> = check.query_map([], |row| row.get(0)).and_then(Iterator::collect);
    match lines.map_err(failure) {
        Ok(lines) if lines == ["ok"] => Ok(Vec::new()),
        Ok(lines) => Ok(lines),
        Err(Error::Corrupt(what)) => Ok(vec![what.into()]),
        Err(error) => Err(error),
    }
}

fn foreign_keys(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut check = connection.prepare("PRAGMA foreign_key_check").map_err(failure)?;
    let rows = check.query_map([], |row| row.get::<_, String>(0)).map_err(failure)?;
    let tables = rows.take(MOST).collect::<Result<Vec<_>, _>>().map_err(failure)?;
    Ok(tables.into_iter().map(|table| format!("a row of {table} refers to one that is not there")).collect())
}

fn broken(connection: &Connection, rule: &str) -> Result<Vec<String>, Error> {
    let (what, statement) = rule.split_once('\n').unwrap_or((rule, ""));
    let mut select = connection.prepare(statement.trim().trim_end_matches(';')).map_err(failure)?;
    let mut rows = select.query([]).map_err(failure)?;
    let mut found = Vec::new();
    while found.len() < MOST
        && let Some(row) = rows.next().map_err(failure)?
    {
        let tenant: String = row.get(0).map_err(failure)?;
        let name: rusqlite::types::Value = row.get(1).map_err(failure)?;
        let name = match name {
            rusqlite::types::Value::Text(name) => name,
            rusqlite::types::Value::Integer(number) => number.to_string(),
            _ => String::new(),
        };
        found.push(format!("{what}: {name} of tenant {tenant}"));
    }
    Ok(found)
}

/// Looks a file over that no process has open, and changes nothing in it. What is sealed is opened with these keys.
pub(crate) fn file(path: &Path, encryption: &Encryption) -> Result<Findings, OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(sqlite)?;
    open::statements(&connection).map_err(sqlite)?;
    let looked = || {
        let found = findings(&connection)?;
        if !found.is_empty() {
            return Ok(Findings::torn(found));
        }
        if migrate::is_current(&connection) { bodies(&connection, encryption) } else { Ok(Findings::default().older()) }
    };
    looked().map_err(|error: Error| OpenError::Damaged { path: path.to_owned(), finding: error.to_string() })
}

/// What is wrong with a file that no process has open, as far as its rows are concerned.
pub(super) fn rows(path: &Path) -> Result<Vec<String>, OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(sqlite)?;
    findings(&connection).map_err(|error| OpenError::Damaged { path: path.to_owned(), finding: error.to_string() })
}

/// What is wrong with what is in the rows.
pub(super) fn bodies(connection: &Connection, encryption: &Encryption) -> Result<Findings, Error> {
    // One view for all of it.
    let view = connection.unchecked_transaction().map_err(failure)?;
    let (mut found, mut last) = (Findings::default(), String::new());
    while let Some(name) = tenant_after(&view, &last)? {
        match looker(&view, &name, encryption) {
            Err(Error::Corrupt(what)) => found.add(format!("nothing of tenant {name} can be read: {what}")),
            looker => bodies_of(&view, &name, &looker?, &mut found)?,
        }
        last = name;
    }
    Ok(found)
}

fn looker(connection: &Connection, name: &str, encryption: &Encryption) -> Result<Looker, Error> {
    let (keys, tenant) = (data_keys(connection, name)?, Tenant::new(name));
    let known = |key: &DataKey| encryption.find(&key.wrapped).is_some();
    Ok(if keys.is_empty() {
        // Where bodies are sealed, whoever has no key is being erased.
        if is_encrypted(connection)? { Looker::without_keys(tenant) } else { Looker::new(tenant, Cipher::default()) }
    } else if keys.iter().all(known) {
        let cipher = Cipher::of(encryption, &tenant, &keys)?;
        Looker::new(tenant, cipher)
    } else {
        Looker::without_keys(tenant)
    })
}

fn bodies_of(connection: &Connection, tenant: &str, looker: &Looker, found: &mut Findings) -> Result<(), Error> {
    for table in BodyTable::ALL {
        let mut from = Some(Cursor::start());
        while let Some(at) = from {
            let mut looked = look(connection, tenant, table, &at, looker)?;
            from = looked.next.take();
            found.add_all(looked);
        }
    }
    Ok(())
}

impl Database {
    /// What is wrong with this database, while others use it.
    pub(crate) async fn check(&self) -> Result<Vec<String>, Error> {
        let Some(place) = &self.place else {
            return self.read(findings_of_memory).await;
        };
        let path = place.found()?.to_owned();
        let reading = LongRead::begin(&self.counts);
        let check = move || {
            let _reading = reading;
            let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failure)?;
            connection.busy_timeout(open::BUSY).map_err(failure)?;
            findings(&connection)
        };
        threads::aside("store-check", check).await?
    }
}

/// Within the transaction that a reader has begun already.
fn findings_of_memory(connection: &Connection) -> Result<Vec<String>, Error> {
    integrity(connection)
}
