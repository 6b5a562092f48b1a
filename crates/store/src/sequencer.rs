//! Numbers for audit entries and events. A row gets its number after its commit and before anyone reads it.
//!
//! A booking writes its rows without a number and waits for nobody. One server at a time then numbers the new rows in
//! the order they were written, and chains the audit entries. That server holds the lease, and also the lock on the
//! head row. Readers read only numbered rows, so they see no gaps.

use jiff::Timestamp;

use crate::audit::{Link, hash_column};
use crate::error::Result;
use crate::sql::{Conn, either, query};

/// Rows per step, so that a long backlog is processed in bounded transactions.
const STEP: u64 = 500;

/// Numbers the rows of one step and returns how many. The caller repeats it until there are none.
pub async fn step(conn: &mut Conn) -> Result<u64> {
    Ok(chain_audit(conn).await? + number_events(conn).await?)
}

async fn chain_audit(conn: &mut Conn) -> Result<u64> {
    let rows = query("SELECT * FROM audit_entry WHERE number IS NULL ORDER BY ord LIMIT $1")
        .bind(STEP)
        .all(conn)
        .await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let head = either(
        "SELECT number, hash FROM sequence_head WHERE name = 'audit'",
        "SELECT number, hash FROM sequence_head WHERE name = 'audit' FOR UPDATE",
    )
    .one(conn)
    .await?;
    let (first, mut hash) = (head.count("number")?, hash_column(&head)?);
    let mut number = first;
    let (mut ords, mut hashes) = (Vec::new(), Vec::new());
    for row in &rows {
        let link = Link::read(row)?;
        number += 1;
        hash = link.hash(&hash, number);
        ords.push(link.ord);
        hashes.push(hash.to_vec());
    }
    let count = ords.len() as u64;
    let chained = either(
        "UPDATE audit_entry SET number = $3 + 1 + v.key, hash = unhex(json_extract($2, '$[' || v.key || ']'))
         FROM json_each($1) v WHERE audit_entry.ord = v.value AND audit_entry.number IS NULL",
        "UPDATE audit_entry SET number = $3 + v.n, hash = v.hash
         FROM unnest($1::bigint[], $2::bytea[]) WITH ORDINALITY AS v (ord, hash, n)
         WHERE audit_entry.ord = v.ord AND audit_entry.number IS NULL",
    )
    .bind(ords)
    .bind(hashes)
    .bind(first)
    .execute(conn)
    .await?;
    if chained != count {
        // Another sequencer chained some of these rows after we read them and before we locked the head; undo all of
        // ours.
        return Err(crate::Error::Retry);
    }
    query("UPDATE sequence_head SET number = $1, hash = $2 WHERE name = 'audit'")
        .bind(number)
        .bind(hash.as_slice())
        .execute(conn)
        .await?;
    Ok(count)
}

async fn number_events(conn: &mut Conn) -> Result<u64> {
    let rows = query("SELECT ord FROM event WHERE number IS NULL ORDER BY ord LIMIT $1")
        .bind(STEP)
        .all(conn)
        .await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let head = either(
        "SELECT number FROM sequence_head WHERE name = 'event'",
        "SELECT number FROM sequence_head WHERE name = 'event' FOR UPDATE",
    )
    .one(conn)
    .await?;
    let first = head.count("number")?;
    let ords = rows
        .iter()
        .map(|row| row.get::<i64>("ord"))
        .collect::<Result<Vec<_>>>()?;
    let count = ords.len() as u64;
    let numbered = either(
        "UPDATE event SET number = $2 + 1 + v.key FROM json_each($1) v WHERE event.ord = v.value AND event.number IS NULL",
        "UPDATE event SET number = $2 + v.n FROM unnest($1::bigint[]) WITH ORDINALITY AS v (ord, n)
         WHERE event.ord = v.ord AND event.number IS NULL",
    )
    .bind(ords)
    .bind(first)
    .execute(conn)
    .await?;
    if numbered != count {
        return Err(crate::Error::Retry);
    }
    query("UPDATE sequence_head SET number = $1 WHERE name = 'event'")
        .bind(first + count)
        .execute(conn)
        .await?;
    Ok(count)
}

/// Whether there are rows without a number.
pub async fn has_work(conn: &mut Conn) -> Result<bool> {
    query(
        "SELECT EXISTS (SELECT 1 FROM audit_entry WHERE number IS NULL)
             OR EXISTS (SELECT 1 FROM event WHERE number IS NULL) AS work",
    )
    .one(conn)
    .await?
    .get("work")
}

/// Since when the oldest row has waited for its number. An event has an audit entry of the same change, so the audit
/// entries answer for both. The few events without one, such as reminders, are numbered in the same steps.
pub async fn waiting_since(conn: &mut Conn) -> Result<Option<Timestamp>> {
    query("SELECT at FROM audit_entry WHERE number IS NULL ORDER BY ord LIMIT 1")
        .optional(conn)
        .await?
        .map(|row| row.moment("at"))
        .transpose()
}
