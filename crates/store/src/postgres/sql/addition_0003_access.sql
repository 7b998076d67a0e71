-- API keys, what tenants are allowed, usage; see SQLite's schema for what the columns mean.
CREATE TABLE godex.api_key (
    id          bytea PRIMARY KEY,
    tenant      bytea NOT NULL,
    name        bytea NOT NULL,
    hash        bytea NOT NULL,
    hint        bytea NOT NULL,
    created     bigint NOT NULL,
    expires     bigint,
    revoked     bigint,
    replaced_by bytea,
    terms       bytea NOT NULL
);
CREATE UNIQUE INDEX api_key_hash ON godex.api_key (hash);
CREATE UNIQUE INDEX api_key_name ON godex.api_key (name) WHERE revoked IS NULL AND replaced_by IS NULL;

CREATE TABLE godex.tenant_terms (
    tenant bytea PRIMARY KEY,
    terms  bytea NOT NULL
);

-- Whoever changes one of the two tables raises the version last and holds its row until the commit: who sees a version
-- sees everything that came before it.
CREATE TABLE godex.access_version (version bigint NOT NULL);
INSERT INTO godex.access_version VALUES (1);

CREATE TABLE godex.usage (
    tenant      bytea NOT NULL,
    hour        bigint NOT NULL,
    key         bytea NOT NULL,
    provider    bytea NOT NULL,
    model       bytea NOT NULL,
    requests    bigint NOT NULL,
    unpriced    bigint NOT NULL,
    input       bigint NOT NULL,
    cached      bigint NOT NULL,
    output      bigint NOT NULL,
    reasoning   bigint NOT NULL,
    tool_calls  bigint NOT NULL,
    nanodollars bigint NOT NULL,
    PRIMARY KEY (tenant, hour, key, provider, model)
);
CREATE INDEX usage_key ON godex.usage (key, hour);
CREATE INDEX usage_hour ON godex.usage (hour);

CREATE TABLE godex.usage_batch (
    worker bytea PRIMARY KEY,
    number bigint NOT NULL,
    at     timestamptz NOT NULL
);

-- What may be used in a while, counted in windows of the database's clock: what was taken in the newest, and in the one
-- before it.
CREATE TABLE godex.share (
    subject bytea PRIMARY KEY,
    start   bigint NOT NULL,           -- of the newest window, in milliseconds since 1970
    taken   bigint NOT NULL,
    before  bigint NOT NULL,
    used    timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Takes shares of many subjects, one after another in their order: so nobody waits for somebody who waits for him. A row
-- is held before the clock is read, and until the commit, which need not reach the disk: what a crash of the database
-- forgets is what was taken in less than a second.
CREATE FUNCTION godex.take_shares(subjects bytea[], limits bigint[], wants bigint[], overdrafts bigint[], span bigint)
    RETURNS TABLE (number bigint, granted bigint, remaining bigint, wait bigint) LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        wish    record;
        held    godex.share%ROWTYPE;
        at_ms   bigint;
        begins  bigint;
        elapsed bigint;
        surplus bigint;
        free    bigint;
        given   bigint;
        need    bigint;
        due     float8;
    BEGIN
        PERFORM set_config('synchronous_commit', 'off', true);
        FOR wish IN SELECT w.subject, w.most, w.wanted, w.overdrawn, w.n
            FROM unnest(subjects, limits, wants, overdrafts) WITH ORDINALITY AS w (subject, most, wanted, overdrawn, n)
            ORDER BY w.subject, w.n
        LOOP
            INSERT INTO godex.share AS s (subject, start, taken, before, used)
                VALUES (wish.subject, 0, 0, 0, clock_timestamp())
                ON CONFLICT (subject) DO UPDATE SET used = excluded.used RETURNING s.* INTO held;
            at_ms := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
            begins := at_ms - at_ms % span;
            IF held.start < begins THEN
                held.before := CASE WHEN held.start = begins - span THEN held.taken ELSE 0 END;
                held.taken := 0;
            END IF;
            -- Also when the clock was set back: what was taken stays taken.
            held.start := begins;
            elapsed := at_ms - begins;
            held.taken := held.taken + wish.overdrawn;
            IF wish.wanted < 0 THEN
                surplus := greatest(0, -wish.wanted - held.taken);
                held.taken := greatest(0, held.taken + wish.wanted);
                held.before := greatest(0, held.before - surplus);
            END IF;
            free := floor(wish.most - held.taken - held.before * ((span - elapsed) / span::float8))::bigint;
            given := greatest(0, least(wish.wanted, free));
            held.taken := least(held.taken + given, 9007199254740992);
            UPDATE godex.share SET start = held.start, taken = held.taken, before = held.before
                WHERE subject = held.subject;
            need := least(greatest(wish.wanted, 1) - given, wish.most);
            IF given > 0 AND given = wish.wanted OR free - given >= need AND wish.most > 0 THEN
                due := 0;
            ELSIF wish.most = 0 THEN
                due := span;
            ELSIF wish.most - need >= held.taken THEN
                due := greatest(1, span * (1 - (wish.most - need - held.taken) / held.before::float8) - elapsed);
            ELSE
                due := span - elapsed + greatest(0, span * (1 - (wish.most - need) / held.taken::float8));
            END IF;
            number := wish.n;
            granted := given;
            remaining := greatest(0, free - given);
            wait := ceil(due)::bigint;
            RETURN NEXT;
        END LOOP;
    END
$$;

-- Places that workers hold of a subject, each until its lease runs out.
CREATE TABLE godex.place (
    subject bytea NOT NULL,
    worker  bytea NOT NULL,
    held    bigint NOT NULL,
    until   timestamptz NOT NULL,
    PRIMARY KEY (subject, worker)
) WITH (fillfactor = 50);
CREATE INDEX place_worker ON godex.place (worker, subject);

-- Held by whoever changes the places of a subject. Two subjects with one number would only wait for each other.
CREATE FUNCTION godex.hold_subject(subject bytea) RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended(encode($1, 'hex'), 7305));
$$;

CREATE FUNCTION godex.hold_places(wanted_by bytea, wanted_of bytea, wanted bigint, most bigint, lease float8)
    RETURNS bigint LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        mine   bigint;
        others bigint;
        given  bigint;
    BEGIN
        PERFORM set_config('synchronous_commit', 'off', true);
        PERFORM godex.hold_subject(wanted_of);
        DELETE FROM godex.place WHERE subject = wanted_of AND until <= clock_timestamp();
        SELECT coalesce(sum(held) FILTER (WHERE worker = wanted_by), 0),
            coalesce(sum(held) FILTER (WHERE worker <> wanted_by), 0)
            INTO mine, others FROM godex.place WHERE subject = wanted_of;
        given := greatest(least(mine, wanted), least(wanted, most - others));
        IF given > 0 THEN
            INSERT INTO godex.place AS p (subject, worker, held, until)
                VALUES (wanted_of, wanted_by, given, clock_timestamp() + lease * interval '1 millisecond')
                ON CONFLICT (subject, worker) DO UPDATE SET held = excluded.held, until = excluded.until;
        ELSE
            DELETE FROM godex.place WHERE subject = wanted_of AND worker = wanted_by;
        END IF;
        RETURN given;
    END
$$;

-- Subject by subject in their order, as shares are taken. One that has run out and that nobody has asked for since is
-- extended as well: it is held, after all.
CREATE FUNCTION godex.keep_places(kept_by bytea, lease float8) RETURNS void LANGUAGE plpgsql AS $$
    #variable_conflict use_column
    DECLARE
        held_of bytea;
    BEGIN
        PERFORM set_config('synchronous_commit', 'off', true);
        FOR held_of IN SELECT subject FROM godex.place WHERE worker = kept_by ORDER BY subject LOOP
            PERFORM godex.hold_subject(held_of);
            UPDATE godex.place SET until = clock_timestamp() + lease * interval '1 millisecond'
                WHERE subject = held_of AND worker = kept_by;
        END LOOP;
    END
$$;
