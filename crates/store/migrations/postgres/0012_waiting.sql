-- Whoever waits for room, by when they came.
CREATE INDEX reservation_waiting ON reservation (created_at, id) WHERE state = 'waiting';
