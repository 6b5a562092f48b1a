-- Audit entries and events get their number from a leased sequencer after their commit and before any reader sees
-- them, so that no booking waits for a global counter. A row without a number is one that is not chained yet.
CREATE TABLE audit_entry (
    ord INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL,
    number INTEGER,
    hash BLOB,
    at INTEGER NOT NULL,
    actor_kind TEXT NOT NULL CHECK (actor_kind IN ('person', 'system', 'anonymous')),
    actor BLOB,
    origin TEXT,
    site BLOB,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    before TEXT,
    after TEXT,
    reason TEXT,
    CHECK ((number IS NULL) = (hash IS NULL))
);
CREATE UNIQUE INDEX audit_entry_number ON audit_entry (number) WHERE number IS NOT NULL;
CREATE INDEX audit_entry_unnumbered ON audit_entry (ord) WHERE number IS NULL;
CREATE INDEX audit_entry_site ON audit_entry (site, number) WHERE number IS NOT NULL;

CREATE TRIGGER audit_entry_kept BEFORE DELETE ON audit_entry BEGIN
    SELECT RAISE(ABORT, 'audit_append_only');
END;
CREATE TRIGGER audit_entry_unchanged BEFORE UPDATE ON audit_entry
WHEN old.number IS NOT NULL OR new.ord <> old.ord OR new.id <> old.id OR new.at <> old.at
    OR new.actor_kind <> old.actor_kind OR new.actor IS NOT old.actor OR new.origin IS NOT old.origin
    OR new.site IS NOT old.site OR new.action <> old.action OR new.subject <> old.subject
    OR new.before IS NOT old.before OR new.after IS NOT old.after OR new.reason IS NOT old.reason BEGIN
    SELECT RAISE(ABORT, 'audit_append_only');
END;

CREATE TABLE event (
    ord INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL,
    number INTEGER,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    site BLOB,
    subject TEXT NOT NULL,
    audience TEXT NOT NULL CHECK (audience IN ('members', 'person', 'admins')),
    audience_person BLOB,
    data TEXT NOT NULL
);
CREATE UNIQUE INDEX event_number ON event (number) WHERE number IS NOT NULL;
CREATE INDEX event_unnumbered ON event (ord) WHERE number IS NULL;

-- The last number given out, and the hash that the next audit entry builds on. Only the sequencer writes here.
CREATE TABLE sequence_head (
    name TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    hash BLOB NOT NULL
);
INSERT INTO sequence_head (name, number, hash) VALUES ('audit', 0, zeroblob(32)), ('event', 0, zeroblob(32));

-- One server at a time runs each controller; the fence grows with each new holder.
CREATE TABLE lease (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    fence INTEGER NOT NULL,
    until INTEGER NOT NULL
);

-- A create that was asked for before is answered with what it made.
CREATE TABLE idempotency (
    person BLOB NOT NULL,
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    subject TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (person, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);
