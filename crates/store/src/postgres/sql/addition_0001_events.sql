-- The event log of a turn; see SQLite's schema for what the columns mean.
CREATE TABLE godex.event (
    tenant   bytea NOT NULL,
    response bytea NOT NULL,
    first    bigint NOT NULL,
    next     bigint NOT NULL,
    body     bytea NOT NULL,
    PRIMARY KEY (tenant, response, first)
);
-- Large batches come compressed.
ALTER TABLE godex.event ALTER COLUMN body SET STORAGE EXTERNAL;

-- Whatever takes a response away takes its events along, also an instance of a version that knows no events.
CREATE FUNCTION godex.event_gone() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM godex.event WHERE tenant = new.tenant AND response = new.id;
        RETURN NULL;
    END
$$;
CREATE TRIGGER event_gone AFTER UPDATE OF gone ON godex.response
    FOR EACH ROW WHEN (new.gone <> 0) EXECUTE FUNCTION godex.event_gone();
