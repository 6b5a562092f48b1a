-- The disk of a PostgreSQL is its own administrator's.
SELECT 1;
