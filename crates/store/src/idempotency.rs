//! Idempotency keys: a create request that is sent twice creates one thing.

use berth_model::PersonId;
use jiff::Timestamp;

use crate::error::Result;
use crate::sql::{Conn, query};

/// The earlier request with the same key, and what it created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    pub fingerprint: Vec<u8>,
    pub subject: String,
    /// The answer to an action, once it is known.
    pub answer: Option<String>,
}

/// Claims the key for this transaction, or returns its earlier use. Of two at once, the second waits for the first.
pub async fn claim(
    conn: &mut Conn,
    person: PersonId,
    key: &str,
    fingerprint: &[u8],
    subject: &str,
    now: Timestamp,
) -> Result<Option<Earlier>> {
    let inserted = query(
        "INSERT INTO idempotency (person, key, fingerprint, subject, created_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (person, key) DO NOTHING",
    )
    .bind(person.0)
    .bind(key)
    .bind(fingerprint)
    .bind(subject)
    .bind(now)
    .execute(conn)
    .await?;
    if inserted == 1 {
        return Ok(None);
    }
    get(conn, person, key).await
}

/// The earlier use of the key, if any.
pub async fn get(conn: &mut Conn, person: PersonId, key: &str) -> Result<Option<Earlier>> {
    let row = query(
        "SELECT fingerprint, subject, answer FROM idempotency WHERE person = $1 AND key = $2",
    )
    .bind(person.0)
    .bind(key)
    .optional(conn)
    .await?;
    let earlier = row.map(|row| {
        Ok(Earlier {
            fingerprint: row.get("fingerprint")?,
            subject: row.get("subject")?,
            answer: row.get("answer")?,
        })
    });
    earlier.transpose()
}

/// Keeps the answer of the request that claimed the key for `subject`. Does nothing if another request claimed the key.
pub async fn keep_answer(
    conn: &mut Conn,
    person: PersonId,
    key: &str,
    subject: &str,
    answer: &str,
) -> Result<()> {
    query("UPDATE idempotency SET answer = $1 WHERE person = $2 AND key = $3 AND subject = $4")
        .bind(answer)
        .bind(person.0)
        .bind(key)
        .bind(subject)
        .execute(conn)
        .await?;
    Ok(())
}
