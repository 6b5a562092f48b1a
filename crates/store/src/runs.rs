//! Ended runs, for the server that removes their records.

use berth_model::RunId;
use jiff::Timestamp;

use crate::error::Result;
use crate::sql::{Conn, either};

/// The runs among these that ended at a moment or before it.
pub async fn ended_by(conn: &mut Conn, runs: &[RunId], moment: Timestamp) -> Result<Vec<RunId>> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    either(
        "SELECT r.id FROM json_each($1) v CROSS JOIN run r ON r.id = unhex(v.value) WHERE r.ended_at <= $2",
        "SELECT id FROM run WHERE id = ANY($1) AND ended_at <= $2",
    )
    .bind(runs.iter().map(|id| id.0).collect::<Vec<_>>())
    .bind(moment)
    .map(conn, |row| Ok(RunId(row.get("id")?)))
    .await
}
