-- The queue. A workload is one row however many tasks it has; each task that begins is a run, with claims of its own.
-- What is asked for is JSON, because nothing asks for workloads by it.
CREATE TABLE workload (
    id UUID PRIMARY KEY,
    site UUID NOT NULL REFERENCES site (id),
    -- Short enough to be typed; counted in each site from one.
    number BIGINT NOT NULL,
    owner UUID NOT NULL REFERENCES person (id),
    project UUID REFERENCES project (id),
    title TEXT NOT NULL,
    ask TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('WAITING', 'HELD', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    reason TEXT,
    -- The tasks that have not begun, as ranges.
    waiting TEXT NOT NULL,
    running BIGINT NOT NULL CHECK (running >= 0),
    completed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    since BIGINT NOT NULL,
    ended_at BIGINT,
    version BIGINT NOT NULL,
    UNIQUE (site, number)
);
-- What is not over, for the queue; then for lists, newest first.
CREATE INDEX workload_live ON workload (site, number) WHERE ended_at IS NULL;
CREATE INDEX workload_owner ON workload (owner, site, number);
CREATE INDEX workload_project ON workload (project, number) WHERE project IS NOT NULL;

CREATE TABLE run (
    id UUID PRIMARY KEY,
    workload UUID NOT NULL REFERENCES workload (id),
    site UUID NOT NULL REFERENCES site (id),
    task BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    wish BIGINT NOT NULL,
    -- The reservation inside which it runs, if it does.
    inside UUID REFERENCES reservation (id),
    pieces TEXT NOT NULL,
    claims TEXT NOT NULL,
    state TEXT NOT NULL,
    -- What it counts for against quotas and budgets.
    gpus_milli BIGINT NOT NULL,
    cores_milli BIGINT NOT NULL,
    began BIGINT NOT NULL,
    until BIGINT NOT NULL,
    ended_at BIGINT,
    version BIGINT NOT NULL,
    UNIQUE (workload, task, attempt)
);
-- A task never runs twice at once.
CREATE UNIQUE INDEX run_live ON run (workload, task) WHERE ended_at IS NULL;
CREATE INDEX run_site ON run (site, ended_at);
-- The newest of a workload: ids are in the order of time.
CREATE INDEX run_of ON run (workload, id);

CREATE TABLE queue_number (
    site UUID PRIMARY KEY REFERENCES site (id),
    last BIGINT NOT NULL
);

-- How a site's queue is run, as one document.
CREATE TABLE queue_policy (
    site UUID PRIMARY KEY REFERENCES site (id),
    policy TEXT NOT NULL,
    version BIGINT NOT NULL
);

-- An admin's word that somebody's work is urgent.
CREATE TABLE queue_grant (
    id UUID PRIMARY KEY,
    site UUID NOT NULL REFERENCES site (id),
    whose TEXT NOT NULL,
    starts BIGINT NOT NULL,
    ends BIGINT NOT NULL,
    gpu_hours BIGINT NOT NULL,
    reason TEXT NOT NULL,
    granted_by UUID NOT NULL REFERENCES person (id),
    revoked_at BIGINT,
    CHECK (starts < ends)
);
CREATE INDEX queue_grant_site ON queue_grant (site, ends);

-- When a workload was expected to begin, each time that changed by much, and when it did.
CREATE TABLE forecast (
    workload UUID NOT NULL REFERENCES workload (id),
    made_at BIGINT NOT NULL,
    site UUID NOT NULL REFERENCES site (id),
    starts BIGINT NOT NULL,
    began BIGINT,
    PRIMARY KEY (workload, made_at)
);
CREATE INDEX forecast_scored ON forecast (site, began) WHERE began IS NOT NULL;
