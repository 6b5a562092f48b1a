-- What people are told, a row for each person and event. The event's number is part of the key, so that nobody is told of
-- one twice whatever happens to the notifier.
CREATE TABLE notification (
    person UUID NOT NULL REFERENCES person (id),
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    site UUID REFERENCES site (id),
    subject TEXT NOT NULL,
    at BIGINT NOT NULL,
    data TEXT NOT NULL,
    read_at BIGINT,
    PRIMARY KEY (person, number)
);
CREATE INDEX notification_unread ON notification (person, number) WHERE read_at IS NULL;
CREATE INDEX notification_age ON notification (at);

-- How far whoever follows the stream of events, or the time, has come.
CREATE TABLE reader (
    name TEXT PRIMARY KEY,
    number BIGINT NOT NULL
);

-- Whoever has something now is reminded of its end.
CREATE INDEX reservation_running ON reservation (ends) WHERE state = 'active';
