-- An action that was asked for before is answered as it was the first time.
ALTER TABLE idempotency ADD COLUMN answer TEXT;
