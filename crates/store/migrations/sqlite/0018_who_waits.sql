-- What is not over, by whose it is: to count it without reading it.
CREATE INDEX workload_whose ON workload (site, owner, project, state) WHERE ended_at IS NULL;
