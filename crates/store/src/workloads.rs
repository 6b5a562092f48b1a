//! Workloads and their runs.

use berth_model::workload::{Class, Counts, Run, RunState, State, Workload};
use berth_model::{PersonId, ProjectId, ReservationId, ResourceId, RunId, SiteId, WorkloadId};
use jiff::Timestamp;
use uuid::Uuid;

use crate::error::Result;
use crate::sql::{Conn, Row, either, query, to_json};
use crate::words::Word;

fn workload(row: &Row) -> Result<Workload> {
    Ok(Workload {
        id: WorkloadId(row.get("id")?),
        site: SiteId(row.get("site")?),
        number: row.count("number")?,
        owner: PersonId(row.get("owner")?),
        project: row.get::<Option<Uuid>>("project")?.map(ProjectId),
        ask: row.json("ask")?,
        state: row.word("state")?,
        reason: row.optional_parsed("reason")?,
        waiting: row.parsed("waiting")?,
        counts: Counts {
            running: row.count("running")?,
            completed: row.count("completed")?,
            failed: row.count("failed")?,
        },
        since: row.moment("since")?,
        ended_at: row.optional_moment("ended_at")?,
        version: row.count("version")?,
    })
}

/// Reserves the numbers of the next `count` workloads of a site, and returns the first. Other submissions to the site
/// wait until the transaction ends.
pub async fn next_numbers(conn: &mut Conn, site: SiteId, count: u64) -> Result<u64> {
    let row = query(
        "INSERT INTO queue_number (site, last) VALUES ($1, $2)
         ON CONFLICT (site) DO UPDATE SET last = queue_number.last + excluded.last RETURNING last",
    )
    .bind(site.0)
    .bind(count)
    .one(conn)
    .await?;
    Ok(row.count("last")?.saturating_sub(count) + 1)
}

/// The number of a site's newest workload; 0 if it has none.
pub async fn last_number(conn: &mut Conn, site: SiteId) -> Result<u64> {
    let row = query("SELECT last FROM queue_number WHERE site = $1")
        .bind(site.0)
        .optional(conn)
        .await?;
    row.map_or(Ok(0), |row| row.count("last"))
}

/// Writes the changeable fields of a workload, if nobody else changed it since `version`.
pub async fn update(conn: &mut Conn, new: &Workload, version: u64) -> Result<bool> {
    let changed = query(
        "UPDATE workload SET state = $1, reason = $2, waiting = $3, running = $4, completed = $5, failed = $6,
             since = $7, ended_at = $8, version = version + 1
         WHERE id = $9 AND version = $10",
    )
    .bind(new.state.word())
    .bind(new.reason.as_ref().map(|text| text.as_str()))
    .bind(new.waiting.to_string())
    .bind(new.counts.running)
    .bind(new.counts.completed)
    .bind(new.counts.failed)
    .bind(new.since)
    .bind(new.ended_at)
    .bind(new.id.0)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

pub async fn get(conn: &mut Conn, site: SiteId, id: WorkloadId) -> Result<Option<Workload>> {
    let row = query("SELECT * FROM workload WHERE id = $1 AND site = $2")
        .bind(id.0)
        .bind(site.0)
        .optional(conn)
        .await?;
    row.as_ref().map(workload).transpose()
}

pub async fn by_number(conn: &mut Conn, site: SiteId, number: u64) -> Result<Option<Workload>> {
    let row = query("SELECT * FROM workload WHERE site = $1 AND number = $2")
        .bind(site.0)
        .bind(number)
        .optional(conn)
        .await?;
    row.as_ref().map(workload).transpose()
}

/// The workload, locked until the transaction ends.
pub async fn get_locked(conn: &mut Conn, site: SiteId, id: WorkloadId) -> Result<Option<Workload>> {
    let row = either(
        "SELECT * FROM workload WHERE id = $1 AND site = $2",
        "SELECT * FROM workload WHERE id = $1 AND site = $2 FOR NO KEY UPDATE",
    )
    .bind(id.0)
    .bind(site.0)
    .optional(conn)
    .await?;
    row.as_ref().map(workload).transpose()
}

/// All live workloads of a site, in the order of their submission.
pub async fn live(conn: &mut Conn, site: SiteId) -> Result<Vec<Workload>> {
    query("SELECT * FROM workload WHERE site = $1 AND ended_at IS NULL ORDER BY number")
        .bind(site.0)
        .map(conn, workload)
        .await
}

/// The workloads with these ids, as far as they exist.
pub async fn some(conn: &mut Conn, site: SiteId, ids: Vec<WorkloadId>) -> Result<Vec<Workload>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    either(
        "SELECT * FROM workload WHERE id IN (SELECT unhex(value) FROM json_each($1)) AND site = $2
         ORDER BY number",
        "SELECT * FROM workload WHERE id = ANY($1) AND site = $2 ORDER BY number",
    )
    .bind(ids.iter().map(|id| id.0).collect::<Vec<_>>())
    .bind(site.0)
    .map(conn, workload)
    .await
}

/// Number of one person's waiting workloads at a site, held ones included.
pub async fn waiting_of(conn: &mut Conn, site: SiteId, owner: PersonId) -> Result<u64> {
    let row = query(
        "SELECT count(*) AS n FROM workload
         WHERE site = $1 AND owner = $2 AND ended_at IS NULL AND state IN ('WAITING', 'HELD')",
    )
    .bind(site.0)
    .bind(owner.0)
    .one(conn)
    .await?;
    row.count("n")
}

/// One person's live workloads, at one site or at all.
pub async fn live_of(
    conn: &mut Conn,
    owner: PersonId,
    site: Option<SiteId>,
) -> Result<Vec<(SiteId, WorkloadId)>> {
    either(
        "SELECT site, id FROM workload WHERE owner = $1 AND ended_at IS NULL AND ($2 IS NULL OR site = $2) ORDER BY id",
        "SELECT site, id FROM workload WHERE owner = $1 AND ended_at IS NULL AND ($2::uuid IS NULL OR site = $2) ORDER BY id",
    )
    .bind(owner.0)
    .bind(site.map(|id| id.0))
    .map(conn, |row| {
        Ok((SiteId(row.get("site")?), WorkloadId(row.get("id")?)))
    })
    .await
}

/// Workloads of one owner, project, class and state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alike {
    pub owner: PersonId,
    pub project: Option<ProjectId>,
    pub class: Class,
    pub state: State,
    pub workloads: u64,
    /// Number of their running tasks.
    pub running: u64,
}

/// Counts of a site's live workloads.
pub async fn alike(conn: &mut Conn, site: SiteId) -> Result<Vec<Alike>> {
    either(
        "SELECT owner, project, state, ask ->> '$.class' AS class, count(*) AS workloads, sum(running) AS running
         FROM workload WHERE site = $1 AND ended_at IS NULL GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
        "SELECT owner, project, state, ask::json ->> 'class' AS class, count(*) AS workloads,
             CAST(sum(running) AS BIGINT) AS running
         FROM workload WHERE site = $1 AND ended_at IS NULL GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
    )
    .bind(site.0)
    .map(conn, |row| {
        Ok(Alike {
            owner: PersonId(row.get("owner")?),
            project: row.get::<Option<Uuid>>("project")?.map(ProjectId),
            class: row.word("class")?,
            state: row.word("state")?,
            workloads: row.count("workloads")?,
            running: row.count("running")?,
        })
    })
    .await
}

/// Selects the workloads to list, the newest first.
#[derive(Debug, Clone)]
pub struct Filter {
    pub site: SiteId,
    pub owner: Option<PersonId>,
    pub project: Option<ProjectId>,
    pub class: Option<Class>,
    /// Matches the title, the number, the owner's name, or a node that it runs on.
    pub text: Option<String>,
    pub node: Option<ResourceId>,
    pub states: Vec<State>,
    /// Only workloads that ended after this moment, or have not ended.
    pub since: Option<Timestamp>,
    /// The page begins before this number.
    pub before: Option<u64>,
    pub limit: u64,
}

pub async fn list(conn: &mut Conn, filter: &Filter) -> Result<Vec<Workload>> {
    let states = match filter.states.as_slice() {
        [] => State::ALL,
        some => some,
    };
    let states: Vec<String> = states.iter().map(|state| state.word().to_owned()).collect();
    let is_live = !filter.states.is_empty() && filter.states.iter().all(|state| !state.is_final());
    let select = match is_live {
        // Most of a site's workloads have ended, so a query for live ones does not read them.
        true => either(
            "SELECT * FROM workload WHERE site = $1 AND number < $2 AND ended_at IS NULL AND ($3 IS NULL OR owner = $3)
                 AND ($4 IS NULL OR project = $4) AND state IN (SELECT value FROM json_each($5)) AND since > $6
                 AND ($8 IS NULL OR ask ->> '$.class' = $8)
                 AND ($9 IS NULL OR title LIKE $9 ESCAPE '!' OR number = $10 OR owner IN (SELECT p.id FROM person p
                     WHERE p.login LIKE $9 ESCAPE '!' OR p.display_name LIKE $9 ESCAPE '!')
                     OR id IN (SELECT r.workload FROM run r WHERE r.site = $1 AND r.ended_at IS NULL AND r.pieces LIKE $11))
             ORDER BY number DESC LIMIT $7",
            "SELECT * FROM workload WHERE site = $1 AND number < $2 AND ended_at IS NULL
                 AND ($3::uuid IS NULL OR owner = $3) AND ($4::uuid IS NULL OR project = $4) AND state = ANY($5)
                 AND since > $6 AND ($8::text IS NULL OR ask::json ->> 'class' = $8)
                 AND ($9::text IS NULL OR title ILIKE $9 ESCAPE '!' OR number = $10 OR owner IN (SELECT p.id FROM person p
                     WHERE p.login ILIKE $9 ESCAPE '!' OR p.display_name ILIKE $9 ESCAPE '!')
                     OR id IN (SELECT r.workload FROM run r WHERE r.site = $1 AND r.ended_at IS NULL AND r.pieces LIKE $11))
             ORDER BY number DESC LIMIT $7",
        ),
        false => either(
            "SELECT * FROM workload WHERE site = $1 AND number < $2 AND ($3 IS NULL OR owner = $3)
                 AND ($4 IS NULL OR project = $4) AND state IN (SELECT value FROM json_each($5))
                 AND (ended_at IS NULL OR ended_at > $6) AND ($8 IS NULL OR ask ->> '$.class' = $8)
                 AND ($9 IS NULL OR title LIKE $9 ESCAPE '!' OR number = $10 OR owner IN (SELECT p.id FROM person p
                     WHERE p.login LIKE $9 ESCAPE '!' OR p.display_name LIKE $9 ESCAPE '!')
                     OR id IN (SELECT r.workload FROM run r WHERE r.site = $1 AND r.ended_at IS NULL AND r.pieces LIKE $11))
             ORDER BY number DESC LIMIT $7",
            "SELECT * FROM workload WHERE site = $1 AND number < $2 AND ($3::uuid IS NULL OR owner = $3)
                 AND ($4::uuid IS NULL OR project = $4) AND state = ANY($5) AND (ended_at IS NULL OR ended_at > $6)
                 AND ($8::text IS NULL OR ask::json ->> 'class' = $8)
                 AND ($9::text IS NULL OR title ILIKE $9 ESCAPE '!' OR number = $10 OR owner IN (SELECT p.id FROM person p
                     WHERE p.login ILIKE $9 ESCAPE '!' OR p.display_name ILIKE $9 ESCAPE '!')
                     OR id IN (SELECT r.workload FROM run r WHERE r.site = $1 AND r.ended_at IS NULL AND r.pieces LIKE $11))
             ORDER BY number DESC LIMIT $7",
        ),
    };
    let text = filter.text.as_deref().map(str::trim);
    let text = text.filter(|text| !text.is_empty());
    select
        .bind(filter.site.0)
        .bind(filter.before.unwrap_or(i64::MAX as u64))
        .bind(filter.owner.map(|id| id.0))
        .bind(filter.project.map(|id| id.0))
        .bind(states)
        .bind(match is_live {
            true => i64::MIN,
            false => filter.since.map_or(i64::MIN, |at| at.as_microsecond()),
        })
        .bind(filter.limit)
        .bind(filter.class.map(|class| class.word().to_owned()))
        .bind(text.map(|text| format!("%{}%", escaped(text))))
        .bind(text.and_then(|text| text.parse::<i64>().ok()))
        .bind(filter.node.map(|node| format!("%{node}%")))
        .map(conn, workload)
        .await
}

/// Escapes a search text, so that it matches literally.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        if matches!(sign, '%' | '_' | '!') {
            escaped.push('!');
        }
        escaped.push(sign);
    }
    escaped
}

pub(crate) fn run(row: &Row) -> Result<Run> {
    let small = |column| {
        row.count(column)
            .map(|value| u32::try_from(value).unwrap_or(u32::MAX))
    };
    Ok(Run {
        id: RunId(row.get("id")?),
        workload: WorkloadId(row.get("workload")?),
        site: SiteId(row.get("site")?),
        task: small("task")?,
        attempt: small("attempt")?,
        wish: small("wish")? as usize,
        inside: row.get::<Option<Uuid>>("inside")?.map(ReservationId),
        kept_from: row.optional_moment("kept_from")?,
        lent_by: row.get::<Option<Uuid>>("lent_by")?.map(RunId),
        machine: row.get("machine")?,
        pieces: row.json("pieces")?,
        claims: row.json("claims")?,
        state: row.json("state")?,
        began: row.moment("began")?,
        until: row.moment("until")?,
        supervisor_until: row.optional_moment("supervisor_until")?,
        ended_at: row.optional_moment("ended_at")?,
        said: row.optional_parsed("said")?,
        version: row.count("version")?,
    })
}

/// A run's weight against quotas and budgets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weighs {
    pub gpus_milli: u64,
    pub cores_milli: u64,
}

pub async fn insert_run(conn: &mut Conn, new: &Run, weighs: Weighs) -> Result<()> {
    query(
        "INSERT INTO run (id, workload, site, task, attempt, wish, pieces, claims, state, gpus_milli, cores_milli,
             began, until, ended_at, version, inside, lent_by, machine, supervisor_until)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $13)",
    )
    .bind(new.id.0)
    .bind(new.workload.0)
    .bind(new.site.0)
    .bind(u64::from(new.task))
    .bind(u64::from(new.attempt))
    .bind(new.wish as u64)
    .bind(to_json(&new.pieces))
    .bind(to_json(&new.claims))
    .bind(to_json(&new.state))
    .bind(weighs.gpus_milli)
    .bind(weighs.cores_milli)
    .bind(new.began)
    .bind(new.until)
    .bind(new.ended_at)
    .bind(new.version)
    .bind(new.inside.map(|id| id.0))
    .bind(new.lent_by.map(|id| id.0))
    .bind(new.machine.as_deref())
    .execute(conn)
    .await?;
    Ok(())
}

/// Records that a run continues after its reservation: its own claims, and its weight from then on. Changes nothing if
/// somebody else changed the run since `version`.
pub async fn keep_run(conn: &mut Conn, new: &Run, weighs: Weighs, version: u64) -> Result<bool> {
    let changed = query(
        "UPDATE run SET until = $1, claims = $2, kept_from = $3, gpus_milli = $4, cores_milli = $5, version = version + 1,
             supervisor_until = CASE WHEN supervisor_until > $1 THEN supervisor_until ELSE $1 END
         WHERE id = $6 AND version = $7",
    )
    .bind(new.until)
    .bind(to_json(&new.claims))
    .bind(new.kept_from)
    .bind(weighs.gpus_milli)
    .bind(weighs.cores_milli)
    .bind(new.id.0)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

/// Writes a changed `ask` of a workload, such as one that is no longer inside a reservation.
pub async fn set_ask(conn: &mut Conn, of: &Workload) -> Result<()> {
    query("UPDATE workload SET ask = $1 WHERE id = $2")
        .bind(to_json(&of.ask))
        .bind(of.id.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// Writes the progress of a run, if nobody else changed it since `version`.
pub async fn update_run(conn: &mut Conn, new: &Run, version: u64) -> Result<bool> {
    let changed = query(
        "UPDATE run SET state = $1, until = $2, ended_at = $3, said = $4, version = version + 1,
             supervisor_until = CASE WHEN supervisor_until > $2 THEN supervisor_until ELSE $2 END
         WHERE id = $5 AND version = $6",
    )
    .bind(to_json(&new.state))
    .bind(new.until)
    .bind(new.ended_at)
    .bind(new.said.as_ref().map(berth_model::Text::as_str))
    .bind(new.id.0)
    .bind(version)
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

pub async fn get_run(conn: &mut Conn, id: RunId) -> Result<Option<Run>> {
    let row = query("SELECT * FROM run WHERE id = $1")
        .bind(id.0)
        .optional(conn)
        .await?;
    row.as_ref().map(run).transpose()
}

/// Records that the supervisor of a run received this deadline. Writes nothing if the run has another deadline by now,
/// which the supervisor may have received, too.
pub async fn note_deadline(conn: &mut Conn, id: RunId, until: Timestamp) -> Result<()> {
    query("UPDATE run SET supervisor_until = $1 WHERE id = $2 AND until = $1")
        .bind(until)
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// The live runs on a machine.
pub async fn live_runs_on(conn: &mut Conn, machine: &str) -> Result<Vec<Run>> {
    query("SELECT * FROM run WHERE machine = $1 AND ended_at IS NULL ORDER BY id")
        .bind(machine)
        .map(conn, run)
        .await
}

/// The live runs of a site.
pub async fn live_runs(conn: &mut Conn, site: SiteId) -> Result<Vec<Run>> {
    query("SELECT * FROM run WHERE site = $1 AND ended_at IS NULL ORDER BY id")
        .bind(site.0)
        .map(conn, run)
        .await
}

/// The live runs of a workload.
pub async fn live_runs_of(conn: &mut Conn, workload: WorkloadId) -> Result<Vec<Run>> {
    query("SELECT * FROM run WHERE workload = $1 AND ended_at IS NULL ORDER BY task")
        .bind(workload.0)
        .map(conn, run)
        .await
}

/// Enough for a page of workloads of a few tasks each.
const NEWEST_RUNS_MAX: u64 = 5000;

/// The live runs of these workloads, and the newest run of each workload without live ones; of a wide array, not all.
pub async fn newest_runs(conn: &mut Conn, workloads: Vec<WorkloadId>) -> Result<Vec<Run>> {
    if workloads.is_empty() {
        return Ok(Vec::new());
    }
    either(
        "SELECT r.* FROM json_each($1) v CROSS JOIN run r ON r.workload = unhex(v.value)
         WHERE r.ended_at IS NULL OR r.id = (SELECT n.id FROM run n WHERE n.workload = r.workload ORDER BY n.id DESC LIMIT 1)
         ORDER BY r.id DESC LIMIT $2",
        "SELECT r.* FROM run r WHERE r.workload = ANY($1) AND (r.ended_at IS NULL
             OR r.id = (SELECT n.id FROM run n WHERE n.workload = r.workload ORDER BY n.id DESC LIMIT 1))
         ORDER BY r.id DESC LIMIT $2",
    )
    .bind(workloads.iter().map(|id| id.0).collect::<Vec<_>>())
    .bind(NEWEST_RUNS_MAX)
    .map(conn, run)
    .await
}

/// The last runs of a workload, the newest first.
pub async fn runs_of(conn: &mut Conn, workload: WorkloadId, limit: u64) -> Result<Vec<Run>> {
    query("SELECT * FROM run WHERE workload = $1 ORDER BY id DESC LIMIT $2")
        .bind(workload.0)
        .bind(limit)
        .map(conn, run)
        .await
}

/// Number of a task's attempts.
pub async fn attempts(conn: &mut Conn, workload: WorkloadId, task: u32) -> Result<u32> {
    let row =
        query("SELECT coalesce(max(attempt), 0) AS n FROM run WHERE workload = $1 AND task = $2")
            .bind(workload.0)
            .bind(u64::from(task))
            .one(conn)
            .await?;
    Ok(u32::try_from(row.count("n")?).unwrap_or(u32::MAX))
}

/// GPUs and cores that live runs hold at this moment: of a site, or of one project or person in it.
pub async fn held(
    conn: &mut Conn,
    site: SiteId,
    project: Option<ProjectId>,
    person: Option<PersonId>,
) -> Result<Weighs> {
    let row = either(
        "SELECT coalesce(sum(r.gpus_milli), 0) AS gpus, coalesce(sum(r.cores_milli), 0) AS cores
         FROM run r JOIN workload w ON w.id = r.workload
         WHERE r.site = $1 AND r.ended_at IS NULL AND ($2 IS NULL OR w.project = $2) AND ($3 IS NULL OR w.owner = $3)",
        "SELECT CAST(coalesce(sum(r.gpus_milli), 0) AS BIGINT) AS gpus,
             CAST(coalesce(sum(r.cores_milli), 0) AS BIGINT) AS cores
         FROM run r JOIN workload w ON w.id = r.workload
         WHERE r.site = $1 AND r.ended_at IS NULL AND ($2::uuid IS NULL OR w.project = $2)
             AND ($3::uuid IS NULL OR w.owner = $3)",
    )
    .bind(site.0)
    .bind(project.map(|id| id.0))
    .bind(person.map(|id| id.0))
    .one(conn)
    .await?;
    Ok(Weighs {
        gpus_milli: row.count("gpus")?,
        cores_milli: row.count("cores")?,
    })
}

/// GPU time that ended runs have used since a moment, in thousandths of a GPU times microseconds.
pub async fn spent(
    conn: &mut Conn,
    site: SiteId,
    project: Option<ProjectId>,
    person: Option<PersonId>,
    since: Timestamp,
) -> Result<u128> {
    let mut spent: u128 = 0;
    either(
        "SELECT r.gpus_milli, max(0, r.ended_at - max(coalesce(r.kept_from, r.began), $4)) AS length
         FROM run r JOIN workload w ON w.id = r.workload
         WHERE r.site = $1 AND r.ended_at > $4 AND r.gpus_milli > 0 AND ($2 IS NULL OR w.project = $2)
             AND ($3 IS NULL OR w.owner = $3)",
        "SELECT r.gpus_milli, greatest(0, r.ended_at - greatest(coalesce(r.kept_from, r.began), $4)) AS length
         FROM run r JOIN workload w ON w.id = r.workload
         WHERE r.site = $1 AND r.ended_at > $4 AND r.gpus_milli > 0 AND ($2::uuid IS NULL OR w.project = $2)
             AND ($3::uuid IS NULL OR w.owner = $3)",
    )
    .bind(site.0)
    .bind(project.map(|id| id.0))
    .bind(person.map(|id| id.0))
    .bind(since)
    .each(conn, |row| {
        spent += u128::from(row.count("gpus_milli")?) * u128::from(row.count("length")?);
        Ok(())
    })
    .await?;
    Ok(spent)
}

/// GPU time that live runs will use at most, in thousandths of a GPU times microseconds.
pub async fn committed(
    conn: &mut Conn,
    site: SiteId,
    project: Option<ProjectId>,
    person: Option<PersonId>,
    now: Timestamp,
) -> Result<u128> {
    let mut committed: u128 = 0;
    either(
        "SELECT r.gpus_milli, max(0, max(r.until, $4) - coalesce(r.kept_from, r.began)) AS length
         FROM run r JOIN workload w ON w.id = r.workload
         WHERE r.site = $1 AND r.ended_at IS NULL AND r.gpus_milli > 0 AND ($2 IS NULL OR w.project = $2)
             AND ($3 IS NULL OR w.owner = $3)",
        "SELECT r.gpus_milli, greatest(0, greatest(r.until, $4) - coalesce(r.kept_from, r.began)) AS length
         FROM run r JOIN workload w ON w.id = r.workload
         WHERE r.site = $1 AND r.ended_at IS NULL AND r.gpus_milli > 0 AND ($2::uuid IS NULL OR w.project = $2)
             AND ($3::uuid IS NULL OR w.owner = $3)",
    )
    .bind(site.0)
    .bind(project.map(|id| id.0))
    .bind(person.map(|id| id.0))
    .bind(now)
    .each(conn, |row| {
        committed += u128::from(row.count("gpus_milli")?) * u128::from(row.count("length")?);
        Ok(())
    })
    .await?;
    Ok(committed)
}

/// The data of an ended run that fair shares and runtime predictions need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    pub owner: PersonId,
    pub project: Option<ProjectId>,
    pub began: Timestamp,
    /// When the run starts to count. Later than `began` if it began inside a reservation, which counts by itself.
    pub counts_from: Timestamp,
    pub ended: Timestamp,
    pub until: Timestamp,
    pub weighs: Weighs,
    pub state: RunState,
}

/// The runs of a site that ended after a moment, the oldest first.
pub async fn past(conn: &mut Conn, site: SiteId, since: Timestamp) -> Result<Vec<Past>> {
    query(
        "SELECT w.owner, w.project, r.began, coalesce(r.kept_from, r.began) AS counts_from, r.ended_at, r.until,
             r.gpus_milli, r.cores_milli, r.state
         FROM run r JOIN workload w ON w.id = r.workload
         WHERE r.site = $1 AND r.ended_at > $2 ORDER BY r.ended_at, r.id",
    )
    .bind(site.0)
    .bind(since)
    .map(conn, |row| {
        Ok(Past {
            owner: PersonId(row.get("owner")?),
            project: row.get::<Option<Uuid>>("project")?.map(ProjectId),
            began: row.moment("began")?,
            counts_from: row.moment("counts_from")?,
            ended: row.moment("ended_at")?,
            until: row.moment("until")?,
            weighs: Weighs {
                gpus_milli: row.count("gpus_milli")?,
                cores_milli: row.count("cores_milli")?,
            },
            state: row.json("state")?,
        })
    })
    .await
}

/// Records a forecast of a workload's start.
pub async fn insert_forecast(
    conn: &mut Conn,
    site: SiteId,
    workload: WorkloadId,
    made_at: Timestamp,
    starts: Timestamp,
) -> Result<()> {
    query(
        "INSERT INTO forecast (workload, made_at, site, starts) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
    )
    .bind(workload.0)
    .bind(made_at)
    .bind(site.0)
    .bind(starts)
    .execute(conn)
    .await?;
    Ok(())
}

/// Records the actual start for a workload's open forecasts.
pub async fn score_forecasts(
    conn: &mut Conn,
    workload: WorkloadId,
    began: Timestamp,
) -> Result<()> {
    query("UPDATE forecast SET began = $1 WHERE workload = $2 AND began IS NULL")
        .bind(began)
        .bind(workload.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// A forecast and the actual start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scored {
    pub made_at: Timestamp,
    pub starts: Timestamp,
    pub began: Timestamp,
}

/// Number of waiting workloads at all sites, and number of their running tasks.
pub async fn counts(conn: &mut Conn) -> Result<(u64, u64)> {
    let row = query(
        "SELECT (SELECT count(*) FROM workload WHERE ended_at IS NULL AND running = 0) AS waiting,
             (SELECT count(*) FROM run WHERE ended_at IS NULL) AS running",
    )
    .one(conn)
    .await?;
    Ok((row.count("waiting")?, row.count("running")?))
}

/// At most `limit` of a site's forecasts with an actual start after a moment, the newest first.
pub async fn scored(
    conn: &mut Conn,
    site: SiteId,
    since: Timestamp,
    limit: u64,
) -> Result<Vec<Scored>> {
    query(
        "SELECT made_at, starts, began FROM forecast WHERE site = $1 AND began > $2 ORDER BY began DESC LIMIT $3",
    )
    .bind(site.0)
    .bind(since)
    .bind(limit)
    .map(conn, |row| {
        Ok(Scored {
            made_at: row.moment("made_at")?,
            starts: row.moment("starts")?,
            began: row.moment("began")?,
        })
    })
    .await
}
