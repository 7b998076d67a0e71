//! The plan of every statement, on a database that is filled and analyzed.

use testkit::Postgres;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::{Database, sql};
use crate::{Encryption, PostgresOptions, Store, Tenant};

/// One tenant with nearly everything, one with little: what is the tenant's is no small part.
const FILL: &str = "
    INSERT INTO godex.segment (tenant, parent, start, conversation)
      SELECT 't', CASE WHEN n % 3 > 0 THEN n - n % 3 + 1 END, 3, CASE WHEN n % 3 = 0 THEN 'c' || n END::bytea
      FROM generate_series(1, 10000) n;
    INSERT INTO godex.item (tenant, segment, pos, id, prefix, body, hidden)
      SELECT 't', n / 10, n % 10, ('i' || n)::bytea, sha256(n::text::bytea), '\\x007b7d',
             CASE WHEN n % 7 = 0 THEN 9 END FROM generate_series(1, 100000) n;
    INSERT INTO godex.item (tenant, segment, pos, id, body)
      SELECT 't', 50000, n, 'same', '\\x007b7d' FROM generate_series(1, 20000) n;
    INSERT INTO godex.item (tenant, segment, pos, id, body) VALUES ('u', 60000, 0, 'i', '\\x007b7d');
    INSERT INTO godex.response (tenant, id, segment, own, middle, upto, status, depth, created, expires, settings, head)
      SELECT 't', ('r' || n)::bytea, n / 5, 0, 1, n % 10 + 1, 2, 1, 0, 4000000000000 + n, sha256(n::text::bytea), '\\x00'
      FROM generate_series(1, 50000) n;
    INSERT INTO godex.settings SELECT 't', sha256(n::text::bytea), '\\x00' FROM generate_series(1, 20000) n;
    INSERT INTO godex.conversation (tenant, id, segment, upto, created, metadata)
      SELECT 't', ('c' || n)::bytea, n, 10, 0, '\\x00' FROM generate_series(1, 20000) n;
    INSERT INTO godex.event SELECT 't', ('r' || (n / 1000))::bytea, n % 1000, n % 1000 + 1, '\\x00'
      FROM generate_series(0, 49999) n;
    INSERT INTO godex.log SELECT 't', ('r' || n)::bytea, 3, n, n % 2 = 0 FROM generate_series(1, 20000) n;
    INSERT INTO godex.job (tenant, response, background, state, attempt, worker, leased_until, created, conversation, lease)
      SELECT CASE WHEN n % 100 = 0 THEN 'u' ELSE 't' END::bytea, ('r' || n)::bytea, n % 2 = 0, n % 3, 1,
             CASE WHEN n % 3 > 0 THEN sha256(n::text::bytea) END, now() + n * interval '1 second', 0, ('c' || n)::bytea,
             sha256(n::text::bytea) FROM generate_series(1, 20000) n;
    INSERT INTO godex.idempotency SELECT 't', ('k' || n)::bytea, sha256(n::text::bytea), ('r' || n)::bytea,
             CASE WHEN n % 2 = 0 THEN sha256(n::text::bytea) END, now(), now() + n * interval '1 second'
             FROM generate_series(1, 20000) n;
    INSERT INTO godex.notice SELECT 't', ('n' || n)::bytea, 'e', 0, now() + n * interval '1 second', '\\x00'
      FROM generate_series(1, 20000) n;
    INSERT INTO godex.usage SELECT 't', n, ('k' || n % 100)::bytea, 'p', 'm', 1, 1, 1, 1, 1, 1, 1, 1
      FROM generate_series(1, 20000) n;";

async fn client(server: &Postgres) -> (Client, tokio::task::JoinSet<Result<(), tokio_postgres::Error>>) {
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    let mut running = tokio::task::JoinSet::new();
    running.spawn(connection);
    (client, running)
}

/// A value of that type that is there, as a statement can have it.
fn literal(number: usize, kind: &Type) -> &'static str {
    match *kind {
        Type::BYTEA if number == 1 => "'t'::bytea",
        Type::BYTEA => "'i77'::bytea",
        Type::BOOL => "true",
        Type::INT8 => "5::bigint",
        Type::FLOAT8 => "5::float8",
        Type::TEXT => "'5'::text",
        Type::BYTEA_ARRAY => "ARRAY['i77', 'i78']::bytea[]",
        Type::BOOL_ARRAY => "ARRAY[true, false]",
        Type::INT8_ARRAY => "ARRAY[5, 6]::bigint[]",
        ref other => panic!("{other}"),
    }
}

/// What is wrong with a plan, if it does not go straight to its rows.
fn wrong(name: &str, plan: &[String]) -> Option<&'static str> {
    const LARGE: [&str; 11] = [
        "item",
        "response",
        "segment",
        "conversation",
        "settings",
        "event",
        "log",
        "job",
        "idempotency",
        "notice",
        "usage",
    ];
    let mut node = "";
    for line in plan {
        if LARGE.iter().any(|table| line.contains(&format!("Seq Scan on {table} "))) {
            return Some("reads a whole table");
        }
        if line.contains(" on ") && line.contains("Scan") {
            node = line;
        }
        let Some((_, condition)) = line.split_once("Index Cond: ") else { continue };
        let conditions: Vec<&str> = condition.split(" AND ").collect();
        // As many as may run or wait, and no more are looked at.
        let few = node.contains("job_running") || node.contains("job_waiting");
        // An erasure takes a few rows of a tenant, in the order of the index.
        let any = name.starts_with("ERASE_");
        if conditions.len() == 1 && condition.contains("tenant =") && !few && !any {
            return Some("reads a whole tenant");
        }
        // Also what stops at the first row, backwards, has only these conditions; a log is then read through to its end.
        // Where a log goes, all of it goes; and where all is written anew, it goes on after a row.
        let whole = ["LOGS_SWEEP", "BODIES_EVENT"].contains(&name);
        let read = node.contains("event_pkey") && !node.contains("Backward") && !whole;
        if conditions.len() == 2 && read {
            return Some("reads a whole log");
        }
        let segment = conditions.len() == 2 && condition.contains("segment =");
        if segment && node.contains("item_pkey") {
            return Some("reads a whole conversation");
        }
    }
    None
}

/// What looks after all tenants, and never for somebody who asks.
const FOR_ALL: &[(&str, &str)] = &[
    ("TENANT_HAS", "whether the first name from this one on is this one"),
    ("TENANT_NEXT", "who has anything at all: a name, for the operator"),
    ("DUE", "what has expired, of everybody; each goes by its own tenant"),
    ("LOGS_SWEEP", "logs that were kept long enough, of everybody"),
    ("JOBS_QUEUED", "how many jobs wait, of everybody: a number, for the operator"),
    ("JOBS_CLAIMABLE", "who has jobs that wait"),
    ("JOBS_CLAIM", "by numbers that were found for one tenant; each says whose it is"),
    ("HEARTBEAT", "all that this worker runs and holds; each says whose it is"),
    ("JOBS_RECOVER", "what a worker has left behind; each says whose it is"),
    ("KEYS_SWEEP", "what was kept long enough, of everybody"),
    ("NOTICES_DUE", "what is to be told now, of everybody; each says whose it is"),
];

#[test]
fn every_statement_is_one_tenants_or_looks_after_all() {
    crate::bound::check(sql::ALL, FOR_ALL);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_reads_more_than_it_needs() {
    let Some(server) = Postgres::start() else { return };
    let (database, _) =
        Database::connect(&server.url(), &PostgresOptions::default(), &Encryption::default()).await.unwrap();
    database.close();
    let (client, _running) = client(&server).await;
    client.batch_execute(FILL).await.unwrap();
    client.batch_execute("ANALYZE").await.unwrap();
    let mut problems = Vec::new();
    for (name, sql) in sql::ALL {
        let prepared = client.prepare(sql).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut text = (*sql).to_owned();
        for (index, kind) in prepared.params().iter().enumerate().rev() {
            text = text.replace(&format!("${}", index + 1), literal(index + 1, kind));
        }
        let rows = client.simple_query(&format!("EXPLAIN {text}")).await;
        let rows = rows.unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
        let line = |row: &tokio_postgres::SimpleQueryMessage| match row {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        let plan: Vec<String> = rows.iter().filter_map(line).collect();
        if let Some(wrong) = wrong(name, &plan) {
            problems.push(format!("{name} {wrong}:\n{}", plan.join("\n")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// What is a tenant's goes with it, and what is said of it and its keys stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_leaves_out_no_table() {
    let Some(server) = Postgres::start() else { return };
    let (database, _) =
        Database::connect(&server.url(), &PostgresOptions::default(), &Encryption::default()).await.unwrap();
    database.close();
    let (client, _running) = client(&server).await;
    let tables = "SELECT table_name::text FROM information_schema.columns \
        WHERE table_schema = 'godex' AND column_name = 'tenant'";
    let rows = client.query(tables, &[]).await.unwrap();
    let mut found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    found.sort_unstable();
    let mut expected: Vec<&str> = super::holdings::TABLES.iter().map(|(name, ..)| *name).collect();
    expected.extend(["api_key", "data_key", "tenant_terms"]);
    expected.sort_unstable();
    assert_eq!(found, expected);
    for (name, _, erase) in super::holdings::TABLES {
        assert!(erase.contains(&format!("DELETE FROM godex.{name} WHERE ")), "{name}");
        for all in [sql::TENANT_NEXT, sql::TENANT_HAS] {
            assert!(all.contains(&format!("FROM godex.{name} WHERE ")), "{name}");
        }
    }
}

/// What a database of the version before had instead.
const BEFORE: &str = "
    DROP INDEX godex.item_named, godex.item_hidden, godex.segment_branch;
    CREATE INDEX item_id ON godex.item (tenant, id);
    CREATE INDEX segment_parent ON godex.segment (tenant, parent) WHERE parent IS NOT NULL;";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filled_database_of_the_version_before_gets_the_indexes_while_it_is_used() {
    let Some(server) = Postgres::start() else { return };
    let old = Store::postgres(&server.url(), &PostgresOptions::default()).await.unwrap();
    let (client, _running) = client(&server).await;
    client.batch_execute(FILL).await.unwrap();
    client.batch_execute(BEFORE).await.unwrap();
    // A build that was cut off leaves an index that is none.
    client
        .batch_execute(
            "CREATE INDEX item_named ON godex.item (tenant, id, segment, pos);
             UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'godex.item_named'::regclass",
        )
        .await
        .unwrap();
    // Two start at once, and one of them has all of its connections in use but one.
    let (url, usual) = (server.url(), PostgresOptions::default());
    let few = PostgresOptions { connections: 1, ..usual };
    let (one, two) = tokio::join!(Store::postgres(&url, &few), Store::postgres(&url, &usual));
    let (one, two) = (one.unwrap(), two.unwrap());
    let indexes =
        "SELECT string_agg(c.relname::text || CASE WHEN i.indisvalid THEN '' ELSE '?' END, ' ' ORDER BY relname)
                   FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
                   WHERE i.indrelid IN ('godex.item'::regclass, 'godex.segment'::regclass)";
    let expected = "item_hidden item_named item_pkey item_prefix segment_branch segment_pkey";
    let mut found = String::new();
    for round in 0.. {
        for store in [&old, &one, &two] {
            let items =
                store.for_tenant(Tenant::new("t")).items(vec!["i77".to_owned(), "none".to_owned()]).await.unwrap();
            assert!(items[0].is_some() && items[1].is_none());
        }
        found = client.query_one(indexes, &[]).await.unwrap().get(0);
        if found == expected || round > 600 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(found, expected);
    // The version before starts beside it: there is no migration that it does not know.
    let numbers: i64 = client.query_one("SELECT count(*) FROM godex.migration", &[]).await.unwrap().get(0);
    assert_eq!(numbers, 2);
}
