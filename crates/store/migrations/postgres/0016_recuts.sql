-- GPUs that are cut anew for somebody who waits: what goes, what comes, and how it ended. The claims on both stand on
-- the timeline like any others; this row is what a server that takes over goes on from.
CREATE TABLE recut (
    id UUID PRIMARY KEY,
    site UUID NOT NULL REFERENCES site (id),
    workload UUID NOT NULL REFERENCES workload (id),
    gpu UUID NOT NULL REFERENCES resource (id),
    slice UUID NOT NULL REFERENCES resource (id),
    gone TEXT NOT NULL,
    profile TEXT NOT NULL,
    place BIGINT NOT NULL,
    claims TEXT NOT NULL,
    began BIGINT NOT NULL,
    until BIGINT NOT NULL,
    ended_at BIGINT,
    outcome TEXT CHECK (outcome IN ('done', 'failed')),
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
-- One at a time for each GPU, and for each workload.
CREATE UNIQUE INDEX recut_gpu ON recut (gpu) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX recut_workload ON recut (workload) WHERE ended_at IS NULL;
CREATE INDEX recut_site ON recut (site, ended_at);
