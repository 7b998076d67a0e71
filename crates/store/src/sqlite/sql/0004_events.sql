-- The event log of a turn: a row for each append. Events are numbered from 0 without a gap, so a row begins where the one
-- before it ends.
CREATE TABLE event (
    tenant   TEXT NOT NULL,
    response TEXT NOT NULL,
    first    INTEGER NOT NULL,         -- the number of its first event
    next     INTEGER NOT NULL,         -- the number after its last
    body     BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_place ON event (tenant, response, first);

-- Whatever takes a response away takes its events along.
CREATE TRIGGER event_gone AFTER UPDATE OF gone ON response WHEN new.gone <> 0
    BEGIN DELETE FROM event WHERE tenant = new.tenant AND response = new.id; END;
