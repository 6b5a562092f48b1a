CREATE TABLE reservation (
    id BLOB PRIMARY KEY,
    site BLOB NOT NULL REFERENCES site (id),
    owner BLOB NOT NULL REFERENCES person (id),
    project BLOB REFERENCES project (id),
    title TEXT NOT NULL,
    privacy TEXT NOT NULL CHECK (privacy IN ('site', 'private')),
    state TEXT NOT NULL,
    state_reason TEXT,
    starts INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    -- What was asked for, with the claim that holds each part.
    items TEXT NOT NULL,
    parameters TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- When time next changes its state; NULL once nothing will.
    due_at INTEGER,
    CHECK (starts < ends)
);
CREATE INDEX reservation_due ON reservation (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX reservation_site ON reservation (site, starts, id);
CREATE INDEX reservation_owner ON reservation (owner, starts, id);

CREATE TABLE reservation_history (
    ord INTEGER PRIMARY KEY AUTOINCREMENT,
    reservation BLOB NOT NULL REFERENCES reservation (id),
    at INTEGER NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    starts INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    changed_by BLOB REFERENCES person (id),
    reason TEXT
);
CREATE INDEX reservation_history_of ON reservation_history (reservation, ord);

-- Secrets given as booking parameters, encrypted with the key named by key_id.
CREATE TABLE secret (
    id BLOB PRIMARY KEY,
    site BLOB NOT NULL REFERENCES site (id),
    reservation BLOB NOT NULL REFERENCES reservation (id),
    type_name TEXT NOT NULL,
    parameter TEXT NOT NULL,
    key_id TEXT NOT NULL,
    sealed BLOB NOT NULL
);
CREATE UNIQUE INDEX secret_of ON secret (reservation, type_name, parameter);

CREATE TABLE maintenance (
    id BLOB PRIMARY KEY,
    site BLOB NOT NULL REFERENCES site (id),
    title TEXT NOT NULL,
    starts INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('planned', 'ended', 'cancelled')),
    planned_by BLOB REFERENCES person (id),
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    CHECK (starts < ends)
);
CREATE INDEX maintenance_site ON maintenance (site, starts, id);
CREATE INDEX maintenance_due ON maintenance (ends) WHERE state = 'planned';
