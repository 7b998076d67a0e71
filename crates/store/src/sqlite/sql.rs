//! Every statement that this backend runs, in one place, so that a test can ask for the plan of each. There is none
//! anywhere else: a test looks for that, too.
//!
//! No request may cost more because a store holds more. Where SQLite would choose otherwise, a statement says which way
//! to go: `INDEXED BY` names the index (without it the statement fails rather than scans), `CROSS JOIN` keeps the order.

use crate::statements::statements;

/// The segments of a response's history, each with the end of what it contributes. One step per fork, not per turn.
macro_rules! path {
    ($rest:literal) => {
        concat!(
            "WITH RECURSIVE path (segment, parent, start, upto) AS (
               SELECT s.segment, s.parent, s.start, r.upto FROM response r
               CROSS JOIN segment s ON s.tenant = r.tenant AND s.segment = r.segment
               WHERE r.tenant = ?1 AND r.id = ?2
               UNION ALL
               SELECT s.segment, s.parent, s.start, p.start FROM path p
               CROSS JOIN segment s ON s.tenant = ?1 AND s.segment = p.parent) ",
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
            " FROM ",
            $table,
            " WHERE tenant = ?1 AND ",
            $after,
            " AND length(",
            $body,
            ") > 0 AND (substr(",
            $body,
            ", 1, length(?4)) = ?4) = ?5 ORDER BY ",
            $order,
            " LIMIT ?6"
        )
    };
}

/// Removes a few rows of a tenant, and says of each whether it counts.
macro_rules! erase_rows {
    ($table:literal, $index:literal, $counts:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE rowid IN (SELECT rowid FROM ",
            $table,
            " INDEXED BY ",
            $index,
            " WHERE tenant = ?1 LIMIT ?2) RETURNING ",
            $counts
        )
    };
}

/// As [`erase_rows`], of a table without row ids.
macro_rules! erase_keys {
    ($table:literal, $key:literal, $columns:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE ",
            $key,
            " IN (SELECT ",
            $columns,
            " FROM ",
            $table,
            " WHERE tenant = ?1 LIMIT ?2) RETURNING 1"
        )
    };
}

statements! {
    // --- sqlite
    PING = "SELECT count(*) FROM secret";

    // --- conversations
    CONVERSATION_TAKEN = "SELECT 1 FROM conversation WHERE tenant = ?1 AND id = ?2";
    CONVERSATION_NEW = "INSERT INTO conversation (tenant, id, segment, upto, created, used, metadata) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    CONVERSATION = "SELECT created, metadata FROM conversation WHERE tenant = ?1 AND id = ?2";
    CONVERSATION_METADATA = "UPDATE conversation SET metadata = ?3 WHERE tenant = ?1 AND id = ?2";
    CONVERSATION_DELETE = "DELETE FROM conversation WHERE tenant = ?1 AND id = ?2 RETURNING segment";
    SEGMENT_DISOWN = "UPDATE segment SET conversation = NULL WHERE tenant = ?1 AND segment = ?2";
    CONVERSATION_CURSOR = "SELECT min(pos), max(pos) FROM item INDEXED BY item_named \
        WHERE tenant = ?1 AND id = ?3 AND segment = ?2";
    CONVERSATION_ITEM = "SELECT body FROM item INDEXED BY item_named \
        WHERE tenant = ?1 AND id = ?3 AND segment = ?2 AND hidden IS NULL AND length(body) > 0 \
        ORDER BY pos DESC LIMIT 1";
    /// Which of these ids items of the conversation have.
    CONVERSATION_HAS = "SELECT wanted.value FROM rarray(?3) AS wanted \
        WHERE EXISTS (SELECT 1 FROM item INDEXED BY item_named \
        WHERE tenant = ?1 AND id = wanted.value AND segment = ?2 AND hidden IS NULL AND length(body) > 0)";
    CONVERSATION_HIDE = "UPDATE item INDEXED BY item_named SET hidden = ?4 \
        WHERE tenant = ?1 AND id = ?3 AND segment = ?2 AND hidden IS NULL AND length(body) > 0";
    HIDDEN_FORGET = "UPDATE item INDEXED BY item_hidden SET body = x'' \
        WHERE tenant = ?1 AND segment = ?2 AND hidden IS NOT NULL AND length(body) > 0 \
        AND NOT EXISTS (SELECT 1 FROM response r WHERE r.tenant = ?1 AND r.segment = ?2 AND r.gone = 0 \
        AND r.upto > item.pos AND r.upto <= item.hidden) \
        AND NOT EXISTS (SELECT 1 FROM segment s WHERE s.tenant = ?1 AND s.parent = ?2 \
        AND s.start > item.pos AND s.start <= item.hidden)";
    LEASE_BEGIN = "UPDATE conversation SET lease = ?3, leased_until = ?4 WHERE tenant = ?1 AND id = ?2";
    LEASE_EXTEND = "UPDATE conversation SET leased_until = ?4 WHERE tenant = ?1 AND id = ?2 AND lease = ?3";
    LEASE_END = "UPDATE conversation SET lease = NULL, leased_until = NULL \
        WHERE tenant = ?1 AND id = ?2 AND lease = ?3";
    /// Whether somebody's turn is on: one whose lease lasts, or whose job is there.
    LEASE = "SELECT lease IS NOT NULL AND (leased_until > ?3 OR EXISTS (SELECT 1 FROM job j INDEXED BY job_conversation \
        WHERE j.tenant = ?1 AND j.conversation = ?2 AND j.lease = conversation.lease)) \
        FROM conversation WHERE tenant = ?1 AND id = ?2";
    CONVERSATION_PLACE = "SELECT segment, upto FROM conversation WHERE tenant = ?1 AND id = ?2";
    CONVERSATION_RANGE = "SELECT pos, id, CASE WHEN hidden IS NULL THEN body ELSE x'' END FROM item \
        WHERE tenant = ?1 AND segment = ?2 AND pos >= ?3 AND pos < ?4";
    CONVERSATION_TOUCH = "UPDATE conversation SET used = ?3 WHERE tenant = ?1 AND id = ?2";

    // --- delete
    NOW = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)";
    TREE = "
    WITH RECURSIVE up (segment, parent, start) AS (
      SELECT segment, parent, start FROM segment WHERE tenant = ?1 AND segment = ?2
      UNION ALL
      SELECT s.segment, s.parent, s.start FROM up CROSS JOIN segment s ON s.tenant = ?1 AND s.segment = up.parent
      WHERE up.start > ?3),
    tree (segment, parent, start, conversation) AS (
      SELECT s.segment, s.parent, s.start, s.conversation FROM up
      CROSS JOIN segment s ON s.tenant = ?1 AND s.segment = up.segment WHERE up.start <= ?3
      UNION ALL
      SELECT s.segment, s.parent, s.start, s.conversation FROM tree
      CROSS JOIN segment s INDEXED BY segment_branch
      ON s.tenant = ?1 AND s.parent = tree.segment AND s.start > ?3)
    SELECT segment, parent, start, conversation IS NOT NULL FROM tree";
    VICTIM = there!("SELECT segment, own, upto, settings FROM response WHERE tenant = ?1 AND id = ?2", "?3");
    RESPONSE_DELETE = "UPDATE response SET gone = ?3, expires = ?4, settings = NULL, head = x'' \
        WHERE tenant = ?1 AND id = ?2";
    OWNERS = "SELECT own, upto, id, previous, gone FROM response \
        WHERE tenant = ?1 AND segment = ?2 AND upto > ?3 AND gone <> ?4";
    ITEMS_ERASE = "UPDATE item SET body = NULL WHERE tenant = ?1 AND segment = ?2 AND pos >= ?3 AND pos < ?4";
    ITEMS_UNSHARE = "UPDATE item SET prefix = NULL WHERE tenant = ?1 AND segment = ?2 AND pos >= ?3";
    RESPONSES_UNSHARE = "UPDATE response SET prefix = NULL WHERE tenant = ?1 AND segment = ?2 AND upto > ?3";
    REACH = "SELECT parent, conversation IS NOT NULL, \
        (SELECT max(upto) FROM response WHERE tenant = ?1 AND segment = ?2 AND gone = 0), \
        (SELECT max(start) FROM segment WHERE tenant = ?1 AND parent = ?2) \
        FROM segment WHERE tenant = ?1 AND segment = ?2";
    SEGMENT_DELETE = "DELETE FROM segment WHERE tenant = ?1 AND segment = ?2";
    ITEMS_CUT = "DELETE FROM item WHERE tenant = ?1 AND segment = ?2 AND pos >= ?3";
    RESPONSES_CUT = "DELETE FROM response WHERE tenant = ?1 AND segment = ?2 AND upto > ?3 AND gone = ?4 RETURNING settings";
    SETTINGS_FORGET = "DELETE FROM settings WHERE tenant = ?1 AND hash = ?2 \
        AND NOT EXISTS (SELECT 1 FROM response WHERE tenant = ?1 AND settings = ?2)";
    RESPONSE_EXPIRE = "UPDATE response SET gone = ?3, expires = NULL, head = x'' WHERE tenant = ?1 AND id = ?2";
    DUE = "SELECT tenant, id, segment, gone FROM response WHERE expires IS NOT NULL AND expires <= ?1 \
        ORDER BY expires LIMIT ?2";
    RESPONSE_FORGET = "DELETE FROM response WHERE tenant = ?1 AND id = ?2";

    // --- evict
    OLDEST = "SELECT tenant, id, segment, used, 0 FROM response WHERE gone = 0 AND status > 1 \
        UNION ALL SELECT tenant, id, segment, used, 1 FROM conversation ORDER BY used LIMIT 2";
    LIVE = "SELECT responses FROM live";

    // --- open
    LEASES_CLEAR = "UPDATE conversation SET lease = NULL WHERE lease IS NOT NULL \
        AND NOT EXISTS (SELECT 1 FROM job j INDEXED BY job_conversation \
        WHERE j.tenant = conversation.tenant AND j.conversation = conversation.id AND j.lease = conversation.lease)";
    JOBS_ORPHAN = "UPDATE job INDEXED BY job_worker SET leased_until = 0 WHERE worker IS NOT NULL";
    KEYS_ORPHAN = "UPDATE idempotency INDEXED BY idempotency_worker SET leased_until = 0 WHERE worker IS NOT NULL";
    SCHEMA = "SELECT count(*) FROM sqlite_schema";
    SECRET_NEW = "INSERT INTO secret (name, value) VALUES ('prefix', ?1) ON CONFLICT DO NOTHING";
    SECRET = "SELECT value FROM secret WHERE name = 'prefix'";
    SECRET_WRAPPED = "SELECT value FROM secret WHERE name = 'prefix_wrapped'";
    SECRET_WRAP = "INSERT INTO secret (name, value) VALUES ('prefix_wrapped', ?1) \
        ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    SECRET_ADD = "INSERT OR REPLACE INTO secret (name, value) VALUES (?1, ?2)";
    SECRET_NAMED = "SELECT value FROM secret WHERE name = ?1";
    SECRET_REMOVE = "DELETE FROM secret WHERE name = ?1";
    SECRET_FORGET = "DELETE FROM secret WHERE name = 'prefix'";
    SECRET_UNWRAP = "DELETE FROM secret WHERE name = 'prefix_wrapped'";
    WRAPPINGS = "SELECT DISTINCT wrapping FROM data_key";

    // --- put
    RESPONSE_TAKEN = "SELECT 1 FROM response WHERE tenant = ?1 AND id = ?2";
    SETTINGS_KEEP = "INSERT INTO settings (tenant, hash, body) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    RESPONSE_NEW = "INSERT INTO response (tenant, id, segment, own, middle, upto, prefix, previous, conversation, status, \
        depth, created, expires, used, settings, head) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    RESPONSE_PLACE = there!("SELECT segment, upto, prefix, depth, status FROM response WHERE tenant = ?1 AND id = ?2", "?3");
    LEASED = "SELECT segment, upto, lease FROM conversation WHERE tenant = ?1 AND id = ?2";
    SHARED = "SELECT segment, pos FROM item WHERE tenant = ?1 AND prefix = ?2 LIMIT 1";
    SEGMENT_FREE = "SELECT conversation IS NULL AND NOT EXISTS (SELECT 1 FROM item \
        WHERE tenant = ?1 AND segment = ?2 AND pos >= ?3) \
        FROM segment WHERE tenant = ?1 AND segment = ?2";
    SEGMENT_LAST = "SELECT segment FROM segment WHERE tenant = ?1 ORDER BY segment DESC LIMIT 1";
    SEGMENT_NEW = "INSERT INTO segment (tenant, segment, parent, start, conversation) VALUES (?1, ?2, ?3, ?4, ?5)";
    ITEM_NEW = "INSERT INTO item (tenant, segment, pos, id, prefix, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    CONVERSATION_ADVANCE = "UPDATE conversation SET upto = ?3, lease = NULL, leased_until = NULL WHERE tenant = ?1 AND id = ?2";

    // --- read
    TURNS = path!(
        "SELECT r.id, r.previous, r.status, r.depth, r.gone, r.own, r.middle, r.upto, r.settings, r.expires
         FROM path p CROSS JOIN response r ON r.tenant = ?1 AND r.segment = p.segment AND r.upto <= p.upto"
    );
    ITEMS = path!(
        "SELECT i.pos, i.id, CASE WHEN i.hidden < p.upto THEN x'' ELSE i.body END FROM path p
         CROSS JOIN item i ON i.tenant = ?1 AND i.segment = p.segment AND i.pos >= ?3 AND i.pos < min(p.upto, ?4)"
    );
    CURSOR = path!(
        "SELECT min(i.pos), max(i.pos) FROM path p CROSS JOIN item i INDEXED BY item_named
         ON i.tenant = ?1 AND i.id = ?3 AND i.segment = p.segment AND i.pos < p.upto"
    );
    SETTINGS = "SELECT body FROM settings WHERE tenant = ?1 AND hash = ?2";
    RESPONSE = there!(
        "SELECT previous, conversation, status, created, expires, settings, head, middle, upto
         FROM response WHERE tenant = ?1 AND id = ?2",
        "?3"
    );
    INPUTS = there!("SELECT middle FROM response WHERE tenant = ?1 AND id = ?2", "?3");
    /// Of each of these ids the newest item that still has a body, and somebody who has it: a conversation, a branch, or
    /// a response that is there. Of many with one id only a few are looked at.
    NEWEST = "SELECT wanted.value, (SELECT i.body FROM (
        SELECT segment, pos, body FROM item INDEXED BY item_named
        WHERE tenant = ?1 AND id = wanted.value AND length(body) > 0 ORDER BY segment DESC, pos DESC LIMIT 8) i
        WHERE EXISTS (SELECT 1 FROM segment s
          WHERE s.tenant = ?1 AND s.segment = i.segment AND s.conversation IS NOT NULL)
        OR EXISTS (SELECT 1 FROM segment s INDEXED BY segment_branch
          WHERE s.tenant = ?1 AND s.parent = i.segment AND s.start > i.pos)
        OR (SELECT 1 FROM response r INDEXED BY response_segment
          WHERE r.tenant = ?1 AND r.segment = i.segment AND r.upto > i.pos
          AND r.gone = 0 AND (r.expires IS NULL OR r.expires > ?3) ORDER BY r.upto DESC LIMIT 1)
        LIMIT 1)
        FROM rarray(?2) AS wanted";
    RESPONSE_TOUCH = "UPDATE response SET used = ?3 WHERE tenant = ?1 AND id = ?2";

    // --- turns
    RESPONSE_STATUS = there!("SELECT status FROM response WHERE tenant = ?1 AND id = ?2", "?3");
    TURN_LIVE = there!(
        "SELECT segment, own, middle, prefix, conversation, settings, status
         FROM response WHERE tenant = ?1 AND id = ?2",
        "?3"
    );
    TURN_ADVANCE = "UPDATE response SET status = ?3 WHERE tenant = ?1 AND id = ?2";
    TURN_FINISH = "UPDATE response SET segment = ?3, own = ?4, middle = ?5, upto = ?6, prefix = ?7, status = ?8, \
        settings = ?9, head = ?10 WHERE tenant = ?1 AND id = ?2";
    ITEMS_MOVE = "UPDATE item SET segment = ?3, pos = pos + ?4 WHERE tenant = ?1 AND segment = ?2 AND pos >= ?5";

    // --- events
    LOG_NEW = "INSERT INTO log (tenant, response, next, ended) VALUES (?1, ?2, ?3, ?4)";
    LOG = "SELECT next, dropped FROM log WHERE tenant = ?1 AND response = ?2";
    LOG_END = "UPDATE log SET next = ?3, ended = ?4 WHERE tenant = ?1 AND response = ?2";
    LOGS_ENDED = "SELECT tenant, response, next FROM log INDEXED BY log_ended \
        WHERE ended IS NOT NULL AND dropped = 0 AND ended < ?1 ORDER BY ended LIMIT ?2";
    LOG_DROP = "UPDATE log SET dropped = 1 WHERE tenant = ?1 AND response = ?2";
    LOG_FORGET = "DELETE FROM log WHERE tenant = ?1 AND response = ?2";
    EVENTS_DROP = "DELETE FROM event WHERE tenant = ?1 AND response = ?2";
    EVENT_NEXT = "SELECT next FROM event WHERE tenant = ?1 AND response = ?2 ORDER BY first DESC LIMIT 1";
    EVENTS_NEW = "INSERT INTO event (tenant, response, first, next, body) VALUES (?1, ?2, ?3, ?4, ?5)";
    /// From the batch on that has this number.
    EVENTS = "SELECT first, body FROM event WHERE tenant = ?1 AND response = ?2 AND next > ?3 \
        AND first >= coalesce((SELECT max(first) FROM event WHERE tenant = ?1 AND response = ?2 AND first <= ?3), 0) \
        ORDER BY first LIMIT ?4";

    // --- jobs
    JOBS_RUNNING = "SELECT count(*) FROM (SELECT 1 FROM job INDEXED BY job_running \
        WHERE tenant = ?1 AND background = 1 AND state > 0 LIMIT ?2)";
    JOBS_WAITING = "SELECT count(*) FROM (SELECT 1 FROM job INDEXED BY job_waiting \
        WHERE tenant = ?1 AND state = 0 LIMIT ?2)";
    /// Of those that have waited: what was claimed when it was begun has its first attempt.
    JOBS_CLAIMED = "SELECT count(*) FROM (SELECT 1 FROM job INDEXED BY job_running \
        WHERE tenant = ?1 AND background = 1 AND state > 0 AND state = 1 AND attempt > 1 LIMIT ?2)";
    JOBS_QUEUED = "SELECT count(*) FROM (SELECT 1 FROM job INDEXED BY job_waiting WHERE state = 0 LIMIT ?1)";
    JOB_NEW = "INSERT INTO job (tenant, response, background, state, attempt, worker, leased_until, created, \
        conversation, lease, request) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    JOB = "SELECT state, attempt, worker, conversation, lease FROM job WHERE tenant = ?1 AND response = ?2";
    JOB_BACKGROUND = "SELECT 1 FROM job WHERE tenant = ?1 AND response = ?2 AND background = 1";
    JOB_REMOVE = "DELETE FROM job WHERE tenant = ?1 AND response = ?2";
    JOB_DISPATCH = "UPDATE job SET state = 2 WHERE tenant = ?1 AND response = ?2";
    JOB_CANCEL = "UPDATE job SET cancel = 1 WHERE tenant = ?1 AND response = ?2";
    /// The tenants whose jobs wait, each found by one step.
    JOB_TENANTS = "
    WITH RECURSIVE waits (tenant) AS (
      SELECT (SELECT tenant FROM job INDEXED BY job_waiting WHERE state = 0 ORDER BY tenant LIMIT 1)
      UNION ALL
      SELECT (SELECT j.tenant FROM job j INDEXED BY job_waiting WHERE j.state = 0 AND j.tenant > waits.tenant
        ORDER BY j.tenant LIMIT 1) FROM waits WHERE waits.tenant IS NOT NULL)
    SELECT tenant FROM waits WHERE tenant IS NOT NULL";
    JOBS_OLDEST = "SELECT number FROM job INDEXED BY job_waiting WHERE tenant = ?1 AND state = 0 \
        AND (worker IS NULL OR worker = ?2) ORDER BY number LIMIT ?3";
    JOB_CLAIM = "UPDATE job SET state = 1, attempt = attempt + 1, worker = ?2, leased_until = ?3 WHERE number = ?1 \
        RETURNING tenant, response, attempt, conversation, lease, request, created, cancel";
    JOBS_EXTEND = "UPDATE job INDEXED BY job_worker SET leased_until = ?2 WHERE worker = ?1 \
        RETURNING tenant, response, attempt, cancel";
    JOBS_LATE = "SELECT number, state, request IS NOT NULL, cancel FROM job INDEXED BY job_lease \
        WHERE worker IS NOT NULL AND leased_until <= ?1 ORDER BY leased_until LIMIT ?2";
    JOB_REQUEUE = "UPDATE job SET state = 0, worker = NULL, leased_until = NULL WHERE number = ?1";
    JOB_TAKE = "UPDATE job SET state = 2, attempt = attempt + 1, worker = ?2, leased_until = ?3 WHERE number = ?1 \
        RETURNING tenant, response, attempt, conversation, lease";

    // --- keys
    /// Takes a key that is nobody's: a new one, one that was kept long enough, one whose response is gone, one whose worker
    /// is gone without a response. The same claim again is the same claim.
    KEY_CLAIM = "INSERT INTO idempotency (tenant, key, fingerprint, response, worker, leased_until, expires) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (tenant, key) DO UPDATE SET fingerprint = excluded.fingerprint, \
        response = excluded.response, worker = excluded.worker, leased_until = excluded.leased_until, \
        expires = excluded.expires WHERE response = excluded.response OR CASE coalesce((SELECT gone <> 0 \
        OR expires IS NOT NULL AND expires <= ?9 FROM response r WHERE r.tenant = ?1 AND r.id = idempotency.response), -1) \
        WHEN 0 THEN idempotency.expires <= ?8 WHEN -1 THEN leased_until <= ?8 ELSE 1 END";
    KEY = there!(
        "SELECT fingerprint, response, EXISTS (SELECT 1 FROM response r WHERE r.tenant = ?1 AND r.id = i.response", "?3",
        ") FROM idempotency i WHERE i.tenant = ?1 AND i.key = ?2"
    );
    /// With the response that it was claimed for. No worker has it from then on.
    KEY_ANSWER = "UPDATE idempotency SET worker = NULL WHERE tenant = ?1 AND key = ?2 AND response = ?3";
    /// Not one that has its response: whoever gives it back does not know that it was stored. What was used up has none.
    KEY_RELEASE = "DELETE FROM idempotency WHERE tenant = ?1 AND key = ?2 AND response = ?3 \
        AND (worker IS NOT NULL OR fingerprint = x'')";
    /// Uses a key up. It is nobody's work, so no worker's end frees it; only its time does.
    KEY_USE = "INSERT INTO idempotency (tenant, key, fingerprint, response, worker, leased_until, expires) \
        VALUES (?1, ?2, x'', ?3, NULL, ?4, ?4) ON CONFLICT (tenant, key) DO UPDATE SET fingerprint = x'', \
        response = excluded.response, worker = NULL, leased_until = excluded.leased_until, expires = excluded.expires \
        WHERE idempotency.expires <= ?5 OR idempotency.response = excluded.response";
    KEY_USER = "SELECT response FROM idempotency WHERE tenant = ?1 AND key = ?2 AND expires > ?3";
    KEYS_EXTEND = "UPDATE idempotency INDEXED BY idempotency_worker SET leased_until = ?2, \
        worker = iif(EXISTS (SELECT 1 FROM response r WHERE r.tenant = idempotency.tenant \
        AND r.id = idempotency.response), NULL, worker) WHERE worker = ?1 AND expires > ?3";
    KEYS_SWEEP = "DELETE FROM idempotency WHERE (tenant, key) IN (SELECT tenant, key FROM idempotency \
        INDEXED BY idempotency_expires WHERE expires <= ?1 AND leased_until <= ?1 ORDER BY expires LIMIT ?2)";

    // --- notices
    NOTICE_NEW = "INSERT INTO notice (tenant, id, endpoint, due, body) VALUES (?1, ?2, ?3, ?4, ?5)";
    NOTICES_DUE = "UPDATE notice SET tries = tries + 1, due = ?3 WHERE rowid IN (SELECT rowid FROM notice \
        INDEXED BY notice_due WHERE due <= ?1 ORDER BY due LIMIT ?2) RETURNING tenant, id, endpoint, tries, body";
    NOTICE_DONE = "DELETE FROM notice WHERE tenant = ?1 AND id = ?2";
    NOTICE_RETRY = "UPDATE notice SET due = ?3 WHERE tenant = ?1 AND id = ?2";

    // --- access
    ACCESS_VERSION = "SELECT version FROM access_version";
    ACCESS_RAISE = "UPDATE access_version SET version = version + 1";
    API_KEYS = "SELECT id, tenant, name, hash, hint, created, expires, revoked, replaced_by, terms FROM api_key ORDER BY id";
    TENANTS_TERMS = "SELECT tenant, terms FROM tenant_terms ORDER BY tenant";
    API_KEY_TAKEN = "SELECT 1 FROM api_key WHERE id = ?1 \
        UNION ALL SELECT 1 FROM api_key INDEXED BY api_key_hash WHERE hash = ?2";
    API_KEY_NAMED = "SELECT 1 FROM api_key INDEXED BY api_key_name WHERE name = ?1 AND revoked IS NULL AND replaced_by IS NULL";
    API_KEY_NEW = "INSERT INTO api_key (id, tenant, name, hash, hint, created, expires, revoked, replaced_by, terms) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    API_KEY_REVOKE = "UPDATE api_key SET revoked = coalesce(revoked, ?2) WHERE id = ?1";
    API_KEYS_REVOKE = "UPDATE api_key SET revoked = ?2 WHERE name = ?1 AND revoked IS NULL RETURNING id";
    /// Which name a key has that is in use.
    API_KEY_NAME = "SELECT name FROM api_key WHERE id = ?1 AND revoked IS NULL AND replaced_by IS NULL";
    API_KEY_REPLACE = "UPDATE api_key SET replaced_by = ?2, expires = min(coalesce(expires, ?3), ?3) WHERE id = ?1";
    API_KEY_DELETE = "DELETE FROM api_key WHERE id = ?1";
    TENANT_TERMS_SET = "INSERT INTO tenant_terms (tenant, terms) VALUES (?1, ?2) \
        ON CONFLICT (tenant) DO UPDATE SET terms = excluded.terms";
    TENANT_TERMS_CLEAR = "DELETE FROM tenant_terms WHERE tenant = ?1";

    // --- usage
    /// Nothing, if the batch or a later one of the worker was counted.
    USAGE_BATCH = "INSERT INTO usage_batch (worker, number, at) VALUES (?1, ?2, ?3) ON CONFLICT (worker) \
        DO UPDATE SET number = excluded.number, at = excluded.at WHERE usage_batch.number < excluded.number";
    USAGE_BATCHES_SWEEP = "DELETE FROM usage_batch WHERE at <= ?1";
    /// Sums stay whole numbers that a float can hold.
    USAGE_ADD = "INSERT INTO usage (tenant, hour, key, provider, model, requests, unpriced, input, cached, output, reasoning, \
        tool_calls, nanodollars) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) \
        ON CONFLICT (tenant, hour, key, provider, model) DO UPDATE SET \
        requests = min(requests + excluded.requests, 9007199254740992), \
        unpriced = min(unpriced + excluded.unpriced, 9007199254740992), \
        input = min(input + excluded.input, 9007199254740992), cached = min(cached + excluded.cached, 9007199254740992), \
        output = min(output + excluded.output, 9007199254740992), \
        reasoning = min(reasoning + excluded.reasoning, 9007199254740992), \
        tool_calls = min(tool_calls + excluded.tool_calls, 9007199254740992), \
        nanodollars = min(nanodollars + excluded.nanodollars, 9007199254740992)";
    /// A sum of whole numbers fails when it is too large, a total does not.
    USAGE = "SELECT iif(?8 > 0, hour - hour % ?8, 0) AS h, iif(?9, tenant, '') AS t, iif(?10, key, '') AS k, \
        iif(?11, provider, '') AS p, iif(?12, model, '') AS m, \
        CAST(total(requests) AS INTEGER), CAST(total(unpriced) AS INTEGER), CAST(total(input) AS INTEGER), \
        CAST(total(cached) AS INTEGER), CAST(total(output) AS INTEGER), CAST(total(reasoning) AS INTEGER), \
        CAST(total(tool_calls) AS INTEGER), CAST(total(nanodollars) AS INTEGER) FROM usage INDEXED BY usage_hour \
        WHERE hour >= ?1 AND hour < ?2 AND (?3 OR tenant IN rarray(?4)) AND (?5 OR key IN rarray(?6)) \
        AND (?7 OR model IN rarray(?13)) GROUP BY h, t, k, p, m ORDER BY h, t, k, p, m";
    SPENT_BY_KEY = "SELECT CAST(total(nanodollars) AS INTEGER) FROM usage INDEXED BY usage_key WHERE key = ?1 AND hour >= ?2";
    SPENT_BY_TENANT = "SELECT CAST(total(nanodollars) AS INTEGER) FROM usage WHERE tenant = ?1 AND hour >= ?2";
    // --- encryption
    DATA_KEYS = "SELECT number, wrapped, retired, sealed_only FROM data_key WHERE tenant = ?1 AND number > 0";
    DATA_KEY_NEW = "INSERT INTO data_key (tenant, number, wrapped, wrapping, sealed_only) VALUES (?1, ?2, ?3, ?4, \
        NOT EXISTS (SELECT 1 FROM segment WHERE tenant = ?1 AND segment >= 0) \
        AND NOT EXISTS (SELECT 1 FROM notice WHERE tenant = ?1 AND id >= '')) ON CONFLICT DO NOTHING";
    DATA_KEY_WRAP = "UPDATE data_key SET wrapped = ?3, wrapping = ?4 WHERE tenant = ?1 AND number = ?2";
    DATA_KEYS_RETIRE = "UPDATE data_key SET retired = 1 WHERE tenant = ?1 AND number > 0";
    DATA_KEYS_SEALED_ONLY = "UPDATE data_key SET sealed_only = 1 WHERE tenant = ?1 AND number > 0";
    /// All but the last one of each tenant, and all of those who went back to clear.
    DATA_KEYS_FORGET = "DELETE FROM data_key WHERE retired <> 0 OR number < (SELECT max(newer.number) FROM data_key newer \
        WHERE newer.tenant = data_key.tenant AND newer.number > data_key.number)";
    DATA_KEYS_ERASE = "DELETE FROM data_key WHERE tenant = ?1 AND number > 0";
    BODIES_ITEM = bodies!("item", "id, segment, pos", "body", "(segment, pos) > (?2, ?3)", "segment, pos");
    BODIES_RESPONSE = bodies!("response", "id, 0, 0", "head", "(id, 0) > (?2, ?3)", "id");
    BODIES_SETTINGS = bodies!("settings", "hash, 0, 0", "body", "(hash, 0) > (?2, ?3)", "hash");
    BODIES_CONVERSATION = bodies!("conversation", "id, 0, 0", "metadata", "(id, 0) > (?2, ?3)", "id");
    BODIES_EVENT = bodies!("event", "response, 0, first", "body", "(response, first) > (?2, ?3)", "response, first");
    BODIES_JOB = bodies!("job", "response, 0, 0", "request", "(response, 0) > (?2, ?3)", "response");
    BODIES_NOTICE = bodies!("notice", "id, 0, 0", "body", "(id, 0) > (?2, ?3)", "id");
    BODY_ITEM = "UPDATE item SET body = ?4 WHERE tenant = ?1 AND segment = ?2 AND pos = ?3";
    BODY_RESPONSE = "UPDATE response SET head = ?4 WHERE tenant = ?1 AND id = ?2";
    BODY_SETTINGS = "UPDATE settings SET body = ?4 WHERE tenant = ?1 AND hash = ?2";
    BODY_CONVERSATION = "UPDATE conversation SET metadata = ?4 WHERE tenant = ?1 AND id = ?2";
    BODY_EVENT = "UPDATE event SET body = ?4 WHERE tenant = ?1 AND response = ?2 AND first = ?3";
    BODY_JOB = "UPDATE job SET request = ?4 WHERE tenant = ?1 AND response = ?2";
    BODY_NOTICE = "UPDATE notice SET body = ?4 WHERE tenant = ?1 AND id = ?2";

    // --- holdings
    TENANT_NEXT = "SELECT min(t) FROM (
        SELECT (SELECT tenant FROM response INDEXED BY response_id WHERE tenant > ?1 ORDER BY tenant LIMIT 1) AS t
        UNION ALL SELECT (SELECT tenant FROM conversation WHERE tenant > ?1 ORDER BY tenant LIMIT 1)
        UNION ALL SELECT (SELECT tenant FROM item INDEXED BY item_place WHERE tenant > ?1 ORDER BY tenant LIMIT 1)
        UNION ALL SELECT (SELECT tenant FROM segment WHERE tenant > ?1 ORDER BY tenant LIMIT 1)
        UNION ALL SELECT (SELECT tenant FROM settings INDEXED BY settings_hash WHERE tenant > ?1 ORDER BY tenant LIMIT 1)
        UNION ALL SELECT (SELECT tenant FROM event INDEXED BY event_place WHERE tenant > ?1 ORDER BY tenant LIMIT 1)
        UNION ALL SELECT (SELECT tenant FROM log WHERE tenant > ?1 ORDER BY tenant LIMIT 1)
        UNION ALL SELECT (SELECT tenant FROM job INDEXED BY job_response WHERE tenant > ?1 ORDER BY tenant LIMIT 1)
        UNION ALL SELECT (SELECT tenant FROM idempotency WHERE tenant > ?1 ORDER BY tenant LIMIT 1)
        UNION ALL SELECT (SELECT tenant FROM notice INDEXED BY notice_id WHERE tenant > ?1 ORDER BY tenant LIMIT 1)
        UNION ALL SELECT (SELECT tenant FROM usage WHERE tenant > ?1 ORDER BY tenant LIMIT 1)
        UNION ALL SELECT (SELECT tenant FROM data_key WHERE tenant > ?1 ORDER BY tenant LIMIT 1))";
    /// How many of the next few are there, how many these were, and where to go on.
    RESPONSES_COUNT = "SELECT count(*) FILTER (WHERE there), count(*), max(id) FROM (
        SELECT id, gone = 0 AND (expires IS NULL OR expires > ?3) AS there FROM response INDEXED BY response_id
        WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?4)";
    CONVERSATIONS_COUNT = "SELECT count(*), count(*), max(id) FROM (
        SELECT id FROM conversation WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3)";
    RESPONSES_HELD = "SELECT id, created, expires, status, previous, conversation FROM response INDEXED BY response_id \
        WHERE tenant = ?1 AND id > ?2 AND gone = 0 AND (expires IS NULL OR expires > ?3) ORDER BY id LIMIT ?4";
    CONVERSATIONS_HELD = "SELECT id, created FROM conversation WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
    OWN_PLACES = there!("SELECT own, middle FROM response WHERE tenant = ?1 AND id = ?2", "?3");
    ERASE_JOBS = erase_rows!("job", "job_response", "1");
    /// Those that were there, and what was left of others.
    ERASE_RESPONSES = erase_rows!("response", "response_id", "gone = 0");
    ERASE_CONVERSATIONS = erase_keys!("conversation", "(tenant, id)", "tenant, id");
    ERASE_LOGS = erase_keys!("log", "(tenant, response)", "tenant, response");
    ERASE_EVENTS = erase_rows!("event", "event_place", "1");
    ERASE_ITEMS = erase_rows!("item", "item_place", "1");
    ERASE_SEGMENTS = erase_keys!("segment", "(tenant, segment)", "tenant, segment");
    ERASE_SETTINGS = erase_rows!("settings", "settings_hash", "1");
    ERASE_KEYS = erase_keys!("idempotency", "(tenant, key)", "tenant, key");
    ERASE_NOTICES = erase_rows!("notice", "notice_id", "1");
    ERASE_USAGE = erase_keys!("usage", "(tenant, hour, key, provider, model)", "tenant, hour, key, provider, model");
}
