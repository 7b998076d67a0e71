-- As in SQLite; see there for what the columns mean. Ids and names are bytes, since text here cannot hold NUL.
-- The tenant is the first part of every key. Names are written out with their schema: behind a transaction pooler
-- there is no search path to rely on.

CREATE TABLE godex.secret (
    name  text PRIMARY KEY,
    value bytea NOT NULL
);

CREATE TABLE godex.segment (
    tenant       bytea NOT NULL,
    segment      bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    parent       bigint,
    start        bigint NOT NULL,
    conversation bytea,
    PRIMARY KEY (tenant, segment)
);
CREATE INDEX segment_parent ON godex.segment (tenant, parent) WHERE parent IS NOT NULL;

CREATE TABLE godex.item (
    tenant  bytea NOT NULL,
    segment bigint NOT NULL,
    pos     bigint NOT NULL,
    id      bytea NOT NULL,
    prefix  bytea,
    body    bytea,
    PRIMARY KEY (tenant, segment, pos)
);
-- Large bodies come compressed; the others stay in their row, where one read finds them.
ALTER TABLE godex.item ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE godex.item SET (toast_tuple_target = 8160);
CREATE INDEX item_prefix ON godex.item (tenant, prefix) WHERE prefix IS NOT NULL;
CREATE INDEX item_id ON godex.item (tenant, id);

CREATE TABLE godex.response (
    tenant       bytea NOT NULL,
    id           bytea NOT NULL,
    segment      bigint NOT NULL,
    own          bigint NOT NULL,
    middle       bigint NOT NULL,
    upto         bigint NOT NULL,
    prefix       bytea,
    previous     bytea,
    conversation bytea,
    status       bigint NOT NULL,
    depth        bigint NOT NULL,
    gone         bigint NOT NULL DEFAULT 0,
    created      bigint NOT NULL,
    expires      bigint,
    settings     bytea,
    head         bytea NOT NULL,
    PRIMARY KEY (tenant, id)
);
ALTER TABLE godex.response ALTER COLUMN head SET STORAGE EXTERNAL;
CREATE INDEX response_segment ON godex.response (tenant, segment, upto);
CREATE INDEX response_expires ON godex.response (expires) WHERE expires IS NOT NULL;
CREATE INDEX response_settings ON godex.response (tenant, settings) WHERE settings IS NOT NULL;

CREATE TABLE godex.settings (
    tenant bytea NOT NULL,
    hash   bytea NOT NULL,
    body   bytea NOT NULL,
    PRIMARY KEY (tenant, hash)
);
ALTER TABLE godex.settings ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE godex.conversation (
    tenant       bytea NOT NULL,
    id           bytea NOT NULL,
    segment      bigint NOT NULL,
    upto         bigint NOT NULL,
    created      bigint NOT NULL,
    lease        bytea,
    leased_until timestamptz,
    metadata     bytea NOT NULL,
    PRIMARY KEY (tenant, id)
);
