//! The plan of every statement, on a filled file: each goes by a number and in the order of numbers, so it stops where its
//! reader stops. Only summaries are gone through, of which there is one for some hundred traces.

use rusqlite::Connection;

use super::{migrate, sql};

const FILL: &str = "
    INSERT INTO godex_trace_block WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 4999)
      SELECT n * 256 + 1, n * 256 + 256, 256, n, n, n, 9, zeroblob(100), zeroblob(2000) FROM n;
    INSERT INTO godex_trace_rows SELECT first, zeroblob(100), zeroblob(2000) FROM godex_trace_block;
    INSERT INTO godex_trace_document SELECT first, zeroblob(100) FROM godex_trace_block;
    INSERT INTO godex_trace_payload SELECT first, 'request', NULL, zeroblob(100) FROM godex_trace_block;";

/// What goes through a whole table, and why that is no harm.
const FINE: [(&str, &str, &str); 4] = [
    ("BYTES", "SCAN godex_trace_block", "all summaries, when something is dropped"),
    ("NEXT", "SCAN godex_trace_next", "one row"),
    ("NEXT_SET", "SCAN godex_trace_next", "one row"),
    ("PAYLOADS_OF", "USE TEMP B-TREE FOR ORDER BY", "the few bodies of one trace"),
];

#[test]
fn no_statement_reads_more_than_it_needs() {
    let mut connection = Connection::open_in_memory().unwrap();
    assert_eq!(migrate::migrate(&mut connection).unwrap(), None);
    connection.execute_batch(FILL).unwrap();
    for statistics in [false, true] {
        if statistics {
            connection.execute_batch("ANALYZE").unwrap();
        }
        let mut unused: Vec<_> = FINE.to_vec();
        for (name, sql) in sql::ALL {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let parameters = vec![1; plan.parameter_count()];
            let steps = plan.query_map(rusqlite::params_from_iter(parameters), |row| row.get::<_, String>(3)).unwrap();
            for step in steps.map(Result::unwrap) {
                let wrong = ["SCAN", "USE TEMP B-TREE", "AUTOMATIC"].iter().any(|wrong| step.contains(wrong));
                let fine = |(of, start, _): &(&str, &str, &str)| of == name && step.starts_with(start);
                assert!(!wrong || FINE.iter().any(fine) || step == "SCAN CONSTANT ROW", "{name}: {step}");
                unused.retain(|excuse| !fine(excuse));
            }
        }
        assert_eq!(unused, [], "an excuse that nothing needs");
    }
}
