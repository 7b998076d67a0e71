-- An item by its id, the newest first, in the tenant or in one segment: however many bear that id, one step finds it.
CREATE INDEX item_named ON item (tenant, id, segment, pos);
DROP INDEX item_id;

-- What was taken out of a conversation and still has its content.
CREATE INDEX item_hidden ON item (tenant, segment, pos) WHERE hidden IS NOT NULL AND length(body) > 0;

-- How far the branches of a segment reach.
CREATE INDEX segment_branch ON segment (tenant, parent, start) WHERE parent IS NOT NULL;
DROP INDEX segment_parent;
