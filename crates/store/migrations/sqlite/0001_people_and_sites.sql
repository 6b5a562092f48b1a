-- People, how they sign in, and the sites they belong to. Instants are microseconds since 1970, UTC.
CREATE TABLE person (
    id BLOB PRIMARY KEY,
    login TEXT NOT NULL UNIQUE,
    display_name TEXT NOT NULL,
    email TEXT,
    time_zone TEXT NOT NULL,
    global_admin BOOLEAN NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('active', 'suspended', 'removed')),
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);

CREATE TABLE credential (
    person BLOB PRIMARY KEY REFERENCES person (id),
    password_hash TEXT NOT NULL,
    changed_at INTEGER NOT NULL
);

-- Guessing shows here, by login name and by address, and locks that subject out for a while.
CREATE TABLE sign_in_failure (
    subject TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE INDEX sign_in_failure_recent ON sign_in_failure (subject, at);
CREATE INDEX sign_in_failure_age ON sign_in_failure (at);

CREATE TABLE session (
    id BLOB PRIMARY KEY,
    token_hash BLOB NOT NULL UNIQUE,
    person BLOB NOT NULL REFERENCES person (id),
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX session_person ON session (person);

CREATE TABLE one_time_link (
    token_hash BLOB PRIMARY KEY,
    person BLOB NOT NULL REFERENCES person (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX one_time_link_person ON one_time_link (person);

CREATE TABLE api_token (
    id BLOB PRIMARY KEY,
    token_hash BLOB NOT NULL UNIQUE,
    person BLOB NOT NULL REFERENCES person (id),
    label TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
);
CREATE INDEX api_token_person ON api_token (person);

CREATE TABLE site (
    id BLOB PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    time_zone TEXT NOT NULL,
    outsiders_see TEXT NOT NULL CHECK (outsiders_see IN ('nothing', 'name', 'catalogue', 'free_busy')),
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);

CREATE TABLE membership (
    site BLOB NOT NULL REFERENCES site (id),
    person BLOB NOT NULL REFERENCES person (id),
    role TEXT NOT NULL CHECK (role IN ('member', 'site_admin')),
    since INTEGER NOT NULL,
    PRIMARY KEY (site, person)
);
CREATE INDEX membership_person ON membership (person);

CREATE TABLE join_request (
    id BLOB PRIMARY KEY,
    site BLOB NOT NULL REFERENCES site (id),
    person BLOB NOT NULL REFERENCES person (id),
    message TEXT,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'accepted', 'declined')),
    created_at INTEGER NOT NULL,
    decided_at INTEGER,
    decided_by BLOB REFERENCES person (id)
);
CREATE UNIQUE INDEX join_request_waiting ON join_request (site, person) WHERE state = 'waiting';

CREATE TABLE project (
    id BLOB PRIMARY KEY,
    site BLOB NOT NULL REFERENCES site (id),
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    removed_at INTEGER
);
CREATE UNIQUE INDEX project_name ON project (site, name) WHERE removed_at IS NULL;

CREATE TABLE project_member (
    project BLOB NOT NULL REFERENCES project (id),
    person BLOB NOT NULL REFERENCES person (id),
    since INTEGER NOT NULL,
    PRIMARY KEY (project, person)
);
CREATE INDEX project_member_person ON project_member (person);
