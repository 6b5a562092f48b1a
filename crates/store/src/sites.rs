//! Sites, their members, and requests to join.

use std::collections::BTreeSet;

use berth_model::closure::ClosureKind;
use berth_model::person::{Person, PersonState};
use berth_model::reference::SiteReference;
use berth_model::site::{JoinRequest, JoinState, Membership, OutsiderView, Role, Site};
use berth_model::{JoinRequestId, LoginName, Name, PersonId, SiteId};
use jiff::Timestamp;

use crate::error::Result;
use crate::people::person;
use crate::sql::{Conn, Row, either, query};
use crate::words::Word;

fn site(row: &Row) -> Result<Site> {
    Ok(Site {
        id: SiteId(row.get("id")?),
        name: row.parsed("name")?,
        title: row.parsed("title")?,
        time_zone: row.parsed("time_zone")?,
        outsiders_see: row.word("outsiders_see")?,
        accent: row.optional_parsed("accent")?,
        logo: row.get("logo")?,
        version: row.count("version")?,
        policy_version: row.count("policy_version")?,
        created_at: row.moment("created_at")?,
    })
}

pub async fn insert(conn: &mut Conn, site: &Site) -> Result<()> {
    query(
        "INSERT INTO site (id, name, title, time_zone, outsiders_see, version, policy_version, created_at, accent)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(site.id.0)
    .bind(site.name.as_str())
    .bind(site.title.as_str())
    .bind(site.time_zone.as_str())
    .bind(site.outsiders_see.word())
    .bind(site.version)
    .bind(site.policy_version)
    .bind(site.created_at)
    .bind(site.accent.as_ref().map(ToString::to_string))
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn update(conn: &mut Conn, site: &Site, version: u64) -> Result<bool> {
    let changed = query(
        "UPDATE site SET name = $1, title = $2, time_zone = $3, outsiders_see = $4, accent = $5, version = version + 1
         WHERE id = $6 AND version = $7",
    )
    .bind(site.name.as_str())
    .bind(site.title.as_str())
    .bind(site.time_zone.as_str())
    .bind(site.outsiders_see.word())
    .bind(site.accent.as_ref().map(ToString::to_string))
    .bind(site.id.0)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

/// A site with the role of `person` in it, if any. Every request about a site starts from this.
pub async fn by_name_for(
    conn: &mut Conn,
    name: &Name,
    person: PersonId,
) -> Result<Option<(Site, Option<Role>)>> {
    let row = query(
        "SELECT s.*, m.role FROM site s LEFT JOIN membership m ON m.site = s.id AND m.person = $2 WHERE s.name = $1",
    )
    .bind(name.as_str())
    .bind(person.0)
    .optional(conn)
    .await?;
    row.map(|row| Ok((site(&row)?, row.optional_word("role")?)))
        .transpose()
}

pub async fn by_id_for(
    conn: &mut Conn,
    id: SiteId,
    person: PersonId,
) -> Result<Option<(Site, Option<Role>)>> {
    let row = query(
        "SELECT s.*, m.role FROM site s LEFT JOIN membership m ON m.site = s.id AND m.person = $2 WHERE s.id = $1",
    )
    .bind(id.0)
    .bind(person.0)
    .optional(conn)
    .await?;
    row.map(|row| Ok((site(&row)?, row.optional_word("role")?)))
        .transpose()
}

pub async fn all_ids(conn: &mut Conn) -> Result<Vec<SiteId>> {
    query("SELECT id FROM site ORDER BY id")
        .map(conn, |row| Ok(SiteId(row.get("id")?)))
        .await
}

pub async fn by_id(conn: &mut Conn, id: SiteId) -> Result<Option<Site>> {
    let row = query("SELECT * FROM site WHERE id = $1")
        .bind(id.0)
        .optional(conn)
        .await?;
    row.as_ref().map(site).transpose()
}

pub async fn by_name(conn: &mut Conn, name: &Name) -> Result<Option<Site>> {
    let row = query("SELECT * FROM site WHERE name = $1")
        .bind(name.as_str())
        .optional(conn)
        .await?;
    row.as_ref().map(site).transpose()
}

/// Like [`by_name_for`], for a booking. Locks the membership until the transaction ends: a booking and a removal of its
/// owner take turns. Also returns whether the site has blackouts, so that the booking need not query them if it has
/// none.
pub async fn held_for(
    conn: &mut Conn,
    reference: &SiteReference,
    person: PersonId,
) -> Result<Option<((Site, Option<Role>), bool)>> {
    let asked = match reference {
        SiteReference::Id(id) => either(
            "SELECT s.*, m.role, EXISTS (SELECT 1 FROM closure WHERE site = s.id AND kind = $3) AS has_blackouts
             FROM site s LEFT JOIN membership m ON m.site = s.id AND m.person = $2 WHERE s.id = $1",
            "SELECT s.*, (SELECT role FROM membership WHERE site = s.id AND person = $2 FOR KEY SHARE) AS role,
                 EXISTS (SELECT 1 FROM closure WHERE site = s.id AND kind = $3) AS has_blackouts
             FROM site s WHERE s.id = $1",
        )
        .bind(id.0),
        SiteReference::Name(name) => either(
            "SELECT s.*, m.role, EXISTS (SELECT 1 FROM closure WHERE site = s.id AND kind = $3) AS has_blackouts
             FROM site s LEFT JOIN membership m ON m.site = s.id AND m.person = $2 WHERE s.name = $1",
            "SELECT s.*, (SELECT role FROM membership WHERE site = s.id AND person = $2 FOR KEY SHARE) AS role,
                 EXISTS (SELECT 1 FROM closure WHERE site = s.id AND kind = $3) AS has_blackouts
             FROM site s WHERE s.name = $1",
        )
        .bind(name.as_str()),
    };
    let row = asked
        .bind(person.0)
        .bind(ClosureKind::Blackouts.word())
        .optional(conn)
        .await?;
    row.map(|row| {
        let found = (site(&row)?, row.optional_word("role")?);
        Ok((found, row.get("has_blackouts")?))
    })
    .transpose()
}

/// Sites after `after` by name, each with the person's role. A site hidden from outsiders is listed only if `person` is
/// a member or `all` is set.
pub async fn list_for(
    conn: &mut Conn,
    person: PersonId,
    all: bool,
    after: &str,
    limit: u64,
) -> Result<Vec<(Site, Option<Role>)>> {
    query(
        "SELECT s.*, m.role FROM site s LEFT JOIN membership m ON m.site = s.id AND m.person = $1
         WHERE s.name > $2 AND ($3 OR m.role IS NOT NULL OR s.outsiders_see <> $4) ORDER BY s.name LIMIT $5",
    )
    .bind(person.0)
    .bind(after)
    .bind(all)
    .bind(OutsiderView::Nothing.word())
    .bind(limit)
    .map(conn, |row| Ok((site(row)?, row.optional_word("role")?)))
    .await
}

fn membership(row: &Row) -> Result<Membership> {
    Ok(Membership {
        site: SiteId(row.get("site")?),
        person: PersonId(row.get("member")?),
        role: row.word("role")?,
        since: row.moment("since")?,
    })
}

/// The person's role, locked until the transaction ends: a booking and a removal of its owner take turns.
pub async fn role_locked(conn: &mut Conn, site: SiteId, person: PersonId) -> Result<Option<Role>> {
    let row = either(
        "SELECT role FROM membership WHERE site = $1 AND person = $2",
        "SELECT role FROM membership WHERE site = $1 AND person = $2 FOR KEY SHARE",
    )
    .bind(site.0)
    .bind(person.0)
    .optional(conn)
    .await?;
    row.map(|row| row.word("role")).transpose()
}

/// The roles of several people in a site. People without a role are left out.
pub async fn roles_of(
    conn: &mut Conn,
    site: SiteId,
    people: Vec<PersonId>,
) -> Result<Vec<(PersonId, Role)>> {
    either(
        "SELECT person, role FROM membership WHERE site = $1 AND person IN (SELECT unhex(value) FROM json_each($2))",
        "SELECT person, role FROM membership WHERE site = $1 AND person = ANY($2)",
    )
    .bind(site.0)
    .bind(people.iter().map(|id| id.0).collect::<Vec<_>>())
    .map(conn, |row| Ok((PersonId(row.get("person")?), row.word("role")?)))
    .await
}

pub async fn membership_of(
    conn: &mut Conn,
    site: SiteId,
    person: PersonId,
) -> Result<Option<Membership>> {
    let row = query("SELECT site, person AS member, role, since FROM membership WHERE site = $1 AND person = $2")
        .bind(site.0)
        .bind(person.0)
        .optional(conn)
        .await?;
    row.as_ref().map(membership).transpose()
}

/// All memberships of a person, with their sites.
pub async fn memberships_of(conn: &mut Conn, person: PersonId) -> Result<Vec<(Site, Membership)>> {
    query(
        "SELECT s.*, m.site, m.person AS member, m.role, m.since FROM membership m JOIN site s ON s.id = m.site
         WHERE m.person = $1 ORDER BY s.name",
    )
    .bind(person.0)
    .map(conn, |row| Ok((site(row)?, membership(row)?)))
    .await
}

pub async fn members(
    conn: &mut Conn,
    site: SiteId,
    after: &str,
    limit: u64,
) -> Result<Vec<(Person, Membership)>> {
    query(
        "SELECT p.*, m.site, m.person AS member, m.role, m.since FROM membership m JOIN person p ON p.id = m.person
         WHERE m.site = $1 AND p.login > $2 ORDER BY p.login LIMIT $3",
    )
    .bind(site.0)
    .bind(after)
    .bind(limit)
    .map(conn, |row| Ok((person(row)?, membership(row)?)))
    .await
}

/// The logins among these that belong to members of the site.
pub async fn members_among(
    conn: &mut Conn,
    site: SiteId,
    logins: Vec<String>,
) -> Result<BTreeSet<LoginName>> {
    let found = either(
        "SELECT p.login FROM json_each($2) v CROSS JOIN person p ON p.login = v.value
         JOIN membership m ON m.site = $1 AND m.person = p.id",
        "SELECT p.login FROM unnest($2::text[]) v (login) JOIN person p ON p.login = v.login
         JOIN membership m ON m.site = $1 AND m.person = p.id",
    )
    .bind(site.0)
    .bind(logins)
    .map(conn, |row| row.parsed("login"))
    .await?;
    Ok(found.into_iter().collect())
}

/// The active admins of a site.
pub async fn admins(conn: &mut Conn, site: SiteId) -> Result<Vec<PersonId>> {
    query(
        "SELECT m.person FROM membership m JOIN person p ON p.id = m.person
         WHERE m.site = $1 AND m.role = $2 AND p.state = $3 ORDER BY p.login",
    )
    .bind(site.0)
    .bind(Role::SiteAdmin.word())
    .bind(PersonState::Active.word())
    .map(conn, |row| Ok(PersonId(row.get("person")?)))
    .await
}

/// People with these logins who can approve in the site: its members, and global admins.
pub async fn called(conn: &mut Conn, site: SiteId, logins: Vec<String>) -> Result<Vec<PersonId>> {
    either(
        "SELECT p.id FROM json_each($2) v CROSS JOIN person p ON p.login = v.value
         LEFT JOIN membership m ON m.site = $1 AND m.person = p.id WHERE m.role IS NOT NULL OR p.global_admin",
        "SELECT p.id FROM unnest($2::text[]) v (login) JOIN person p ON p.login = v.login
         LEFT JOIN membership m ON m.site = $1 AND m.person = p.id WHERE m.role IS NOT NULL OR p.global_admin",
    )
    .bind(site.0)
    .bind(logins)
    .map(conn, |row| Ok(PersonId(row.get("id")?)))
    .await
}

pub async fn set_member(conn: &mut Conn, membership: &Membership) -> Result<()> {
    query(
        "INSERT INTO membership (site, person, role, since) VALUES ($1, $2, $3, $4)
         ON CONFLICT (site, person) DO UPDATE SET role = excluded.role",
    )
    .bind(membership.site.0)
    .bind(membership.person.0)
    .bind(membership.role.word())
    .bind(membership.since)
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn remove_member(conn: &mut Conn, site: SiteId, person: PersonId) -> Result<bool> {
    query(
        "DELETE FROM project_member WHERE person = $2 AND project IN (SELECT id FROM project WHERE site = $1)",
    )
    .bind(site.0)
    .bind(person.0)
    .execute(conn)
    .await?;
    let removed = query("DELETE FROM membership WHERE site = $1 AND person = $2")
        .bind(site.0)
        .bind(person.0)
        .execute(conn)
        .await?;
    Ok(removed == 1)
}

fn join_request(row: &Row) -> Result<JoinRequest> {
    Ok(JoinRequest {
        id: JoinRequestId(row.get("request_id")?),
        site: SiteId(row.get("site")?),
        person: PersonId(row.get("asker")?),
        message: row.optional_parsed("message")?,
        state: row.word("request_state")?,
        created_at: row.moment("asked_at")?,
    })
}

pub async fn insert_join_request(conn: &mut Conn, request: &JoinRequest) -> Result<()> {
    query("INSERT INTO join_request (id, site, person, message, state, created_at) VALUES ($1, $2, $3, $4, $5, $6)")
        .bind(request.id.0)
        .bind(request.site.0)
        .bind(request.person.0)
        .bind(request.message.as_ref().map(|text| text.as_str()))
        .bind(request.state.word())
        .bind(request.created_at)
        .execute(conn)
        .await?;
    Ok(())
}

pub async fn join_request_by_id(
    conn: &mut Conn,
    site: SiteId,
    id: JoinRequestId,
) -> Result<Option<JoinRequest>> {
    let row = query(
        "SELECT id AS request_id, site, person AS asker, message, state AS request_state, created_at AS asked_at
         FROM join_request WHERE id = $1 AND site = $2",
    )
    .bind(id.0)
    .bind(site.0)
    .optional(conn)
    .await?;
    row.as_ref().map(join_request).transpose()
}

/// Pending join requests with the person who made each, oldest first.
pub async fn join_requests(conn: &mut Conn, site: SiteId) -> Result<Vec<(JoinRequest, Person)>> {
    query(
        "SELECT p.*, j.id AS request_id, j.site, j.person AS asker, j.message, j.state AS request_state, j.created_at AS asked_at
         FROM join_request j JOIN person p ON p.id = j.person WHERE j.site = $1 AND j.state = $2 ORDER BY j.id LIMIT 500",
    )
    .bind(site.0)
    .bind(JoinState::Waiting.word())
    .map(conn, |row| Ok((join_request(row)?, person(row)?)))
    .await
}

/// The pending join requests of a person, with their sites.
pub async fn join_requests_by(
    conn: &mut Conn,
    asker: PersonId,
) -> Result<Vec<(Site, JoinRequest)>> {
    query(
        "SELECT s.*, j.id AS request_id, j.site, j.person AS asker, j.message, j.state AS request_state, j.created_at AS asked_at
         FROM join_request j JOIN site s ON s.id = j.site WHERE j.person = $1 AND j.state = 'waiting' ORDER BY s.name",
    )
    .bind(asker.0)
    .map(conn, |row| Ok((site(row)?, join_request(row)?)))
    .await
}

/// Decides a pending join request. Of two concurrent decisions, the second finds it decided.
pub async fn decide_join_request(
    conn: &mut Conn,
    id: JoinRequestId,
    state: JoinState,
    now: Timestamp,
    by: PersonId,
) -> Result<bool> {
    let decided = query("UPDATE join_request SET state = $1, decided_at = $2, decided_by = $3 WHERE id = $4 AND state = $5")
        .bind(state.word())
        .bind(now)
        .bind(by.0)
        .bind(id.0)
        .bind(JoinState::Waiting.word())
        .execute(conn)
        .await?;
    Ok(decided == 1)
}
