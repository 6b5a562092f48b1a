//! Resource types and the tree of resources.

use berth_model::inventory::{Capacity, StatusChange};
use berth_model::{
    Amount, Name, PersonId, Resource, ResourceId, ResourceType, SiteId, Status, Text, TypeId,
};
use jiff::Timestamp;
use uuid::Uuid;

use crate::code::Code;
use crate::error::{Error, Refused, Result};
use crate::sql::{Conn, Row, either, query, to_json};
use crate::words::Word;

fn resource_type(row: &Row) -> Result<ResourceType> {
    Ok(ResourceType {
        id: TypeId(row.get("id")?),
        site: SiteId(row.get("site")?),
        name: row.parsed("name")?,
        title: row.parsed("title")?,
        colour: row.parsed("colour")?,
        form: row.json("form")?,
        needs_approval: row.get("needs_approval")?,
        version: row.count("version")?,
    })
}

pub async fn insert_type(conn: &mut Conn, kind: &ResourceType) -> Result<()> {
    query(
        "INSERT INTO resource_type (id, site, name, title, colour, form, needs_approval, version)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(kind.id.0)
    .bind(kind.site.0)
    .bind(kind.name.as_str())
    .bind(kind.title.as_str())
    .bind(String::from(kind.colour.clone()))
    .bind(to_json(&kind.form))
    .bind(kind.needs_approval)
    .bind(kind.version)
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn update_type(conn: &mut Conn, kind: &ResourceType, version: u64) -> Result<bool> {
    let changed = query(
        "UPDATE resource_type SET name = $1, title = $2, colour = $3, form = $4, needs_approval = $5, version = version + 1
         WHERE id = $6 AND version = $7 AND removed_at IS NULL",
    )
    .bind(kind.name.as_str())
    .bind(kind.title.as_str())
    .bind(String::from(kind.colour.clone()))
    .bind(to_json(&kind.form))
    .bind(kind.needs_approval)
    .bind(kind.id.0)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

/// Removes a type that no resource has. Returns whether it was removed.
pub async fn remove_type(conn: &mut Conn, id: TypeId, now: Timestamp) -> Result<bool> {
    let removed = query(
        "UPDATE resource_type SET removed_at = $1, version = version + 1
         WHERE id = $2 AND NOT EXISTS (SELECT 1 FROM resource r WHERE r.type_id = $2 AND r.removed_at IS NULL)",
    )
    .bind(now)
    .bind(id.0)
    .execute(conn)
    .await?;
    Ok(removed == 1)
}

pub async fn types(conn: &mut Conn, site: SiteId) -> Result<Vec<ResourceType>> {
    query("SELECT * FROM resource_type WHERE site = $1 AND removed_at IS NULL ORDER BY name")
        .bind(site.0)
        .map(conn, resource_type)
        .await
}

/// Types by id, removed ones included, because past bookings still name them.
pub async fn types_named(conn: &mut Conn, ids: Vec<TypeId>) -> Result<Vec<ResourceType>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    either(
        "SELECT * FROM resource_type WHERE id IN (SELECT unhex(value) FROM json_each($1))",
        "SELECT * FROM resource_type WHERE id = ANY($1)",
    )
    .bind(ids.iter().map(|id| id.0).collect::<Vec<_>>())
    .map(conn, resource_type)
    .await
}

pub async fn type_by_name(
    conn: &mut Conn,
    site: SiteId,
    name: &Name,
) -> Result<Option<ResourceType>> {
    let row =
        query("SELECT * FROM resource_type WHERE site = $1 AND name = $2 AND removed_at IS NULL")
            .bind(site.0)
            .bind(name.as_str())
            .optional(conn)
            .await?;
    row.as_ref().map(resource_type).transpose()
}

pub async fn type_by_id(conn: &mut Conn, site: SiteId, id: TypeId) -> Result<Option<ResourceType>> {
    let row =
        query("SELECT * FROM resource_type WHERE site = $1 AND id = $2 AND removed_at IS NULL")
            .bind(site.0)
            .bind(id.0)
            .optional(conn)
            .await?;
    row.as_ref().map(resource_type).transpose()
}

fn resource(row: &Row) -> Result<Resource> {
    let capacity = match (
        row.get::<Option<i64>>("capacity")?,
        row.optional_parsed("unit")?,
    ) {
        (Some(amount), Some(unit)) => {
            let amount = u64::try_from(amount)
                .ok()
                .and_then(|amount| Amount::new(amount).ok());
            Some(Capacity {
                amount: amount.ok_or_else(|| Error::Corrupt("capacity".into()))?,
                unit,
            })
        }
        _ => None,
    };
    Ok(Resource {
        id: ResourceId(row.get("id")?),
        site: SiteId(row.get("site")?),
        parent: row.get::<Option<Uuid>>("parent")?.map(ResourceId),
        type_id: TypeId(row.get("type_id")?),
        name: row.parsed("name")?,
        title: row.optional_parsed("title")?,
        attributes: row.json("attributes")?,
        facts: row.json("facts")?,
        capacity,
        status: row.word("status")?,
        status_reason: row.optional_parsed("status_reason")?,
        version: row.count("version")?,
    })
}

pub async fn insert(conn: &mut Conn, new: &Resource, now: Timestamp) -> Result<()> {
    let codes = if conn.is_postgres() {
        Some(take_branch(conn, new.site, new.parent).await?)
    } else {
        None
    };
    let insert = either(
        "INSERT INTO resource (id, site, parent, type_id, name, title, attributes, facts, capacity, unit, status,
             status_reason, version, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        "INSERT INTO resource (id, site, parent, type_id, name, title, attributes, facts, capacity, unit, status,
             status_reason, version, created_at, subtree, parent_subtree)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15::text::cidr, $16::text::cidr)",
    )
    .bind(new.id.0)
    .bind(new.site.0)
    .bind(new.parent.map(|id| id.0))
    .bind(new.type_id.0)
    .bind(new.name.as_str())
    .bind(new.title.as_ref().map(Text::as_str))
    .bind(to_json(&new.attributes))
    .bind(to_json(&new.facts))
    .bind(new.capacity.as_ref().map(|capacity| capacity.amount.get() as i64))
    .bind(new.capacity.as_ref().map(|capacity| capacity.unit.as_str()))
    .bind(new.status.word())
    .bind(new.status_reason.as_ref().map(Text::as_str))
    .bind(new.version)
    .bind(now);
    let insert = match codes {
        Some((parent, code)) => insert.bind(code.to_string()).bind(parent.to_string()),
        None => insert,
    };
    insert.execute(conn).await?;
    Ok(())
}

/// On PostgreSQL: the parent's code, and a new one below it. The counter's row lock keeps branch numbers unique.
async fn take_branch(
    conn: &mut Conn,
    site: SiteId,
    parent: Option<ResourceId>,
) -> Result<(Code, Code)> {
    let (above, branch) = match parent {
        None => {
            let row = either(
                "SELECT NULL",
                "UPDATE site SET next_branch = next_branch + 1 WHERE id = $1 RETURNING number, next_branch - 1 AS branch",
            )
            .bind(site.0)
            .one(conn)
            .await?;
            (Code::of_site(row.get("number")?)?, row.get("branch")?)
        }
        Some(parent) => {
            let row = either(
                "SELECT NULL",
                "UPDATE resource SET next_branch = next_branch + 1 WHERE id = $1
                 RETURNING subtree::text AS subtree, next_branch - 1 AS branch",
            )
            .bind(parent.0)
            .optional(conn)
            .await?
            .ok_or(Error::Refused(Refused::Parent))?;
            (row.parsed("subtree")?, row.get("branch")?)
        }
    };
    Ok((above, above.child(branch)?))
}

/// Writes the fields that an admin may edit. Parent and status have functions of their own.
pub async fn update(conn: &mut Conn, new: &Resource, version: u64) -> Result<bool> {
    let changed = query(
        "UPDATE resource SET type_id = $1, name = $2, title = $3, attributes = $4, facts = $5, capacity = $6, unit = $7,
             version = version + 1
         WHERE id = $8 AND version = $9 AND removed_at IS NULL",
    )
    .bind(new.type_id.0)
    .bind(new.name.as_str())
    .bind(new.title.as_ref().map(Text::as_str))
    .bind(to_json(&new.attributes))
    .bind(to_json(&new.facts))
    .bind(new.capacity.as_ref().map(|capacity| capacity.amount.get() as i64))
    .bind(new.capacity.as_ref().map(|capacity| capacity.unit.as_str()))
    .bind(new.id.0)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

pub async fn set_status(
    conn: &mut Conn,
    change: &StatusChange,
    id: Uuid,
    version: u64,
) -> Result<bool> {
    let changed = query(
        "UPDATE resource SET status = $1, status_reason = $2, version = version + 1
         WHERE id = $3 AND version = $4 AND removed_at IS NULL",
    )
    .bind(change.status.word())
    .bind(change.reason.as_ref().map(Text::as_str))
    .bind(change.resource.0)
    .bind(version)
    .execute(conn)
    .await?;
    if changed == 0 {
        return Ok(false);
    }
    query("INSERT INTO status_change (id, resource, status, reason, at, changed_by) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(id)
        .bind(change.resource.0)
        .bind(change.status.word())
        .bind(change.reason.as_ref().map(Text::as_str))
        .bind(change.at)
        .bind(change.by.map(|by| by.0))
        .execute(conn)
        .await?;
    Ok(true)
}

/// A resource's changes of status before the given number, newest first. They are numbered from the oldest, so that a
/// number never changes.
pub async fn status_history(
    conn: &mut Conn,
    resource: ResourceId,
    before: u64,
    limit: u64,
) -> Result<Vec<(u64, StatusChange)>> {
    query(
        "SELECT * FROM (
             SELECT s.*, row_number() OVER (ORDER BY s.at, s.id) AS number FROM status_change s WHERE s.resource = $1
         ) AS numbered WHERE number < $2 ORDER BY number DESC LIMIT $3",
    )
    .bind(resource.0)
    .bind(before.min(i64::MAX as u64))
    .bind(limit)
    .map(conn, |row| {
        let change = StatusChange {
            resource: ResourceId(row.get("resource")?),
            status: row.word("status")?,
            reason: row.optional_parsed("reason")?,
            at: row.moment("at")?,
            by: row.get::<Option<Uuid>>("changed_by")?.map(PersonId),
        };
        Ok((row.count("number")?, change))
    })
    .await
}

/// Moves a subtree below another parent (or to the root). The database checks the claim rule for every claim on it.
pub async fn move_subtree(
    conn: &mut Conn,
    site: SiteId,
    id: ResourceId,
    parent: Option<ResourceId>,
) -> Result<()> {
    if conn.is_postgres() {
        return rewrite_codes(conn, site, id, parent, None).await;
    }
    let moved = query(
        "UPDATE resource SET parent = $1, version = version + 1 WHERE id = $2 AND site = $3 AND removed_at IS NULL",
    )
    .bind(parent.map(|parent| parent.0))
    .bind(id.0)
    .bind(site.0)
    .execute(conn)
    .await?;
    if moved == 1 {
        Ok(())
    } else {
        Err(Error::Refused(Refused::Resource))
    }
}

/// Keeps other transactions from moving a subtree of the site until this transaction ends. Callers that change existing
/// claims use it: a move waits for them, or they wait for the move. Without it they deadlock, because a move locks
/// resources before claims and a changed amount locks its claim before the resource. PostgreSQL takes a second to
/// detect that. The claim rule does not depend on it.
pub async fn keep_still(conn: &mut Conn, site: SiteId) -> Result<()> {
    if conn.is_postgres() {
        either(
            "SELECT NULL",
            "SELECT pg_advisory_xact_lock_shared(hashtextextended($1::uuid::text, 0))",
        )
        .bind(site.0)
        .execute(conn)
        .await?;
    }
    Ok(())
}

/// Lets one transaction at a time change a site's tree; new bookings go on meanwhile. A caller that changes more than
/// one thing takes this lock first, so that two such callers take turns. On SQLite writers take turns anyway.
pub async fn hold_shape(conn: &mut Conn, site: SiteId) -> Result<()> {
    if !conn.is_postgres() {
        return Ok(());
    }
    either(
        "SELECT NULL",
        "SELECT id FROM site WHERE id = $1 FOR NO KEY UPDATE",
    )
    .bind(site.0)
    .one(conn)
    .await?;
    either(
        "SELECT NULL",
        "SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text, 0))",
    )
    .bind(site.0)
    .execute(conn)
    .await?;
    Ok(())
}

/// PostgreSQL's move: new codes for the whole subtree. The claims on it follow by foreign key.
async fn rewrite_codes(
    conn: &mut Conn,
    site: SiteId,
    id: ResourceId,
    parent: Option<ResourceId>,
    removed_at: Option<Timestamp>,
) -> Result<()> {
    hold_shape(conn, site).await?;
    let rows = either(
        "SELECT NULL",
        "SELECT b.id, b.subtree::text AS subtree, b.parent_subtree::text AS parent_subtree
         FROM resource a JOIN resource b ON b.subtree <<= a.subtree
         WHERE a.id = $1 AND a.site = $2 AND a.removed_at IS NULL ORDER BY b.subtree",
    )
    .bind(id.0)
    .bind(site.0)
    .all(conn)
    .await?;
    let Some(top) = rows.first() else {
        return Err(Error::Refused(Refused::Resource));
    };
    if removed_at.is_some() && rows.len() > 1 {
        // It had no child when we checked.
        return Err(Error::Retry);
    }
    let from: Code = top.parsed("subtree")?;
    if let Some(parent) = parent
        && rows
            .iter()
            .any(|row| row.get::<Uuid>("id").is_ok_and(|below| below == parent.0))
    {
        return Err(Error::Refused(Refused::Cycle));
    }
    let (above, to) = take_branch(conn, site, parent).await?;
    let (mut ids, mut codes, mut parent_codes) = (Vec::new(), Vec::new(), Vec::new());
    for row in &rows {
        let code: Code = row.parsed("subtree")?;
        let parent_code = if code == from {
            above
        } else {
            row.parsed::<Code>("parent_subtree")?.rebased(from, to)?
        };
        ids.push(row.get::<Uuid>("id")?);
        codes.push(code.rebased(from, to)?.to_string());
        parent_codes.push(parent_code.to_string());
    }
    // A container and the claims inside it change one after the other; the database must check only the end result.
    either(
        "SELECT NULL",
        "SET CONSTRAINTS claim_container, claim_inside DEFERRED",
    )
    .execute(conn)
    .await?;
    either(
        "SELECT NULL",
        "UPDATE resource r SET subtree = v.code::cidr, parent_subtree = v.parent_code::cidr,
             parent = CASE WHEN r.id = $4 THEN $5 ELSE r.parent END,
             removed_at = CASE WHEN r.id = $4 THEN $6 ELSE r.removed_at END,
             version = CASE WHEN r.id = $4 THEN r.version + 1 ELSE r.version END
         FROM unnest($1::uuid[], $2::text[], $3::text[]) AS v (id, code, parent_code) WHERE r.id = v.id",
    )
    .bind(ids)
    .bind(codes)
    .bind(parent_codes)
    .bind(id.0)
    .bind(parent.map(|parent| parent.0))
    .bind(removed_at)
    .execute(conn)
    .await?;
    either(
        "SELECT NULL",
        "SET CONSTRAINTS claim_container, claim_inside IMMEDIATE",
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes a leaf without claims from the inventory. Returns whether it was removed. Its past stays on record.
pub async fn remove(conn: &mut Conn, site: SiteId, id: ResourceId, now: Timestamp) -> Result<bool> {
    if is_used(conn, id).await? {
        return Ok(false);
    }
    if conn.is_postgres() {
        // A new code makes every concurrent booking on the old one fail its foreign key and start again.
        rewrite_codes(conn, site, id, None, Some(now)).await?;
    } else {
        let removed = query(
            "UPDATE resource SET removed_at = $1, parent = NULL, version = version + 1
             WHERE id = $2 AND site = $3 AND removed_at IS NULL",
        )
        .bind(now)
        .bind(id.0)
        .bind(site.0)
        .execute(conn)
        .await?;
        if removed == 0 {
            return Err(Error::Refused(Refused::Resource));
        }
    }
    // From here on nobody can add a claim or a child. If somebody did since our check, the retry finds it.
    if is_used(conn, id).await? {
        return Err(Error::Retry);
    }
    Ok(true)
}

async fn is_used(conn: &mut Conn, id: ResourceId) -> Result<bool> {
    query(
        "SELECT EXISTS (SELECT 1 FROM claim WHERE resource = $1 AND standing = 'holding' AND standing <> 'void')
             OR EXISTS (SELECT 1 FROM resource WHERE parent = $1 AND removed_at IS NULL) AS used",
    )
    .bind(id.0)
    .one(conn)
    .await?
    .get("used")
}

pub async fn by_name(conn: &mut Conn, site: SiteId, name: &Name) -> Result<Option<Resource>> {
    let row = query("SELECT * FROM resource WHERE site = $1 AND name = $2 AND removed_at IS NULL")
        .bind(site.0)
        .bind(name.as_str())
        .optional(conn)
        .await?;
    row.as_ref().map(resource).transpose()
}

pub async fn by_id(conn: &mut Conn, site: SiteId, id: ResourceId) -> Result<Option<Resource>> {
    let row = query("SELECT * FROM resource WHERE site = $1 AND id = $2 AND removed_at IS NULL")
        .bind(site.0)
        .bind(id.0)
        .optional(conn)
        .await?;
    row.as_ref().map(resource).transpose()
}

/// All resources of a site, by name.
pub async fn of_site(conn: &mut Conn, site: SiteId) -> Result<Vec<Resource>> {
    query("SELECT * FROM resource WHERE site = $1 AND removed_at IS NULL ORDER BY name")
        .bind(site.0)
        .map(conn, resource)
        .await
}

/// The sites that have a resource of this status: the given site, or all sites.
pub async fn sites_with(
    conn: &mut Conn,
    status: Status,
    site: Option<SiteId>,
) -> Result<Vec<SiteId>> {
    either(
        "SELECT DISTINCT site FROM resource WHERE status = $1 AND removed_at IS NULL AND ($2 IS NULL OR site = $2)",
        "SELECT DISTINCT site FROM resource WHERE status = $1 AND removed_at IS NULL AND ($2::uuid IS NULL OR site = $2)",
    )
    .bind(status.word())
    .bind(site.map(|id| id.0))
    .map(conn, |row| Ok(SiteId(row.get("site")?)))
    .await
}

/// Resources by id, removed ones included, because past bookings still name them.
pub async fn named(conn: &mut Conn, ids: Vec<ResourceId>) -> Result<Vec<Resource>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    either(
        "SELECT * FROM resource WHERE id IN (SELECT unhex(value) FROM json_each($1))",
        "SELECT * FROM resource WHERE id = ANY($1)",
    )
    .bind(ids.iter().map(|id| id.0).collect::<Vec<_>>())
    .map(conn, resource)
    .await
}

/// A resource with its type and its ancestors, for a booking.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub resource: Resource,
    pub kind: ResourceType,
    /// The ancestors, nearest first.
    pub above: Vec<Resource>,
}

/// The resources with these ids or names, each with type and ancestors, in one statement. Unknown ones are left out.
///
/// Every booking runs this, so both texts force the planner to look each row up by its key; otherwise it reads the
/// whole site. `CROSS JOIN` fixes the join order on SQLite, and `OFFSET 0` prevents a hash join on PostgreSQL.
pub async fn wanted(
    conn: &mut Conn,
    site: SiteId,
    ids: Vec<ResourceId>,
    names: Vec<String>,
) -> Result<Vec<Wanted>> {
    let rows = either(
        "WITH RECURSIVE up (leaf, id, parent, depth) AS (
             SELECT r.id, r.id, r.parent, 0 FROM json_each($2) v CROSS JOIN resource r ON r.id = unhex(v.value)
             WHERE r.site = $1 AND r.removed_at IS NULL
             UNION ALL
             SELECT r.id, r.id, r.parent, 0 FROM json_each($3) v CROSS JOIN resource r ON r.site = $1 AND r.name = v.value
             WHERE r.removed_at IS NULL
             UNION ALL
             SELECT up.leaf, r.id, r.parent, up.depth + 1 FROM up CROSS JOIN resource r ON r.id = up.parent)
         SELECT up.leaf, up.depth, r.*, t.name AS type_name, t.title AS type_title, t.colour, t.form, t.needs_approval,
             t.version AS type_version
         FROM up CROSS JOIN resource r ON r.id = up.id CROSS JOIN resource_type t ON t.id = r.type_id
         ORDER BY up.leaf, up.depth",
        "WITH RECURSIVE up (leaf, id, parent, depth) AS (
             SELECT leaf.id, leaf.id, leaf.parent, 0::bigint FROM (
                 SELECT r.* FROM unnest($2::uuid[]) v (id)
                 CROSS JOIN LATERAL (SELECT * FROM resource WHERE id = v.id OFFSET 0) r
                 WHERE r.site = $1 AND r.removed_at IS NULL
                 UNION ALL
                 SELECT r.* FROM unnest($3::text[]) v (name)
                 CROSS JOIN LATERAL (SELECT * FROM resource WHERE site = $1 AND name = v.name AND removed_at IS NULL OFFSET 0) r
             ) leaf
             UNION ALL
             SELECT up.leaf, r.id, r.parent, up.depth + 1
             FROM up CROSS JOIN LATERAL (SELECT id, parent FROM resource WHERE id = up.parent OFFSET 0) r)
         SELECT up.leaf, up.depth, r.*, t.name AS type_name, t.title AS type_title, t.colour, t.form, t.needs_approval,
             t.version AS type_version
         FROM up CROSS JOIN LATERAL (SELECT * FROM resource WHERE id = up.id OFFSET 0) r
         JOIN resource_type t ON t.id = r.type_id ORDER BY up.leaf, up.depth",
    )
    .bind(site.0)
    .bind(ids.iter().map(|id| id.0).collect::<Vec<_>>())
    .bind(names)
    .all(conn)
    .await?;
    let mut wanted: Vec<Wanted> = Vec::new();
    for row in &rows {
        let resource = resource(row)?;
        match wanted.last_mut() {
            Some(last) if row.get::<i64>("depth")? > 0 => last.above.push(resource),
            _ => {
                let kind = ResourceType {
                    id: resource.type_id,
                    site,
                    name: row.parsed("type_name")?,
                    title: row.parsed("type_title")?,
                    colour: row.parsed("colour")?,
                    form: row.json("form")?,
                    needs_approval: row.get("needs_approval")?,
                    version: row.count("type_version")?,
                };
                wanted.push(Wanted {
                    resource,
                    kind,
                    above: Vec::new(),
                });
            }
        }
    }
    wanted.dedup_by(|a, b| a.resource.id == b.resource.id);
    Ok(wanted)
}

impl Wanted {
    /// The effective status and the resource it comes from: the worst one of the resource and its ancestors, the
    /// nearest if several are equal.
    pub fn effective_status(&self) -> (Status, &Resource) {
        let mut worst = &self.resource;
        for above in &self.above {
            if above.status > worst.status {
                worst = above;
            }
        }
        (worst.status, worst)
    }
}
