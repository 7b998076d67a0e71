-- The tenants' data keys, wrapped by the store's key. A larger number came later, and is what bodies are sealed with.
CREATE TABLE data_key (
    tenant      TEXT NOT NULL,
    number      INTEGER NOT NULL,
    wrapped     BLOB NOT NULL,
    wrapping    BLOB NOT NULL,         -- the id of the store's key
    retired     INTEGER NOT NULL DEFAULT 0,
    sealed_only INTEGER NOT NULL,      -- whether the tenant has no body in clear
    PRIMARY KEY (tenant, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX data_key_wrapping ON data_key (wrapping);
