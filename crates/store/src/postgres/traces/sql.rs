//! Every statement on traces, in one place, so that a test can ask for the plan of each.

use crate::statements::statements;

/// Summaries, as they are read; with the fingerprints of ids if that is wanted.
macro_rules! summaries {
    ($ids:literal, $rest:literal) => {
        concat!(
            "SELECT first, last, count, began_min, began_max, slowest, bytes, terms, ",
            $ids,
            " FROM godex.trace_block ",
            $rest
        )
    };
}

statements! {
    /// Whoever writes traces does it alone: so they are seen in the order of their numbers.
    BEGIN = "SELECT set_config('statement_timeout', $1, true), pg_advisory_xact_lock($2)";
    NEWEST_FIRST = summaries!("CASE WHEN $2 THEN ids END", "WHERE first < $1 ORDER BY first DESC LIMIT $3");
    OLDEST_FIRST = summaries!(
        "CASE WHEN $2 THEN ids END",
        "WHERE first >= coalesce((SELECT max(first) FROM godex.trace_block WHERE first <= $1), $1) AND last >= $1 \
            ORDER BY first LIMIT $3"
    );
    ROWS = "SELECT first, names, rows FROM godex.trace_block WHERE first = ANY ($1)";
    BLOCK_OF = summaries!("ids, names, rows", "WHERE first <= $1 ORDER BY first DESC LIMIT 1");
    BYTES = "SELECT coalesce(sum(bytes), 0)::bigint FROM godex.trace_block";
    NEWEST = "SELECT max(began_max) FROM godex.trace_block";
    NEXT = "SELECT max(next) FROM godex.trace_next";
    NEXT_SET = "UPDATE godex.trace_next SET next = greatest(next, $1)";

    BLOCK_PUT = "INSERT INTO godex.trace_block \
        (first, last, count, began_min, began_max, slowest, bytes, terms, ids, names, rows) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (first) DO UPDATE SET last = excluded.last, \
        count = excluded.count, began_min = excluded.began_min, began_max = excluded.began_max, slowest = excluded.slowest, \
        bytes = excluded.bytes, terms = excluded.terms, ids = excluded.ids, names = excluded.names, rows = excluded.rows";
    DOCUMENTS_PUT = "INSERT INTO godex.trace_document (first, body) SELECT * FROM unnest($1::bigint[], $2::bytea[]) \
        ON CONFLICT (first) DO UPDATE SET body = excluded.body";
    PAYLOADS_PUT = "INSERT INTO godex.trace_payload (number, place, name, cut_from, body) \
        SELECT p.number, p.place, p.name, p.cut_from, p.body \
        FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bytea[]) WITH ORDINALITY \
        AS p (number, name, cut_from, body, place)";

    DOCUMENTS_OF = "SELECT first, body FROM godex.trace_document WHERE first <= $1 ORDER BY first DESC LIMIT 1";
    PAYLOADS_OF = "SELECT name, cut_from, body FROM godex.trace_payload WHERE number = $1 ORDER BY place";
    DOCUMENTS_BETWEEN = "SELECT first, body FROM godex.trace_document WHERE first BETWEEN $1 AND $2 ORDER BY first";

    BLOCKS_DELETE = "DELETE FROM godex.trace_block WHERE first = ANY ($1)";
    DOCUMENTS_DELETE = "DELETE FROM godex.trace_document WHERE first = ANY ($1)";
    DOCUMENTS_UPTO = "DELETE FROM godex.trace_document WHERE first <= $1";
    PAYLOADS_DELETE = "DELETE FROM godex.trace_payload WHERE number = ANY ($1)";
    PAYLOADS_UPTO = "DELETE FROM godex.trace_payload WHERE number <= $1";

    REKEY_DOCUMENTS = "SELECT first, 0::bigint, ''::bytea, body FROM godex.trace_document WHERE (first, 0::bigint) > ($1, $2) \
        ORDER BY first LIMIT $3";
    REKEY_PAYLOADS = "SELECT number, place, name, body FROM godex.trace_payload WHERE (number, place) > ($1, $2) \
        ORDER BY number, place LIMIT $3";
    DOCUMENTS_RENEW = "UPDATE godex.trace_document SET body = $3 WHERE first = $1 AND 0::bigint = $2";
    PAYLOAD_RENEW = "UPDATE godex.trace_payload SET body = $3 WHERE number = $1 AND place = $2";
    DOCUMENTS_DROP = "DELETE FROM godex.trace_document WHERE first = $1 AND 0::bigint = $2";
    PAYLOAD_DROP = "DELETE FROM godex.trace_payload WHERE number = $1 AND place = $2";
}
