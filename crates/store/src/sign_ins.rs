//! Authentication: browser sign-ins, API tokens, one-time links, and failed attempts. The store keeps only hashes of
//! secrets.

use std::collections::BTreeSet;

use berth_model::person::{Person, Scope, Token};
use berth_model::{PersonId, SignInId, TokenId};
use jiff::{SignedDuration, Timestamp};

use crate::error::{Error, Result};
use crate::people::person;
use crate::sql::{Conn, Row, either, query};

#[derive(Debug, Clone)]
pub struct SignIn {
    pub id: SignInId,
    pub person: PersonId,
    pub created_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub expires_at: Timestamp,
}

pub async fn insert(conn: &mut Conn, session: &SignIn, token_hash: &[u8]) -> Result<()> {
    query(
        "INSERT INTO sign_in (id, token_hash, person, created_at, last_seen_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(session.id.0)
    .bind(token_hash)
    .bind(session.person.0)
    .bind(session.created_at)
    .bind(session.last_seen_at)
    .bind(session.expires_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// A sign-in with its person, and the hash of its cookie.
#[derive(Debug, Clone)]
pub struct Found {
    pub token_hash: Vec<u8>,
    pub session: SignIn,
    pub person: Person,
}

/// The sign-ins of these cookies.
pub async fn find(conn: &mut Conn, token_hashes: Vec<Vec<u8>>) -> Result<Vec<Found>> {
    either(
        "SELECT p.*, s.token_hash, s.id AS session_id, s.created_at AS session_created_at, s.last_seen_at, s.expires_at
         FROM sign_in s JOIN person p ON p.id = s.person
         WHERE s.token_hash IN (SELECT unhex(value) FROM json_each($1))",
        "SELECT p.*, s.token_hash, s.id AS session_id, s.created_at AS session_created_at, s.last_seen_at, s.expires_at
         FROM sign_in s JOIN person p ON p.id = s.person WHERE s.token_hash = ANY($1)",
    )
    .bind(token_hashes)
    .map(conn, |row| {
        let person = person(row)?;
        let session = SignIn {
            id: SignInId(row.get("session_id")?),
            person: person.id,
            created_at: row.moment("session_created_at")?,
            last_seen_at: row.moment("last_seen_at")?,
            expires_at: row.moment("expires_at")?,
        };
        let token_hash = row.get("token_hash")?;
        Ok(Found { token_hash, session, person })
    })
    .await
}

pub async fn touch(conn: &mut Conn, id: SignInId, now: Timestamp) -> Result<()> {
    query("UPDATE sign_in SET last_seen_at = $1 WHERE id = $2")
        .bind(now)
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(())
}

pub async fn end(conn: &mut Conn, id: SignInId) -> Result<()> {
    query("DELETE FROM sign_in WHERE id = $1")
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// Ends all sign-ins of a person, and invalidates their pending one-time links.
pub async fn end_all(conn: &mut Conn, person: PersonId) -> Result<()> {
    query("DELETE FROM sign_in WHERE person = $1")
        .bind(person.0)
        .execute(conn)
        .await?;
    query("DELETE FROM one_time_link WHERE person = $1")
        .bind(person.0)
        .execute(conn)
        .await?;
    Ok(())
}

fn token(row: &Row) -> Result<Token> {
    Ok(Token {
        id: TokenId(row.get("token_id")?),
        person: PersonId(row.get("person")?),
        label: row.parsed("label")?,
        scopes: row.json("scopes")?,
        created_at: row.moment("token_created_at")?,
        expires_at: row.moment("expires_at")?,
        last_used_at: row.optional_moment("last_used_at")?,
        revoked_at: row.optional_moment("revoked_at")?,
    })
}

pub async fn insert_token(conn: &mut Conn, token: &Token, token_hash: &[u8]) -> Result<()> {
    query(
        "INSERT INTO api_token (id, token_hash, person, label, scopes, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(token.id.0)
    .bind(token_hash)
    .bind(token.person.0)
    .bind(token.label.as_str())
    .bind(scopes_text(&token.scopes))
    .bind(token.created_at)
    .bind(token.expires_at)
    .execute(conn)
    .await?;
    Ok(())
}

fn scopes_text(scopes: &BTreeSet<Scope>) -> String {
    crate::sql::to_json(scopes)
}

pub async fn find_token(conn: &mut Conn, token_hash: &[u8]) -> Result<Option<(Token, Person)>> {
    let row = query(
        "SELECT p.*, t.id AS token_id, t.person, t.label, t.scopes, t.created_at AS token_created_at, t.expires_at,
             t.last_used_at, t.revoked_at
         FROM api_token t JOIN person p ON p.id = t.person WHERE t.token_hash = $1",
    )
    .bind(token_hash)
    .optional(conn)
    .await?;
    row.map(|row| Ok((token(&row)?, person(&row)?))).transpose()
}

pub async fn tokens_of(conn: &mut Conn, person: PersonId) -> Result<Vec<Token>> {
    query(
        "SELECT id AS token_id, person, label, scopes, created_at AS token_created_at, expires_at, last_used_at, revoked_at
         FROM api_token WHERE person = $1 ORDER BY id",
    )
    .bind(person.0)
    .map(conn, token)
    .await
}

pub async fn touch_token(conn: &mut Conn, id: TokenId, now: Timestamp) -> Result<()> {
    query("UPDATE api_token SET last_used_at = $1 WHERE id = $2")
        .bind(now)
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// Returns whether there was a live token to revoke.
pub async fn revoke_token(
    conn: &mut Conn,
    person: PersonId,
    id: TokenId,
    now: Timestamp,
) -> Result<bool> {
    let revoked = query(
        "UPDATE api_token SET revoked_at = $1 WHERE id = $2 AND person = $3 AND revoked_at IS NULL",
    )
    .bind(now)
    .bind(id.0)
    .bind(person.0)
    .execute(conn)
    .await?;
    Ok(revoked == 1)
}

/// Returns the number of live tokens that it revoked.
pub async fn revoke_all_tokens(conn: &mut Conn, person: PersonId, now: Timestamp) -> Result<u64> {
    query("UPDATE api_token SET revoked_at = $1 WHERE person = $2 AND revoked_at IS NULL AND expires_at > $1")
        .bind(now)
        .bind(person.0)
        .execute(conn)
        .await
}

pub async fn insert_link(
    conn: &mut Conn,
    person: PersonId,
    token_hash: &[u8],
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<()> {
    query("INSERT INTO one_time_link (token_hash, person, created_at, expires_at) VALUES ($1, $2, $3, $4)")
        .bind(token_hash)
        .bind(person.0)
        .bind(now)
        .bind(expires_at)
        .execute(conn)
        .await?;
    Ok(())
}

/// Whether a one-time link is valid.
pub async fn is_link(conn: &mut Conn, token_hash: &[u8], now: Timestamp) -> Result<bool> {
    let row =
        query("SELECT 1 AS there FROM one_time_link WHERE token_hash = $1 AND expires_at > $2")
            .bind(token_hash)
            .bind(now)
            .optional(conn)
            .await?;
    Ok(row.is_some())
}

/// Deletes a one-time link and returns its person. Of two concurrent uses, one finds it gone.
pub async fn take_link(
    conn: &mut Conn,
    token_hash: &[u8],
    now: Timestamp,
) -> Result<Option<PersonId>> {
    let row = query("DELETE FROM one_time_link WHERE token_hash = $1 RETURNING person, expires_at")
        .bind(token_hash)
        .optional(conn)
        .await?;
    let Some(row) = row else { return Ok(None) };
    Ok((row.moment("expires_at")? > now).then_some(PersonId(row.get("person")?)))
}

/// Lets one transaction at a time count the failures of a subject. SQLite has one writer anyway.
pub async fn lock_failures(conn: &mut Conn, subject: &str) -> Result<()> {
    either(
        "SELECT 1 AS locked WHERE $1 IS NOT NULL",
        "SELECT 1 AS locked FROM (SELECT pg_advisory_xact_lock(hashtextextended($1, 0))) AS taken",
    )
    .bind(subject)
    .optional(conn)
    .await?;
    Ok(())
}

pub async fn note_failure(conn: &mut Conn, subject: &str, now: Timestamp) -> Result<()> {
    query("INSERT INTO sign_in_failure (subject, at) VALUES ($1, $2)")
        .bind(subject)
        .bind(now)
        .execute(conn)
        .await?;
    Ok(())
}

/// The failures of a subject since a moment: their number, and the moment of the first.
pub async fn failures_since(
    conn: &mut Conn,
    subject: &str,
    since: Timestamp,
) -> Result<(u64, Option<Timestamp>)> {
    let row = query("SELECT count(*) AS n, min(at) AS first FROM sign_in_failure WHERE subject = $1 AND at > $2")
        .bind(subject)
        .bind(since)
        .one(conn)
        .await?;
    Ok((row.count("n")?, row.optional_moment("first")?))
}

/// Deletes the failure recorded at that moment.
pub async fn forget_failure(conn: &mut Conn, subject: &str, at: Timestamp) -> Result<()> {
    query("DELETE FROM sign_in_failure WHERE subject = $1 AND at = $2")
        .bind(subject)
        .bind(at)
        .execute(conn)
        .await?;
    Ok(())
}

/// Deletes the failures of every subject with this prefix.
pub async fn forget_failures_below(conn: &mut Conn, prefix: &str) -> Result<()> {
    query("DELETE FROM sign_in_failure WHERE substr(subject, 1, length($1)) = $1")
        .bind(prefix)
        .execute(conn)
        .await?;
    Ok(())
}

/// The most networks remembered per person.
const NETWORKS_MAX: u64 = 100;

/// Remembers a network that a person signed in from, and deletes the oldest above the limit.
pub async fn know_network(
    conn: &mut Conn,
    person: PersonId,
    network: &str,
    now: Timestamp,
) -> Result<()> {
    query(
        "INSERT INTO known_network (person, network, last_at) VALUES ($1, $2, $3)
         ON CONFLICT (person, network) DO UPDATE SET last_at = excluded.last_at",
    )
    .bind(person.0)
    .bind(network)
    .bind(now)
    .execute(conn)
    .await?;
    query(
        "DELETE FROM known_network WHERE person = $1 AND network NOT IN
         (SELECT network FROM known_network WHERE person = $1 ORDER BY last_at DESC, network LIMIT $2)",
    )
    .bind(person.0)
    .bind(NETWORKS_MAX)
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes the networks of a removed person.
pub async fn forget_networks(conn: &mut Conn, person: PersonId) -> Result<()> {
    query("DELETE FROM known_network WHERE person = $1")
        .bind(person.0)
        .execute(conn)
        .await?;
    Ok(())
}

pub async fn knows_network(conn: &mut Conn, person: PersonId, network: &str) -> Result<bool> {
    let row = query("SELECT 1 AS there FROM known_network WHERE person = $1 AND network = $2")
        .bind(person.0)
        .bind(network)
        .optional(conn)
        .await?;
    Ok(row.is_some())
}

pub async fn forget_failures(conn: &mut Conn, subject: &str) -> Result<()> {
    query("DELETE FROM sign_in_failure WHERE subject = $1")
        .bind(subject)
        .execute(conn)
        .await?;
    Ok(())
}

/// How long an unused network is remembered.
const NETWORK_KEPT: SignedDuration = SignedDuration::from_hours(400 * 24);

/// Deletes expired rows: sign-ins, links, failures, networks and idempotency keys.
pub async fn sweep(
    conn: &mut Conn,
    now: Timestamp,
    idle_since: Timestamp,
    day_ago: Timestamp,
) -> Result<u64> {
    if idle_since > now || day_ago > now {
        return Err(Error::Corrupt("a sweep cannot look into the future".into()));
    }
    let mut swept = query("DELETE FROM sign_in WHERE expires_at <= $1 OR last_seen_at <= $2")
        .bind(now)
        .bind(idle_since)
        .execute(conn)
        .await?;
    swept += query("DELETE FROM one_time_link WHERE expires_at <= $1")
        .bind(now)
        .execute(conn)
        .await?;
    swept += query("DELETE FROM sign_in_failure WHERE at <= $1")
        .bind(day_ago)
        .execute(conn)
        .await?;
    swept += query("DELETE FROM known_network WHERE last_at <= $1")
        .bind(day_ago - NETWORK_KEPT)
        .execute(conn)
        .await?;
    swept += query("DELETE FROM idempotency WHERE created_at <= $1")
        .bind(day_ago)
        .execute(conn)
        .await?;
    Ok(swept)
}

/// Ends every sign-in of a person but this one.
pub async fn end_others(conn: &mut Conn, person: PersonId, but: SignInId) -> Result<()> {
    query("DELETE FROM sign_in WHERE person = $1 AND id <> $2")
        .bind(person.0)
        .bind(but.0)
        .execute(conn)
        .await?;
    query("DELETE FROM one_time_link WHERE person = $1")
        .bind(person.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// Whether a sign-in is still valid and its person is active.
pub async fn lives(conn: &mut Conn, id: SignInId, now: Timestamp) -> Result<bool> {
    let row = query(
        "SELECT 1 AS yes FROM sign_in s JOIN person p ON p.id = s.person
         WHERE s.id = $1 AND s.expires_at > $2 AND p.state = 'active'",
    )
    .bind(id.0)
    .bind(now)
    .optional(conn)
    .await?;
    Ok(row.is_some())
}

pub async fn token_lives(conn: &mut Conn, id: TokenId, now: Timestamp) -> Result<bool> {
    Ok(token_until(conn, id, now).await?.is_some())
}

/// When a token expires. `None` if it is not valid or its person is not active.
pub async fn token_until(
    conn: &mut Conn,
    id: TokenId,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let row = query(
        "SELECT t.expires_at FROM api_token t JOIN person p ON p.id = t.person
         WHERE t.id = $1 AND t.expires_at > $2 AND t.revoked_at IS NULL AND p.state = 'active'",
    )
    .bind(id.0)
    .bind(now)
    .optional(conn)
    .await?;
    row.map(|row| row.moment("expires_at")).transpose()
}
