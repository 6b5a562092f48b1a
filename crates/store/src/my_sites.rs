//! What one person owns in each site, and the last activity there.

use std::collections::BTreeMap;

use berth_model::{PersonId, SiteId};
use jiff::Timestamp;

use crate::error::Result;
use crate::sql::{Conn, query};

/// Number of a person's own things that are not over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Owned {
    pub reservations: u64,
    /// Without the workloads of sessions.
    pub workloads: u64,
    pub sessions: u64,
}

/// By site, without sites where the person owns nothing.
pub async fn owned(
    conn: &mut Conn,
    person: PersonId,
    now: Timestamp,
) -> Result<BTreeMap<SiteId, Owned>> {
    let rows = query(
        "SELECT site, 'reservation' AS kind, count(*) AS number FROM reservation
         WHERE owner = $1 AND ends > $2
           AND state IN ('waiting', 'held', 'pending_approval', 'confirmed', 'starting', 'active', 'ending')
         GROUP BY site
         UNION ALL
         SELECT w.site, 'workload', count(*) FROM workload w
         WHERE w.owner = $1 AND w.ended_at IS NULL AND NOT EXISTS (SELECT 1 FROM session s WHERE s.workload = w.id)
         GROUP BY w.site
         UNION ALL
         SELECT site, 'session', count(*) FROM session
         WHERE owner = $1 AND removed_at IS NULL AND state NOT IN ('stopped', 'failed')
         GROUP BY site",
    )
    .bind(person.0)
    .bind(now)
    .all(conn)
    .await?;
    let mut all: BTreeMap<SiteId, Owned> = BTreeMap::new();
    for row in &rows {
        let owned = all.entry(SiteId(row.get("site")?)).or_default();
        let number = row.count("number")?;
        match row.get::<String>("kind")?.as_str() {
            "reservation" => owned.reservations = number,
            "workload" => owned.workloads = number,
            _ => owned.sessions = number,
        }
    }
    Ok(all)
}

/// When the newest numbered audit entry of the site was written.
pub async fn last_activity(conn: &mut Conn, site: SiteId) -> Result<Option<Timestamp>> {
    let row = query(
        "SELECT at FROM audit_entry WHERE site = $1 AND number IS NOT NULL ORDER BY number DESC LIMIT 1",
    )
    .bind(site.0)
    .optional(conn)
    .await?;
    row.map(|row| row.moment("at")).transpose()
}
