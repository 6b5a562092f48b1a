-- Filled and emptied again, so that its pages are free ones of the database's own file on a disk that is full.
CREATE TABLE reserve (
    fill BLOB NOT NULL
);
