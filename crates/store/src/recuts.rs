//! MIG repartitions of GPUs.

use berth_model::recut::{CutOutcome, Recut};
use berth_model::{RecutId, ResourceId, SiteId, WorkloadId};
use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::sql::{Conn, Row, query, to_json};
use crate::words::Word;

fn recut(row: &Row) -> Result<Recut> {
    let ended_at = row.optional_moment("ended_at")?;
    Ok(Recut {
        id: RecutId(row.get("id")?),
        site: SiteId(row.get("site")?),
        workload: WorkloadId(row.get("workload")?),
        gpu: ResourceId(row.get("gpu")?),
        slice: ResourceId(row.get("slice")?),
        gone: row.json("gone")?,
        profile: row.parsed("profile")?,
        at: u8::try_from(row.count("place")?)
            .map_err(|error| Error::Corrupt(format!("place: {error}")))?,
        claims: row.json("claims")?,
        began: row.moment("began")?,
        until: row.moment("until")?,
        ended: ended_at.zip(row.optional_word("outcome")?),
    })
}

pub async fn insert(conn: &mut Conn, new: &Recut) -> Result<()> {
    let (ended_at, outcome) = new.ended.unzip();
    query(
        "INSERT INTO recut (id, site, workload, gpu, slice, gone, profile, place, claims, began, until, ended_at, outcome)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    )
    .bind(new.id.0)
    .bind(new.site.0)
    .bind(new.workload.0)
    .bind(new.gpu.0)
    .bind(new.slice.0)
    .bind(to_json(&new.gone))
    .bind(new.profile.as_str())
    .bind(u64::from(new.at))
    .bind(to_json(&new.claims))
    .bind(new.began)
    .bind(new.until)
    .bind(ended_at)
    .bind(outcome.map(Word::word))
    .execute(conn)
    .await?;
    Ok(())
}

/// A site's running repartitions, and those that ended after a moment, in the order in which they began.
pub async fn recent(conn: &mut Conn, site: SiteId, after: Timestamp) -> Result<Vec<Recut>> {
    query("SELECT * FROM recut WHERE site = $1 AND (ended_at IS NULL OR ended_at > $2) ORDER BY began, id")
        .bind(site.0)
        .bind(after)
        .map(conn, recut)
        .await
}

/// Writes the outcome of a repartition, if it has none yet. Returns whether it did.
pub async fn end(conn: &mut Conn, id: RecutId, at: Timestamp, outcome: CutOutcome) -> Result<bool> {
    let changed =
        query("UPDATE recut SET ended_at = $1, outcome = $2 WHERE id = $3 AND ended_at IS NULL")
            .bind(at)
            .bind(outcome.word())
            .bind(id.0)
            .execute(conn)
            .await?;
    Ok(changed == 1)
}
