//! Managed environments. Each row is one version of one environment.

use berth_model::environment::Environment;
use berth_model::{EnvironmentId, Name, PersonId, SiteId, WorkloadId};

use crate::error::{Error, Result};
use crate::sql::{Conn, Row, either, query, to_json};
use crate::words::Word;

fn environment(row: &Row) -> Result<Environment> {
    let version = row.count("version")?;
    let bytes: Option<i64> = row.get("bytes")?;
    Ok(Environment {
        id: EnvironmentId(row.get("id")?),
        site: SiteId(row.get("site")?),
        owner: row.get::<Option<_>>("owner")?.map(PersonId),
        name: row.parsed("name")?,
        version: u32::try_from(version)
            .map_err(|_| Error::Corrupt(format!("version {version}")))?,
        base: row.get::<Option<_>>("base")?.map(EnvironmentId),
        packages: row.json("packages")?,
        path: row.get("path")?,
        prepared: row.optional_parsed("prepared")?,
        workload: row.get::<Option<_>>("workload")?.map(WorkloadId),
        state: row.word("state")?,
        trouble: row.get("trouble")?,
        python: row.get("python")?,
        bytes: bytes.and_then(|bytes| u64::try_from(bytes).ok()),
        is_on_disk: row.get("is_on_disk")?,
        created_by: row.get::<Option<_>>("created_by")?.map(PersonId),
        created_at: row.moment("created_at")?,
        settled_at: row.optional_moment("settled_at")?,
    })
}

pub async fn insert(conn: &mut Conn, new: &Environment) -> Result<()> {
    query(
        "INSERT INTO environment (id, site, owner, name, version, base, packages, path, prepared, workload, state,
             trouble, python, bytes, is_on_disk, created_by, created_at, settled_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
    )
    .bind(new.id.0)
    .bind(new.site.0)
    .bind(new.owner.map(|id| id.0))
    .bind(new.name.as_str())
    .bind(u64::from(new.version))
    .bind(new.base.map(|id| id.0))
    .bind(to_json(&new.packages))
    .bind(new.path.as_str())
    .bind(new.prepared.as_ref().map(Name::as_str))
    .bind(new.workload.map(|id| id.0))
    .bind(new.state.word())
    .bind(new.trouble.as_deref())
    .bind(new.python.as_deref())
    .bind(new.bytes.map(|bytes| bytes as i64))
    .bind(new.is_on_disk)
    .bind(new.created_by.map(|id| id.0))
    .bind(new.created_at)
    .bind(new.settled_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes the state and the results of a build. The name and the contents do not change.
pub async fn update(conn: &mut Conn, new: &Environment) -> Result<()> {
    query(
        "UPDATE environment SET state = $1, trouble = $2, python = $3, bytes = $4, is_on_disk = $5, settled_at = $6
         WHERE id = $7",
    )
    .bind(new.state.word())
    .bind(new.trouble.as_deref())
    .bind(new.python.as_deref())
    .bind(new.bytes.map(|bytes| bytes as i64))
    .bind(new.is_on_disk)
    .bind(new.settled_at)
    .bind(new.id.0)
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn get(conn: &mut Conn, site: SiteId, id: EnvironmentId) -> Result<Option<Environment>> {
    let row = query("SELECT * FROM environment WHERE site = $1 AND id = $2")
        .bind(site.0)
        .bind(id.0)
        .optional(conn)
        .await?;
    row.as_ref().map(environment).transpose()
}

/// The environment, locked until the transaction ends.
pub async fn get_locked(conn: &mut Conn, id: EnvironmentId) -> Result<Option<Environment>> {
    let row = either(
        "SELECT * FROM environment WHERE id = $1",
        "SELECT * FROM environment WHERE id = $1 FOR UPDATE",
    )
    .bind(id.0)
    .optional(conn)
    .await?;
    row.as_ref().map(environment).transpose()
}

/// Every version of that name, of any owner, the newest first.
pub async fn called(conn: &mut Conn, site: SiteId, name: &Name) -> Result<Vec<Environment>> {
    query("SELECT * FROM environment WHERE site = $1 AND name = $2 ORDER BY version DESC, id")
        .bind(site.0)
        .bind(name.as_str())
        .map(conn, environment)
        .await
}

/// The environments of a site that are not retired, by name, the newest version first.
pub async fn list(conn: &mut Conn, site: SiteId) -> Result<Vec<Environment>> {
    query(
        "SELECT * FROM environment WHERE site = $1 AND state <> 'retired'
         ORDER BY name, owner, version DESC, id",
    )
    .bind(site.0)
    .map(conn, environment)
    .await
}

/// Counts a site's environments that are not retired: those of `owner`, or the curated ones for `None`.
pub async fn count(conn: &mut Conn, site: SiteId, owner: Option<PersonId>) -> Result<u64> {
    let row = either(
        "SELECT count(*) AS n FROM environment WHERE site = $1 AND state <> 'retired' AND owner IS $2",
        "SELECT count(*) AS n FROM environment
         WHERE site = $1 AND state <> 'retired' AND owner IS NOT DISTINCT FROM $2::uuid",
    )
    .bind(site.0)
    .bind(owner.map(|id| id.0))
    .one(conn)
    .await?;
    row.count("n")
}

/// Bytes on disk of a person's own environments, at all sites.
pub async fn bytes_of(conn: &mut Conn, owner: PersonId) -> Result<u64> {
    let row = either(
        "SELECT coalesce(sum(bytes), 0) AS n FROM environment WHERE owner = $1 AND is_on_disk",
        "SELECT coalesce(sum(bytes), 0)::bigint AS n FROM environment WHERE owner = $1 AND is_on_disk",
    )
    .bind(owner.0)
    .one(conn)
    .await?;
    row.count("n")
}

/// The environment that a workload builds.
pub async fn made_by(conn: &mut Conn, workload: WorkloadId) -> Result<Option<Environment>> {
    let row = query("SELECT * FROM environment WHERE workload = $1")
        .bind(workload.0)
        .optional(conn)
        .await?;
    row.as_ref().map(environment).transpose()
}

/// Environments that are being built, and failed or retired ones that still have files on disk.
pub async fn unsettled(conn: &mut Conn, limit: u64) -> Result<Vec<Environment>> {
    query(
        "SELECT * FROM environment WHERE is_on_disk AND state <> 'ready' 
         ORDER BY CASE WHEN state = 'building' THEN 0 ELSE 1 END, created_at, id LIMIT $1",
    )
    .bind(limit)
    .map(conn, environment)
    .await
}

/// Whether an environment extends this one and is building, ready or still on disk.
pub async fn is_extended(conn: &mut Conn, base: EnvironmentId) -> Result<bool> {
    let row = query(
        "SELECT count(*) AS n FROM environment WHERE base = $1 AND (state IN ('building', 'ready') OR is_on_disk)",
    )
    .bind(base.0)
    .one(conn)
    .await?;
    Ok(row.count("n")? > 0)
}

/// Environments of all sites that were prepared before there was a server.
pub async fn prepared(conn: &mut Conn) -> Result<Vec<Environment>> {
    query("SELECT * FROM environment WHERE prepared IS NOT NULL ORDER BY site, id")
        .map(conn, environment)
        .await
}

/// The environments that a person may use without naming a version: the newest ready version of each curated
/// environment and of each of the person's own.
pub async fn offered(conn: &mut Conn, site: SiteId, person: PersonId) -> Result<Vec<Environment>> {
    let ready: Vec<Environment> = query(
        "SELECT * FROM environment WHERE site = $1 AND state = 'ready' AND (owner IS NULL OR owner = $2)
         ORDER BY name, owner, version DESC, id",
    )
    .bind(site.0)
    .bind(person.0)
    .map(conn, environment)
    .await?;
    let mut newest: Vec<Environment> = Vec::new();
    for one in ready {
        let is_known = newest
            .iter()
            .any(|other| other.name == one.name && other.owner == one.owner);
        if !is_known {
            newest.push(one);
        }
    }
    Ok(newest)
}
