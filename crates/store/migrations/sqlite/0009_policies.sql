-- Policies, a row for each version: what a site, or the whole installation, asked of bookings from then until the next
-- version of the same scope. Nothing is ever changed or removed here but the mark of the newest.
CREATE TABLE policy (
    id BLOB PRIMARY KEY,
    -- Whose it is; NULL for the whole installation.
    site BLOB REFERENCES site (id),
    -- What it is about, as JSON: the ceilings, the defaults, or a part of the site's bookings.
    scope TEXT NOT NULL,
    version INTEGER NOT NULL,
    -- What it asks, as JSON; NULL where this version took the policy away.
    rules TEXT,
    newest BOOLEAN NOT NULL,
    set_by BLOB REFERENCES person (id),
    set_at INTEGER NOT NULL,
    reason TEXT
);
CREATE UNIQUE INDEX policy_of_site ON policy (site, scope, version) WHERE site IS NOT NULL;
CREATE UNIQUE INDEX policy_of_all ON policy (scope, version) WHERE site IS NULL;

-- Rises with every change that can concern the site. It comes along with the row that every booking reads anyway, so
-- that each server can keep the policies in memory and reads them again only when it differs.
ALTER TABLE site ADD COLUMN policy_version INTEGER NOT NULL DEFAULT 1;

-- Limits on a project count its bookings by week, and approvers ask what waits for them.
CREATE INDEX reservation_project ON reservation (project, starts, id) WHERE project IS NOT NULL;
CREATE INDEX reservation_pending ON reservation (site, starts, id) WHERE state = 'pending_approval';
