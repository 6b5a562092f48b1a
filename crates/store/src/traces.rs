//! The audit entries and events of many changes at once, in one round trip to the database.

use berth_model::Text;
use berth_model::audit::AuditEntry;
use berth_model::event::Event;
use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use crate::audit::actor_columns;
use crate::error::Result;
use crate::events::audience_columns;
use crate::sql::{Conn, either};

/// The audit entry and the event of one change, as part of a row of JSON that also has its `nth` position and its
/// `site`. Identifiers are 32 hex digits, which both databases read. JSON columns are passed as text, so that no byte
/// of them changes.
#[derive(Serialize)]
pub(crate) struct Trace<'a> {
    at: i64,
    entry: String,
    actor_kind: &'static str,
    actor: Option<String>,
    origin: Option<&'a str>,
    action: &'a str,
    subject: &'a str,
    before: Option<String>,
    after: Option<String>,
    reason: Option<&'a str>,
    event: String,
    kind: &'static str,
    audience: &'static str,
    audience_person: Option<String>,
    data: String,
}

pub(crate) fn digits(id: Uuid) -> String {
    id.simple().to_string()
}

impl<'a> Trace<'a> {
    pub fn new(entry: &'a AuditEntry, event: &'a Event) -> Self {
        let (actor_kind, actor) = actor_columns(entry.actor);
        let (audience, audience_person) = audience_columns(event.audience);
        Self {
            at: entry.at.as_microsecond(),
            entry: digits(entry.id.0),
            actor_kind,
            actor: actor.map(digits),
            origin: entry.origin.as_deref(),
            action: &entry.action,
            subject: &entry.subject,
            before: entry.before.as_ref().map(ToString::to_string),
            after: entry.after.as_ref().map(ToString::to_string),
            reason: entry.reason.as_ref().map(|text| text.as_str()),
            event: digits(event.id.0),
            kind: event.kind.as_str(),
            audience,
            audience_person: audience_person.map(digits),
            data: event.data.to_string(),
        }
    }

    /// The same, with the moment and the reason of another record of the change.
    pub fn together_with(self, at: Timestamp, reason: Option<&'a Text>) -> Self {
        Self {
            at: at.as_microsecond(),
            reason: reason.map(Text::as_str),
            ..self
        }
    }
}

pub(crate) async fn insert_all(conn: &mut Conn, lines: String) -> Result<()> {
    either(
        "INSERT INTO audit_entry (id, at, actor_kind, actor, origin, site, action, subject, before, after, reason)
         SELECT unhex(value ->> 'entry'), value ->> 'at', value ->> 'actor_kind', unhex(value ->> 'actor'),
             value ->> 'origin', unhex(value ->> 'site'), value ->> 'action', value ->> 'subject', value ->> 'before',
             value ->> 'after', value ->> 'reason'
         FROM json_each($1);
         INSERT INTO event (id, at, kind, site, subject, audience, audience_person, data)
         SELECT unhex(value ->> 'event'), value ->> 'at', value ->> 'kind', unhex(value ->> 'site'),
             value ->> 'subject', value ->> 'audience', unhex(value ->> 'audience_person'), value ->> 'data'
         FROM json_each($1)",
        "WITH line AS MATERIALIZED (
             SELECT * FROM json_to_recordset($1::json) AS v (nth bigint, site uuid, at bigint, entry uuid, actor_kind text,
                 actor uuid, origin text, action text, subject text, before text, after text, reason text, event uuid,
                 kind text, audience text, audience_person uuid, data text)),
         noted AS (
             INSERT INTO audit_entry (id, at, actor_kind, actor, origin, site, action, subject, before, after, reason)
             SELECT entry, at, actor_kind, actor, origin, site, action, subject, before, after, reason
             FROM line ORDER BY nth)
         INSERT INTO event (id, at, kind, site, subject, audience, audience_person, data)
         SELECT event, at, kind, site, subject, audience, audience_person, data FROM line ORDER BY nth",
    )
    .bind(lines)
    .execute(conn)
    .await?;
    Ok(())
}
