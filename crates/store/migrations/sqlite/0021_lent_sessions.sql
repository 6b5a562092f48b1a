-- The run of a session whose idle GPUs a run has: its claims on them stand inside that one's.
ALTER TABLE run ADD COLUMN lent_by BLOB REFERENCES run (id);
CREATE INDEX run_lent_by ON run (lent_by) WHERE lent_by IS NOT NULL AND ended_at IS NULL;

-- Since when the GPUs of a session in which nothing is done are lent to opportunistic work.
ALTER TABLE session ADD COLUMN lends_since INTEGER;
CREATE INDEX session_lends ON session (site) WHERE lends_since IS NOT NULL;
