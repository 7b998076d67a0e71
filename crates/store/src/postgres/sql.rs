//! Every statement that this backend runs, in one place, so that a test can ask for the plan of each. There is none
//! anywhere else: a test looks for that, too.
//!
//! No request may cost more because a store holds more. OFFSET 0 keeps the planner from another order of joins, which
//! would read the whole tenant.

use crate::statements::statements;

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

/// The rows of a tenant after a place whose bodies begin, or do not begin, so.
macro_rules! bodies {
    ($table:literal, $key:literal, $body:literal, $after:literal, $order:literal) => {
        concat!(
            "SELECT ",
            $key,
            ", ",
            $body,
            " FROM godex.",
            $table,
            " WHERE tenant = $1 AND ",
            $after,
            " AND length(",
            $body,
            ") > 0 AND (substring(",
            $body,
            " FROM 1 FOR length($4::bytea)) = $4) = $5 ORDER BY ",
            $order,
            " LIMIT $6"
        )
    };
}

/// Removes a few rows of a tenant, by an index, also if the statistics say that nearly all rows are the tenant's: they may be
/// gone. What somebody else has just locked is left for the next time.
macro_rules! erase {
    ($table:literal, $key:literal, $counts:literal) => {
        concat!(
            "WITH gone AS (DELETE FROM godex.",
            $table,
            " WHERE ctid = ANY (ARRAY(SELECT ctid FROM godex.",
            $table,
            " WHERE tenant = $1 ORDER BY ",
            $key,
            " LIMIT $2 FOR UPDATE SKIP LOCKED)) RETURNING ",
            $counts,
            " AS counts) SELECT count(*) FILTER (WHERE counts), count(*) FROM gone"
        )
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
    SECRET_WRAPPED = "SELECT value FROM godex.secret WHERE name = 'prefix_wrapped'";
    /// Whoever comes first wraps it; then nobody needs it in clear.
    SECRET_WRAP = "WITH gone AS (DELETE FROM godex.secret WHERE name = 'prefix') \
        INSERT INTO godex.secret (name, value) VALUES ('prefix_wrapped', $1) ON CONFLICT DO NOTHING";
    SECRET_REWRAP = "WITH gone AS (DELETE FROM godex.secret WHERE name = 'prefix') \
        INSERT INTO godex.secret (name, value) VALUES ('prefix_wrapped', $1) \
        ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    SECRET_UNWRAP = "WITH gone AS (DELETE FROM godex.secret WHERE name = 'prefix_wrapped') \
        INSERT INTO godex.secret (name, value) VALUES ('prefix', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    WRAPPINGS = "SELECT DISTINCT wrapping FROM godex.data_key";

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
        WHERE tenant = $1 AND id = $2 AND (lease IS NULL OR leased_until <= clock_timestamp() \
        AND NOT EXISTS (SELECT 1 FROM godex.job j \
        WHERE j.tenant = $1 AND j.conversation = $2 AND j.lease = conversation.lease))";
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
    CONVERSATION_FREE = "SELECT segment, upto, lease IS NOT NULL AND (leased_until > clock_timestamp() \
        OR EXISTS (SELECT 1 FROM godex.job j \
        WHERE j.tenant = $1 AND j.conversation = $2 AND j.lease = conversation.lease)) \
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
    /// Holds the turn, so that nobody deletes or ends it meanwhile.
    EVENTS_APPEND = "WITH turn AS MATERIALIZED (
        SELECT 1 FROM godex.response WHERE tenant = $1 AND id = $2
        AND status < 2 AND gone = 0 AND (expires IS NULL OR expires > $6) FOR SHARE)
        INSERT INTO godex.event (tenant, response, first, next, body) SELECT $1, $2, $3, $4, $5 FROM turn
        WHERE EXISTS (SELECT 1 FROM godex.log WHERE tenant = $1 AND response = $2)
        AND $3 = coalesce((SELECT next FROM godex.event WHERE tenant = $1 AND response = $2
        ORDER BY first DESC LIMIT 1), 0)
        AND ($7::bigint IS NULL OR EXISTS (SELECT 1 FROM godex.job
        WHERE tenant = $1 AND response = $2 AND attempt = $7 AND worker = $8 AND state > 0))";
    LOG_NEW = "INSERT INTO godex.log (tenant, response, next, ended) VALUES ($1, $2, $3, $4)";
    /// The number with which a log goes on.
    LOG_NEXT = "SELECT coalesce((SELECT next FROM godex.event WHERE tenant = $1 AND response = $2
        ORDER BY first DESC LIMIT 1), 0) FROM godex.log WHERE tenant = $1 AND response = $2";
    LOG_END = "UPDATE godex.log SET next = $3, ended = $4 WHERE tenant = $1 AND response = $2";
    LOG_STATUS = there!(
        "SELECT r.status, l.next, l.dropped FROM godex.response r
         LEFT JOIN godex.log l ON l.tenant = $1 AND l.response = $2 WHERE r.tenant = $1 AND r.id = $2",
        "$3"
    );
    /// One that never said anything is as good as none.
    LOGS_SWEEP = "WITH over AS MATERIALIZED (
        SELECT tenant, response, next FROM godex.log WHERE ended IS NOT NULL AND NOT dropped AND ended < $1
        ORDER BY ended LIMIT $2 FOR UPDATE SKIP LOCKED),
        marked AS (UPDATE godex.log l SET dropped = true FROM over
        WHERE l.tenant = over.tenant AND l.response = over.response AND over.next > 0),
        forgotten AS (DELETE FROM godex.log l USING over
        WHERE l.tenant = over.tenant AND l.response = over.response AND over.next = 0),
        said AS (DELETE FROM godex.event e USING over WHERE e.tenant = over.tenant AND e.response = over.response)
        SELECT count(*) FROM over";
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

    // --- jobs
    /// Held by whoever may raise the number of a tenant's jobs that run or wait. A count in the same statement would be of
    /// before the wait.
    JOBS_HOLD = "SELECT pg_advisory_xact_lock($1)";
    /// What runs, what waits, and what was claimed after it had waited and is not dispatched: what was claimed when it was
    /// begun has its first attempt.
    JOBS_COUNT = "SELECT (SELECT count(*) FROM (SELECT 1 FROM godex.job
        WHERE tenant = $1 AND background AND state > 0 ORDER BY number LIMIT $2) running),
        (SELECT count(*) FROM (SELECT 1 FROM godex.job WHERE tenant = $1 AND state = 0
          ORDER BY number LIMIT $3) waiting),
        (SELECT count(*) FROM (SELECT 1 FROM godex.job WHERE tenant = $1 AND background AND state > 0
          AND state = 1 AND attempt > 1 ORDER BY number LIMIT $3) claimed)";
    JOBS_QUEUED = "SELECT count(*) FROM (SELECT 1 FROM godex.job WHERE state = 0 ORDER BY tenant, number LIMIT $1) waiting";
    JOB_NEW = "INSERT INTO godex.job (tenant, response, background, state, attempt, worker, leased_until, created, \
        conversation, lease, request) VALUES ($1, $2, $3, $4, $5, $6, \
        CASE WHEN $6::bytea IS NOT NULL THEN clock_timestamp() + $7 * interval '1 millisecond' END, $8, $9, $10, $11)";
    JOB = "SELECT state, attempt, worker FROM godex.job WHERE tenant = $1 AND response = $2";
    JOB_BACKGROUND = "SELECT 1 FROM godex.job WHERE tenant = $1 AND response = $2 AND background";
    /// The end of a job, if it is this claim's; without a claim, whoever's it is.
    JOB_REMOVE = "DELETE FROM godex.job WHERE tenant = $1 AND response = $2 \
        AND ($3::bigint IS NULL OR attempt = $3 AND worker = $4 AND state > 0) RETURNING conversation, lease";
    /// First the turn, then its job, as whoever ends it.
    JOB_DISPATCH = "WITH turn AS MATERIALIZED (
        SELECT 1 FROM godex.response WHERE tenant = $1 AND id = $2
        AND status < 2 AND gone = 0 AND (expires IS NULL OR expires > $5) FOR UPDATE),
        dispatched AS (UPDATE godex.job SET state = 2 WHERE tenant = $1 AND response = $2
        AND attempt = $3 AND worker = $4 AND state > 0 AND EXISTS (SELECT 1 FROM turn) RETURNING 1)
        UPDATE godex.response SET status = 1 WHERE tenant = $1 AND id = $2 AND EXISTS (SELECT 1 FROM dispatched)";
    JOB_CANCEL = "UPDATE godex.job SET cancel = true WHERE tenant = $1 AND response = $2 \
        RETURNING state, attempt, worker";
    /// What waits and could run, of each tenant that has a place free, as seen without holding anything.
    JOBS_CLAIMABLE = "WITH RECURSIVE waits (tenant) AS (
        (SELECT tenant FROM godex.job WHERE state = 0 ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT j.tenant FROM godex.job j WHERE j.state = 0 AND j.tenant > waits.tenant ORDER BY j.tenant LIMIT 1)
        FROM waits WHERE waits.tenant IS NOT NULL)
        SELECT waits.tenant FROM waits CROSS JOIN LATERAL (
          SELECT number FROM godex.job j WHERE j.tenant = waits.tenant AND j.state = 0
          AND (j.worker IS NULL OR j.worker = $1) ORDER BY j.number LIMIT greatest(0, $2 - (SELECT count(*) FROM (
            SELECT 1 FROM godex.job r WHERE r.tenant = waits.tenant AND r.background AND r.state > 0
            ORDER BY r.number LIMIT $2) running))
        ) oldest WHERE waits.tenant IS NOT NULL ORDER BY oldest.number LIMIT $3";
    JOBS_CLAIM = "WITH oldest AS MATERIALIZED (
        SELECT number FROM godex.job j WHERE j.tenant = $1 AND j.state = 0 AND (j.worker IS NULL OR j.worker = $2)
        ORDER BY j.number LIMIT least($4, greatest(0, $3 - (SELECT count(*) FROM (
          SELECT 1 FROM godex.job r WHERE r.tenant = $1 AND r.background AND r.state > 0
          ORDER BY r.number LIMIT $3) running)))
        FOR UPDATE SKIP LOCKED)
        UPDATE godex.job j SET state = 1, attempt = j.attempt + 1, worker = $2,
        leased_until = clock_timestamp() + $5 * interval '1 millisecond'
        WHERE j.number = ANY (ARRAY(SELECT number FROM oldest))
        RETURNING j.tenant, j.response, j.attempt, j.conversation, j.lease, j.cancel, (SELECT coalesce(
          (SELECT next FROM godex.event e WHERE e.tenant = j.tenant AND e.response = j.response
          ORDER BY first DESC LIMIT 1), 0) FROM godex.log l WHERE l.tenant = j.tenant AND l.response = j.response),
        j.number, j.request, j.created";
    /// Keys whose response is stored need no extending any more, and one that nobody gave back is free when its time is over.
    HEARTBEAT = "WITH keys AS (UPDATE godex.idempotency i SET
        leased_until = clock_timestamp() + $2 * interval '1 millisecond',
        worker = CASE WHEN NOT EXISTS (SELECT 1 FROM godex.response r
          WHERE r.tenant = i.tenant AND r.id = i.response OFFSET 0) THEN i.worker END
        WHERE i.worker = $1 AND i.expires > statement_timestamp()),
        mine AS MATERIALIZED (SELECT number FROM godex.job WHERE worker = $1 ORDER BY number FOR UPDATE)
        UPDATE godex.job j SET leased_until = clock_timestamp() + $2 * interval '1 millisecond'
        WHERE j.number = ANY (ARRAY(SELECT number FROM mine)) RETURNING j.tenant, j.response, j.attempt, j.cancel";
    JOBS_RECOVER = "WITH late AS MATERIALIZED (
        SELECT number, state = 2 AS dispatched, state < 2 AND request IS NOT NULL AND NOT cancel AS again
        FROM godex.job WHERE worker IS NOT NULL AND leased_until <= statement_timestamp()
        ORDER BY leased_until LIMIT $2 FOR UPDATE SKIP LOCKED)
        UPDATE godex.job j SET state = CASE WHEN again THEN 0 ELSE 2 END,
        attempt = j.attempt + CASE WHEN again THEN 0 ELSE 1 END,
        worker = CASE WHEN NOT again THEN $1::bytea END,
        leased_until = CASE WHEN NOT again THEN clock_timestamp() + $3 * interval '1 millisecond' END
        FROM late WHERE j.number = late.number
        RETURNING j.tenant, j.response, j.attempt, j.conversation, j.lease, j.cancel, (SELECT coalesce(
          (SELECT next FROM godex.event e WHERE e.tenant = j.tenant AND e.response = j.response
          ORDER BY first DESC LIMIT 1), 0) FROM godex.log l WHERE l.tenant = j.tenant AND l.response = j.response),
        late.dispatched, late.again";

    // --- keys
    /// Takes a key that is nobody's: a new one, one that was kept long enough, one whose response is gone, one whose worker
    /// is gone without a response. The same claim again is the same claim.
    ///
    /// Who waits here for one that stores the response sees the key's row as that one left it, but not the response: what
    /// has no worker has its response, and is taken only by one who has looked again and found that it is forgotten ($9).
    KEY_CLAIM = "INSERT INTO godex.idempotency AS i (tenant, key, fingerprint, response, worker, leased_until, expires)
        VALUES ($1, $2, $3, $4, $5, clock_timestamp() + $6 * interval '1 millisecond',
        clock_timestamp() + $7 * interval '1 millisecond') ON CONFLICT (tenant, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, response = excluded.response, worker = excluded.worker,
        leased_until = excluded.leased_until, expires = excluded.expires
        WHERE i.response = excluded.response OR i.response = $9 OR coalesce((SELECT CASE
          WHEN r.gone <> 0 OR r.expires <= $8 THEN true ELSE i.expires <= clock_timestamp() END
          FROM godex.response r WHERE r.tenant = $1 AND r.id = i.response),
          i.worker IS NOT NULL AND i.leased_until <= clock_timestamp())";
    KEY = there!(
        "SELECT fingerprint, response, EXISTS (SELECT 1 FROM godex.response r WHERE r.tenant = $1 AND r.id = i.response",
        "$3",
        "), i.worker IS NULL AND NOT EXISTS (SELECT 1 FROM godex.response r WHERE r.tenant = $1 AND r.id = i.response)
         FROM godex.idempotency i WHERE i.tenant = $1 AND i.key = $2"
    );
    /// With the response that it was claimed for. No worker has it from then on.
    KEY_ANSWER = "UPDATE godex.idempotency SET worker = NULL WHERE tenant = $1 AND key = $2 AND response = $3";
    /// Not one that has its response: whoever gives it back does not know that it was stored. What was used up has none.
    KEY_RELEASE = "DELETE FROM godex.idempotency WHERE tenant = $1 AND key = $2 AND response = $3
        AND (worker IS NOT NULL OR fingerprint = ''::bytea)";
    /// Uses a key up. It is nobody's work, so no worker's end frees it; only its time does.
    KEY_USE = "INSERT INTO godex.idempotency AS i (tenant, key, fingerprint, response, worker, leased_until, expires)
        VALUES ($1, $2, ''::bytea, $3, NULL, clock_timestamp() + $4 * interval '1 millisecond',
        clock_timestamp() + $4 * interval '1 millisecond') ON CONFLICT (tenant, key) DO UPDATE SET
        fingerprint = excluded.fingerprint, response = excluded.response, worker = NULL,
        leased_until = excluded.leased_until, expires = excluded.expires
        WHERE i.expires <= clock_timestamp() OR i.response = excluded.response";
    KEY_USER = "SELECT response FROM godex.idempotency WHERE tenant = $1 AND key = $2 AND expires > clock_timestamp()";
    KEYS_SWEEP = "WITH over AS MATERIALIZED (SELECT tenant, key FROM godex.idempotency
        WHERE expires <= statement_timestamp() AND leased_until <= statement_timestamp()
        ORDER BY expires LIMIT $1 FOR UPDATE SKIP LOCKED)
        DELETE FROM godex.idempotency i USING over WHERE i.tenant = over.tenant AND i.key = over.key";

    // --- notices
    NOTICES_NEW = "INSERT INTO godex.notice (tenant, id, endpoint, due, body)
        SELECT $1, id, endpoint, clock_timestamp(), body
        FROM unnest($2::bytea[], $3::bytea[], $4::bytea[]) AS new (id, endpoint, body)";
    NOTICES_DUE = "WITH due AS MATERIALIZED (SELECT tenant, id FROM godex.notice WHERE due <= statement_timestamp()
        ORDER BY due LIMIT $1 FOR UPDATE SKIP LOCKED)
        UPDATE godex.notice n SET tries = n.tries + 1, due = clock_timestamp() + $2 * interval '1 millisecond'
        FROM due WHERE n.tenant = due.tenant AND n.id = due.id RETURNING n.tenant, n.id, n.endpoint, n.tries, n.body";
    NOTICE_DONE = "DELETE FROM godex.notice WHERE tenant = $1 AND id = $2";
    NOTICE_RETRY = "UPDATE godex.notice SET due = clock_timestamp() + $3 * interval '1 millisecond' \
        WHERE tenant = $1 AND id = $2";

    // --- hints
    TELL = "SELECT pg_notify('godex', $1)";

    // --- access
    /// Everything of one moment, or nothing if that is the version.
    ACCESS_LIST = "SELECT v.version, k.id, k.tenant, k.name, k.hash, k.hint, k.created, k.expires, k.revoked, k.replaced_by,
        k.terms FROM godex.access_version v LEFT JOIN LATERAL (SELECT * FROM godex.api_key OFFSET 0) k ON true
        WHERE v.version <> $1
        UNION ALL
        SELECT v.version, NULL, t.tenant, NULL, NULL, NULL, NULL, NULL, NULL, NULL, t.terms
        FROM godex.access_version v CROSS JOIN LATERAL (SELECT * FROM godex.tenant_terms OFFSET 0) t WHERE v.version <> $1
        ORDER BY 2, 3";
    API_KEY_NEW = "WITH made AS (INSERT INTO godex.api_key
        (id, tenant, name, hash, hint, created, expires, revoked, replaced_by, terms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING 1)
        UPDATE godex.access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM made)";
    API_KEY_REVOKE = "WITH changed AS (
        UPDATE godex.api_key SET revoked = coalesce(revoked, $2) WHERE id = $1 RETURNING 1)
        UPDATE godex.access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM changed)";
    /// In the order of their ids: so nobody waits for somebody who waits for him.
    API_KEYS_REVOKE = "WITH held AS MATERIALIZED (SELECT id FROM godex.api_key WHERE name = $1 AND revoked IS NULL
        ORDER BY id FOR UPDATE)
        UPDATE godex.api_key k SET revoked = $2 FROM held WHERE k.id = held.id AND k.revoked IS NULL RETURNING k.id";
    ACCESS_RAISE = "UPDATE godex.access_version SET version = version + 1";
    API_KEY_ROTATE = "WITH old AS (
        UPDATE godex.api_key SET replaced_by = $2, expires = least(expires, $3)
        WHERE id = $1 AND revoked IS NULL AND replaced_by IS NULL RETURNING name),
        made AS (INSERT INTO godex.api_key (id, tenant, name, hash, hint, created, expires, revoked, terms)
        SELECT $2, $4, old.name, $5, $6, $7, $8, $9, $10 FROM old RETURNING 1)
        UPDATE godex.access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM made)";
    API_KEY_DELETE = "WITH changed AS (DELETE FROM godex.api_key WHERE id = $1 RETURNING 1)
        UPDATE godex.access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM changed)";
    TENANT_TERMS_SET = "WITH changed AS (INSERT INTO godex.tenant_terms (tenant, terms) VALUES ($1, $2)
        ON CONFLICT (tenant) DO UPDATE SET terms = excluded.terms RETURNING 1)
        UPDATE godex.access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM changed)";
    TENANT_TERMS_CLEAR = "WITH changed AS (DELETE FROM godex.tenant_terms WHERE tenant = $1 RETURNING 1)
        UPDATE godex.access_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM changed)";

    // --- usage
    /// Nothing is added if the batch or a later one of the worker was counted. In the order of the keys: so nobody waits for
    /// somebody who waits for him. Sums are cut where no float could hold them, as in SQLite.
    USAGE_ADD = "WITH batch AS (
        INSERT INTO godex.usage_batch AS b (worker, number, at) VALUES ($1, $2, clock_timestamp())
        ON CONFLICT (worker) DO UPDATE SET number = excluded.number, at = excluded.at WHERE b.number < excluded.number
        RETURNING 1)
        INSERT INTO godex.usage AS u (tenant, hour, key, provider, model, requests, unpriced, input, cached, output,
        reasoning, tool_calls, nanodollars)
        SELECT n.* FROM unnest($3::bytea[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bigint[], $9::bigint[],
          $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[])
          AS n (tenant, hour, key, provider, model, requests, unpriced, input, cached, output, reasoning, tool_calls, nanodollars)
        WHERE EXISTS (SELECT 1 FROM batch) ORDER BY n.tenant, n.hour, n.key, n.provider, n.model
        ON CONFLICT (tenant, hour, key, provider, model) DO UPDATE SET
        requests = least(u.requests + excluded.requests, 9007199254740992),
        unpriced = least(u.unpriced + excluded.unpriced, 9007199254740992),
        input = least(u.input + excluded.input, 9007199254740992),
        cached = least(u.cached + excluded.cached, 9007199254740992),
        output = least(u.output + excluded.output, 9007199254740992),
        reasoning = least(u.reasoning + excluded.reasoning, 9007199254740992),
        tool_calls = least(u.tool_calls + excluded.tool_calls, 9007199254740992),
        nanodollars = least(u.nanodollars + excluded.nanodollars, 9007199254740992)";
    USAGE_BATCHES_SWEEP = "DELETE FROM godex.usage_batch WHERE worker IN (SELECT worker FROM godex.usage_batch
        WHERE at <= clock_timestamp() - $1 * interval '1 millisecond' FOR UPDATE SKIP LOCKED)";
    USAGE = "SELECT CASE WHEN $6::bigint > 0 THEN hour - hour % $6 ELSE 0 END AS h, CASE WHEN $7 THEN tenant ELSE ''::bytea END AS t,
        CASE WHEN $8 THEN key ELSE ''::bytea END AS k, CASE WHEN $9 THEN provider ELSE ''::bytea END AS p,
        CASE WHEN $10 THEN model ELSE ''::bytea END AS m,
        least(sum(requests), 9223372036854775807)::bigint, least(sum(unpriced), 9223372036854775807)::bigint,
        least(sum(input), 9223372036854775807)::bigint,
        least(sum(cached), 9223372036854775807)::bigint, least(sum(output), 9223372036854775807)::bigint,
        least(sum(reasoning), 9223372036854775807)::bigint, least(sum(tool_calls), 9223372036854775807)::bigint, least(sum(nanodollars), 9223372036854775807)::bigint
        FROM godex.usage WHERE hour >= $1 AND hour < $2 AND (cardinality($3::bytea[]) = 0 OR tenant = ANY($3))
        AND (cardinality($4::bytea[]) = 0 OR key = ANY($4)) AND (cardinality($5::bytea[]) = 0 OR model = ANY($5))
        GROUP BY h, t, k, p, m ORDER BY h, t, k, p, m";
    SPENT = "SELECT least(coalesce(CASE WHEN w.by_key
        THEN (SELECT sum(nanodollars) FROM godex.usage u WHERE u.key = w.name AND u.hour >= w.since)
        ELSE (SELECT sum(nanodollars) FROM godex.usage u WHERE u.tenant = w.name AND u.hour >= w.since)
        END, 0), 9223372036854775807)::bigint
        FROM unnest($1::boolean[], $2::bytea[], $3::bigint[]) WITH ORDINALITY AS w (by_key, name, since, n) ORDER BY w.n";
    // --- encryption
    DATA_KEYS = "SELECT number, wrapped, since > clock_timestamp(), retired IS NOT NULL, sealed_only FROM godex.data_key \
        WHERE tenant = $1 AND number > 0";
    DATA_KEY_NEW = "INSERT INTO godex.data_key (tenant, number, wrapped, wrapping, since, sealed_only) VALUES ($1, $2, $3, $4, \
        clock_timestamp() + $5 * interval '1 millisecond', coalesce((SELECT bool_or(sealed_only) FROM godex.data_key \
        WHERE tenant = $1 AND number > 0), false)) ON CONFLICT DO NOTHING";
    DATA_KEY_WRAP = "UPDATE godex.data_key SET wrapped = $3, wrapping = $4 WHERE tenant = $1 AND number = $2";
    DATA_KEYS_RETIRE = "UPDATE godex.data_key SET retired = coalesce(retired, clock_timestamp()) \
        WHERE tenant = $1 AND number > 0";
    DATA_KEYS_SEALED_ONLY = "UPDATE godex.data_key SET sealed_only = true WHERE tenant = $1 AND number > 0";
    /// All that have a successor, or are retired, since that long.
    DATA_KEYS_FORGET = "DELETE FROM godex.data_key k WHERE k.retired < clock_timestamp() - $1 * interval '1 millisecond' \
        OR EXISTS (SELECT 1 FROM godex.data_key newer WHERE newer.tenant = k.tenant AND newer.number > k.number \
        AND newer.since < clock_timestamp() - $1 * interval '1 millisecond')";
    DATA_KEYS_KEPT = "SELECT count(*) FROM godex.data_key k WHERE k.retired IS NOT NULL \
        OR EXISTS (SELECT 1 FROM godex.data_key newer WHERE newer.tenant = k.tenant AND newer.number > k.number)";
    DATA_KEYS_ERASE = "DELETE FROM godex.data_key WHERE tenant = $1 AND number > 0";
    BODIES_ITEM = bodies!("item", "id, segment, pos", "body", "(segment, pos) > ($2, $3)", "segment, pos");
    BODIES_RESPONSE = bodies!("response", "id, 0::bigint, 0::bigint", "head", "(id, 0::bigint) > ($2, $3)", "id");
    BODIES_SETTINGS = bodies!("settings", "hash, 0::bigint, 0::bigint", "body", "(hash, 0::bigint) > ($2, $3)", "hash");
    BODIES_CONVERSATION = bodies!("conversation", "id, 0::bigint, 0::bigint", "metadata", "(id, 0::bigint) > ($2, $3)", "id");
    BODIES_EVENT =
        bodies!("event", "response, 0::bigint, first", "body", "(response, first) > ($2, $3)", "response, first");
    BODIES_JOB = bodies!("job", "response, 0::bigint, 0::bigint", "request", "(response, 0::bigint) > ($2, $3)", "response");
    BODIES_NOTICE = bodies!("notice", "id, 0::bigint, 0::bigint", "body", "(id, 0::bigint) > ($2, $3)", "id");
    /// Only if it is what was read.
    BODY_ITEM = "UPDATE godex.item SET body = $5 WHERE tenant = $1 AND segment = $2 AND pos = $3 AND body = $4";
    BODY_RESPONSE = "UPDATE godex.response SET head = $4 WHERE tenant = $1 AND id = $2 AND head = $3";
    BODY_SETTINGS = "UPDATE godex.settings SET body = $4 WHERE tenant = $1 AND hash = $2 AND body = $3";
    BODY_CONVERSATION = "UPDATE godex.conversation SET metadata = $4 WHERE tenant = $1 AND id = $2 AND metadata = $3";
    BODY_EVENT = "UPDATE godex.event SET body = $5 WHERE tenant = $1 AND response = $2 AND first = $3 AND body = $4";
    BODY_JOB = "UPDATE godex.job SET request = $4 WHERE tenant = $1 AND response = $2 AND request = $3";
    BODY_NOTICE = "UPDATE godex.notice SET body = $4 WHERE tenant = $1 AND id = $2 AND body = $3";

    // --- share
    SHARES_TAKE = "SELECT granted, remaining, wait FROM godex.take_shares($1, $2, $3, $4, $5) ORDER BY number";
    PLACES_HOLD = "SELECT godex.hold_places($1, $2, $3, $4, $5)";
    /// And forgets what nobody uses any more.
    PLACES_KEEP = "WITH shares AS (DELETE FROM godex.share WHERE subject IN (SELECT subject FROM godex.share
        WHERE used <= clock_timestamp() - interval '1 hour' FOR UPDATE SKIP LOCKED)),
        places AS (DELETE FROM godex.place WHERE (subject, worker) IN (SELECT subject, worker FROM godex.place
        WHERE until <= clock_timestamp() - interval '1 hour' AND worker <> $1 FOR UPDATE SKIP LOCKED))
        SELECT godex.keep_places($1, $2)";

    // --- holdings
    TENANT_NEXT = "SELECT least(
        (SELECT tenant FROM godex.response WHERE tenant > $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.conversation WHERE tenant > $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.item WHERE tenant > $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.segment WHERE tenant > $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.settings WHERE tenant > $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.event WHERE tenant > $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.log WHERE tenant > $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.job WHERE tenant > $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.idempotency WHERE tenant > $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.notice WHERE tenant > $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.usage WHERE tenant > $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.data_key WHERE tenant > $1 ORDER BY tenant LIMIT 1))";
    /// How many of the next few are there, how many these were, and where to go on.
    RESPONSES_COUNT = "WITH page AS MATERIALIZED (SELECT id, gone = 0 AND (expires IS NULL OR expires > $3) AS there
        FROM godex.response WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $4)
        SELECT count(*) FILTER (WHERE there), count(*), (SELECT id FROM page ORDER BY id DESC LIMIT 1) FROM page";
    CONVERSATIONS_COUNT = "WITH page AS MATERIALIZED (SELECT id FROM godex.conversation
        WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3)
        SELECT count(*), count(*), (SELECT id FROM page ORDER BY id DESC LIMIT 1) FROM page";
    RESPONSES_HELD = "SELECT id, created, expires, status, previous, conversation FROM godex.response
        WHERE tenant = $1 AND id > $2 AND gone = 0 AND (expires IS NULL OR expires > $3) ORDER BY id LIMIT $4";
    CONVERSATIONS_HELD = "SELECT id, created FROM godex.conversation WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3";
    OWN_PLACES = there!("SELECT own, middle FROM godex.response WHERE tenant = $1 AND id = $2", "$3");
    /// By the indexes, also if the statistics say that nearly all rows are the tenant's: they may be gone.
    TENANT_HAS = "SELECT coalesce($1 IN (
        (SELECT tenant FROM godex.response WHERE tenant >= $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.conversation WHERE tenant >= $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.item WHERE tenant >= $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.segment WHERE tenant >= $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.settings WHERE tenant >= $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.event WHERE tenant >= $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.log WHERE tenant >= $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.job WHERE tenant >= $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.idempotency WHERE tenant >= $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.notice WHERE tenant >= $1 ORDER BY tenant LIMIT 1),
        (SELECT tenant FROM godex.usage WHERE tenant >= $1 ORDER BY tenant LIMIT 1)), false)";
    ERASE_JOBS = erase!("job", "tenant, response", "true");
    /// Those that were there, and what was left of others.
    ERASE_RESPONSES = erase!("response", "tenant, id", "gone = 0");
    ERASE_CONVERSATIONS = erase!("conversation", "tenant, id", "true");
    ERASE_LOGS = erase!("log", "tenant, response", "true");
    ERASE_EVENTS = erase!("event", "tenant, response, first", "true");
    ERASE_ITEMS = erase!("item", "tenant, segment, pos", "true");
    ERASE_SEGMENTS = erase!("segment", "tenant, segment", "true");
    ERASE_SETTINGS = erase!("settings", "tenant, hash", "true");
    ERASE_KEYS = erase!("idempotency", "tenant, key", "true");
    ERASE_NOTICES = erase!("notice", "tenant, id", "true");
    ERASE_USAGE = erase!("usage", "tenant, hour, key, provider, model", "true");
}
