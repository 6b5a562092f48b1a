-- Visits that were opened with an API token before visits knew their token cannot end with it, so they end now.
UPDATE visit SET expires_at = min(expires_at, unixepoch() * 1000000), key_hash = NULL, code_hash = NULL, code_expires_at = NULL
WHERE sign_in IS NULL AND token IS NULL;
-- The fingerprints were hashes without a key, by which what a request held could be guessed.
UPDATE idempotency SET fingerprint = zeroblob(32);
