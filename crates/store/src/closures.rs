//! Closure calendars and the closed times computed from them.

use berth_model::closure::{ClosedSpan, ClosedTime, Closure, ClosureKind};
use berth_model::reference::ClosureReference;
use berth_model::{ClosureId, Reference, SiteId, Span};
use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::sql::{Conn, Row, either, query, to_json};
use crate::words::Word;

/// The stored source of a calendar, which users do not see: its text, and the `ETag` that its address sent.
#[derive(Debug, Clone)]
pub struct Source {
    pub text: String,
    pub etag: Option<String>,
    /// When the server next reads the calendar.
    pub due_at: Timestamp,
}

fn closure(row: &Row) -> Result<Closure> {
    Ok(Closure {
        id: ClosureId(row.get("id")?),
        site: SiteId(row.get("site")?),
        name: row.parsed("name")?,
        kind: row.word("kind")?,
        address: row.get("address")?,
        notes: row.json("notes")?,
        read_at: row.moment("read_at")?,
        tried_at: row.moment("tried_at")?,
        trouble: row.get("trouble")?,
        created_at: row.moment("created_at")?,
        version: row.count("version")?,
    })
}

fn source(row: &Row) -> Result<Source> {
    Ok(Source {
        text: row.get("source")?,
        etag: row.get("etag")?,
        due_at: row.moment("due_at")?,
    })
}

fn closed(row: &Row) -> Result<ClosedSpan> {
    Ok(ClosedSpan {
        span: Span::new(row.moment("starts")?, row.moment("ends")?)
            .map_err(|error| Error::Corrupt(error.to_string()))?,
        title: row.parsed("title")?,
    })
}

pub async fn insert(conn: &mut Conn, new: &Closure, source: &Source) -> Result<()> {
    query(
        "INSERT INTO closure (id, site, name, kind, address, source, etag, notes, read_at, tried_at, trouble, due_at,
             created_at, version)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    )
    .bind(new.id.0)
    .bind(new.site.0)
    .bind(new.name.as_str())
    .bind(new.kind.word())
    .bind(new.address.as_deref())
    .bind(source.text.as_str())
    .bind(source.etag.as_deref())
    .bind(to_json(&new.notes))
    .bind(new.read_at)
    .bind(new.tried_at)
    .bind(new.trouble.as_deref())
    .bind(source.due_at)
    .bind(new.created_at)
    .bind(new.version)
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes the result of reading the calendar. The name and the site do not change.
pub async fn update(conn: &mut Conn, new: &Closure, source: &Source) -> Result<()> {
    query(
        "UPDATE closure SET source = $1, etag = $2, notes = $3, read_at = $4, tried_at = $5, trouble = $6, due_at = $7,
             version = $8
         WHERE id = $9",
    )
    .bind(source.text.as_str())
    .bind(source.etag.as_deref())
    .bind(to_json(&new.notes))
    .bind(new.read_at)
    .bind(new.tried_at)
    .bind(new.trouble.as_deref())
    .bind(source.due_at)
    .bind(new.version)
    .bind(new.id.0)
    .execute(conn)
    .await?;
    Ok(())
}

/// Replaces the closed times of a calendar.
pub async fn set_spans(conn: &mut Conn, of: &Closure, spans: &[ClosedSpan]) -> Result<()> {
    query("DELETE FROM closure_span WHERE closure = $1")
        .bind(of.id.0)
        .execute(conn)
        .await?;
    let rows: Vec<(i64, i64, &str)> = spans
        .iter()
        .map(|one| {
            let (start, end) = (one.span.start(), one.span.end());
            (
                start.as_microsecond(),
                end.as_microsecond(),
                one.title.as_str(),
            )
        })
        .collect();
    either(
        "INSERT INTO closure_span (closure, nr, site, starts, ends, title)
         SELECT $1, key, $2, value ->> 0, value ->> 1, value ->> 2 FROM json_each($3)",
        "INSERT INTO closure_span (closure, nr, site, starts, ends, title)
         SELECT $1::uuid, v.nr, $2::uuid, (v.one ->> 0)::bigint, (v.one ->> 1)::bigint, v.one ->> 2
         FROM jsonb_array_elements($3::text::jsonb) WITH ORDINALITY AS v (one, nr)",
    )
    .bind(of.id.0)
    .bind(of.site.0)
    .bind(to_json(&rows))
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn spans(conn: &mut Conn, of: ClosureId) -> Result<Vec<ClosedSpan>> {
    query("SELECT starts, ends, title FROM closure_span WHERE closure = $1 ORDER BY starts, nr")
        .bind(of.0)
        .map(conn, closed)
        .await
}

pub async fn get(
    conn: &mut Conn,
    site: SiteId,
    reference: &ClosureReference,
) -> Result<Option<Closure>> {
    let asked = match reference {
        Reference::Id(id) => query("SELECT * FROM closure WHERE site = $1 AND id = $2")
            .bind(site.0)
            .bind(id.0),
        Reference::Name(name) => query("SELECT * FROM closure WHERE site = $1 AND name = $2")
            .bind(site.0)
            .bind(name.as_str()),
    };
    let row = asked.optional(conn).await?;
    row.as_ref().map(closure).transpose()
}

/// The calendar with its source, locked until the transaction ends.
pub async fn get_locked(conn: &mut Conn, id: ClosureId) -> Result<Option<(Closure, Source)>> {
    let row = either(
        "SELECT * FROM closure WHERE id = $1",
        "SELECT * FROM closure WHERE id = $1 FOR UPDATE",
    )
    .bind(id.0)
    .optional(conn)
    .await?;
    row.map(|row| Ok((closure(&row)?, source(&row)?)))
        .transpose()
}

pub async fn source_of(conn: &mut Conn, id: ClosureId) -> Result<Option<Source>> {
    let row = query("SELECT source, etag, due_at FROM closure WHERE id = $1")
        .bind(id.0)
        .optional(conn)
        .await?;
    row.as_ref().map(source).transpose()
}

/// The calendars of a site by name, without their texts, which may be large.
pub async fn list(conn: &mut Conn, site: SiteId) -> Result<Vec<Closure>> {
    query(
        "SELECT id, site, name, kind, address, notes, read_at, tried_at, trouble, created_at, version
         FROM closure WHERE site = $1 ORDER BY name",
    )
    .bind(site.0)
    .map(conn, closure)
    .await
}

/// Calendars that the server must read again, the most overdue first.
pub async fn due(conn: &mut Conn, now: Timestamp, limit: u64) -> Result<Vec<(Closure, Source)>> {
    query("SELECT * FROM closure WHERE due_at <= $1 ORDER BY due_at LIMIT $2")
        .bind(now)
        .bind(limit)
        .map(conn, |row| Ok((closure(row)?, source(row)?)))
        .await
}

/// Makes every calendar of a site due. After a change of the site's time zone, the server computes their closed times
/// again.
pub async fn all_due(conn: &mut Conn, site: SiteId, now: Timestamp) -> Result<()> {
    query("UPDATE closure SET due_at = $1 WHERE site = $2")
        .bind(now)
        .bind(site.0)
        .execute(conn)
        .await?;
    Ok(())
}

pub async fn remove(conn: &mut Conn, id: ClosureId) -> Result<bool> {
    query("DELETE FROM closure_span WHERE closure = $1")
        .bind(id.0)
        .execute(conn)
        .await?;
    let removed = query("DELETE FROM closure WHERE id = $1")
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(removed == 1)
}

/// The closed times of a site that overlap `span`, by start: of one kind, or of both if `kind` is `None`.
pub async fn closed_between(
    conn: &mut Conn,
    site: SiteId,
    kind: Option<ClosureKind>,
    span: Span,
    limit: u64,
) -> Result<Vec<ClosedTime>> {
    either(
        "SELECT s.starts, s.ends, s.title, c.name, c.kind FROM closure_span s JOIN closure c ON c.id = s.closure
         WHERE s.site = $1 AND s.ends > $2 AND s.starts < $3 AND ($4 IS NULL OR c.kind = $4)
         ORDER BY s.starts, c.name, s.nr LIMIT $5",
        "SELECT s.starts, s.ends, s.title, c.name, c.kind FROM closure_span s JOIN closure c ON c.id = s.closure
         WHERE s.site = $1 AND s.ends > $2 AND s.starts < $3 AND ($4::text IS NULL OR c.kind = $4)
         ORDER BY s.starts, c.name, s.nr LIMIT $5",
    )
    .bind(site.0)
    .bind(span.start())
    .bind(span.end())
    .bind(kind.map(Word::word))
    .bind(limit)
    .map(conn, |row| {
        Ok(ClosedTime {
            calendar: row.parsed("name")?,
            kind: row.word("kind")?,
            closed: closed(row)?,
        })
    })
    .await
}

/// When the next calendar is due.
pub async fn next_due(conn: &mut Conn) -> Result<Option<Timestamp>> {
    let row = query("SELECT min(due_at) AS at FROM closure")
        .one(conn)
        .await?;
    row.optional_moment("at")
}
