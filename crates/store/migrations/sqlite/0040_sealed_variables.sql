-- The environment variables of workloads, sealed. They leave `workload.ask`, where earlier versions kept them in clear.
-- SQL has no key to seal with: a row without a value stands for a workload that the server seals after it has started.
CREATE TABLE workload_variables (
    workload BLOB PRIMARY KEY REFERENCES workload (id),
    key_id TEXT,
    sealed BLOB,
    CHECK ((key_id IS NULL) = (sealed IS NULL))
);
CREATE INDEX workload_variables_unsealed ON workload_variables (workload) WHERE sealed IS NULL;
INSERT INTO workload_variables (workload) SELECT id FROM workload WHERE ask ->> '$.program.environment' IS NOT NULL;
-- Answers of actions repeated them. A repeated action is now told to read the object.
UPDATE idempotency SET answer = NULL WHERE answer LIKE '%environment%';
