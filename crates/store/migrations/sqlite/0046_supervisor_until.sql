-- By when the supervisor of a run has ended it, whatever its server hears: the latest deadline that it may have received.
ALTER TABLE run ADD COLUMN supervisor_until INTEGER;
UPDATE run SET supervisor_until = until;
-- Each server looks for the runs of its own machine.
CREATE INDEX run_of_machine ON run (machine) WHERE machine IS NOT NULL AND ended_at IS NULL;
