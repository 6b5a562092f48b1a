-- Until when a booking of "any of a kind" may be given others of that kind. Only what may still move is in the index, so
-- that a request that needs room finds those who could make it.
ALTER TABLE reservation ADD COLUMN movable_until INTEGER;
CREATE INDEX reservation_movable ON reservation (site, starts) WHERE movable_until IS NOT NULL;
