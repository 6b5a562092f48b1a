-- Feeds for calendar programs, and the calendars of institutions that close a site. Of a feed's secret address only
-- the hash is kept.
CREATE TABLE feed (
    id BLOB PRIMARY KEY,
    secret_hash BLOB NOT NULL UNIQUE,
    person BLOB NOT NULL REFERENCES person (id),
    label TEXT NOT NULL,
    -- What it shows: without a site the person's own bookings everywhere, else the site, or one type or resource of it.
    site BLOB REFERENCES site (id),
    type_id BLOB REFERENCES resource_type (id),
    resource BLOB REFERENCES resource (id),
    created_at INTEGER NOT NULL,
    last_read_at INTEGER,
    CHECK (type_id IS NULL OR resource IS NULL),
    CHECK (site IS NOT NULL OR (type_id IS NULL AND resource IS NULL))
);
CREATE INDEX feed_person ON feed (person);

CREATE TABLE closure (
    id BLOB PRIMARY KEY,
    site BLOB NOT NULL REFERENCES site (id),
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('holidays', 'blackouts')),
    -- Where it is read from again; NULL for one that was given as a file.
    address TEXT,
    -- The calendar as it was last read: its rules are worked out anew as time goes by.
    source TEXT NOT NULL,
    -- What the address called that version of it.
    etag TEXT,
    notes TEXT NOT NULL,
    read_at INTEGER NOT NULL,
    tried_at INTEGER NOT NULL,
    trouble TEXT,
    -- When it is looked at next.
    due_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL
);
CREATE UNIQUE INDEX closure_name ON closure (site, name);
CREATE INDEX closure_due ON closure (due_at);

-- The closed times, worked out for the coming two years.
CREATE TABLE closure_span (
    closure BLOB NOT NULL REFERENCES closure (id),
    nr INTEGER NOT NULL,
    site BLOB NOT NULL REFERENCES site (id),
    starts INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    title TEXT NOT NULL,
    PRIMARY KEY (closure, nr),
    CHECK (starts < ends)
);
CREATE INDEX closure_span_site ON closure_span (site, ends, starts);
