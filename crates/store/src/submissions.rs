//! Inserts many workloads at once, with their variables, audit entries and events, in a constant number of statements.
//!
//! People submit thousands of workloads. One transaction writes all submissions of the same moment, and one statement
//! per workload would be most of its cost.

use berth_model::Workload;
use berth_model::audit::AuditEntry;
use berth_model::event::Event;
use serde::Serialize;

use crate::error::Result;
use crate::sql::{Conn, either, hex, to_json};
use crate::traces::{self, Trace, digits};
use crate::variables::SealedVariables;
use crate::words::Word;

/// A new workload, with its audit entry and event.
#[derive(Debug, Clone)]
pub struct Submission {
    pub workload: Workload,
    /// Its environment variables, which are not in `ask`.
    pub variables: Option<SealedVariables>,
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
    key_id: Option<&'a str>,
    sealed: Option<String>,
    state: &'static str,
    waiting: String,
    since: i64,
    #[serde(flatten)]
    trace: Trace<'a>,
}

impl<'a> Line<'a> {
    fn new(nth: usize, of: &'a Submission) -> Line<'a> {
        let Submission {
            workload,
            variables,
            entry,
            event,
        } = of;
        Line {
            nth,
            id: digits(workload.id.0),
            site: digits(workload.site.0),
            number: workload.number,
            owner: digits(workload.owner.0),
            project: workload.project.map(|id| digits(id.0)),
            title: workload.ask.title.as_str(),
            ask: to_json(&workload.ask),
            key_id: variables.as_ref().map(|of| of.key_id.as_str()),
            sealed: variables.as_ref().map(|of| hex(&of.sealed)),
            state: workload.state.word(),
            waiting: workload.waiting.to_string(),
            since: workload.since.as_microsecond(),
            trace: Trace::new(entry, event),
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
    if all.iter().any(|one| one.variables.is_some()) {
        insert_variables(conn, lines.clone()).await?;
    }
    traces::insert_all(conn, lines).await
}

async fn insert_variables(conn: &mut Conn, lines: String) -> Result<()> {
    either(
        "INSERT INTO workload_variables (workload, key_id, sealed)
         SELECT unhex(value ->> 'id'), value ->> 'key_id', unhex(value ->> 'sealed')
         FROM json_each($1) WHERE value ->> 'sealed' IS NOT NULL",
        "INSERT INTO workload_variables (workload, key_id, sealed)
         SELECT id, key_id, decode(sealed, 'hex')
         FROM json_to_recordset($1::json) AS line (id uuid, key_id text, sealed text) WHERE sealed IS NOT NULL",
    )
    .bind(lines)
    .execute(conn)
    .await?;
    Ok(())
}
