//! Databases as SQL text, so that a fixture can be read and compared.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use rusqlite::types::ValueRef;
use testkit::Postgres;
use tokio::task::JoinSet;

/// Everything that is in the file, and its schema's version.
pub(super) fn dump_sqlite(path: &Path) -> String {
    let connection = Connection::open(path).unwrap();
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let objects = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' \
                   ORDER BY type DESC, name";
    let mut select = connection.prepare(objects).unwrap();
    let objects = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let objects: Vec<(String, String, String)> = objects.map(Result::unwrap).collect();
    let mut dump = format!("PRAGMA user_version = {version};\n");
    for (kind, name, sql) in objects {
        writeln!(dump, "{sql};").unwrap();
        if kind == "table" {
            rows(&connection, &name, &mut dump);
        }
    }
    dump
}

fn rows(connection: &Connection, table: &str, dump: &mut String) {
    let mut select = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let columns = select.column_count();
    let mut rows = select.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let values: Vec<String> = (0..columns).map(|column| literal(row.get_ref(column).unwrap())).collect();
        writeln!(dump, "INSERT INTO {table} VALUES ({});", values.join(", ")).unwrap();
    }
}

fn literal(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => format!("'{}'", str::from_utf8(text).unwrap().replace('\'', "''")),
        ValueRef::Blob(bytes) => bytes.iter().fold("x'".to_owned(), |hex, byte| format!("{hex}{byte:02x}")) + "'",
    }
}

pub(super) fn load_sqlite(path: &Path, dump: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&format!("BEGIN; {dump} COMMIT;")).unwrap();
}

pub(super) fn dump_postgres(server: &Postgres) -> String {
    let arguments = ["--schema=godex", "--inserts", "--no-owner", "--no-privileges", "--no-comments"];
    let output = Command::new("pg_dump").args(arguments).arg(server.url()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // What is for psql, and what tells of the machine.
    let kept = text.lines().filter(|line| !line.is_empty() && !line.starts_with("--") && !line.starts_with('\\'));
    kept.fold(String::new(), |dump, line| dump + line + "\n")
}

pub(super) async fn load_postgres(server: &Postgres, dump: &str) {
    let (client, _running) = connect(server).await;
    client.batch_execute(dump).await.unwrap();
}

/// A connection; it ends with the set of tasks.
pub(super) async fn connect(server: &Postgres) -> (tokio_postgres::Client, JoinSet<Result<(), tokio_postgres::Error>>) {
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    let mut running = JoinSet::new();
    running.spawn(connection);
    (client, running)
}
