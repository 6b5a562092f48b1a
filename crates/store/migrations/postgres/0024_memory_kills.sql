-- How many programs of a session were ended for want of memory, as far as its owner was told.
ALTER TABLE session ADD COLUMN memory_kills BIGINT NOT NULL DEFAULT 0;
