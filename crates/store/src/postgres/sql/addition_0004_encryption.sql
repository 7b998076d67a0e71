-- The tenants' data keys, wrapped by the store's key; see SQLite's schema for what the columns mean.
CREATE TABLE godex.data_key (
    tenant      bytea NOT NULL,
    number      bigint NOT NULL,
    wrapped     bytea NOT NULL,
    wrapping    bytea NOT NULL,
    since       timestamptz NOT NULL,  -- from then on bodies are sealed with it; before, it is announced
    retired     timestamptz,
    sealed_only boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, number)
);
