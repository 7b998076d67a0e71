-- Traces, in blocks of a few hundred; see SQLite's schema for what the columns mean. They are the operator's, and no tenant's:
-- each says whose request it was of.
CREATE TABLE godex.trace_block (
    first     bigint PRIMARY KEY,
    last      bigint NOT NULL,
    count     bigint NOT NULL,
    began_min bigint NOT NULL,
    began_max bigint NOT NULL,
    slowest   bigint NOT NULL,
    bytes     bigint NOT NULL,
    terms     bytea NOT NULL,
    ids       bytea NOT NULL,
    names     bytea NOT NULL,
    rows      bytea NOT NULL
);
-- Fingerprints do not compress, and the newest block is written often.
ALTER TABLE godex.trace_block ALTER COLUMN terms SET STORAGE EXTERNAL;
ALTER TABLE godex.trace_block ALTER COLUMN ids SET STORAGE EXTERNAL;
ALTER TABLE godex.trace_block ALTER COLUMN rows SET STORAGE EXTERNAL;
CREATE TABLE godex.trace_document (
    first bigint PRIMARY KEY,
    body  bytea NOT NULL
);
ALTER TABLE godex.trace_document ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE godex.trace_payload (
    number   bigint NOT NULL,
    place    bigint NOT NULL,          -- in the order in which they were given
    name     bytea NOT NULL,
    cut_from bigint,
    body     bytea NOT NULL,
    PRIMARY KEY (number, place)
);
ALTER TABLE godex.trace_payload ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE godex.trace_next (next bigint NOT NULL);
INSERT INTO godex.trace_next VALUES (1);
