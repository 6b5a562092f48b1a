//! Idempotency keys: a create asked for twice makes one thing.

use berth_model::PersonId;
use jiff::Timestamp;

use crate::error::Result;
use crate::sql::{Conn, query};

/// What an earlier request with the same key was, and what it made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    pub fingerprint: Vec<u8>,
    pub subject: String,
}

/// Claims the key for this transaction, or returns what used it before. Two at once: the second waits for the first.
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

/// What used the key before, if anything did.
pub async fn get(conn: &mut Conn, person: PersonId, key: &str) -> Result<Option<Earlier>> {
    let row = query("SELECT fingerprint, subject FROM idempotency WHERE person = $1 AND key = $2")
        .bind(person.0)
        .bind(key)
        .optional(conn)
        .await?;
    let earlier = row.map(|row| {
        Ok(Earlier {
            fingerprint: row.get("fingerprint")?,
            subject: row.get("subject")?,
        })
    });
    earlier.transpose()
}
