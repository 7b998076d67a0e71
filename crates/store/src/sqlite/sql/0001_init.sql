-- A response points at a place in a segment; a segment is an append-only list of items. A fork is a new segment that
-- names its parent and its first place. Places are absolute, so a segment's items are numbered from its start.
-- The tenant is the first part of every key.

DROP TABLE IF EXISTS meta;

CREATE TABLE secret (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE segment (
    tenant       TEXT NOT NULL,
    segment      INTEGER NOT NULL,
    parent       INTEGER,
    start        INTEGER NOT NULL,
    conversation TEXT,                 -- the one that owns it
    PRIMARY KEY (tenant, segment)
) STRICT, WITHOUT ROWID;
CREATE INDEX segment_parent ON segment (tenant, parent) WHERE parent IS NOT NULL;

-- With row ids, here and below: rows are large, and only tables of this form keep large rows whole on a page.
CREATE TABLE item (
    tenant  TEXT NOT NULL,
    segment INTEGER NOT NULL,
    pos     INTEGER NOT NULL,
    id      TEXT NOT NULL,
    prefix  BLOB,                      -- keyed hash of the list up to here; NULL where nothing may be shared
    body    BLOB                       -- NULL: erased with its response; empty: removed from its conversation
) STRICT;
CREATE UNIQUE INDEX item_place ON item (tenant, segment, pos);
CREATE INDEX item_prefix ON item (tenant, prefix) WHERE prefix IS NOT NULL;
CREATE INDEX item_id ON item (tenant, id);

CREATE TABLE response (
    tenant       TEXT NOT NULL,
    id           TEXT NOT NULL,
    segment      INTEGER NOT NULL,
    own          INTEGER NOT NULL,     -- own input is own..middle, output middle..upto
    middle       INTEGER NOT NULL,
    upto         INTEGER NOT NULL,
    prefix       BLOB,                 -- as the item's before upto
    previous     TEXT,
    conversation TEXT,
    status       INTEGER NOT NULL,
    depth        INTEGER NOT NULL,
    gone         INTEGER NOT NULL DEFAULT 0,
    created      INTEGER NOT NULL,
    expires      INTEGER,
    used         INTEGER NOT NULL DEFAULT 0,
    settings     BLOB,
    head         BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX response_id ON response (tenant, id);
CREATE INDEX response_segment ON response (tenant, segment, upto);
CREATE INDEX response_expires ON response (expires) WHERE expires IS NOT NULL;
CREATE INDEX response_settings ON response (tenant, settings) WHERE settings IS NOT NULL;

CREATE TABLE settings (
    tenant TEXT NOT NULL,
    hash   BLOB NOT NULL,
    body   BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX settings_hash ON settings (tenant, hash);

CREATE TABLE conversation (
    tenant       TEXT NOT NULL,
    id           TEXT NOT NULL,
    segment      INTEGER NOT NULL,
    upto         INTEGER NOT NULL,
    created      INTEGER NOT NULL,
    used         INTEGER NOT NULL DEFAULT 0,
    lease        BLOB,
    leased_until INTEGER,
    metadata     BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
