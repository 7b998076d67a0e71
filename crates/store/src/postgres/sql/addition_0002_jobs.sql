-- Logs that may be gone before their turn, jobs, idempotency keys, notices; see SQLite's schema for what the columns mean.
CREATE TABLE godex.log (
    tenant   bytea NOT NULL,
    response bytea NOT NULL,
    next     bigint,
    ended    bigint,
    dropped  boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, response)
);
CREATE INDEX log_ended ON godex.log (ended) WHERE ended IS NOT NULL AND NOT dropped;

CREATE TABLE godex.job (
    number       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant       bytea NOT NULL,
    response     bytea NOT NULL,
    background   boolean NOT NULL,
    state        bigint NOT NULL,
    attempt      bigint NOT NULL,
    worker       bytea,
    leased_until timestamptz,
    cancel       boolean NOT NULL DEFAULT false,
    created      bigint NOT NULL,
    conversation bytea,
    lease        bytea,
    request      bytea
);
ALTER TABLE godex.job ALTER COLUMN request SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX job_response ON godex.job (tenant, response);
CREATE INDEX job_waiting ON godex.job (tenant, number) WHERE state = 0;
CREATE INDEX job_running ON godex.job (tenant, number) WHERE background AND state > 0;
CREATE INDEX job_worker ON godex.job (worker) WHERE worker IS NOT NULL;
CREATE INDEX job_lease ON godex.job (leased_until) WHERE worker IS NOT NULL;
CREATE INDEX job_conversation ON godex.job (tenant, conversation) WHERE conversation IS NOT NULL;

CREATE TABLE godex.idempotency (
    tenant       bytea NOT NULL,
    key          bytea NOT NULL,
    fingerprint  bytea NOT NULL,
    response     bytea NOT NULL,
    worker       bytea,
    leased_until timestamptz NOT NULL,
    expires      timestamptz NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_worker ON godex.idempotency (worker) WHERE worker IS NOT NULL;
CREATE INDEX idempotency_expires ON godex.idempotency (expires);

CREATE TABLE godex.notice (
    tenant   bytea NOT NULL,
    id       bytea NOT NULL,
    endpoint bytea NOT NULL,
    tries    bigint NOT NULL DEFAULT 0,
    due      timestamptz NOT NULL,
    body     bytea NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX notice_due ON godex.notice (due);

-- Whatever takes a response away takes its log and its job along, also an instance of a version that knows neither.
-- Triggers fire in the order of their names: the log goes before its events, as in a sweep of logs, so that nobody waits
-- for somebody who waits for him.
CREATE FUNCTION godex.began_gone() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM godex.log WHERE tenant = new.tenant AND response = new.id;
        DELETE FROM godex.job WHERE tenant = new.tenant AND response = new.id;
        RETURN NULL;
    END
$$;
CREATE TRIGGER began_gone AFTER UPDATE OF gone ON godex.response
    FOR EACH ROW WHEN (new.gone <> 0) EXECUTE FUNCTION godex.began_gone();
