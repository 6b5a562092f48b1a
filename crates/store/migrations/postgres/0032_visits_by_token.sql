-- A visit that was opened with an API token ends with the token.
ALTER TABLE visit ADD COLUMN token UUID;
