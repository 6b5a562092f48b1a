//! Carrying everything from one database to another.
