//! Every statement on the trace file, in one place, so that a test can ask for the plan of each.

use crate::statements::statements;

/// Summaries, as they are read.
macro_rules! summaries {
    ($rest:literal) => {
        concat!(
            "SELECT first, last, count, began_min, began_max, slowest, bytes, terms, ids FROM godex_trace_block ",
            $rest
        )
    };
}

statements! {
    NEWEST_FIRST = summaries!("WHERE first < ?1 ORDER BY first DESC");
    /// From the block on that has this number, or would have it.
    OLDEST_FIRST = summaries!(
        "WHERE first >= coalesce((SELECT max(first) FROM godex_trace_block WHERE first <= ?1), ?1) AND last >= ?1 \
            ORDER BY first"
    );
    /// The block that has this number, if any.
    SUMMARY_OF = summaries!("WHERE first <= ?1 ORDER BY first DESC LIMIT 1");
    ROWS = "SELECT names, rows FROM godex_trace_rows WHERE first = ?1";
    /// Of all blocks; there is one for some hundred traces.
    BYTES = "SELECT coalesce(sum(bytes), 0) FROM godex_trace_block";
    NEWEST = "SELECT max(began_max) FROM godex_trace_block";
    NEXT = "SELECT next FROM godex_trace_next";
    NEXT_SET = "UPDATE godex_trace_next SET next = max(next, ?1)";

    BLOCK_PUT = "INSERT OR REPLACE INTO godex_trace_block (first, last, count, began_min, began_max, slowest, bytes, terms, ids) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    ROWS_PUT = "INSERT OR REPLACE INTO godex_trace_rows (first, names, rows) VALUES (?1, ?2, ?3)";
    DOCUMENTS_PUT = "INSERT OR REPLACE INTO godex_trace_document (first, body) VALUES (?1, ?2)";
    PAYLOAD_PUT = "INSERT INTO godex_trace_payload (number, name, cut_from, body) VALUES (?1, ?2, ?3, ?4)";

    DOCUMENTS_OF = "SELECT first, body FROM godex_trace_document WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
    PAYLOADS_OF = "SELECT name, cut_from, body FROM godex_trace_payload WHERE number = ?1 ORDER BY rowid";
    DOCUMENTS_BETWEEN = "SELECT first, body FROM godex_trace_document WHERE first BETWEEN ?1 AND ?2 ORDER BY first";

    BLOCK_DELETE = "DELETE FROM godex_trace_block WHERE first = ?1";
    ROWS_DELETE = "DELETE FROM godex_trace_rows WHERE first = ?1";
    DOCUMENTS_DELETE = "DELETE FROM godex_trace_document WHERE first = ?1";
    DOCUMENTS_UPTO = "DELETE FROM godex_trace_document WHERE first <= ?1";
    PAYLOADS_DELETE = "DELETE FROM godex_trace_payload WHERE number = ?1";
    PAYLOADS_UPTO = "DELETE FROM godex_trace_payload WHERE number <= ?1";

    REKEY_DOCUMENTS = "SELECT first, '', body FROM godex_trace_document WHERE first > ?1 ORDER BY first LIMIT ?2";
    REKEY_PAYLOADS = "SELECT rowid, name, body, number FROM godex_trace_payload WHERE rowid > ?1 ORDER BY rowid LIMIT ?2";
    DOCUMENTS_RENEW = "UPDATE godex_trace_document SET body = ?2 WHERE first = ?1";
    PAYLOAD_RENEW = "UPDATE godex_trace_payload SET body = ?2 WHERE rowid = ?1";
    PAYLOAD_DROP = "DELETE FROM godex_trace_payload WHERE rowid = ?1";
}
