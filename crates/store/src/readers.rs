//! The positions of readers that follow the event stream, or the time, across restarts.

use crate::error::Result;
use crate::sql::{Conn, query};

/// The last number that a reader has processed. `None` before it begins.
pub async fn position(conn: &mut Conn, name: &str) -> Result<Option<u64>> {
    let row = query("SELECT number FROM reader WHERE name = $1")
        .bind(name)
        .optional(conn)
        .await?;
    row.map(|row| row.count("number")).transpose()
}

/// Sets the first position of a reader. A reader that already has a position keeps it.
pub async fn begin(conn: &mut Conn, name: &str, number: u64) -> Result<()> {
    query("INSERT INTO reader (name, number) VALUES ($1, $2) ON CONFLICT DO NOTHING")
        .bind(name)
        .bind(number)
        .execute(conn)
        .await?;
    Ok(())
}

/// Advances a reader, in the transaction that acts on the events it read. Returns whether it was still at `from`.
pub async fn advance(conn: &mut Conn, name: &str, from: u64, to: u64) -> Result<bool> {
    let moved = query("UPDATE reader SET number = $1 WHERE name = $2 AND number = $3")
        .bind(to)
        .bind(name)
        .bind(from)
        .execute(conn)
        .await?;
    Ok(moved == 1)
}
