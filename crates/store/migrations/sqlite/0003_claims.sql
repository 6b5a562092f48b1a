-- The claim rule. One row per claim; only claims that hold stand in the rule's indexes. Two holding claims of one
-- scope (the site's timeline, or the inside of one container) conflict when their spans overlap and one's resource is
-- the other's, or above it, or below it, unless both take amounts. See docs/decisions/0002-claim-rule.md.
--
-- SQLite has one writer at a time, so a trigger sees every claim there is and the check cannot race.
CREATE TABLE claim (
    id BLOB PRIMARY KEY,
    site BLOB NOT NULL REFERENCES site (id),
    resource BLOB NOT NULL REFERENCES resource (id),
    starts INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    -- How much it takes; NULL takes all of the resource.
    amount INTEGER CHECK (amount > 0),
    -- How long it needs to step aside; NULL never yields.
    grace_us INTEGER CHECK (grace_us >= 0),
    container BLOB REFERENCES claim (id),
    scope BLOB NOT NULL GENERATED ALWAYS AS (coalesce(container, x'')) STORED,
    holder_kind TEXT NOT NULL CHECK (holder_kind IN ('reservation', 'maintenance', 'workload')),
    holder BLOB NOT NULL,
    standing TEXT NOT NULL CHECK (standing IN ('holding', 'past', 'void')),
    CHECK (starts < ends)
);
CREATE UNIQUE INDEX claim_exclusive ON claim (resource, scope, starts, ends) WHERE standing = 'holding' AND amount IS NULL;
CREATE INDEX claim_shared ON claim (resource, scope, ends, starts) WHERE standing = 'holding' AND amount IS NOT NULL;
CREATE INDEX claim_calendar ON claim (resource, ends, starts);
CREATE INDEX claim_holder ON claim (holder);
CREATE INDEX claim_inside ON claim (container) WHERE container IS NOT NULL AND standing = 'holding';

-- The exclusive claims of one resource and scope never overlap each other, so the one that starts last before our end
-- is the only one that can reach into our span: one seek per relative answers. That holds only while triggers are on.
CREATE TRIGGER claim_rule_insert BEFORE INSERT ON claim WHEN new.standing = 'holding' BEGIN
    SELECT RAISE(ABORT, 'claim_resource')
    WHERE NOT EXISTS (SELECT 1 FROM resource r WHERE r.id = new.resource AND r.site = new.site AND r.removed_at IS NULL);
    SELECT RAISE(ABORT, 'claim_container')
    WHERE new.container IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM claim k JOIN resource_line l ON l.above = k.resource AND l.below = new.resource
        WHERE k.id = new.container AND k.site = new.site AND k.standing = 'holding'
          AND k.starts <= new.starts AND new.ends <= k.ends AND (k.amount IS NULL OR new.amount IS NOT NULL));
    SELECT RAISE(ABORT, 'claim_rule') WHERE EXISTS (
        SELECT 1 FROM resource_line l WHERE l.below = new.resource AND (
            SELECT c.ends FROM claim c
            WHERE c.resource = l.above AND c.scope = coalesce(new.container, x'') AND c.standing = 'holding'
              AND c.amount IS NULL AND c.starts < new.ends
            ORDER BY c.starts DESC LIMIT 1) > new.starts);
    SELECT RAISE(ABORT, 'claim_rule') WHERE EXISTS (
        SELECT 1 FROM resource_line l WHERE l.above = new.resource AND ((
            SELECT c.ends FROM claim c
            WHERE c.resource = l.below AND c.scope = coalesce(new.container, x'') AND c.standing = 'holding'
              AND c.amount IS NULL AND c.starts < new.ends
            ORDER BY c.starts DESC LIMIT 1) > new.starts
            OR new.amount IS NULL AND EXISTS (
                SELECT 1 FROM claim c
                WHERE c.resource = l.below AND c.scope = coalesce(new.container, x'') AND c.standing = 'holding'
                  AND c.amount IS NOT NULL AND c.ends > new.starts AND c.starts < new.ends)));
    SELECT RAISE(ABORT, 'claim_amount') WHERE new.amount IS NOT NULL AND new.amount + coalesce((
        SELECT max(s.used) FROM (
            SELECT sum(v.d) OVER (ORDER BY v.at, v.d ROWS UNBOUNDED PRECEDING) AS used FROM (
                SELECT max(c.starts, new.starts) AS at, c.amount AS d FROM claim c
                WHERE c.resource = new.resource AND c.scope = coalesce(new.container, x'') AND c.standing = 'holding'
                  AND c.amount IS NOT NULL AND c.ends > new.starts AND c.starts < new.ends
                UNION ALL
                SELECT c.ends, -c.amount FROM claim c
                WHERE c.resource = new.resource AND c.scope = coalesce(new.container, x'') AND c.standing = 'holding'
                  AND c.amount IS NOT NULL AND c.ends > new.starts AND c.starts < new.ends) v) s), 0)
        > coalesce((SELECT k.amount FROM claim k WHERE k.id = new.container),
                   (SELECT r.capacity FROM resource r WHERE r.id = new.resource), 0);
END;

CREATE TRIGGER claim_rule_update BEFORE UPDATE OF resource, starts, ends, amount, container, standing ON claim
WHEN new.standing = 'holding' BEGIN
    SELECT RAISE(ABORT, 'claim_resource')
    WHERE NOT EXISTS (SELECT 1 FROM resource r WHERE r.id = new.resource AND r.site = new.site AND r.removed_at IS NULL);
    SELECT RAISE(ABORT, 'claim_container')
    WHERE new.container IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM claim k JOIN resource_line l ON l.above = k.resource AND l.below = new.resource
        WHERE k.id = new.container AND k.site = new.site AND k.standing = 'holding'
          AND k.starts <= new.starts AND new.ends <= k.ends AND (k.amount IS NULL OR new.amount IS NOT NULL));
    SELECT RAISE(ABORT, 'claim_rule') WHERE EXISTS (
        SELECT 1 FROM resource_line l WHERE l.below = new.resource AND (
            SELECT c.ends FROM claim c
            WHERE c.resource = l.above AND c.scope = coalesce(new.container, x'') AND c.standing = 'holding'
              AND c.amount IS NULL AND c.starts < new.ends AND c.id <> old.id
            ORDER BY c.starts DESC LIMIT 1) > new.starts);
    SELECT RAISE(ABORT, 'claim_rule') WHERE EXISTS (
        SELECT 1 FROM resource_line l WHERE l.above = new.resource AND ((
            SELECT c.ends FROM claim c
            WHERE c.resource = l.below AND c.scope = coalesce(new.container, x'') AND c.standing = 'holding'
              AND c.amount IS NULL AND c.starts < new.ends AND c.id <> old.id
            ORDER BY c.starts DESC LIMIT 1) > new.starts
            OR new.amount IS NULL AND EXISTS (
                SELECT 1 FROM claim c
                WHERE c.resource = l.below AND c.scope = coalesce(new.container, x'') AND c.standing = 'holding'
                  AND c.amount IS NOT NULL AND c.ends > new.starts AND c.starts < new.ends AND c.id <> old.id)));
    SELECT RAISE(ABORT, 'claim_amount') WHERE new.amount IS NOT NULL AND new.amount + coalesce((
        SELECT max(s.used) FROM (
            SELECT sum(v.d) OVER (ORDER BY v.at, v.d ROWS UNBOUNDED PRECEDING) AS used FROM (
                SELECT max(c.starts, new.starts) AS at, c.amount AS d FROM claim c
                WHERE c.resource = new.resource AND c.scope = coalesce(new.container, x'') AND c.standing = 'holding'
                  AND c.amount IS NOT NULL AND c.ends > new.starts AND c.starts < new.ends AND c.id <> old.id
                UNION ALL
                SELECT c.ends, -c.amount FROM claim c
                WHERE c.resource = new.resource AND c.scope = coalesce(new.container, x'') AND c.standing = 'holding'
                  AND c.amount IS NOT NULL AND c.ends > new.starts AND c.starts < new.ends AND c.id <> old.id) v) s), 0)
        > coalesce((SELECT k.amount FROM claim k WHERE k.id = new.container),
                   (SELECT r.capacity FROM resource r WHERE r.id = new.resource), 0);
    -- What stands inside a claim still does when the claim changes.
    SELECT RAISE(ABORT, 'claim_inside') WHERE EXISTS (
        SELECT 1 FROM claim i WHERE i.container = old.id AND i.standing = 'holding'
          AND (i.starts < new.starts OR i.ends > new.ends OR (new.amount IS NOT NULL AND i.amount IS NULL)
               OR NOT EXISTS (SELECT 1 FROM resource_line l WHERE l.above = new.resource AND l.below = i.resource)));
    SELECT RAISE(ABORT, 'claim_amount') WHERE new.amount IS NOT NULL AND EXISTS (
        SELECT 1 FROM claim i WHERE i.container = old.id AND i.standing = 'holding'
          AND (SELECT sum(j.amount) FROM claim j
               WHERE j.container = old.id AND j.standing = 'holding' AND j.starts <= i.starts AND j.ends > i.starts)
              > new.amount);
END;

CREATE TRIGGER claim_release BEFORE UPDATE OF standing ON claim
WHEN old.standing = 'holding' AND new.standing <> 'holding' BEGIN
    SELECT RAISE(ABORT, 'claim_inside')
    WHERE EXISTS (SELECT 1 FROM claim i WHERE i.container = old.id AND i.standing = 'holding');
END;

-- A moved subtree takes its lines along, and every claim on it answers the rule again where it now stands.
CREATE TRIGGER resource_line_move AFTER UPDATE OF parent ON resource WHEN new.parent IS NOT old.parent BEGIN
    DELETE FROM resource_line
    WHERE below IN (SELECT below FROM resource_line WHERE above = new.id)
      AND above NOT IN (SELECT below FROM resource_line WHERE above = new.id);
    INSERT INTO resource_line (above, below)
    SELECT a.above, b.below FROM resource_line a, resource_line b WHERE a.below = new.parent AND b.above = new.id;
    UPDATE claim SET standing = standing
    WHERE standing = 'holding' AND resource IN (SELECT below FROM resource_line WHERE above = new.id);
END;
