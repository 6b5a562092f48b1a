-- Managed environments: each row is one version. A path is used once, for good; what is on the disk is called by the id.
CREATE TABLE environment (
    id UUID PRIMARY KEY,
    site UUID NOT NULL REFERENCES site (id),
    owner UUID REFERENCES person (id),
    name TEXT NOT NULL,
    version BIGINT NOT NULL CHECK (version > 0),
    base UUID REFERENCES environment (id),
    packages TEXT NOT NULL,
    path TEXT NOT NULL,
    prepared TEXT,
    workload UUID REFERENCES workload (id),
    state TEXT NOT NULL CHECK (state IN ('building', 'ready', 'failed', 'retired')),
    trouble TEXT,
    python TEXT,
    bytes BIGINT,
    is_on_disk BOOLEAN NOT NULL,
    created_by UUID REFERENCES person (id),
    created_at BIGINT NOT NULL,
    settled_at BIGINT,
    UNIQUE (site, path)
);
CREATE INDEX environment_named ON environment (site, name, version);
CREATE INDEX environment_base ON environment (base) WHERE base IS NOT NULL;
CREATE UNIQUE INDEX environment_workload ON environment (workload) WHERE workload IS NOT NULL;
-- What somebody has to look after: what is being made, and what is left of what is no more.
CREATE INDEX environment_unsettled ON environment (state) WHERE is_on_disk AND state <> 'ready';
