-- Bookings made together by one rule. What each of them holds stands in its reservation; here stands what they have in
-- common. The pattern (first start on the wall clock, length, time zone, rule, exceptions) is JSON, because nothing asks
-- for series by it.
CREATE TABLE series (
    id UUID PRIMARY KEY,
    site UUID NOT NULL REFERENCES site (id),
    owner UUID NOT NULL REFERENCES person (id),
    title TEXT NOT NULL,
    privacy TEXT NOT NULL CHECK (privacy IN ('site', 'private')),
    pattern TEXT NOT NULL,
    -- When the last instance ends that was not cancelled.
    ends BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX series_site ON series (site, id);
CREATE INDEX series_owner ON series (owner, id);

ALTER TABLE reservation ADD COLUMN series UUID REFERENCES series (id);
-- The instance's start as the rule gives it, on the wall clock.
ALTER TABLE reservation ADD COLUMN occurrence TEXT;
-- Whether it was changed by itself.
ALTER TABLE reservation ADD COLUMN differs BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX reservation_series ON reservation (series, starts, id) WHERE series IS NOT NULL;
