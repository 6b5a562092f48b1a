//! The queue policies of sites, one document each, and the urgent grants.

use berth_model::queue::{Grant, QueuePolicy};
use berth_model::{GrantId, PersonId, SiteId};
use jiff::Timestamp;

use crate::error::Result;
use crate::sql::{Conn, Row, query, to_json};

/// A site's queue policy, or the default if there is none.
pub async fn policy(conn: &mut Conn, site: SiteId) -> Result<QueuePolicy> {
    let row = query("SELECT policy, version FROM queue_policy WHERE site = $1")
        .bind(site.0)
        .optional(conn)
        .await?;
    let Some(row) = row else {
        return Ok(QueuePolicy::default());
    };
    let policy: QueuePolicy = row.json("policy")?;
    Ok(QueuePolicy {
        version: row.count("version")?,
        ..policy
    })
}

/// Writes the policy, if nobody changed it since `version`. A site without a policy has version 0.
pub async fn set_policy(
    conn: &mut Conn,
    site: SiteId,
    policy: &QueuePolicy,
    version: u64,
) -> Result<bool> {
    let changed = if version == 0 {
        query(
            "INSERT INTO queue_policy (site, policy, version) VALUES ($1, $2, $3) ON CONFLICT (site) DO NOTHING",
        )
        .bind(site.0)
        .bind(to_json(policy))
        .bind(1_u64)
        .execute(conn)
        .await?
    } else {
        query("UPDATE queue_policy SET policy = $1, version = version + 1 WHERE site = $2 AND version = $3")
            .bind(to_json(policy))
            .bind(site.0)
            .bind(version)
            .execute(conn)
            .await?
    };
    Ok(changed == 1)
}

/// The sites that have a queue policy.
pub async fn sites(conn: &mut Conn) -> Result<Vec<SiteId>> {
    query("SELECT site FROM queue_policy ORDER BY site")
        .map(conn, |row| Ok(SiteId(row.get("site")?)))
        .await
}

fn grant(row: &Row) -> Result<Grant> {
    Ok(Grant {
        id: GrantId(row.get("id")?),
        site: SiteId(row.get("site")?),
        whose: row.json("whose")?,
        from: row.moment("starts")?,
        until: row.moment("ends")?,
        gpu_hours: row.count("gpu_hours")?,
        reason: row.parsed("reason")?,
        by: PersonId(row.get("granted_by")?),
        revoked_at: row.optional_moment("revoked_at")?,
    })
}

pub async fn insert_grant(conn: &mut Conn, new: &Grant) -> Result<()> {
    query(
        "INSERT INTO queue_grant (id, site, whose, starts, ends, gpu_hours, reason, granted_by, revoked_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(new.id.0)
    .bind(new.site.0)
    .bind(to_json(&new.whose))
    .bind(new.from)
    .bind(new.until)
    .bind(new.gpu_hours)
    .bind(new.reason.as_str())
    .bind(new.by.0)
    .bind(new.revoked_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Revokes a grant. Returns `false` if it was already revoked.
pub async fn revoke_grant(
    conn: &mut Conn,
    site: SiteId,
    id: GrantId,
    now: Timestamp,
) -> Result<bool> {
    let changed = query(
        "UPDATE queue_grant SET revoked_at = $1 WHERE id = $2 AND site = $3 AND revoked_at IS NULL",
    )
    .bind(now)
    .bind(id.0)
    .bind(site.0)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

/// The grants of a site that end after a moment, the newest first.
pub async fn grants(conn: &mut Conn, site: SiteId, after: Timestamp) -> Result<Vec<Grant>> {
    query("SELECT * FROM queue_grant WHERE site = $1 AND ends > $2 ORDER BY id DESC LIMIT 1000")
        .bind(site.0)
        .bind(after)
        .map(conn, grant)
        .await
}

pub async fn get_grant(conn: &mut Conn, site: SiteId, id: GrantId) -> Result<Option<Grant>> {
    let row = query("SELECT * FROM queue_grant WHERE id = $1 AND site = $2")
        .bind(id.0)
        .bind(site.0)
        .optional(conn)
        .await?;
    row.as_ref().map(grant).transpose()
}
