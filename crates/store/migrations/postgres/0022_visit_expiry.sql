-- The sweeper deletes visits that are over for long, the oldest first.
CREATE INDEX visit_expiry ON visit (expires_at);
