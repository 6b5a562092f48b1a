//! Visits of people to sessions. The store keeps only hashes of codes and keys.

use berth_model::session::Visit;
use berth_model::{PersonId, SessionId, SignInId, Text, TokenId, VisitId};
use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::sql::{Conn, Row, either, query};
use crate::words::Word;

fn visit(row: &Row) -> Result<Visit> {
    Ok(Visit {
        id: VisitId(row.get("id")?),
        session: SessionId(row.get("session")?),
        person: PersonId(row.get("person")?),
        sign_in: row.get::<Option<uuid::Uuid>>("sign_in")?.map(SignInId),
        token: row.get::<Option<uuid::Uuid>>("token")?.map(TokenId),
        access: row.word("access")?,
        reason: row.optional_parsed("reason")?,
        began: row.moment("began")?,
        expires_at: row.moment("expires_at")?,
    })
}

/// Inserts a visit that begins with a code. The code is valid once, and until `code_until`.
pub async fn insert(
    conn: &mut Conn,
    new: &Visit,
    code_hash: &[u8],
    code_until: Timestamp,
) -> Result<()> {
    query(
        "INSERT INTO visit (id, session, person, sign_in, token, access, reason, code_hash, code_expires_at, began,
             expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(new.id.0)
    .bind(new.session.0)
    .bind(new.person.0)
    .bind(new.sign_in.map(|id| id.0))
    .bind(new.token.map(|id| id.0))
    .bind(new.access.word())
    .bind(new.reason.as_ref().map(Text::as_str))
    .bind(code_hash)
    .bind(code_until)
    .bind(new.began)
    .bind(new.expires_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Exchanges a code for a key, once. Returns its visit.
pub async fn redeem(
    conn: &mut Conn,
    session: SessionId,
    code_hash: &[u8],
    key_hash: &[u8],
    now: Timestamp,
) -> Result<Option<Visit>> {
    let row = query(
        "UPDATE visit SET key_hash = $1, code_hash = NULL, code_expires_at = NULL
         WHERE code_hash = $2 AND session = $3 AND code_expires_at > $4 RETURNING *",
    )
    .bind(key_hash)
    .bind(code_hash)
    .bind(session.0)
    .bind(now)
    .optional(conn)
    .await?;
    row.as_ref().map(visit).transpose()
}

/// The visits to a session with any of these keys, each with the hash of its key.
pub async fn find(
    conn: &mut Conn,
    session: SessionId,
    key_hashes: Vec<Vec<u8>>,
    now: Timestamp,
) -> Result<Vec<(Vec<u8>, Visit)>> {
    either(
        "SELECT * FROM visit WHERE key_hash IN (SELECT unhex(value) FROM json_each($1)) AND session = $2
             AND expires_at > $3",
        "SELECT * FROM visit WHERE key_hash = ANY($1) AND session = $2 AND expires_at > $3",
    )
    .bind(key_hashes)
    .bind(session.0)
    .bind(now)
    .map(conn, |row| Ok((row.get("key_hash")?, visit(row)?)))
    .await
}

/// The visits to a session, the newest first.
pub async fn of_session(conn: &mut Conn, session: SessionId, limit: u64) -> Result<Vec<Visit>> {
    query("SELECT * FROM visit WHERE session = $1 AND code_hash IS NULL ORDER BY began DESC, id DESC LIMIT $2")
        .bind(session.0)
        .bind(limit)
        .map(conn, visit)
        .await
}

/// Ends a person's visits to a session, or everybody's if `person` is `None`.
pub async fn end(
    conn: &mut Conn,
    session: SessionId,
    person: Option<PersonId>,
    now: Timestamp,
) -> Result<()> {
    either(
        "UPDATE visit SET expires_at = min(expires_at, $1), code_hash = NULL, code_expires_at = NULL
         WHERE session = $2 AND ($3 IS NULL OR person = $3)",
        "UPDATE visit SET expires_at = least(expires_at, $1), code_hash = NULL, code_expires_at = NULL
         WHERE session = $2 AND ($3::uuid IS NULL OR person = $3)",
    )
    .bind(now)
    .bind(session.0)
    .bind(person.map(|id| id.0))
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes expired codes, the keys of visits that are over, and visits that ended before `ended_before`: at most `limit`
/// rows of each. Returns the largest of these counts, so `limit` means that there may be more.
pub async fn sweep(
    conn: &mut Conn,
    now: Timestamp,
    ended_before: Timestamp,
    limit: u64,
) -> Result<u64> {
    if ended_before > now {
        return Err(Error::Corrupt("a sweep cannot look into the future".into()));
    }
    let codes = query(
        "DELETE FROM visit WHERE id IN
         (SELECT id FROM visit WHERE code_hash IS NOT NULL AND code_expires_at < $1 LIMIT $2)",
    )
    .bind(now)
    .bind(limit)
    .execute(conn)
    .await?;
    let keys = query(
        "UPDATE visit SET key_hash = NULL WHERE id IN
         (SELECT id FROM visit WHERE key_hash IS NOT NULL AND expires_at < $1 LIMIT $2)",
    )
    .bind(now)
    .bind(limit)
    .execute(conn)
    .await?;
    let visits = query(
        "DELETE FROM visit WHERE id IN
         (SELECT id FROM visit WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)",
    )
    .bind(ended_before)
    .bind(limit)
    .execute(conn)
    .await?;
    Ok(codes.max(keys).max(visits))
}
