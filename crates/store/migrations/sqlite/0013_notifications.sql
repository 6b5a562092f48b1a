-- What people are told, a row for each person and event. The event's number is part of the key, so that nobody is told of
-- one twice whatever happens to the notifier.
CREATE TABLE notification (
    person BLOB NOT NULL REFERENCES person (id),
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    site BLOB REFERENCES site (id),
    subject TEXT NOT NULL,
    at INTEGER NOT NULL,
    data TEXT NOT NULL,
    read_at INTEGER,
    PRIMARY KEY (person, number)
);
CREATE INDEX notification_unread ON notification (person, number) WHERE read_at IS NULL;
CREATE INDEX notification_age ON notification (at);

-- How far whoever follows the stream of events, or the time, has come.
CREATE TABLE reader (
    name TEXT PRIMARY KEY,
    number INTEGER NOT NULL
);

-- Whoever has something now is reminded of its end.
CREATE INDEX reservation_running ON reservation (ends) WHERE state = 'active';
