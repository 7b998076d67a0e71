-- API keys, by their hashes. A name is one key's: those that are revoked or replaced do not count.
CREATE TABLE api_key (
    id          TEXT PRIMARY KEY,
    tenant      TEXT NOT NULL,
    name        TEXT NOT NULL,
    hash        BLOB NOT NULL,
    hint        TEXT NOT NULL,
    created     INTEGER NOT NULL,
    expires     INTEGER,
    revoked     INTEGER,
    replaced_by TEXT,                  -- the key that has its name now
    terms       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX api_key_hash ON api_key (hash);
CREATE UNIQUE INDEX api_key_name ON api_key (name) WHERE revoked IS NULL AND replaced_by IS NULL;

-- What tenants are allowed, with all of their keys together.
CREATE TABLE tenant_terms (
    tenant TEXT PRIMARY KEY,
    terms  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row. Whatever changes one of the two tables raises it.
CREATE TABLE access_version (version INTEGER NOT NULL) STRICT;
INSERT INTO access_version VALUES (1);

-- What was used, in sums.
CREATE TABLE usage (
    tenant      TEXT NOT NULL,
    hour        INTEGER NOT NULL,      -- since 1970
    key         TEXT NOT NULL,         -- the id of the API key; empty: none was wanted
    provider    TEXT NOT NULL,
    model       TEXT NOT NULL,
    requests    INTEGER NOT NULL,
    unpriced    INTEGER NOT NULL,
    input       INTEGER NOT NULL,
    cached      INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    reasoning   INTEGER NOT NULL,
    tool_calls  INTEGER NOT NULL,
    nanodollars INTEGER NOT NULL,
    PRIMARY KEY (tenant, hour, key, provider, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_key ON usage (key, hour, nanodollars);
CREATE INDEX usage_hour ON usage (hour);

-- The number of the last batch of each worker, so that none counts twice.
CREATE TABLE usage_batch (
    worker BLOB PRIMARY KEY,
    number INTEGER NOT NULL,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
