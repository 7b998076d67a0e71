//! The plan of every statement, on tables that are filled and analyzed.

use testkit::Postgres;
use tokio_postgres::types::Type;

use super::sql;
use crate::{PostgresOptions, Store};

const FILL: &str = "
    INSERT INTO godex.trace_block SELECT n * 256 + 1, n * 256 + 256, 256, n, n, n, 9, '\\x00', '\\x00', '\\x00', '\\x00'
      FROM generate_series(0, 9999) n;
    INSERT INTO godex.trace_document SELECT first, '\\x00' FROM godex.trace_block;
    INSERT INTO godex.trace_payload SELECT first, 1, 'request', NULL, '\\x00' FROM godex.trace_block;
    ANALYZE";

/// What goes through all summaries, of which there is one for some hundred traces.
const FINE: [&str; 2] = ["BYTES", "NEWEST"];

fn literal(kind: &Type) -> &'static str {
    match *kind {
        Type::INT8 => "5::bigint",
        Type::BOOL => "true",
        Type::TEXT => "'5'::text",
        Type::BYTEA => "'b'::bytea",
        Type::INT8_ARRAY => "ARRAY[5, 6]::bigint[]",
        Type::BYTEA_ARRAY => "ARRAY['a', 'b']::bytea[]",
        ref other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_reads_more_than_it_needs() {
    let Some(server) = Postgres::start() else { return };
    let store = Store::postgres(&server.url(), &PostgresOptions::default()).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    let mut running = tokio::task::JoinSet::new();
    running.spawn(connection);
    client.batch_execute(FILL).await.unwrap();
    for (name, sql) in sql::ALL {
        let prepared = client.prepare(sql).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut text = (*sql).to_owned();
        for (index, kind) in prepared.params().iter().enumerate().rev() {
            text = text.replace(&format!("${}", index + 1), literal(kind));
        }
        let rows = client.simple_query(&format!("EXPLAIN {text}")).await.unwrap();
        let line = |row: &tokio_postgres::SimpleQueryMessage| match row {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        let plan: Vec<String> = rows.iter().filter_map(line).collect();
        let scans = ["trace_block", "trace_document", "trace_payload"]
            .iter()
            .any(|table| plan.iter().any(|line| line.contains(&format!("Seq Scan on {table} "))));
        assert_eq!(scans, FINE.contains(name), "{name}:\n{}", plan.join("\n"));
    }
    store.close().await;
}
