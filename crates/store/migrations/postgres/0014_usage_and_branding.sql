-- Bookings that were refused, counted by the site's day and by the reason: a problem's code, and the policy's rule
-- where it was one. Each server counts in memory and adds what it has every few seconds.
CREATE TABLE refusal (
    site UUID NOT NULL REFERENCES site (id),
    day TEXT NOT NULL,
    code TEXT NOT NULL,
    -- Empty where no rule of a policy is the reason.
    rule TEXT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (site, day, code, rule)
);

-- How a site presents itself. The logo's digest stands beside the name, so that whoever shows the site knows without
-- another question whether there is one, and whether a copy is still good.
ALTER TABLE site ADD COLUMN accent TEXT;
ALTER TABLE site ADD COLUMN logo TEXT;
CREATE TABLE site_logo (
    site UUID PRIMARY KEY REFERENCES site (id),
    kind TEXT NOT NULL CHECK (kind IN ('png', 'webp', 'svg')),
    content BYTEA NOT NULL
);
