//! Series: the common data of the instances of one recurrence rule. The instances themselves are reservations.

use berth_model::{PersonId, Series, SeriesId, SiteId};
use jiff::Timestamp;
use uuid::Uuid;

use crate::error::Result;
use crate::sql::{Conn, Row, either, query, to_json};
use crate::words::Word;

fn series(row: &Row) -> Result<Series> {
    Ok(Series {
        id: SeriesId(row.get("id")?),
        site: SiteId(row.get("site")?),
        owner: PersonId(row.get("owner")?),
        title: row.parsed("title")?,
        privacy: row.word("privacy")?,
        pattern: row.json("pattern")?,
        ends: row.moment("ends")?,
        version: row.count("version")?,
        created_at: row.moment("created_at")?,
        updated_at: row.moment("updated_at")?,
    })
}

pub async fn insert(conn: &mut Conn, new: &Series) -> Result<()> {
    query(
        "INSERT INTO series (id, site, owner, title, privacy, pattern, ends, version, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(new.id.0)
    .bind(new.site.0)
    .bind(new.owner.0)
    .bind(new.title.as_str())
    .bind(new.privacy.word())
    .bind(to_json(&new.pattern))
    .bind(new.ends)
    .bind(new.version)
    .bind(new.created_at)
    .bind(new.updated_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes the series, if nobody changed it since `version`.
pub async fn update(conn: &mut Conn, new: &Series, version: u64) -> Result<bool> {
    let changed = query(
        "UPDATE series SET title = $1, privacy = $2, pattern = $3, ends = $4, updated_at = $5, version = version + 1
         WHERE id = $6 AND version = $7",
    )
    .bind(new.title.as_str())
    .bind(new.privacy.word())
    .bind(to_json(&new.pattern))
    .bind(new.ends)
    .bind(new.updated_at)
    .bind(new.id.0)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

pub async fn get(conn: &mut Conn, site: SiteId, id: SeriesId) -> Result<Option<Series>> {
    let row = query("SELECT * FROM series WHERE id = $1 AND site = $2")
        .bind(id.0)
        .bind(site.0)
        .optional(conn)
        .await?;
    row.as_ref().map(series).transpose()
}

/// The series, locked until the transaction ends. A caller that changes several instances at once locks their series
/// first, so that two such callers take turns.
pub async fn get_locked(conn: &mut Conn, site: SiteId, id: SeriesId) -> Result<Option<Series>> {
    let row = either(
        "SELECT * FROM series WHERE id = $1 AND site = $2",
        "SELECT * FROM series WHERE id = $1 AND site = $2 FOR NO KEY UPDATE",
    )
    .bind(id.0)
    .bind(site.0)
    .optional(conn)
    .await?;
    row.as_ref().map(series).transpose()
}

/// Selects the series to list, in the order of their creation.
#[derive(Debug, Clone)]
pub struct Filter {
    pub site: SiteId,
    pub owner: Option<PersonId>,
    /// Only series that end after this moment.
    pub from: Timestamp,
    /// The page begins after this series.
    pub after: Option<SeriesId>,
    pub limit: u64,
}

pub async fn list(conn: &mut Conn, filter: &Filter) -> Result<Vec<Series>> {
    let after = filter.after.map_or(Uuid::nil(), |id| id.0);
    let select = match filter.owner {
        Some(owner) => query(
            "SELECT * FROM series WHERE owner = $1 AND site = $2 AND ends > $3 AND id > $4 ORDER BY id LIMIT $5",
        )
        .bind(owner.0),
        None => either(
            "SELECT * FROM series WHERE ($1 IS NULL OR owner = $1) AND site = $2 AND ends > $3 AND id > $4
             ORDER BY id LIMIT $5",
            "SELECT * FROM series WHERE ($1::uuid IS NULL OR owner = $1) AND site = $2 AND ends > $3 AND id > $4
             ORDER BY id LIMIT $5",
        )
        .bind(None::<Uuid>),
    };
    select
        .bind(filter.site.0)
        .bind(filter.from)
        .bind(after)
        .bind(filter.limit)
        .map(conn, series)
        .await
}
