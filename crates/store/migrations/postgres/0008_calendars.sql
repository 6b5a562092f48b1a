-- Feeds for calendar programs, and the calendars of institutions that close a site. Of a feed's secret address only
-- the hash is kept.
CREATE TABLE feed (
    id UUID PRIMARY KEY,
    secret_hash BYTEA NOT NULL UNIQUE,
    person UUID NOT NULL REFERENCES person (id),
    label TEXT NOT NULL,
    -- What it shows: without a site the person's own bookings everywhere, else the site, or one type or resource of it.
    site UUID REFERENCES site (id),
    type_id UUID REFERENCES resource_type (id),
    resource UUID REFERENCES resource (id),
    created_at BIGINT NOT NULL,
    last_read_at BIGINT,
    CHECK (type_id IS NULL OR resource IS NULL),
    CHECK (site IS NOT NULL OR (type_id IS NULL AND resource IS NULL))
);
CREATE INDEX feed_person ON feed (person);

CREATE TABLE closure (
    id UUID PRIMARY KEY,
    site UUID NOT NULL REFERENCES site (id),
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('holidays', 'blackouts')),
    -- Where it is read from again; NULL for one that was given as a file.
    address TEXT,
    -- The calendar as it was last read: its rules are worked out anew as time goes by.
    source TEXT NOT NULL,
    -- What the address called that version of it.
    etag TEXT,
    notes TEXT NOT NULL,
    read_at BIGINT NOT NULL,
    tried_at BIGINT NOT NULL,
    trouble TEXT,
    -- When it is looked at next.
    due_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    version BIGINT NOT NULL
);
CREATE UNIQUE INDEX closure_name ON closure (site, name);
CREATE INDEX closure_due ON closure (due_at);

-- The closed times, worked out for the coming two years.
CREATE TABLE closure_span (
    closure UUID NOT NULL REFERENCES closure (id),
    nr BIGINT NOT NULL,
    site UUID NOT NULL REFERENCES site (id),
    starts BIGINT NOT NULL,
    ends BIGINT NOT NULL,
    title TEXT NOT NULL,
    PRIMARY KEY (closure, nr),
    CHECK (starts < ends)
);
CREATE INDEX closure_span_site ON closure_span (site, ends, starts);
