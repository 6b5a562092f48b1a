-- Networks that a global admin signed in from: guessing from elsewhere must not lock them out there.
CREATE TABLE known_network (
    person BLOB NOT NULL REFERENCES person (id),
    network TEXT NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (person, network)
);
CREATE INDEX known_network_age ON known_network (last_at);
