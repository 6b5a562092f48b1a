//! People and their passwords.

use berth_model::person::{Person, PersonState};
use berth_model::{LoginName, PersonId};
use jiff::Timestamp;

use crate::error::Result;
use crate::sql::{Conn, Row, either, query};
use crate::words::Word;

pub(crate) fn person(row: &Row) -> Result<Person> {
    Ok(Person {
        id: PersonId(row.get("id")?),
        login: row.parsed("login")?,
        display_name: row.parsed("display_name")?,
        email: row.get("email")?,
        time_zone: row.parsed("time_zone")?,
        global_admin: row.get("global_admin")?,
        state: row.word("state")?,
        version: row.count("version")?,
        created_at: row.moment("created_at")?,
    })
}

pub async fn insert(conn: &mut Conn, person: &Person) -> Result<()> {
    query(
        "INSERT INTO person (id, login, display_name, email, time_zone, global_admin, state, version, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(person.id.0)
    .bind(person.login.as_str())
    .bind(person.display_name.as_str())
    .bind(person.email.clone())
    .bind(person.time_zone.as_str())
    .bind(person.global_admin)
    .bind(person.state.word())
    .bind(person.version)
    .bind(person.created_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes the person's changeable fields if nobody changed them since `version`. Returns whether it did.
pub async fn update(conn: &mut Conn, person: &Person, version: u64) -> Result<bool> {
    let changed = query(
        "UPDATE person SET login = $1, display_name = $2, email = $3, time_zone = $4, global_admin = $5, state = $6,
             version = version + 1
         WHERE id = $7 AND version = $8",
    )
    .bind(person.login.as_str())
    .bind(person.display_name.as_str())
    .bind(person.email.clone())
    .bind(person.time_zone.as_str())
    .bind(person.global_admin)
    .bind(person.state.word())
    .bind(person.id.0)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

pub async fn get(conn: &mut Conn, id: PersonId) -> Result<Option<Person>> {
    query("SELECT * FROM person WHERE id = $1")
        .bind(id.0)
        .optional(conn)
        .await?
        .as_ref()
        .map(person)
        .transpose()
}

pub async fn by_login(conn: &mut Conn, login: &LoginName) -> Result<Option<Person>> {
    query("SELECT * FROM person WHERE login = $1")
        .bind(login.as_str())
        .optional(conn)
        .await?
        .as_ref()
        .map(person)
        .transpose()
}

/// People after `after`, by login.
pub async fn list(conn: &mut Conn, after: &str, limit: u64) -> Result<Vec<Person>> {
    query("SELECT * FROM person WHERE login > $1 AND state <> 'removed' ORDER BY login LIMIT $2")
        .bind(after)
        .bind(limit)
        .map(conn, person)
        .await
}

/// Whether more than one person can sign in.
pub async fn are_several(conn: &mut Conn) -> Result<bool> {
    let active = query(
        "SELECT count(*) AS n FROM (SELECT 1 FROM person WHERE state = $1 LIMIT 2) AS active",
    )
    .bind(PersonState::Active.word())
    .one(conn)
    .await?
    .count("n")?;
    Ok(active > 1)
}

/// Number of active global admins besides this one. The last one must not be removed.
pub async fn other_global_admins(conn: &mut Conn, id: PersonId) -> Result<u64> {
    query("SELECT count(*) AS n FROM person WHERE global_admin AND state = $1 AND id <> $2")
        .bind(PersonState::Active.word())
        .bind(id.0)
        .one(conn)
        .await?
        .count("n")
}

/// The active global admins.
pub async fn global_admins(conn: &mut Conn) -> Result<Vec<PersonId>> {
    query("SELECT id FROM person WHERE global_admin AND state = $1 ORDER BY login")
        .bind(PersonState::Active.word())
        .map(conn, |row| Ok(PersonId(row.get("id")?)))
        .await
}

pub async fn set_password(conn: &mut Conn, id: PersonId, hash: &str, now: Timestamp) -> Result<()> {
    query(
        "INSERT INTO credential (person, password_hash, changed_at) VALUES ($1, $2, $3)
         ON CONFLICT (person) DO UPDATE SET password_hash = excluded.password_hash, changed_at = excluded.changed_at",
    )
    .bind(id.0)
    .bind(hash)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn forget_password(conn: &mut Conn, id: PersonId) -> Result<()> {
    query("DELETE FROM credential WHERE person = $1")
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(())
}

pub async fn password_hash(conn: &mut Conn, id: PersonId) -> Result<Option<String>> {
    let row = query("SELECT password_hash FROM credential WHERE person = $1")
        .bind(id.0)
        .optional(conn)
        .await?;
    row.map(|row| row.get("password_hash")).transpose()
}

/// People by id, removed ones included, because past bookings still name them.
pub async fn named(conn: &mut Conn, ids: Vec<PersonId>) -> Result<Vec<Person>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    either(
        "SELECT * FROM person WHERE id IN (SELECT unhex(value) FROM json_each($1))",
        "SELECT * FROM person WHERE id = ANY($1)",
    )
    .bind(ids.iter().map(|id| id.0).collect::<Vec<_>>())
    .map(conn, person)
    .await
}
