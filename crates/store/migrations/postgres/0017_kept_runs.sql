-- From when on a run goes on outside the reservation inside which it began, because the owner of that lets it. It then
-- counts against quotas and budgets from here on, and not from its beginning.
ALTER TABLE run ADD COLUMN kept_from BIGINT;
