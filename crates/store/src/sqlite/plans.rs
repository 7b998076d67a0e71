//! The plan of every statement, on a filled database, with and without the statistics that somebody may have made.

use rusqlite::Connection;

use super::migrate::migrate;
use super::{open, sql};

/// One tenant with nearly everything, one with little: what is the tenant's is no small part.
const FILL: &str = "
    CREATE TEMP TABLE n (n INTEGER PRIMARY KEY);
    INSERT INTO n WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 19999) SELECT n FROM n;
    INSERT INTO segment SELECT iif(n % 100, 't', 'u'), n, iif(n % 3, n - n % 3, NULL), 3, iif(n % 3, NULL, 'c' || n)
      FROM n WHERE n < 2000;
    INSERT INTO item SELECT 't', n / 10, n % 10, 'i' || n, randomblob(32), x'007b7d', iif(n % 7, NULL, 9) FROM n;
    INSERT INTO segment VALUES ('t', 5000, NULL, 0, NULL);
    INSERT INTO response VALUES ('t', 'same', 5000, 0, 0, 20000, NULL, NULL, NULL, 2, 1, 0, 0, NULL, 0, NULL, x'00');
    INSERT INTO item SELECT 't', 5000, n, 'same', NULL, x'007b7d', NULL FROM n;
    INSERT INTO response SELECT 't', 'r' || n, n / 10, 0, 1, n % 10 + 1, NULL, NULL, NULL, 2, 1, 0, 0, n, n, randomblob(32),
      x'00' FROM n;
    INSERT INTO settings SELECT 't', randomblob(32), x'00' FROM n WHERE n < 2000;
    INSERT INTO conversation SELECT 't', 'c' || n, n, 10, 0, n, NULL, NULL, x'00' FROM n WHERE n < 2000;
    DROP TABLE n;";

/// What came with the event log.
const FILL_EVENTS: &str = "
    INSERT INTO event WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 19999)
      SELECT 't', 'r' || (n / 1000), n % 1000, n % 1000 + 1, x'00' FROM n;";

/// Steps that would be too much elsewhere: the statement, the beginning of the step, why it is none.
const FINE: &[(&str, &str, &str)] = &[
    ("", "SCAN CONSTANT ROW", "no table"),
    ("", "SCAN wanted VIRTUAL TABLE", "the list that was asked for"),
    ("", "SCAN p", "the path of one response"),
    ("", "SCAN path", "the path of one response"),
    ("", "SCAN up", "the path of one response"),
    ("", "SCAN tree", "what branches off one response"),
    ("PING", "SCAN secret", "one row"),
    ("LIVE", "SCAN live", "one row"),
    ("SCHEMA", "SCAN sqlite_master", "a few tables"),
    ("LEASES_CLEAR", "SCAN conversation", "once at each start, which reads the whole file anyway"),
    ("OLDEST", "SCAN response USING INDEX response_used", "in order, and it stops at the second"),
    ("OLDEST", "SCAN conversation USING INDEX conversation_used", "in order, and it stops at the second"),
    ("SEGMENT_LAST", "SEARCH segment USING PRIMARY KEY (tenant=?)", "backwards, and it stops at the first"),
    (
        "EVENT_NEXT",
        "SEARCH event USING INDEX event_place (tenant=? AND response=?)",
        "backwards, and it stops at the first",
    ),
    ("EVENTS_DROP", "SEARCH event USING INDEX event_place (tenant=? AND response=?)", "the whole log goes"),
    ("", "SCAN (subquery", "what the subquery found"),
    ("JOBS_RUNNING", "SEARCH job USING INDEX job_running (tenant=?)", "as many as may run"),
    ("JOBS_CLAIMED", "SEARCH job USING INDEX job_running (tenant=?)", "as many as may run"),
    ("JOBS_WAITING", "SEARCH job USING COVERING INDEX job_waiting (tenant=?)", "as many as may wait"),
    ("JOBS_QUEUED", "SCAN job USING COVERING INDEX job_waiting", "as many as may wait, and it stops"),
    ("JOBS_OLDEST", "SEARCH job USING INDEX job_waiting (tenant=?)", "in order, and it stops at the first few"),
    ("JOB_TENANTS", "SCAN job USING COVERING INDEX job_waiting", "in order, and it stops at the first"),
    ("JOB_TENANTS", "SCAN waits", "the tenants that were found"),
    ("JOBS_ORPHAN", "SCAN job USING", "once at each start"),
    ("KEYS_ORPHAN", "SCAN idempotency USING", "once at each start"),
    ("EVENT_GONE", "SEARCH event USING INDEX event_place (tenant=? AND response=?)", "the whole log goes"),
    ("ACCESS_VERSION", "SCAN access_version", "one row"),
    ("ACCESS_RAISE", "SCAN access_version", "one row"),
    ("API_KEYS", "SCAN api_key", "all of them, when one has changed"),
    ("API_KEYS_REVOKE", "SCAN api_key", "all of them, when some are revoked"),
    ("TENANTS_TERMS", "SCAN tenant_terms", "all of them, when one has changed"),
    ("TENANT_TERMS_CLEAR", "SEARCH tenant_terms USING PRIMARY KEY (tenant=?)", "one row"),
    ("USAGE_BATCHES_SWEEP", "SCAN usage_batch", "one row for each process of the last days"),
    ("USAGE", "USE TEMP B-TREE", "a report, of the hours asked for"),
    ("USAGE", "SCAN rarray", "the list that was asked for"),
    ("WRAPPINGS", "SCAN data_key", "once at each start, a row for each tenant"),
    ("DATA_KEYS_FORGET", "SCAN data_key", "once for each change of the key, a few rows for each tenant"),
    ("", "SCAN i", "a few items of one id"),
    ("HIDDEN_FORGET", "SEARCH item USING INDEX item_hidden (tenant=? AND segment=?)", "only what was taken out"),
];

/// What came with jobs.
const FILL_JOBS: &str = "
    CREATE TEMP TABLE n (n INTEGER PRIMARY KEY);
    INSERT INTO n WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 9999) SELECT n FROM n;
    INSERT INTO log SELECT 't', 'r' || n, 3, n, n % 2 FROM n;
    INSERT INTO job (tenant, response, background, state, attempt, worker, leased_until, created, conversation, lease)
      SELECT iif(n % 100, 't', 'u'), 'r' || n, n % 2, n % 3, 1, iif(n % 3, randomblob(16), NULL), n, 0, 'c' || n,
      randomblob(16) FROM n;
    INSERT INTO idempotency SELECT 't', 'k' || n, randomblob(32), 'r' || n, iif(n % 2, randomblob(16), NULL), n, n FROM n;
    INSERT INTO notice SELECT 't', 'n' || n, 'e', 0, n, x'00' FROM n;
    DROP TABLE n;";

/// What came with API keys.
const FILL_ACCESS: &str = "
    CREATE TEMP TABLE n (n INTEGER PRIMARY KEY);
    INSERT INTO n WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 9999) SELECT n FROM n;
    INSERT INTO api_key SELECT 'key_' || n, 't', 'name' || n, randomblob(32), '', 0, NULL, iif(n % 2, NULL, 1), NULL, '{}'
      FROM n;
    INSERT INTO usage SELECT 't', n, 'key_' || (n % 100), 'p', 'm', 1, 1, 1, 1, 1, 1, 1, 1 FROM n;
    DROP TABLE n;";

/// What triggers do when a response goes.
const TRIGGERED: [(&str, &str); 3] = [
    ("EVENT_GONE", "DELETE FROM event WHERE tenant = ?1 AND response = ?2"),
    ("LOG_GONE", "DELETE FROM log WHERE tenant = ?1 AND response = ?2"),
    ("JOB_GONE", "DELETE FROM job WHERE tenant = ?1 AND response = ?2"),
];

/// What is wrong with a step; nothing, if it goes straight to its rows.
fn wrong(step: &str) -> Option<&'static str> {
    let small = |start: &str| step.starts_with(start);
    match step {
        _ if small("SCAN") => Some("reads a whole table"),
        _ if step.ends_with("(tenant=?)") => Some("reads a whole tenant"),
        _ if small("SEARCH i") && step.ends_with("(tenant=? AND segment=?)") => Some("reads a whole conversation"),
        _ if small("SEARCH event") && step.ends_with("(tenant=? AND response=?)") => Some("reads a whole log"),
        _ if step.contains("AUTOMATIC") => Some("makes an index of its own"),
        _ if small("USE TEMP B-TREE") => Some("sorts"),
        _ => None,
    }
}

fn filled() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    open::statements(&connection).unwrap();
    migrate(&mut connection, "test").unwrap();
    connection.execute_batch(include_str!("sql/memory.sql")).unwrap();
    connection.execute_batch(FILL).unwrap();
    connection.execute_batch(FILL_EVENTS).unwrap();
    connection.execute_batch(FILL_JOBS).unwrap();
    connection.execute_batch(FILL_ACCESS).unwrap();
    connection
}

fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let parameters = vec![1; plan.parameter_count()];
    plan.query_map(rusqlite::params_from_iter(parameters), |row| row.get(3)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn no_statement_reads_more_than_it_needs() {
    let connection = filled();
    for statistics in [false, true] {
        if statistics {
            connection.execute_batch("ANALYZE").unwrap();
        }
        let mut problems = Vec::new();
        for (name, sql) in sql::ALL.iter().chain(&TRIGGERED) {
            for step in plan(&connection, sql) {
                // An erasure takes a few rows of a tenant, whichever they are.
                let fine = FINE.iter().any(|(of, start, _)| (of.is_empty() || of == name) && step.starts_with(start))
                    || name.starts_with("ERASE_") && step.starts_with("SEARCH");
                if let Some(wrong) = wrong(&step).filter(|_| !fine) {
                    problems.push(format!("{name} {wrong}: {step}"));
                }
            }
        }
        assert!(problems.is_empty(), "statistics: {statistics}\n{}", problems.join("\n"));
    }
}

/// What looks after all tenants, and never for somebody who asks.
const FOR_ALL: &[(&str, &str)] = &[
    ("TENANT_NEXT", "who has anything at all: a name, for the operator"),
    ("JOBS_QUEUED", "how many jobs wait, of everybody: a number, for the operator"),
    ("DUE", "what has expired, of everybody; each goes by its own tenant"),
    ("OLDEST", "memory has one bound for all, and what was not used for longest goes first"),
    ("LEASES_CLEAR", "at a start: the processes that held them are gone"),
    ("JOBS_ORPHAN", "at a start: the processes that ran them are gone"),
    ("KEYS_ORPHAN", "at a start: the processes that held them are gone"),
    ("LOGS_ENDED", "logs that were kept long enough, of everybody; each goes by its own tenant"),
    ("JOB_TENANTS", "who has jobs that wait"),
    ("JOB_CLAIM", "by its number, which was found for one tenant; it says whose it is"),
    ("JOBS_EXTEND", "all that this worker runs; each says whose it is"),
    ("JOBS_LATE", "what a worker has left behind"),
    ("JOB_REQUEUE", "by its number, which was found by looking for late ones"),
    ("JOB_TAKE", "by its number, which was found by looking for late ones; it says whose it is"),
    ("KEYS_EXTEND", "all that this worker holds"),
    ("KEYS_SWEEP", "what was kept long enough, of everybody"),
    ("NOTICES_DUE", "what is to be told now, of everybody; each says whose it is"),
];

#[test]
fn every_statement_is_one_tenants_or_looks_after_all() {
    crate::bound::check(sql::ALL, FOR_ALL);
}

/// What is a tenant's goes with it, its data keys first, by themselves; what is said of it and its API keys stay.
#[test]
fn an_erasure_leaves_out_no_table() {
    let connection = filled();
    let tables = "SELECT name FROM sqlite_schema s WHERE type = 'table' \
        AND EXISTS (SELECT 1 FROM pragma_table_info(s.name) WHERE name = 'tenant') ORDER BY name";
    let mut select = connection.prepare(tables).unwrap();
    let found: Vec<String> = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut expected: Vec<&str> = super::holdings::TABLES.iter().map(|(name, ..)| *name).collect();
    expected.extend(["api_key", "data_key", "tenant_terms"]);
    expected.sort_unstable();
    assert_eq!(found, expected);
    for (name, _, erase) in super::holdings::TABLES {
        assert!(erase.starts_with(&format!("DELETE FROM {name} WHERE ")), "{name}");
        assert!(sql::TENANT_NEXT.contains(&format!("FROM {name} ")), "{name}");
    }
}

/// The work of a lookup, in steps of SQLite's machine, does not grow with the store.
#[test]
fn an_item_is_found_in_as_many_steps_in_a_large_store() {
    let steps = |connection: &Connection, ids: &[&str]| {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        let mut select = connection.prepare(sql::NEWEST).unwrap();
        let rows = select.query_map(rusqlite::params!["t", super::read::list(&ids), 0], |row| {
            row.get::<_, Option<Vec<u8>>>(1).map(|body| body.is_some())
        });
        let found: Vec<bool> = rows.unwrap().map(Result::unwrap).collect();
        (found, select.get_status(rusqlite::StatementStatus::VmStep))
    };
    let small = Connection::open_in_memory().unwrap();
    open::statements(&small).unwrap();
    let mut small = small;
    migrate(&mut small, "test").unwrap();
    small
        .execute_batch(
            "INSERT INTO segment VALUES ('t', 1, NULL, 0, NULL);
             INSERT INTO response VALUES ('t', 'r', 1, 0, 0, 2, NULL, NULL, NULL, 2, 1, 0, 0, NULL, 0, NULL, x'00');
             INSERT INTO item VALUES ('t', 1, 0, 'same', NULL, x'007b7d', NULL), ('t', 1, 1, 'i7', NULL, x'00', NULL)",
        )
        .unwrap();
    let large = filled();
    for ids in [&["same"][..], &["i7"], &["unknown"], &["unknown", "same", "i7", "unknown2"]] {
        let (found, few) = steps(&small, ids);
        let (found_too, many) = steps(&large, ids);
        assert_eq!(found, found_too);
        assert!(many <= few + 8, "{ids:?}: {few} steps in a small store, {many} in a large one");
    }
}

#[test]
fn a_file_of_the_version_before_gets_the_indexes_and_keeps_its_items() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(include_str!("sql/0001_init.sql")).unwrap();
    connection.execute_batch(include_str!("sql/0002_hidden.sql")).unwrap();
    connection.pragma_update(None, "user_version", 2).unwrap();
    connection.execute_batch(FILL).unwrap();
    drop(connection);
    let opened = open::file(&path, &crate::SqliteOptions::default(), &crate::Encryption::default()).unwrap();
    let ids = ["i19999", "same", "unknown"].map(str::to_owned);
    let room = std::sync::Arc::new(crate::room::Endless);
    let reading = crate::room::Reading { cipher: crate::encryption::Cipher::default(), room };
    let found = super::items_by_id(&opened.writer, "t", &ids, 0, &reading).unwrap();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false]);
    let index = "SELECT count(*) FROM sqlite_schema WHERE name IN ('item_named', 'item_hidden', 'segment_branch')";
    assert_eq!(opened.writer.query_row(index, [], |row| row.get::<_, i64>(0)).unwrap(), 3);
}
