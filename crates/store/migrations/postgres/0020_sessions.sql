-- A browser that somebody signed in with is a sign-in; a session is a web app that somebody works in.
ALTER TABLE session RENAME TO sign_in;
DROP INDEX session_person;
CREATE INDEX sign_in_person ON sign_in (person);
UPDATE event SET kind = 'person.signed_out' WHERE kind = 'session.ended';

-- What whatever ran it says of a run's end, for its owner.
ALTER TABLE run ADD COLUMN said TEXT;

CREATE TABLE session (
    id UUID PRIMARY KEY,
    site UUID NOT NULL REFERENCES site (id),
    owner UUID NOT NULL REFERENCES person (id),
    project UUID REFERENCES project (id),
    name TEXT NOT NULL,
    label TEXT NOT NULL UNIQUE,
    profile TEXT NOT NULL,
    environment TEXT,
    inside UUID REFERENCES reservation (id),
    state TEXT NOT NULL CHECK (state IN ('waiting', 'starting', 'ready', 'stopping', 'stopped', 'failed')),
    workload UUID REFERENCES workload (id),
    said TEXT,
    shared TEXT NOT NULL,
    since BIGINT NOT NULL,
    active_at BIGINT NOT NULL,
    kept_until BIGINT,
    warned_at BIGINT,
    created_at BIGINT NOT NULL,
    removed_at BIGINT,
    version BIGINT NOT NULL
);
CREATE UNIQUE INDEX session_name ON session (site, owner, name) WHERE removed_at IS NULL;
CREATE INDEX session_live ON session (site, state) WHERE removed_at IS NULL AND state NOT IN ('stopped', 'failed');
CREATE INDEX session_workload ON session (workload);

-- Every attempt to start one: how many failed in a row is read from here.
CREATE TABLE session_start (
    id UUID PRIMARY KEY,
    session UUID NOT NULL REFERENCES session (id),
    site UUID NOT NULL REFERENCES site (id),
    person UUID NOT NULL REFERENCES person (id),
    profile TEXT NOT NULL,
    workload UUID NOT NULL REFERENCES workload (id),
    is_automatic BOOLEAN NOT NULL,
    asked_at BIGINT NOT NULL,
    ready_at BIGINT,
    ended_at BIGINT,
    has_failed BOOLEAN NOT NULL,
    said TEXT
);
CREATE UNIQUE INDEX session_start_workload ON session_start (workload);
CREATE INDEX session_start_of ON session_start (session, asked_at);
CREATE INDEX session_start_profile ON session_start (site, profile, asked_at);

-- Profiles that nobody starts until an admin lets them.
CREATE TABLE profile_pause (
    site UUID NOT NULL REFERENCES site (id),
    profile TEXT NOT NULL,
    since BIGINT NOT NULL,
    said TEXT NOT NULL,
    PRIMARY KEY (site, profile)
);

-- Who has come in to a session, by which browser. The code is for the one hop to the session's own address; the key is
-- what the browser shows there from then on. Of both only a hash is kept.
CREATE TABLE visit (
    id UUID PRIMARY KEY,
    session UUID NOT NULL REFERENCES session (id),
    person UUID NOT NULL REFERENCES person (id),
    sign_in UUID,
    access TEXT NOT NULL CHECK (access IN ('view', 'edit')),
    reason TEXT,
    code_hash BYTEA,
    code_expires_at BIGINT,
    key_hash BYTEA,
    began BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX visit_code ON visit (code_hash) WHERE code_hash IS NOT NULL;
CREATE UNIQUE INDEX visit_key ON visit (key_hash) WHERE key_hash IS NOT NULL;
CREATE INDEX visit_session ON visit (session, began);
