//! Every statement that this backend runs, in one place, so that a test can ask for the plan of each. There is none
//! anywhere else: a test looks for that, too.
//!
//! No request may cost more because a store holds more. OFFSET 0 keeps the planner from another order of joins, which
//! would read the whole tenant.

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)*) => {
        $($(#[$doc])* pub(super) const $name: &str = $sql;)*

        #[cfg(test)]
        pub(super) const ALL: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}

/// The segments of a response's history, each with the end of what it contributes. One step per fork, not per turn.
macro_rules! path {
    ($rest:literal) => {
        concat!(
            "WITH RECURSIVE path (segment, parent, start, upto) AS (
               SELECT s.segment, s.parent, s.start, r.upto FROM godex.response r
               JOIN godex.segment s ON s.tenant = r.tenant AND s.segment = r.segment
               WHERE r.tenant = $1 AND r.id = $2
               UNION ALL
               SELECT s.segment, s.parent, s.start, p.start FROM path p
               JOIN godex.segment s ON s.tenant = $1 AND s.segment = p.parent) ",
            $rest
        )
    };
}

/// What makes a row of `response` one that is there: neither deleted nor expired by the moment in this parameter.
macro_rules! there {
    ($start:literal, $now:literal $(, $rest:literal)?) => {
        concat!($start, " AND gone = 0 AND (expires IS NULL OR expires > ", $now, ")" $(, $rest)?)
    };
}

statements! {
    // --- postgres
    PING = "SELECT current_setting('transaction_read_only') FROM godex.secret LIMIT 1";
    BEGIN_SHARED = "SELECT set_config('statement_timeout', $1, true), pg_advisory_xact_lock_shared($2)";
    BEGIN_ALONE = "SELECT set_config('statement_timeout', $1, true), pg_advisory_xact_lock($2)";

    // --- connect
    SECRET_NEW = "INSERT INTO godex.secret (name, value) VALUES ('prefix', $1) ON CONFLICT DO NOTHING";
    SECRET = "SELECT value FROM godex.secret WHERE name = 'prefix'";

    // --- conversations
    CONVERSATION_NEW = "INSERT INTO godex.conversation (tenant, id, segment, upto, created, metadata) \
        VALUES ($1, $2, $3, $4, $5, $6)";
    CONVERSATION_METADATA = "UPDATE godex.conversation SET metadata = $3 WHERE tenant = $1 AND id = $2";
    CONVERSATION_DELETE = "DELETE FROM godex.conversation WHERE tenant = $1 AND id = $2 RETURNING segment";
    SEGMENT_DISOWN = "UPDATE godex.segment SET conversation = NULL WHERE tenant = $1 AND segment = $2";
    CONVERSATION_CURSOR = "SELECT min(pos), max(pos) FROM godex.item \
        WHERE tenant = $1 AND segment = $2 AND id = $3";
    CONVERSATION_ITEM = "SELECT body FROM godex.item WHERE tenant = $1 AND segment = $2 AND id = $3 \
        AND hidden IS NULL AND length(body) > 0 ORDER BY pos DESC LIMIT 1";
    CONVERSATION_PLACE = "SELECT segment, upto FROM godex.conversation WHERE tenant = $1 AND id = $2";
    /// Which of these ids items of the conversation have.
    CONVERSATION_HAS = "SELECT wanted.id FROM unnest($3::bytea[]) AS wanted (id) \
        CROSS JOIN LATERAL (SELECT 1 FROM godex.item i \
        WHERE i.tenant = $1 AND i.id = wanted.id AND i.segment = $2 AND i.hidden IS NULL AND length(i.body) > 0 \
        LIMIT 1) present";
    CONVERSATION_HIDE = "UPDATE godex.item SET hidden = $4 WHERE tenant = $1 AND segment = $2 AND id = $3 \
        AND hidden IS NULL AND length(body) > 0";
    LEASE_BEGIN = "UPDATE godex.conversation SET lease = $3, \
        leased_until = clock_timestamp() + $4 * interval '1 millisecond' \
        WHERE tenant = $1 AND id = $2 AND (lease IS NULL OR leased_until <= clock_timestamp())";
    LEASE_EXTEND = "UPDATE godex.conversation SET \
        leased_until = clock_timestamp() + $4 * interval '1 millisecond' \
        WHERE tenant = $1 AND id = $2 AND lease = $3";
    LEASE_END = "UPDATE godex.conversation SET lease = NULL, leased_until = NULL \
        WHERE tenant = $1 AND id = $2 AND lease = $3";
    CONVERSATION = "SELECT created, metadata FROM godex.conversation WHERE tenant = $1 AND id = $2";
    HIDDEN_FORGET = "UPDATE godex.item i SET body = '' WHERE i.tenant = $1 AND i.segment = $2 AND i.hidden IS NOT NULL \
        AND length(i.body) > 0 \
        AND NOT EXISTS (SELECT 1 FROM godex.response r WHERE r.tenant = $1 AND r.segment = $2 \
        AND r.gone = 0 AND r.upto > i.pos AND r.upto <= i.hidden) \
        AND NOT EXISTS (SELECT 1 FROM godex.segment s WHERE s.tenant = $1 AND s.parent = $2 \
        AND s.start > i.pos AND s.start <= i.hidden)";
    CONVERSATION_FREE = "SELECT segment, upto, lease IS NOT NULL AND leased_until > clock_timestamp() \
        FROM godex.conversation WHERE tenant = $1 AND id = $2 FOR UPDATE";
    CONVERSATION_RANGE = "SELECT pos, id, CASE WHEN hidden IS NULL THEN body ELSE ''::bytea END FROM godex.item \
        WHERE tenant = $1 AND segment = $2 AND pos >= $3 AND pos < $4";

    // --- delete
    TREE = "
    WITH RECURSIVE up (segment, parent, start) AS (
      SELECT segment, parent, start FROM godex.segment WHERE tenant = $1 AND segment = $2
      UNION ALL
      SELECT s.segment, s.parent, s.start FROM up JOIN godex.segment s ON s.tenant = $1 AND s.segment = up.parent
      WHERE up.start > $3),
    tree (segment, parent, start, conversation) AS (
      SELECT s.segment, s.parent, s.start, s.conversation FROM up
      JOIN godex.segment s ON s.tenant = $1 AND s.segment = up.segment WHERE up.start <= $3
      UNION ALL
      SELECT s.segment, s.parent, s.start, s.conversation FROM tree
      JOIN godex.segment s ON s.tenant = $1 AND s.parent = tree.segment WHERE s.start > $3)
    SELECT segment, parent, start, conversation IS NOT NULL FROM tree";
    DUE = "SELECT tenant, id FROM godex.response WHERE expires IS NOT NULL AND expires <= $1 \
        ORDER BY expires LIMIT $2";
    VICTIM = there!("SELECT segment, own, upto, settings FROM godex.response WHERE tenant = $1 AND id = $2", "$3");
    RESPONSE_DELETE = "UPDATE godex.response SET gone = $3, settings = NULL, head = '', \
        expires = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $4 \
        WHERE tenant = $1 AND id = $2";
    OWNERS = "SELECT segment, own, upto, id, previous, gone FROM godex.response \
        WHERE tenant = $1 AND segment = ANY($2) AND upto > $3 AND gone <> $4";
    ITEMS_ERASE = "UPDATE godex.item SET body = NULL \
        WHERE tenant = $1 AND segment = $2 AND pos >= $3 AND pos < $4";
    ITEMS_UNSHARE = "UPDATE godex.item SET prefix = NULL WHERE tenant = $1 AND segment = ANY($2) AND pos >= $3 \
        AND prefix IS NOT NULL";
    RESPONSES_UNSHARE = "UPDATE godex.response SET prefix = NULL WHERE tenant = $1 AND segment = ANY($2) AND upto > $3 \
        AND prefix IS NOT NULL";
    REACH = "SELECT parent, conversation IS NOT NULL, greatest( \
        (SELECT max(upto) FROM godex.response WHERE tenant = $1 AND segment = $2 AND gone = 0), \
        (SELECT max(start) FROM godex.segment WHERE tenant = $1 AND parent = $2)) \
        FROM godex.segment WHERE tenant = $1 AND segment = $2";
    SEGMENT_DELETE = "DELETE FROM godex.segment WHERE tenant = $1 AND segment = $2";
    ITEMS_CUT = "DELETE FROM godex.item WHERE tenant = $1 AND segment = $2 AND pos >= $3";
    RESPONSES_CUT = "DELETE FROM godex.response WHERE tenant = $1 AND segment = $2 AND upto > $3 AND gone = $4 \
        RETURNING settings";
    SETTINGS_FORGET = "DELETE FROM godex.settings WHERE tenant = $1 AND hash = $2 \
        AND NOT EXISTS (SELECT 1 FROM godex.response WHERE tenant = $1 AND settings = $2)";
    RESPONSES_EXPIRE = "UPDATE godex.response SET gone = $4, expires = NULL, head = '' \
        WHERE tenant = $1 AND id = ANY($2) AND expires <= $3 AND gone = 0 RETURNING segment";
    RESPONSES_FORGET = "DELETE FROM godex.response WHERE tenant = $1 AND id = ANY($2) AND expires <= $3 AND gone = $4";

    // --- put
    RESPONSE_TAKEN = "SELECT 1 FROM godex.response WHERE tenant = $1 AND id = $2";
    SETTINGS_KEEP = "INSERT INTO godex.settings (tenant, hash, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    RESPONSE_NEW = "INSERT INTO godex.response (tenant, id, segment, own, middle, upto, prefix, previous, conversation, \
        status, depth, created, expires, settings, head) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
    RESPONSE_PLACE = there!(
        "SELECT segment, upto, prefix, depth, status FROM godex.response WHERE tenant = $1 AND id = $2",
        "$3"
    );
    LEASED = "SELECT segment, upto, lease FROM godex.conversation WHERE tenant = $1 AND id = $2 FOR UPDATE";
    SHARED = "SELECT segment, pos FROM godex.item WHERE tenant = $1 AND prefix = ANY($2) ORDER BY pos DESC LIMIT 1";
    SEGMENT_HOLD = "SELECT conversation IS NULL FROM godex.segment WHERE tenant = $1 AND segment = $2 FOR UPDATE";
    SEGMENT_FOLLOWED = "SELECT EXISTS (SELECT 1 FROM godex.item WHERE tenant = $1 AND segment = $2 AND pos >= $3)";
    SEGMENT_NEW = "INSERT INTO godex.segment (tenant, parent, start, conversation) VALUES ($1, $2, $3, $4) \
        RETURNING segment";
    ITEMS_NEW = "INSERT INTO godex.item (tenant, segment, pos, id, prefix, body) \
        SELECT $1, $2, $3 + n - 1, id, prefix, body \
        FROM unnest($4::bytea[], $5::bytea[], $6::bytea[]) WITH ORDINALITY AS new (id, prefix, body, n)";
    CONVERSATION_ADVANCE = "UPDATE godex.conversation SET upto = $3, lease = NULL, leased_until = NULL \
        WHERE tenant = $1 AND id = $2";

    // --- read
    TURNS = path!(
        "SELECT r.id, r.previous, r.status, r.depth, r.gone, r.own, r.middle, r.upto, r.settings, r.expires
         FROM path p CROSS JOIN LATERAL (SELECT * FROM godex.response r
         WHERE r.tenant = $1 AND r.segment = p.segment AND r.upto <= p.upto OFFSET 0) r"
    );
    ITEMS = path!(
        "SELECT i.pos, i.id, CASE WHEN i.hidden < p.upto THEN ''::bytea ELSE i.body END FROM path p
         CROSS JOIN LATERAL (SELECT * FROM godex.item i WHERE i.tenant = $1 AND i.segment = p.segment
         AND i.pos >= $3 AND i.pos < least(p.upto, $4) OFFSET 0) i"
    );
    CURSOR = path!(
        "SELECT min(i.pos), max(i.pos) FROM path p CROSS JOIN LATERAL (SELECT pos FROM godex.item i
         WHERE i.tenant = $1 AND i.id = $3 AND i.segment = p.segment AND i.pos < p.upto OFFSET 0) i"
    );
    RESPONSE = there!(
        "SELECT previous, conversation, status, created, expires, settings, head, middle, upto
         FROM godex.response WHERE tenant = $1 AND id = $2",
        "$3"
    );
    INPUTS = there!("SELECT middle FROM godex.response WHERE tenant = $1 AND id = $2", "$3");
    /// Of each of these ids the newest item that still has a body, and somebody who has it: a conversation, a branch, or
    /// a response that is there. Of many with one id only a few are looked at.
    NEWEST = "SELECT wanted.id, newest.body FROM unnest($2::bytea[]) AS wanted (id) \
        CROSS JOIN LATERAL (SELECT i.body FROM (SELECT segment, pos, body FROM godex.item \
        WHERE tenant = $1 AND id = wanted.id AND length(body) > 0 ORDER BY segment DESC, pos DESC LIMIT 8) i \
        WHERE EXISTS (SELECT 1 FROM godex.segment s \
          WHERE s.tenant = $1 AND s.segment = i.segment AND s.conversation IS NOT NULL) \
        OR EXISTS (SELECT 1 FROM godex.segment s \
          WHERE s.tenant = $1 AND s.parent = i.segment AND s.start > i.pos OFFSET 0) \
        OR (SELECT true FROM godex.response r WHERE r.tenant = $1 AND r.segment = i.segment AND r.upto > i.pos \
          AND r.gone = 0 AND (r.expires IS NULL OR r.expires > $3) ORDER BY r.upto DESC LIMIT 1) \
        LIMIT 1) newest";
    SETTINGS = "SELECT hash, body FROM godex.settings WHERE tenant = $1 AND hash = ANY($2)";

    // --- turns
    RESPONSE_STATUS = there!("SELECT status FROM godex.response WHERE tenant = $1 AND id = $2", "$3");
    TURN_LIVE = there!(
        "SELECT segment, own, middle, prefix, conversation, settings, status
         FROM godex.response WHERE tenant = $1 AND id = $2",
        "$3",
        " FOR UPDATE"
    );
    TURN_ADVANCE = there!("UPDATE godex.response SET status = $4 WHERE tenant = $1 AND id = $2 AND status < 2", "$3");
    TURN_FINISH = "UPDATE godex.response SET segment = $3, own = $4, middle = $5, upto = $6, prefix = $7, status = $8, \
        settings = $9, head = $10 WHERE tenant = $1 AND id = $2";
    ITEMS_MOVE = "UPDATE godex.item SET segment = $3, pos = pos + $4 \
        WHERE tenant = $1 AND segment = $2 AND pos >= $5";

    // --- events
    /// Holds the turn, so that nobody deletes or ends it meanwhile, and asks for a commit that does not wait for the disk.
    EVENTS_APPEND = "WITH turn AS MATERIALIZED (
        SELECT set_config('synchronous_commit', 'off', true) FROM godex.response WHERE tenant = $1 AND id = $2
        AND status < 2 AND gone = 0 AND (expires IS NULL OR expires > $6) FOR SHARE)
        INSERT INTO godex.event (tenant, response, first, next, body) SELECT $1, $2, $3, $4, $5 FROM turn
        WHERE $3 = coalesce((SELECT next FROM godex.event WHERE tenant = $1 AND response = $2
        ORDER BY first DESC LIMIT 1), 0)";
    EVENT_NEXT = "SELECT next FROM godex.event WHERE tenant = $1 AND response = $2 ORDER BY first DESC LIMIT 1";
    EVENTS_NEW = "INSERT INTO godex.event (tenant, response, first, next, body) VALUES ($1, $2, $3, $4, $5)";
    /// From the batch on that has this number; as many as a page needs, and whether each is the last.
    EVENTS = "SELECT first, body, last FROM (
        SELECT first, body, sum(length(body)) OVER (ORDER BY first) - length(body) AS before,
          lead(first) OVER (ORDER BY first) IS NULL AS last
        FROM (SELECT first, body FROM godex.event WHERE tenant = $1 AND response = $2 AND next > $3
          AND first >= coalesce((SELECT max(first) FROM godex.event
            WHERE tenant = $1 AND response = $2 AND first <= $3), 0)
          ORDER BY first LIMIT $4) batches) sized
        WHERE before < $5 ORDER BY first";
}
