-- Traces, in blocks of a few hundred (see the module `trace`). A block is found by the number of its first trace.
CREATE TABLE godex_trace_block (
    first     INTEGER PRIMARY KEY,
    last      INTEGER NOT NULL,
    count     INTEGER NOT NULL,
    began_min INTEGER NOT NULL,      -- in microseconds since 1970
    began_max INTEGER NOT NULL,
    slowest   INTEGER NOT NULL,      -- in microseconds
    bytes     INTEGER NOT NULL,      -- with documents and bodies
    terms     BLOB NOT NULL,         -- fingerprints of names
    ids       BLOB NOT NULL          -- fingerprints of ids
) STRICT;
CREATE TABLE godex_trace_rows (
    first INTEGER PRIMARY KEY,
    names BLOB NOT NULL,
    rows  BLOB NOT NULL
) STRICT;

-- Several documents together, by the number of the first.
CREATE TABLE godex_trace_document (
    first INTEGER PRIMARY KEY,
    body  BLOB NOT NULL
) STRICT;
CREATE TABLE godex_trace_payload (
    number   INTEGER NOT NULL,
    name     TEXT NOT NULL,
    cut_from INTEGER,
    body     BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX godex_trace_payload_name ON godex_trace_payload (number, name);

-- One row: no number below it is used again, also when all traces are gone.
CREATE TABLE godex_trace_next (next INTEGER NOT NULL) STRICT;
INSERT INTO godex_trace_next VALUES (1);
