-- Resource types, and resources in a tree. Each resource has a code, written as an IPv6 network: a child's network lies
-- inside its parent's and apart from its siblings', so "the same, above or below" is the overlap operator `&&`, which
-- GiST can index. The codes mean nothing else; crates/store/src/code.rs gives them out.
CREATE TABLE resource_type (
    id UUID PRIMARY KEY,
    site UUID NOT NULL REFERENCES site (id),
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    colour TEXT NOT NULL,
    form TEXT NOT NULL,
    needs_approval BOOLEAN NOT NULL,
    version BIGINT NOT NULL,
    removed_at BIGINT
);
CREATE UNIQUE INDEX resource_type_name ON resource_type (site, name) WHERE removed_at IS NULL;

CREATE TABLE resource (
    id UUID PRIMARY KEY,
    site UUID NOT NULL REFERENCES site (id),
    parent UUID,
    type_id UUID NOT NULL REFERENCES resource_type (id),
    name TEXT NOT NULL,
    title TEXT,
    attributes TEXT NOT NULL,
    facts TEXT NOT NULL,
    capacity BIGINT CHECK (capacity > 0),
    unit TEXT,
    status TEXT NOT NULL CHECK (status IN ('active', 'maintenance', 'unavailable')),
    status_reason TEXT,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    removed_at BIGINT,
    subtree CIDR NOT NULL,
    -- The parent's code, or the site's for a root.
    parent_subtree CIDR NOT NULL,
    next_branch BIGINT NOT NULL DEFAULT 0,
    CHECK ((capacity IS NULL) = (unit IS NULL)),
    CHECK (subtree << parent_subtree),
    UNIQUE (id, subtree),
    FOREIGN KEY (parent, parent_subtree) REFERENCES resource (id, subtree) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT resource_apart EXCLUDE USING gist (parent_subtree inet_ops WITH =, subtree inet_ops WITH &&)
        DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX resource_name ON resource (site, name) WHERE removed_at IS NULL;
CREATE INDEX resource_parent ON resource (parent, parent_subtree);
CREATE INDEX resource_of_type ON resource (type_id);

CREATE TABLE status_change (
    id UUID PRIMARY KEY,
    resource UUID NOT NULL REFERENCES resource (id),
    status TEXT NOT NULL,
    reason TEXT,
    at BIGINT NOT NULL,
    changed_by UUID REFERENCES person (id)
);
CREATE INDEX status_change_resource ON status_change (resource, at);

CREATE FUNCTION resource_parent_checked() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE above resource;
BEGIN
    -- The lock keeps a capacity from being given to the parent while it gets a child.
    SELECT * INTO above FROM resource WHERE id = NEW.parent FOR NO KEY UPDATE;
    IF above.id IS NULL OR above.site <> NEW.site OR above.removed_at IS NOT NULL THEN
        RAISE EXCEPTION 'no such parent in this site' USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'resource_parent_site';
    END IF;
    IF above.capacity IS NOT NULL THEN
        RAISE EXCEPTION 'a divisible resource is a leaf' USING ERRCODE = 'check_violation', CONSTRAINT = 'resource_leaf';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER resource_parent_checked BEFORE INSERT OR UPDATE OF parent ON resource
FOR EACH ROW WHEN (NEW.parent IS NOT NULL) EXECUTE FUNCTION resource_parent_checked();
