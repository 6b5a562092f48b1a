//! Sessions, their start attempts, and paused profiles.

use berth_model::session::{Pause, Session, Start};
use berth_model::{
    Name, PersonId, ProjectId, ReservationId, SessionId, SiteId, StartId, Text, WorkloadId,
};
use jiff::Timestamp;
use uuid::Uuid;

use crate::error::Result;
use crate::sql::{Conn, Row, either, query, to_json};
use crate::words::Word;

fn session(row: &Row) -> Result<Session> {
    Ok(Session {
        id: SessionId(row.get("id")?),
        site: SiteId(row.get("site")?),
        owner: PersonId(row.get("owner")?),
        project: row.get::<Option<Uuid>>("project")?.map(ProjectId),
        name: row.parsed("name")?,
        label: row.get("label")?,
        profile: row.parsed("profile")?,
        environment: row.optional_parsed("environment")?,
        inside: row.get::<Option<Uuid>>("inside")?.map(ReservationId),
        state: row.word("state")?,
        workload: row.get::<Option<Uuid>>("workload")?.map(WorkloadId),
        said: row.optional_parsed("said")?,
        shared: row.json("shared")?,
        since: row.moment("since")?,
        active_at: row.moment("active_at")?,
        kept_until: row.optional_moment("kept_until")?,
        warned_at: row.optional_moment("warned_at")?,
        lends_since: row.optional_moment("lends_since")?,
        memory_kills: row.count("memory_kills")?,
        created_at: row.moment("created_at")?,
        version: row.count("version")?,
    })
}

pub async fn insert(conn: &mut Conn, new: &Session) -> Result<()> {
    query(
        "INSERT INTO session (id, site, owner, project, name, label, profile, environment, inside, state, workload, said,
             shared, since, active_at, kept_until, warned_at, lends_since, memory_kills, created_at, version)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)",
    )
    .bind(new.id.0)
    .bind(new.site.0)
    .bind(new.owner.0)
    .bind(new.project.map(|id| id.0))
    .bind(new.name.as_str())
    .bind(new.label.as_str())
    .bind(new.profile.as_str())
    .bind(new.environment.as_ref().map(Text::as_str))
    .bind(new.inside.map(|id| id.0))
    .bind(new.state.word())
    .bind(new.workload.map(|id| id.0))
    .bind(new.said.as_ref().map(Text::as_str))
    .bind(to_json(&new.shared))
    .bind(new.since)
    .bind(new.active_at)
    .bind(new.kept_until)
    .bind(new.warned_at)
    .bind(new.lends_since)
    .bind(new.memory_kills)
    .bind(new.created_at)
    .bind(new.version)
    .execute(conn)
    .await?;
    Ok(())
}

/// Writes the changeable fields of a session, if nobody else changed it since `version`.
pub async fn update(conn: &mut Conn, new: &Session, version: u64) -> Result<bool> {
    let changed = query(
        "UPDATE session SET project = $1, name = $2, profile = $3, environment = $4, inside = $5, state = $6, workload = $7,
             said = $8, shared = $9, since = $10, active_at = $11, kept_until = $12, warned_at = $13,
             lends_since = $14, memory_kills = $15, version = version + 1
         WHERE id = $16 AND version = $17 AND removed_at IS NULL",
    )
    .bind(new.project.map(|id| id.0))
    .bind(new.name.as_str())
    .bind(new.profile.as_str())
    .bind(new.environment.as_ref().map(Text::as_str))
    .bind(new.inside.map(|id| id.0))
    .bind(new.state.word())
    .bind(new.workload.map(|id| id.0))
    .bind(new.said.as_ref().map(Text::as_str))
    .bind(to_json(&new.shared))
    .bind(new.since)
    .bind(new.active_at)
    .bind(new.kept_until)
    .bind(new.warned_at)
    .bind(new.lends_since)
    .bind(new.memory_kills)
    .bind(new.id.0)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

/// Records activity in a session, if it is later than the last. The version stays, because nobody changed the session.
pub async fn note_active(conn: &mut Conn, id: SessionId, at: Timestamp) -> Result<()> {
    query("UPDATE session SET active_at = $1, warned_at = NULL WHERE id = $2 AND active_at < $1")
        .bind(at)
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// Marks a session as removed. The row stays for the record, but no query finds it.
pub async fn remove(conn: &mut Conn, id: SessionId, version: u64, now: Timestamp) -> Result<bool> {
    let changed = query(
        "UPDATE session SET removed_at = $1, version = version + 1 WHERE id = $2 AND version = $3 AND removed_at IS NULL",
    )
    .bind(now)
    .bind(id.0)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

/// A session by id, at any site.
pub async fn get(conn: &mut Conn, id: SessionId) -> Result<Option<Session>> {
    let row = query("SELECT * FROM session WHERE id = $1 AND removed_at IS NULL")
        .bind(id.0)
        .optional(conn)
        .await?;
    row.as_ref().map(session).transpose()
}

/// The session, locked until the transaction ends.
pub async fn get_locked(conn: &mut Conn, id: SessionId) -> Result<Option<Session>> {
    let row = either(
        "SELECT * FROM session WHERE id = $1 AND removed_at IS NULL",
        "SELECT * FROM session WHERE id = $1 AND removed_at IS NULL FOR NO KEY UPDATE",
    )
    .bind(id.0)
    .optional(conn)
    .await?;
    row.as_ref().map(session).transpose()
}

pub async fn by_name(
    conn: &mut Conn,
    site: SiteId,
    owner: PersonId,
    name: &Name,
) -> Result<Option<Session>> {
    let row = query(
        "SELECT * FROM session WHERE site = $1 AND owner = $2 AND name = $3 AND removed_at IS NULL",
    )
    .bind(site.0)
    .bind(owner.0)
    .bind(name.as_str())
    .optional(conn)
    .await?;
    row.as_ref().map(session).transpose()
}

pub async fn by_label(conn: &mut Conn, label: &str) -> Result<Option<Session>> {
    let row = query("SELECT * FROM session WHERE label = $1 AND removed_at IS NULL")
        .bind(label)
        .optional(conn)
        .await?;
    row.as_ref().map(session).transpose()
}

pub async fn by_workload(conn: &mut Conn, workload: WorkloadId) -> Result<Option<Session>> {
    let row = query("SELECT * FROM session WHERE workload = $1 AND removed_at IS NULL")
        .bind(workload.0)
        .optional(conn)
        .await?;
    row.as_ref().map(session).transpose()
}

/// Selects the sessions to list: first live ones, then the newest.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub site: Option<SiteId>,
    pub owner: Option<PersonId>,
    /// Only waiting or running sessions.
    pub is_live: bool,
    pub limit: u64,
}

pub async fn list(conn: &mut Conn, filter: &Filter) -> Result<Vec<Session>> {
    either(
        "SELECT * FROM session WHERE removed_at IS NULL AND ($1 IS NULL OR site = $1) AND ($2 IS NULL OR owner = $2)
             AND (NOT $3 OR state NOT IN ('stopped', 'failed'))
         ORDER BY state IN ('stopped', 'failed'), created_at DESC, id LIMIT $4",
        "SELECT * FROM session WHERE removed_at IS NULL AND ($1::uuid IS NULL OR site = $1)
             AND ($2::uuid IS NULL OR owner = $2) AND (NOT $3 OR state NOT IN ('stopped', 'failed'))
         ORDER BY state IN ('stopped', 'failed'), created_at DESC, id LIMIT $4",
    )
    .bind(filter.site.map(|id| id.0))
    .bind(filter.owner.map(|id| id.0))
    .bind(filter.is_live)
    .bind(filter.limit)
    .map(conn, session)
    .await
}

/// The sessions at one site that other people share with this person.
pub async fn shared_with(
    conn: &mut Conn,
    site: SiteId,
    person: PersonId,
    limit: u64,
) -> Result<Vec<Session>> {
    query(
        "SELECT * FROM session WHERE site = $1 AND removed_at IS NULL AND shared LIKE $2
         ORDER BY created_at DESC, id LIMIT $3",
    )
    .bind(site.0)
    .bind(format!("%\"{person}\"%"))
    .bind(limit)
    .map(conn, session)
    .await
}

/// The sessions that lend their GPUs: of one site, or of all.
pub async fn lending(conn: &mut Conn, site: Option<SiteId>) -> Result<Vec<Session>> {
    either(
        "SELECT * FROM session WHERE lends_since IS NOT NULL AND removed_at IS NULL AND ($1 IS NULL OR site = $1) ORDER BY id",
        "SELECT * FROM session WHERE lends_since IS NOT NULL AND removed_at IS NULL AND ($1::uuid IS NULL OR site = $1)
         ORDER BY id",
    )
    .bind(site.map(|id| id.0))
    .map(conn, session)
    .await
}

/// All live sessions, at every site, in the order in which they entered their state.
pub async fn live(conn: &mut Conn) -> Result<Vec<Session>> {
    query(
        "SELECT * FROM session WHERE removed_at IS NULL AND state NOT IN ('stopped', 'failed') ORDER BY since, id",
    )
    .map(conn, session)
    .await
}

/// Number of sessions that are starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beginning {
    /// At every site.
    pub all: u64,
    pub of_site: u64,
    /// Of one person in the site.
    pub of_person: u64,
}

/// Counts the starting sessions: those in state `starting`, and those released to the queue since a moment and not
/// placed yet.
pub async fn beginning(
    conn: &mut Conn,
    since: Timestamp,
    site: SiteId,
    owner: PersonId,
) -> Result<Beginning> {
    let row = query(
        "SELECT count(*) AS n, count(CASE WHEN s.site = $2 THEN 1 END) AS of_site,
             count(CASE WHEN s.site = $2 AND s.owner = $3 THEN 1 END) AS of_person
         FROM session s JOIN workload w ON w.id = s.workload
         WHERE s.removed_at IS NULL AND s.state NOT IN ('stopped', 'failed')
             AND (s.state = 'starting' OR (s.state = 'waiting' AND w.state <> 'HELD' AND (w.state = 'RUNNING' OR s.since > $1)))",
    )
    .bind(since)
    .bind(site.0)
    .bind(owner.0)
    .one(conn)
    .await?;
    Ok(Beginning {
        all: row.count("n")?,
        of_site: row.count("of_site")?,
        of_person: row.count("of_person")?,
    })
}

fn start(row: &Row) -> Result<Start> {
    Ok(Start {
        id: StartId(row.get("id")?),
        session: SessionId(row.get("session")?),
        site: SiteId(row.get("site")?),
        person: PersonId(row.get("person")?),
        profile: row.parsed("profile")?,
        workload: WorkloadId(row.get("workload")?),
        is_automatic: row.get("is_automatic")?,
        asked_at: row.moment("asked_at")?,
        ready_at: row.optional_moment("ready_at")?,
        ended_at: row.optional_moment("ended_at")?,
        has_failed: row.get("has_failed")?,
        said: row.optional_parsed("said")?,
    })
}

pub async fn insert_start(conn: &mut Conn, new: &Start) -> Result<()> {
    query(
        "INSERT INTO session_start (id, session, site, person, profile, workload, is_automatic, asked_at, ready_at, ended_at,
             has_failed, said)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
    )
    .bind(new.id.0)
    .bind(new.session.0)
    .bind(new.site.0)
    .bind(new.person.0)
    .bind(new.profile.as_str())
    .bind(new.workload.0)
    .bind(new.is_automatic)
    .bind(new.asked_at)
    .bind(new.ready_at)
    .bind(new.ended_at)
    .bind(new.has_failed)
    .bind(new.said.as_ref().map(Text::as_str))
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn note_ready(conn: &mut Conn, workload: WorkloadId, at: Timestamp) -> Result<()> {
    query("UPDATE session_start SET ready_at = $1 WHERE workload = $2 AND ready_at IS NULL")
        .bind(at)
        .bind(workload.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// Records the end of a start attempt. It failed if it never became ready and nobody stopped it.
pub async fn note_end(
    conn: &mut Conn,
    workload: WorkloadId,
    at: Timestamp,
    was_wanted: bool,
    said: Option<&Text>,
) -> Result<()> {
    query(
        "UPDATE session_start SET ended_at = $1, said = $2, has_failed = (ready_at IS NULL AND NOT $3)
         WHERE workload = $4 AND ended_at IS NULL",
    )
    .bind(at)
    .bind(said.map(Text::as_str))
    .bind(was_wanted)
    .bind(workload.0)
    .execute(conn)
    .await?;
    Ok(())
}

/// The start attempts of a session, the newest first.
pub async fn starts_of(conn: &mut Conn, session: SessionId, limit: u64) -> Result<Vec<Start>> {
    query("SELECT * FROM session_start WHERE session = $1 ORDER BY asked_at DESC, id DESC LIMIT $2")
        .bind(session.0)
        .bind(limit)
        .map(conn, start)
        .await
}

/// One person's start attempts of a profile that ended or became ready, the newest first.
pub async fn recent_starts(
    conn: &mut Conn,
    site: SiteId,
    profile: &Name,
    person: PersonId,
    limit: u64,
) -> Result<Vec<Start>> {
    query(
        "SELECT * FROM session_start WHERE site = $1 AND profile = $2 AND person = $3
             AND (ready_at IS NOT NULL OR ended_at IS NOT NULL)
         ORDER BY asked_at DESC, id DESC LIMIT $4",
    )
    .bind(site.0)
    .bind(profile.as_str())
    .bind(person.0)
    .bind(limit)
    .map(conn, start)
    .await
}

/// Number of people with a failed start of a profile since a moment.
pub async fn failed_for(
    conn: &mut Conn,
    site: SiteId,
    profile: &Name,
    since: Timestamp,
) -> Result<u64> {
    let row = query(
        "SELECT count(DISTINCT person) AS n FROM session_start
         WHERE site = $1 AND profile = $2 AND has_failed AND ended_at > $3",
    )
    .bind(site.0)
    .bind(profile.as_str())
    .bind(since)
    .one(conn)
    .await?;
    row.count("n")
}

/// Pauses a profile. Returns whether it was not paused before.
pub async fn pause(conn: &mut Conn, new: &Pause) -> Result<bool> {
    let changed = query(
        "INSERT INTO profile_pause (site, profile, since, said) VALUES ($1, $2, $3, $4) ON CONFLICT (site, profile) DO NOTHING",
    )
    .bind(new.site.0)
    .bind(new.profile.as_str())
    .bind(new.since)
    .bind(new.said.as_str())
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

pub async fn resume(conn: &mut Conn, site: SiteId, profile: &Name) -> Result<bool> {
    let changed = query("DELETE FROM profile_pause WHERE site = $1 AND profile = $2")
        .bind(site.0)
        .bind(profile.as_str())
        .execute(conn)
        .await?;
    Ok(changed == 1)
}

pub async fn paused(conn: &mut Conn, site: SiteId) -> Result<Vec<Pause>> {
    query("SELECT * FROM profile_pause WHERE site = $1 ORDER BY profile")
        .bind(site.0)
        .map(conn, |row| {
            Ok(Pause {
                site: SiteId(row.get("site")?),
                profile: row.parsed("profile")?,
                since: row.moment("since")?,
                said: row.parsed("said")?,
            })
        })
        .await
}
