//! Runs that borrow the idle GPUs of a session's run.

use berth_model::workload::Run;
use berth_model::{RunId, SiteId};

use crate::error::Result;
use crate::sql::{Conn, query, to_json};
use crate::workloads::run;

/// Makes a borrowing run independent when the lending session is over: it gets claims of its own. Changes nothing if
/// another transaction changed the run since `version`.
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

/// The runs that borrow the idle GPUs of a session's run.
pub async fn guests_of(conn: &mut Conn, host: RunId) -> Result<Vec<Run>> {
    query("SELECT * FROM run WHERE lent_by = $1 AND ended_at IS NULL ORDER BY id")
        .bind(host.0)
        .map(conn, run)
        .await
}

/// The session runs of a site that lend GPUs.
pub async fn hosts(conn: &mut Conn, site: SiteId) -> Result<Vec<RunId>> {
    query(
        "SELECT DISTINCT lent_by FROM run WHERE site = $1 AND lent_by IS NOT NULL AND ended_at IS NULL",
    )
    .bind(site.0)
    .map(conn, |row| Ok(RunId(row.get("lent_by")?)))
    .await
}
