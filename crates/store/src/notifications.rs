//! Notifications of each person, and which of them the person has read.

use berth_model::event::EventKind;
use berth_model::notification::Notification;
use berth_model::{PersonId, SiteId};
use jiff::Timestamp;
use uuid::Uuid;

use crate::error::Result;
use crate::sql::{Conn, Row, either, query};

fn notification(row: &Row) -> Result<Notification> {
    Ok(Notification {
        person: PersonId(row.get("person")?),
        number: row.count("number")?,
        kind: row.parsed("kind")?,
        site: row.get::<Option<Uuid>>("site")?.map(SiteId),
        subject: row.get("subject")?,
        at: row.moment("at")?,
        data: row.json("data")?,
        read_at: row.optional_moment("read_at")?,
    })
}

/// Returns whether the notification is new: a person gets one notification per event.
pub async fn insert(conn: &mut Conn, new: &Notification) -> Result<bool> {
    let told = query(
        "INSERT INTO notification (person, number, kind, site, subject, at, data, read_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
    )
    .bind(new.person.0)
    .bind(new.number)
    .bind(new.kind.as_str())
    .bind(new.site.map(|site| site.0))
    .bind(new.subject.as_str())
    .bind(new.at)
    .bind(new.data.to_string())
    .bind(new.read_at)
    .execute(conn)
    .await?;
    Ok(told == 1)
}

/// Selects the notifications to list. An empty field does not filter.
#[derive(Debug, Clone)]
pub struct Filter {
    pub person: PersonId,
    /// The page begins before this number.
    pub before: u64,
    pub unread: bool,
    pub kinds: Vec<EventKind>,
    pub site: Option<SiteId>,
    pub limit: u64,
}

/// A person's notifications, newest first. There are two statements, so that unread ones are found by their own index.
pub async fn list(conn: &mut Conn, filter: &Filter) -> Result<Vec<Notification>> {
    let asked = if filter.unread {
        either(
            "SELECT * FROM notification WHERE person = $1 AND number < $2 AND read_at IS NULL
               AND ($3 = '[]' OR kind IN (SELECT value FROM json_each($3))) AND ($4 IS NULL OR site = $4)
             ORDER BY number DESC LIMIT $5",
            "SELECT * FROM notification WHERE person = $1 AND number < $2 AND read_at IS NULL
               AND ($3::text[] = '{}' OR kind = ANY($3)) AND ($4::uuid IS NULL OR site = $4)
             ORDER BY number DESC LIMIT $5",
        )
    } else {
        either(
            "SELECT * FROM notification WHERE person = $1 AND number < $2
               AND ($3 = '[]' OR kind IN (SELECT value FROM json_each($3))) AND ($4 IS NULL OR site = $4)
             ORDER BY number DESC LIMIT $5",
            "SELECT * FROM notification WHERE person = $1 AND number < $2
               AND ($3::text[] = '{}' OR kind = ANY($3)) AND ($4::uuid IS NULL OR site = $4)
             ORDER BY number DESC LIMIT $5",
        )
    };
    let kinds = filter.kinds.iter().map(|kind| kind.as_str().to_owned());
    asked
        .bind(filter.person.0)
        .bind(filter.before.min(i64::MAX as u64))
        .bind(kinds.collect::<Vec<String>>())
        .bind(filter.site.map(|site| site.0))
        .bind(filter.limit)
        .map(conn, notification)
        .await
}

/// Number of a person's unread notifications.
pub async fn unread(conn: &mut Conn, person: PersonId) -> Result<u64> {
    query("SELECT count(*) AS unread FROM notification WHERE person = $1 AND read_at IS NULL")
        .bind(person.0)
        .one(conn)
        .await?
        .count("unread")
}

/// Marks these as read. Returns how many were unread. Numbers of events without a notification to this person are
/// ignored.
pub async fn mark_read(
    conn: &mut Conn,
    person: PersonId,
    numbers: &[u64],
    now: Timestamp,
) -> Result<u64> {
    either(
        "UPDATE notification SET read_at = $3
         WHERE person = $1 AND number IN (SELECT value FROM json_each($2)) AND read_at IS NULL",
        "UPDATE notification SET read_at = $3 WHERE person = $1 AND number = ANY($2) AND read_at IS NULL",
    )
    .bind(person.0)
    .bind(signed(numbers))
    .bind(now)
    .execute(conn)
    .await
}

/// Marks everything up to a number as read.
pub async fn mark_read_up_to(
    conn: &mut Conn,
    person: PersonId,
    number: u64,
    now: Timestamp,
) -> Result<u64> {
    query("UPDATE notification SET read_at = $3 WHERE person = $1 AND number <= $2 AND read_at IS NULL")
        .bind(person.0)
        .bind(number.min(i64::MAX as u64))
        .bind(now)
        .execute(conn)
        .await
}

/// Marks these as unread.
pub async fn mark_unread(conn: &mut Conn, person: PersonId, numbers: &[u64]) -> Result<u64> {
    either(
        "UPDATE notification SET read_at = NULL
         WHERE person = $1 AND number IN (SELECT value FROM json_each($2)) AND read_at IS NOT NULL",
        "UPDATE notification SET read_at = NULL WHERE person = $1 AND number = ANY($2) AND read_at IS NOT NULL",
    )
    .bind(person.0)
    .bind(signed(numbers))
    .execute(conn)
    .await
}

fn signed(numbers: &[u64]) -> Vec<i64> {
    let signed = numbers
        .iter()
        .filter_map(|number| i64::try_from(*number).ok());
    signed.collect()
}

/// Deletes notifications from before a moment, read or not.
pub async fn forget_before(conn: &mut Conn, at: Timestamp) -> Result<u64> {
    query("DELETE FROM notification WHERE at < $1")
        .bind(at)
        .execute(conn)
        .await
}

/// Deletes all notifications of a person.
pub async fn remove_all(conn: &mut Conn, person: PersonId) -> Result<()> {
    query("DELETE FROM notification WHERE person = $1")
        .bind(person.0)
        .execute(conn)
        .await?;
    Ok(())
}
