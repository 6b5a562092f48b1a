//! Projects: groups of members inside a site.

use std::collections::BTreeSet;

use berth_model::person::Person;
use berth_model::site::Project;
use berth_model::{LoginName, Name, PersonId, ProjectId, SiteId};
use jiff::Timestamp;

use crate::error::Result;
use crate::people::person;
use crate::sql::{Conn, Row, either, query};

fn project(row: &Row) -> Result<Project> {
    Ok(Project {
        id: ProjectId(row.get("id")?),
        site: SiteId(row.get("site")?),
        name: row.parsed("name")?,
        title: row.parsed("title")?,
        version: row.count("version")?,
        created_at: row.moment("created_at")?,
    })
}

pub async fn insert(conn: &mut Conn, project: &Project) -> Result<()> {
    query("INSERT INTO project (id, site, name, title, version, created_at) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(project.id.0)
        .bind(project.site.0)
        .bind(project.name.as_str())
        .bind(project.title.as_str())
        .bind(project.version)
        .bind(project.created_at)
        .execute(conn)
        .await?;
    Ok(())
}

pub async fn update(conn: &mut Conn, project: &Project, version: u64) -> Result<bool> {
    let changed = query(
        "UPDATE project SET name = $1, title = $2, version = version + 1
         WHERE id = $3 AND version = $4 AND removed_at IS NULL",
    )
    .bind(project.name.as_str())
    .bind(project.title.as_str())
    .bind(project.id.0)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

pub async fn remove(conn: &mut Conn, id: ProjectId, now: Timestamp) -> Result<bool> {
    query("DELETE FROM project_member WHERE project = $1")
        .bind(id.0)
        .execute(conn)
        .await?;
    let removed = query("UPDATE project SET removed_at = $1, version = version + 1 WHERE id = $2 AND removed_at IS NULL")
        .bind(now)
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(removed == 1)
}

pub async fn by_name(conn: &mut Conn, site: SiteId, name: &Name) -> Result<Option<Project>> {
    let row = query("SELECT * FROM project WHERE site = $1 AND name = $2 AND removed_at IS NULL")
        .bind(site.0)
        .bind(name.as_str())
        .optional(conn)
        .await?;
    row.as_ref().map(project).transpose()
}

pub async fn by_id(conn: &mut Conn, site: SiteId, id: ProjectId) -> Result<Option<Project>> {
    let row = query("SELECT * FROM project WHERE site = $1 AND id = $2 AND removed_at IS NULL")
        .bind(site.0)
        .bind(id.0)
        .optional(conn)
        .await?;
    row.as_ref().map(project).transpose()
}

/// Projects by id, removed ones included, because past reservations still name them.
pub async fn named(conn: &mut Conn, ids: Vec<ProjectId>) -> Result<Vec<Project>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    either(
        "SELECT * FROM project WHERE id IN (SELECT unhex(value) FROM json_each($1))",
        "SELECT * FROM project WHERE id = ANY($1)",
    )
    .bind(ids.iter().map(|id| id.0).collect::<Vec<_>>())
    .map(conn, project)
    .await
}

pub async fn list(conn: &mut Conn, site: SiteId, after: &str, limit: u64) -> Result<Vec<Project>> {
    query("SELECT * FROM project WHERE site = $1 AND name > $2 AND removed_at IS NULL ORDER BY name LIMIT $3")
        .bind(site.0)
        .bind(after)
        .bind(limit)
        .map(conn, project)
        .await
}

/// The members of a project by login, and since when.
pub async fn members(
    conn: &mut Conn,
    id: ProjectId,
    after: &str,
    limit: u64,
) -> Result<Vec<(Person, Timestamp)>> {
    query(
        "SELECT p.*, m.since FROM project_member m JOIN person p ON p.id = m.person
         WHERE m.project = $1 AND p.login > $2 ORDER BY p.login LIMIT $3",
    )
    .bind(id.0)
    .bind(after)
    .bind(limit)
    .map(conn, |row| Ok((person(row)?, row.moment("since")?)))
    .await
}

/// Every project of a site, with the logins of its members.
pub async fn with_members(
    conn: &mut Conn,
    site: SiteId,
) -> Result<Vec<(Project, BTreeSet<LoginName>)>> {
    let rows = query(
        "SELECT p.*, m.login AS member FROM project p
         LEFT JOIN project_member pm ON pm.project = p.id LEFT JOIN person m ON m.id = pm.person
         WHERE p.site = $1 AND p.removed_at IS NULL ORDER BY p.id",
    )
    .bind(site.0)
    .all(conn)
    .await?;
    let mut found: Vec<(Project, BTreeSet<LoginName>)> = Vec::new();
    for row in &rows {
        let project = project(row)?;
        if found.last().is_none_or(|(last, _)| last.id != project.id) {
            found.push((project, BTreeSet::new()));
        }
        if let Some((_, members)) = found.last_mut() {
            members.extend(row.optional_parsed::<LoginName>("member")?);
        }
    }
    Ok(found)
}

/// The members of the projects with these names.
pub async fn in_any(conn: &mut Conn, site: SiteId, names: Vec<String>) -> Result<Vec<PersonId>> {
    either(
        "SELECT DISTINCT m.person FROM project p JOIN project_member m ON m.project = p.id
         WHERE p.site = $1 AND p.name IN (SELECT value FROM json_each($2)) AND p.removed_at IS NULL",
        "SELECT DISTINCT m.person FROM project p JOIN project_member m ON m.project = p.id
         WHERE p.site = $1 AND p.name = ANY($2) AND p.removed_at IS NULL",
    )
    .bind(site.0)
    .bind(names)
    .map(conn, |row| Ok(PersonId(row.get("person")?)))
    .await
}

/// Since when a person is a member of a project, if they are.
pub async fn member_since(
    conn: &mut Conn,
    id: ProjectId,
    person: PersonId,
) -> Result<Option<Timestamp>> {
    let row = query("SELECT since FROM project_member WHERE project = $1 AND person = $2")
        .bind(id.0)
        .bind(person.0)
        .optional(conn)
        .await?;
    row.map(|row| row.moment("since")).transpose()
}

/// The projects of a person in one site, or in all sites.
pub async fn of_person(
    conn: &mut Conn,
    site: Option<SiteId>,
    person: PersonId,
) -> Result<Vec<Project>> {
    either(
        "SELECT p.* FROM project_member m JOIN project p ON p.id = m.project
         WHERE m.person = $1 AND ($2 IS NULL OR p.site = $2) AND p.removed_at IS NULL",
        "SELECT p.* FROM project_member m JOIN project p ON p.id = m.project
         WHERE m.person = $1 AND ($2::uuid IS NULL OR p.site = $2) AND p.removed_at IS NULL",
    )
    .bind(person.0)
    .bind(site.map(|id| id.0))
    .map(conn, project)
    .await
}

pub async fn add_member(
    conn: &mut Conn,
    id: ProjectId,
    person: PersonId,
    now: Timestamp,
) -> Result<bool> {
    let added = query("INSERT INTO project_member (project, person, since) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING")
        .bind(id.0)
        .bind(person.0)
        .bind(now)
        .execute(conn)
        .await?;
    Ok(added == 1)
}

pub async fn remove_member(conn: &mut Conn, id: ProjectId, person: PersonId) -> Result<bool> {
    let removed = query("DELETE FROM project_member WHERE project = $1 AND person = $2")
        .bind(id.0)
        .bind(person.0)
        .execute(conn)
        .await?;
    Ok(removed == 1)
}
