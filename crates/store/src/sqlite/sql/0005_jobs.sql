-- That a turn has an event log, which may be gone before the turn is.
CREATE TABLE log (
    tenant   TEXT NOT NULL,
    response TEXT NOT NULL,
    next     INTEGER,                  -- the number after its last event, once the turn has ended
    ended    INTEGER,                  -- when that was
    dropped  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, response)
) STRICT, WITHOUT ROWID;
CREATE INDEX log_ended ON log (ended) WHERE ended IS NOT NULL AND dropped = 0;

-- A turn that runs, or waits for that. A larger number came later.
CREATE TABLE job (
    number       INTEGER PRIMARY KEY,
    tenant       TEXT NOT NULL,
    response     TEXT NOT NULL,
    background   INTEGER NOT NULL,
    state        INTEGER NOT NULL,     -- 0 waits, 1 is claimed, 2 may have reached an upstream
    attempt      INTEGER NOT NULL,     -- how often it was claimed
    worker       BLOB,                 -- who runs it, or who alone may
    leased_until INTEGER,
    cancel       INTEGER NOT NULL DEFAULT 0,
    created      INTEGER NOT NULL,
    conversation TEXT,                 -- the one that the turn holds, with its lease
    lease        BLOB,
    request      BLOB
) STRICT;
CREATE UNIQUE INDEX job_response ON job (tenant, response);
CREATE INDEX job_waiting ON job (tenant, number) WHERE state = 0;
CREATE INDEX job_running ON job (tenant) WHERE background = 1 AND state > 0;
CREATE INDEX job_worker ON job (worker) WHERE worker IS NOT NULL;
CREATE INDEX job_lease ON job (leased_until) WHERE worker IS NOT NULL;
CREATE INDEX job_conversation ON job (tenant, conversation) WHERE conversation IS NOT NULL;

CREATE TABLE idempotency (
    tenant       TEXT NOT NULL,
    key          TEXT NOT NULL,
    fingerprint  BLOB NOT NULL,
    response     TEXT NOT NULL,
    worker       BLOB,                 -- who makes the response, until it is stored
    leased_until INTEGER NOT NULL,
    expires      INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_worker ON idempotency (worker) WHERE worker IS NOT NULL;
CREATE INDEX idempotency_expires ON idempotency (expires);

CREATE TABLE notice (
    tenant   TEXT NOT NULL,
    id       TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    tries    INTEGER NOT NULL DEFAULT 0,
    due      INTEGER NOT NULL,
    body     BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX notice_id ON notice (tenant, id);
CREATE INDEX notice_due ON notice (due);

-- Whatever takes a response away takes its log and its job along.
CREATE TRIGGER log_gone AFTER UPDATE OF gone ON response WHEN new.gone <> 0
    BEGIN DELETE FROM log WHERE tenant = new.tenant AND response = new.id; END;
CREATE TRIGGER job_gone AFTER UPDATE OF gone ON response WHEN new.gone <> 0
    BEGIN DELETE FROM job WHERE tenant = new.tenant AND response = new.id; END;
