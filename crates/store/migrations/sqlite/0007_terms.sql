-- What a reservation must still meet besides its span: a hold taken, a decision made, its owner there. As JSON, because
-- nothing asks for reservations by their terms; when time next matters stands in due_at as ever.
ALTER TABLE reservation ADD COLUMN terms TEXT NOT NULL DEFAULT '{}';
