//! Policies: all versions, the newest of each scope, and the counter that records that they changed.

use berth_model::policy::{Policy, Scope};
use berth_model::{PersonId, SiteId, Text};
use jiff::Timestamp;
use uuid::Uuid;

use crate::error::Result;
use crate::sql::{Conn, Row, either, query, to_json};

/// The policy of a scope from `set_at` until its next version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// `None` for the ceilings and the defaults of the whole installation.
    pub site: Option<SiteId>,
    pub scope: Scope,
    pub version: u64,
    /// `None` where this version removed the policy.
    pub policy: Option<Policy>,
    pub set_by: Option<PersonId>,
    pub set_at: Timestamp,
    pub reason: Option<Text>,
}

fn version(row: &Row) -> Result<Version> {
    let rules: Option<String> = row.get("rules")?;
    Ok(Version {
        site: row.get::<Option<Uuid>>("site")?.map(SiteId),
        scope: row.json("scope")?,
        version: row.count("version")?,
        policy: match rules {
            Some(_) => Some(row.json("rules")?),
            None => None,
        },
        set_by: row.get::<Option<Uuid>>("set_by")?.map(PersonId),
        set_at: row.moment("set_at")?,
        reason: row.optional_parsed("reason")?,
    })
}

/// Raises a site's policy version before a change of its policies. Until the transaction ends nobody else changes them;
/// bookings go on meanwhile.
pub async fn touch_site(conn: &mut Conn, site: SiteId) -> Result<()> {
    query("UPDATE site SET policy_version = policy_version + 1 WHERE id = $1")
        .bind(site.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// Like [`touch_site`], for the policies of all sites. Creating a site waits for it, or it waits for that; otherwise
/// the new site would miss the change.
pub async fn touch_all(conn: &mut Conn) -> Result<()> {
    if conn.is_postgres() {
        either("SELECT NULL", "LOCK TABLE site IN SHARE ROW EXCLUSIVE MODE")
            .execute(conn)
            .await?;
    }
    query("UPDATE site SET policy_version = policy_version + 1")
        .execute(conn)
        .await?;
    Ok(())
}

/// Every policy in force in a site: its own, and those of the whole installation.
pub async fn holding_in(conn: &mut Conn, site: SiteId) -> Result<Vec<Version>> {
    query(
        "SELECT * FROM policy WHERE (site = $1 OR site IS NULL) AND newest AND rules IS NOT NULL ORDER BY scope",
    )
    .bind(site.0)
    .map(conn, version)
    .await
}

/// The ceilings and the defaults of the whole installation.
pub async fn of_all(conn: &mut Conn) -> Result<Vec<Version>> {
    query("SELECT * FROM policy WHERE site IS NULL AND newest AND rules IS NOT NULL ORDER BY scope")
        .map(conn, version)
        .await
}

/// Every version of a scope, the newest first.
pub async fn history(
    conn: &mut Conn,
    site: Option<SiteId>,
    scope: &Scope,
    limit: u64,
) -> Result<Vec<Version>> {
    let asked = match site {
        Some(site) => query(
            "SELECT * FROM policy WHERE site = $1 AND scope = $2 ORDER BY version DESC LIMIT $3",
        )
        .bind(site.0),
        None => either(
            "SELECT * FROM policy WHERE site IS $1 AND scope = $2 ORDER BY version DESC LIMIT $3",
            "SELECT * FROM policy WHERE site IS NOT DISTINCT FROM $1 AND scope = $2 ORDER BY version DESC LIMIT $3",
        )
        .bind(None::<Uuid>),
    };
    asked
        .bind(to_json(scope))
        .bind(limit)
        .map(conn, version)
        .await
}

/// Writes the next version of a scope. The caller must call [`touch_site`] or [`touch_all`] first.
pub async fn insert(conn: &mut Conn, id: Uuid, new: &Version) -> Result<()> {
    either(
        "UPDATE policy SET newest = FALSE WHERE site IS $1 AND scope = $2 AND newest",
        "UPDATE policy SET newest = FALSE WHERE site IS NOT DISTINCT FROM $1 AND scope = $2 AND newest",
    )
    .bind(new.site.map(|site| site.0))
    .bind(to_json(&new.scope))
    .execute(conn)
    .await?;
    query(
        "INSERT INTO policy (id, site, scope, version, rules, newest, set_by, set_at, reason)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(id)
    .bind(new.site.map(|site| site.0))
    .bind(to_json(&new.scope))
    .bind(new.version)
    .bind(new.policy.as_ref().map(to_json))
    .bind(true)
    .bind(new.set_by.map(|by| by.0))
    .bind(new.set_at)
    .bind(new.reason.as_ref().map(Text::as_str))
    .execute(conn)
    .await?;
    Ok(())
}
