//! Many workloads at once, with everything that their making leaves behind: three statements, however many there are.
//!
//! People submit by the thousand. What they submit within the same moment is written by one transaction, and a
//! statement for each would cost most of it.

use berth_model::Workload;
use berth_model::audit::AuditEntry;
use berth_model::event::Event;
use serde::Serialize;
use uuid::Uuid;

use crate::audit::actor_columns;
use crate::error::Result;
use crate::events::audience_columns;
use crate::sql::{Conn, either, to_json};
use crate::words::Word;

/// A workload that nobody has worked on yet, and what is told of it.
#[derive(Debug, Clone)]
pub struct Submission {
    pub workload: Workload,
    pub entry: AuditEntry,
    pub event: Event,
}

#[derive(Serialize)]
struct Line<'a> {
    nth: usize,
    id: String,
    site: String,
    number: u64,
    owner: String,
    project: Option<String>,
    title: &'a str,
    ask: String,
    state: &'static str,
    waiting: String,
    since: i64,
    entry: String,
    actor_kind: &'static str,
    actor: Option<String>,
    origin: Option<&'a str>,
    action: &'a str,
    subject: &'a str,
    after: Option<String>,
    event: String,
    kind: &'static str,
    audience: &'static str,
    audience_person: Option<String>,
    data: String,
}

impl<'a> Line<'a> {
    fn new(nth: usize, of: &'a Submission) -> Line<'a> {
        let Submission {
            workload,
            entry,
            event,
        } = of;
        let hex = |id: Uuid| id.simple().to_string();
        let (actor_kind, actor) = actor_columns(entry.actor);
        let (audience, audience_person) = audience_columns(event.audience);
        Line {
            nth,
            id: hex(workload.id.0),
            site: hex(workload.site.0),
            number: workload.number,
            owner: hex(workload.owner.0),
            project: workload.project.map(|id| hex(id.0)),
            title: workload.ask.title.as_str(),
            ask: to_json(&workload.ask),
            state: workload.state.word(),
            waiting: workload.waiting.to_string(),
            since: workload.since.as_microsecond(),
            entry: hex(entry.id.0),
            actor_kind,
            actor: actor.map(hex),
            origin: entry.origin.as_deref(),
            action: &entry.action,
            subject: &entry.subject,
            after: entry.after.as_ref().map(ToString::to_string),
            event: hex(event.id.0),
            kind: event.kind.as_str(),
            audience,
            audience_person: audience_person.map(hex),
            data: event.data.to_string(),
        }
    }
}

pub async fn insert_all(conn: &mut Conn, all: &[Submission]) -> Result<()> {
    let lines = all.iter().enumerate();
    let lines: Vec<Line<'_>> = lines.map(|(nth, one)| Line::new(nth, one)).collect();
    let lines = to_json(&lines);
    either(
        "INSERT INTO workload (id, site, number, owner, project, title, ask, state, waiting, running, completed, failed,
             since, version)
         SELECT unhex(value ->> 'id'), unhex(value ->> 'site'), value ->> 'number', unhex(value ->> 'owner'),
             unhex(value ->> 'project'), value ->> 'title', value ->> 'ask', value ->> 'state', value ->> 'waiting',
             0, 0, 0, value ->> 'since', 1
         FROM json_each($1)",
        "INSERT INTO workload (id, site, number, owner, project, title, ask, state, waiting, running, completed, failed,
             since, version)
         SELECT id, site, number, owner, project, title, ask, state, waiting, 0, 0, 0, since, 1
         FROM json_to_recordset($1::json) AS line (nth bigint, id uuid, site uuid, number bigint, owner uuid, project uuid,
             title text, ask text, state text, waiting text, since bigint)
         ORDER BY nth",
    )
    .bind(lines.clone())
    .execute(conn)
    .await?;
    either(
        "INSERT INTO audit_entry (id, at, actor_kind, actor, origin, site, action, subject, before, after, reason)
         SELECT unhex(value ->> 'entry'), value ->> 'since', value ->> 'actor_kind', unhex(value ->> 'actor'),
             value ->> 'origin', unhex(value ->> 'site'), value ->> 'action', value ->> 'subject', NULL,
             value ->> 'after', NULL
         FROM json_each($1)",
        "INSERT INTO audit_entry (id, at, actor_kind, actor, origin, site, action, subject, before, after, reason)
         SELECT entry, since, actor_kind, actor, origin, site, action, subject, NULL, after, NULL
         FROM json_to_recordset($1::json) AS line (nth bigint, entry uuid, since bigint, actor_kind text, actor uuid,
             origin text, site uuid, action text, subject text, after text)
         ORDER BY nth",
    )
    .bind(lines.clone())
    .execute(conn)
    .await?;
    either(
        "INSERT INTO event (id, at, kind, site, subject, audience, audience_person, data)
         SELECT unhex(value ->> 'event'), value ->> 'since', value ->> 'kind', unhex(value ->> 'site'),
             value ->> 'subject', value ->> 'audience', unhex(value ->> 'audience_person'), value ->> 'data'
         FROM json_each($1)",
        "INSERT INTO event (id, at, kind, site, subject, audience, audience_person, data)
         SELECT event, since, kind, site, subject, audience, audience_person, data
         FROM json_to_recordset($1::json) AS line (nth bigint, event uuid, since bigint, kind text, site uuid, subject text,
             audience text, audience_person uuid, data text)
         ORDER BY nth",
    )
    .bind(lines)
    .execute(conn)
    .await?;
    Ok(())
}
