-- The last thing the owner of a booking was notified of about an outage: a restarted server does not repeat it.
CREATE TABLE outage_notice (
    reservation BLOB PRIMARY KEY REFERENCES reservation (id),
    site BLOB NOT NULL REFERENCES site (id),
    fate TEXT NOT NULL
);
CREATE INDEX outage_notice_site ON outage_notice (site);
