//! The sealed environment variables of workloads. The store keeps them; only `app` has the key.
//!
//! They have a table of their own, so that only their owner and the code that starts a run read them.

use berth_model::{SiteId, Workload, WorkloadId};

use crate::error::Result;
use crate::sql::{Conn, query};
use crate::workloads;

/// The variables of one workload, and the name of the key that opens them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedVariables {
    pub key_id: String,
    pub sealed: Vec<u8>,
}

/// The variables of a workload. `None` if it has none, or if an earlier version wrote them unsealed into its row.
pub async fn of_workload(conn: &mut Conn, id: WorkloadId) -> Result<Option<SealedVariables>> {
    let row = query(
        "SELECT key_id, sealed FROM workload_variables WHERE workload = $1 AND sealed IS NOT NULL",
    )
    .bind(id.0)
    .optional(conn)
    .await?;
    let sealed = row.map(|row| {
        Ok(SealedVariables {
            key_id: row.get("key_id")?,
            sealed: row.get("sealed")?,
        })
    });
    sealed.transpose()
}

/// Some of the workloads with variables that an earlier version wrote unsealed.
pub async fn unsealed(conn: &mut Conn, limit: u64) -> Result<Vec<(SiteId, WorkloadId)>> {
    query(
        "SELECT w.site, w.id FROM workload_variables v JOIN workload w ON w.id = v.workload
         WHERE v.sealed IS NULL ORDER BY v.workload LIMIT $1",
    )
    .bind(limit)
    .map(conn, |row| {
        Ok((SiteId(row.get("site")?), WorkloadId(row.get("id")?)))
    })
    .await
}

/// Replaces unsealed variables by sealed ones. `of.ask` no longer contains any.
pub async fn seal(conn: &mut Conn, of: &Workload, sealed: &SealedVariables) -> Result<()> {
    workloads::set_ask(conn, of).await?;
    query(
        "UPDATE workload_variables SET key_id = $1, sealed = $2 WHERE workload = $3 AND sealed IS NULL",
    )
    .bind(sealed.key_id.as_str())
    .bind(sealed.sealed.as_slice())
    .bind(of.id.0)
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes the mark that a workload may have unsealed variables.
pub async fn forget_unsealed(conn: &mut Conn, id: WorkloadId) -> Result<()> {
    query("DELETE FROM workload_variables WHERE workload = $1 AND sealed IS NULL")
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(())
}
