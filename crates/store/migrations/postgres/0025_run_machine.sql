-- The machine that keeps a run's processes, where it is one of those that servers run on. Only a server there can see the run.
ALTER TABLE run ADD COLUMN machine TEXT;
