-- Resource types, and resources in a tree. `resource_line` holds every (above, below) pair, each resource with
-- itself included, so that the claim rule finds relatives by one index seek. Triggers keep it; nobody else writes it.
CREATE TABLE resource_type (
    id BLOB PRIMARY KEY,
    site BLOB NOT NULL REFERENCES site (id),
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    colour TEXT NOT NULL,
    form TEXT NOT NULL,
    needs_approval BOOLEAN NOT NULL,
    version INTEGER NOT NULL,
    removed_at INTEGER
);
CREATE UNIQUE INDEX resource_type_name ON resource_type (site, name) WHERE removed_at IS NULL;

CREATE TABLE resource (
    id BLOB PRIMARY KEY,
    site BLOB NOT NULL REFERENCES site (id),
    parent BLOB REFERENCES resource (id),
    type_id BLOB NOT NULL REFERENCES resource_type (id),
    name TEXT NOT NULL,
    title TEXT,
    attributes TEXT NOT NULL,
    facts TEXT NOT NULL,
    capacity INTEGER CHECK (capacity > 0),
    unit TEXT,
    status TEXT NOT NULL CHECK (status IN ('active', 'maintenance', 'unavailable')),
    status_reason TEXT,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    removed_at INTEGER,
    CHECK ((capacity IS NULL) = (unit IS NULL))
);
CREATE UNIQUE INDEX resource_name ON resource (site, name) WHERE removed_at IS NULL;
CREATE INDEX resource_parent ON resource (parent);
CREATE INDEX resource_of_type ON resource (type_id);

CREATE TABLE resource_line (
    above BLOB NOT NULL REFERENCES resource (id),
    below BLOB NOT NULL REFERENCES resource (id),
    PRIMARY KEY (above, below)
) WITHOUT ROWID;
CREATE INDEX resource_line_up ON resource_line (below, above);

CREATE TABLE status_change (
    id BLOB PRIMARY KEY,
    resource BLOB NOT NULL REFERENCES resource (id),
    status TEXT NOT NULL,
    reason TEXT,
    at INTEGER NOT NULL,
    changed_by BLOB REFERENCES person (id)
);
CREATE INDEX status_change_resource ON status_change (resource, at);

CREATE TRIGGER resource_parent_checked_insert BEFORE INSERT ON resource WHEN new.parent IS NOT NULL BEGIN
    SELECT RAISE(ABORT, 'resource_parent_site')
    WHERE NOT EXISTS (SELECT 1 FROM resource p WHERE p.id = new.parent AND p.site = new.site AND p.removed_at IS NULL);
    SELECT RAISE(ABORT, 'resource_leaf')
    WHERE EXISTS (SELECT 1 FROM resource p WHERE p.id = new.parent AND p.capacity IS NOT NULL);
END;

CREATE TRIGGER resource_line_insert AFTER INSERT ON resource BEGIN
    INSERT INTO resource_line (above, below) VALUES (new.id, new.id);
    INSERT INTO resource_line (above, below) SELECT above, new.id FROM resource_line WHERE below = new.parent;
END;

CREATE TRIGGER resource_parent_checked_move BEFORE UPDATE OF parent ON resource WHEN new.parent IS NOT NULL BEGIN
    SELECT RAISE(ABORT, 'resource_cycle')
    WHERE EXISTS (SELECT 1 FROM resource_line l WHERE l.above = new.id AND l.below = new.parent);
    SELECT RAISE(ABORT, 'resource_parent_site')
    WHERE NOT EXISTS (SELECT 1 FROM resource p WHERE p.id = new.parent AND p.site = new.site AND p.removed_at IS NULL);
    SELECT RAISE(ABORT, 'resource_leaf')
    WHERE EXISTS (SELECT 1 FROM resource p WHERE p.id = new.parent AND p.capacity IS NOT NULL);
END;

-- A capacity belongs to a leaf, and never falls below what is promised.
CREATE TRIGGER resource_capacity BEFORE UPDATE OF capacity ON resource WHEN new.capacity IS NOT old.capacity BEGIN
    SELECT RAISE(ABORT, 'resource_leaf')
    WHERE new.capacity IS NOT NULL
      AND EXISTS (SELECT 1 FROM resource c WHERE c.parent = new.id AND c.removed_at IS NULL);
    SELECT RAISE(ABORT, 'claim_amount')
    WHERE EXISTS (
        SELECT 1 FROM claim c
        WHERE c.resource = new.id AND c.standing = 'holding' AND c.amount IS NOT NULL
          AND (SELECT sum(d.amount) FROM claim d
               WHERE d.resource = new.id AND d.standing = 'holding' AND d.amount IS NOT NULL AND d.scope = c.scope
                 AND d.starts <= c.starts AND d.ends > c.starts) > coalesce(new.capacity, 0));
END;
