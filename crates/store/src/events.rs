//! The event outbox. A transaction writes an event together with the change; readers read it once it has a number.

use berth_model::event::{Audience, Event, EventKind, NumberedEvent};
use berth_model::{EventId, PersonId, SiteId};
use jiff::Timestamp;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::sql::{Conn, Row, query};

pub(crate) fn audience_columns(audience: Audience) -> (&'static str, Option<Uuid>) {
    match audience {
        Audience::Members => ("members", None),
        Audience::Person(id) => ("person", Some(id.0)),
        Audience::Admins => ("admins", None),
    }
}

pub async fn insert(conn: &mut Conn, event: &Event) -> Result<()> {
    let (audience, person) = audience_columns(event.audience);
    query(
        "INSERT INTO event (id, at, kind, site, subject, audience, audience_person, data)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(event.id.0)
    .bind(event.at)
    .bind(event.kind.as_str())
    .bind(event.site.map(|site| site.0))
    .bind(event.subject.as_str())
    .bind(audience)
    .bind(person)
    .bind(event.data.to_string())
    .execute(conn)
    .await?;
    Ok(())
}

fn event(row: &Row) -> Result<NumberedEvent> {
    let audience = match (
        row.get::<String>("audience")?.as_str(),
        row.get::<Option<Uuid>>("audience_person")?,
    ) {
        ("members", None) => Audience::Members,
        ("person", Some(id)) => Audience::Person(PersonId(id)),
        ("admins", None) => Audience::Admins,
        (other, _) => return Err(Error::Corrupt(format!("audience: `{other}`"))),
    };
    Ok(NumberedEvent {
        number: row.count("number")?,
        event: Event {
            id: EventId(row.get("id")?),
            at: row.moment("at")?,
            kind: row.parsed("kind")?,
            site: row.get::<Option<Uuid>>("site")?.map(SiteId),
            subject: row.get("subject")?,
            audience,
            data: row.json("data")?,
        },
    })
}

/// Events after a number, in order, without gaps.
pub async fn after(conn: &mut Conn, number: u64, limit: u64) -> Result<Vec<NumberedEvent>> {
    query("SELECT * FROM event WHERE number > $1 ORDER BY number LIMIT $2")
        .bind(number.min(i64::MAX as u64))
        .bind(limit)
        .map(conn, event)
        .await
}

/// A change in a site: the kind of the event and its subject.
pub type News = (EventKind, String);

/// The committed events of a site without a number, then those numbered after `seen`, at most `limit` of the numbered,
/// with the last number read. This order loses no event: one that gets its number between the two statements is in
/// both.
pub async fn news(
    conn: &mut Conn,
    site: SiteId,
    seen: u64,
    limit: u64,
) -> Result<(Vec<News>, u64)> {
    let news = |row: &Row| Ok((row.parsed::<EventKind>("kind")?, row.get("subject")?));
    let mut all = query("SELECT kind, subject FROM event WHERE number IS NULL AND site = $1")
        .bind(site.0)
        .map(conn, news)
        .await?;
    let numbered = query(
        "SELECT kind, subject, site, number FROM event WHERE number > $1 ORDER BY number LIMIT $2",
    )
    .bind(seen)
    .bind(limit)
    .map(conn, |row| {
        let here = row.get::<Option<Uuid>>("site")? == Some(site.0);
        Ok((row.count("number")?, here.then(|| news(row)).transpose()?))
    })
    .await?;
    let last = numbered.last().map_or(seen, |(number, _)| *number);
    all.extend(numbered.into_iter().filter_map(|(_, news)| news));
    Ok((all, last))
}

/// The number of the newest event.
pub async fn last_number(conn: &mut Conn) -> Result<u64> {
    query("SELECT number FROM sequence_head WHERE name = 'event'")
        .one(conn)
        .await?
        .count("number")
}

/// Deletes numbered events from before a moment. Numbers are never reused, so a reader that resumes later begins at the
/// oldest event left.
pub async fn forget_before(conn: &mut Conn, at: Timestamp) -> Result<u64> {
    query("DELETE FROM event WHERE number <= (SELECT max(number) FROM event WHERE at < $1)")
        .bind(at)
        .execute(conn)
        .await
}
