-- An item that was taken out of its conversation, while responses from before still have it: the end of the
-- conversation at that time. Who reaches further does not see it.
ALTER TABLE item ADD COLUMN hidden INTEGER;
