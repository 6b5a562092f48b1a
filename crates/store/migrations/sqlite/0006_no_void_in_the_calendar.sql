-- What was given up before it began never held anything, and nobody looks for it by resource and time. Left in the
-- index, every cancelled booking of the future was read again by every look at that time.
--
-- SQLite uses a partial index only where the statement repeats its condition word for word. So whoever wants what holds
-- asks through the two indexes of the rule (amount IS NULL, amount IS NOT NULL), and the rest repeats `<> 'void'`.
DROP INDEX claim_calendar;
CREATE INDEX claim_calendar ON claim (resource, ends, starts) WHERE standing <> 'void';

DROP TRIGGER resource_line_move;
CREATE TRIGGER resource_line_move AFTER UPDATE OF parent ON resource WHEN new.parent IS NOT old.parent BEGIN
    DELETE FROM resource_line
    WHERE below IN (SELECT below FROM resource_line WHERE above = new.id)
      AND above NOT IN (SELECT below FROM resource_line WHERE above = new.id);
    INSERT INTO resource_line (above, below)
    SELECT a.above, b.below FROM resource_line a, resource_line b WHERE a.below = new.parent AND b.above = new.id;
    UPDATE claim SET standing = standing WHERE id IN (
        SELECT c.id FROM resource_line l JOIN claim c ON c.resource = l.below
        WHERE l.above = new.id AND c.standing = 'holding' AND c.amount IS NULL
        UNION ALL
        SELECT c.id FROM resource_line l JOIN claim c ON c.resource = l.below
        WHERE l.above = new.id AND c.standing = 'holding' AND c.amount IS NOT NULL);
END;
