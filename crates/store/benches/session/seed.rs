//! For comparison, the simplest way: one row per response with its whole request and answer, found by its id.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};
use store::Item;

pub(super) struct Seed(Connection);

impl Seed {
    pub(super) fn open(folder: &Path) -> Self {
        let connection = Connection::open(folder.join("seed.db")).unwrap();
        connection.pragma_update(None, "synchronous", "FULL").unwrap();
        let table =
            "CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, previous TEXT, request TEXT, response TEXT)";
        connection.execute(table, []).unwrap();
        Self(connection)
    }

    pub(super) fn put(&mut self, id: &str, previous: Option<&str>, input: &[Item], output: &[Item]) {
        let insert = "INSERT INTO session (id, previous, request, response) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = self.0.prepare_cached(insert).unwrap();
        insert.execute(params![id, previous, list(input), list(output)]).unwrap();
    }

    /// The same without waiting for the disk: only reading it will be measured.
    pub(super) fn put_quickly(&mut self, id: &str, previous: Option<&str>, input: &[Item], output: &[Item]) {
        self.0.pragma_update(None, "synchronous", "OFF").unwrap();
        self.put(id, previous, input, output);
    }

    /// One read per ancestor; the number of items.
    pub(super) fn history(&self, id: &str) -> usize {
        let select = "SELECT previous, request, response FROM session WHERE id = ?1";
        let mut select = self.0.prepare_cached(select).unwrap();
        let (mut next, mut items) = (Some(id.to_owned()), 0);
        while let Some(id) = next {
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?));
            let (previous, request, response) = select.query_row([&id], row).optional().unwrap().unwrap();
            items += usize::from(!request.is_empty()) + usize::from(!response.is_empty());
            next = previous;
        }
        items
    }

    pub(super) fn close(self) {
        self.0.close().unwrap();
    }
}

fn list(items: &[Item]) -> String {
    let bodies: Vec<_> = items.iter().map(|item| String::from_utf8_lossy(&item.body)).collect();
    format!("[{}]", bodies.join(","))
}
