//! Runs that have the idle GPUs of a session's run.

use berth_model::workload::Run;
use berth_model::{RunId, SiteId};

use crate::error::Result;
use crate::sql::{Conn, query, to_json};
use crate::workloads::run;

/// Writes down that a run goes on by itself, with claims of its own, when the session whose GPUs it had is over; if
/// nobody else changed it since `version`.
pub async fn part(conn: &mut Conn, new: &Run, version: u64) -> Result<bool> {
    let changed = query(
        "UPDATE run SET claims = $1, lent_by = $2, version = version + 1 WHERE id = $3 AND version = $4",
    )
    .bind(to_json(&new.claims))
    .bind(new.lent_by.map(|id| id.0))
    .bind(new.id.0)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

/// Those that have the idle GPUs of a session's run.
pub async fn guests_of(conn: &mut Conn, host: RunId) -> Result<Vec<Run>> {
    query("SELECT * FROM run WHERE lent_by = $1 AND ended_at IS NULL ORDER BY id")
        .bind(host.0)
        .map(conn, run)
        .await
}

/// The runs of a site's sessions whose GPUs somebody else has.
pub async fn hosts(conn: &mut Conn, site: SiteId) -> Result<Vec<RunId>> {
    query(
        "SELECT DISTINCT lent_by FROM run WHERE site = $1 AND lent_by IS NOT NULL AND ended_at IS NULL",
    )
    .bind(site.0)
    .map(conn, |row| Ok(RunId(row.get("lent_by")?)))
    .await
}
