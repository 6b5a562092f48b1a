//! Readers: how far each has come that follows the stream of events, or the time, and must not lose its place.

use crate::error::Result;
use crate::sql::{Conn, query};

/// The last number that a reader has dealt with; none before it has begun.
pub async fn position(conn: &mut Conn, name: &str) -> Result<Option<u64>> {
    let row = query("SELECT number FROM reader WHERE name = $1")
        .bind(name)
        .optional(conn)
        .await?;
    row.map(|row| row.count("number")).transpose()
}

/// Where a reader begins. One that has begun already stays where it is.
pub async fn begin(conn: &mut Conn, name: &str, number: u64) -> Result<()> {
    query("INSERT INTO reader (name, number) VALUES ($1, $2) ON CONFLICT DO NOTHING")
        .bind(name)
        .bind(number)
        .execute(conn)
        .await?;
    Ok(())
}

/// Moves a reader on, in the transaction that does what it read about; says whether it still stood at `from`.
pub async fn advance(conn: &mut Conn, name: &str, from: u64, to: u64) -> Result<bool> {
    let moved = query("UPDATE reader SET number = $1 WHERE name = $2 AND number = $3")
        .bind(to)
        .bind(name)
        .bind(from)
        .execute(conn)
        .await?;
    Ok(moved == 1)
}
