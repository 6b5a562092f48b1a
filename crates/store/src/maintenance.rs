//! Planned maintenance windows. The window holds the reason; its claims occupy the timeline.

use berth_model::{Name, PersonId, SiteId, Span, Text, WindowId};
use jiff::Timestamp;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::sql::{Conn, Row, query};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    pub id: WindowId,
    pub site: SiteId,
    pub title: Text,
    pub span: Span,
    pub state: WindowState,
    pub planned_by: Option<PersonId>,
    pub created_at: Timestamp,
    pub version: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowState {
    Planned,
    Ended,
    Cancelled,
}

impl WindowState {
    pub fn as_str(self) -> &'static str {
        match self {
            WindowState::Planned => "planned",
            WindowState::Ended => "ended",
            WindowState::Cancelled => "cancelled",
        }
    }
}

pub(crate) fn window(row: &Row) -> Result<Window> {
    let state: Name = row.parsed("state")?;
    let states = [
        WindowState::Planned,
        WindowState::Ended,
        WindowState::Cancelled,
    ];
    Ok(Window {
        id: WindowId(row.get("id")?),
        site: SiteId(row.get("site")?),
        title: row.parsed("title")?,
        span: Span::new(row.moment("starts")?, row.moment("ends")?)
            .map_err(|error| Error::Corrupt(error.to_string()))?,
        state: states
            .into_iter()
            .find(|known| known.as_str() == state.as_str())
            .ok_or_else(|| Error::Corrupt(format!("maintenance state `{state}`")))?,
        planned_by: row.get::<Option<Uuid>>("planned_by")?.map(PersonId),
        created_at: row.moment("created_at")?,
        version: row.count("version")?,
    })
}

pub async fn insert(conn: &mut Conn, new: &Window) -> Result<()> {
    query(
        "INSERT INTO maintenance (id, site, title, starts, ends, state, planned_by, created_at, version)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(new.id.0)
    .bind(new.site.0)
    .bind(new.title.as_str())
    .bind(new.span.start())
    .bind(new.span.end())
    .bind(new.state.as_str())
    .bind(new.planned_by.map(|by| by.0))
    .bind(new.created_at)
    .bind(new.version)
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn get(conn: &mut Conn, site: SiteId, id: WindowId) -> Result<Option<Window>> {
    let row = query("SELECT * FROM maintenance WHERE id = $1 AND site = $2")
        .bind(id.0)
        .bind(site.0)
        .optional(conn)
        .await?;
    row.as_ref().map(window).transpose()
}

/// Windows after the given one, by start.
pub async fn list(
    conn: &mut Conn,
    site: SiteId,
    from: Timestamp,
    after: Option<(Timestamp, WindowId)>,
    limit: u64,
) -> Result<Vec<Window>> {
    let (after_start, after_id) = after.map_or((i64::MIN, Uuid::nil()), |(start, id)| {
        (start.as_microsecond(), id.0)
    });
    query(
        "SELECT * FROM maintenance WHERE site = $1 AND ends > $2 AND (starts, id) > ($3, $4) ORDER BY starts, id LIMIT $5",
    )
    .bind(site.0)
    .bind(from)
    .bind(after_start)
    .bind(after_id)
    .bind(limit)
    .map(conn, window)
    .await
}

/// Ends or cancels a planned window. Returns whether it was still planned.
pub async fn finish(conn: &mut Conn, id: WindowId, state: WindowState) -> Result<bool> {
    let changed = query("UPDATE maintenance SET state = $1, version = version + 1 WHERE id = $2 AND state = 'planned'")
        .bind(state.as_str())
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(changed == 1)
}

/// Planned windows that are past their end.
pub async fn due(conn: &mut Conn, now: Timestamp, limit: u64) -> Result<Vec<Window>> {
    query("SELECT * FROM maintenance WHERE state = 'planned' AND ends <= $1 ORDER BY ends LIMIT $2")
        .bind(now)
        .bind(limit)
        .map(conn, window)
        .await
}

pub async fn next_due(conn: &mut Conn) -> Result<Option<Timestamp>> {
    let row = query("SELECT min(ends) AS at FROM maintenance WHERE state = 'planned'")
        .one(conn)
        .await?;
    row.optional_moment("at")
}
