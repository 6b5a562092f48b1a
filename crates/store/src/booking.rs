//! Everything a booking writes besides its claims, in one round trip to the database.
//!
//! A booking must be quick: other transactions wait for it, and each separate statement costs a round trip. So the
//! reservation, its first history entry, its audit entry and its event go together. The bookings that move to make room
//! for it are written the same way. All other changes write these rows one by one, through the functions of their own
//! files.

use berth_model::audit::AuditEntry;
use berth_model::event::Event;
use berth_model::reservation::{HistoryEntry, Reservation};
use serde::Serialize;

use crate::audit::actor_columns;
use crate::error::Result;
use crate::events::audience_columns;
use crate::reservations::occurrence_columns;
use crate::sql::{Conn, either, to_json};
use crate::traces::{self, Trace, digits};
use crate::words::Word;

/// A reservation with the records that its creation or its move writes.
#[derive(Debug, Clone)]
pub struct Booking {
    pub reservation: Reservation,
    pub history: HistoryEntry,
    pub entry: AuditEntry,
    pub event: Event,
}

pub async fn insert(conn: &mut Conn, booking: &Booking) -> Result<()> {
    let Booking {
        reservation: new,
        history,
        entry,
        event,
    } = booking;
    let (actor_kind, actor) = actor_columns(entry.actor);
    let (audience, audience_person) = audience_columns(event.audience);
    either(
        "INSERT INTO reservation (id, site, owner, project, title, privacy, state, state_reason, starts, ends, items,
             parameters, version, created_at, updated_at, due_at, terms, movable_until)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $32, $33);
         INSERT INTO reservation_history (reservation, at, from_state, to_state, starts, ends, changed_by, reason)
         VALUES ($1, $17, NULL, $7, $9, $10, $18, $19);
         INSERT INTO audit_entry (id, at, actor_kind, actor, origin, site, action, subject, before, after, reason)
         VALUES ($20, $17, $21, $22, $23, $2, $24, $25, NULL, $26, $19);
         INSERT INTO event (id, at, kind, site, subject, audience, audience_person, data)
         VALUES ($27, $17, $28, $2, $25, $29, $30, $31)",
        "WITH made AS (
             INSERT INTO reservation (id, site, owner, project, title, privacy, state, state_reason, starts, ends, items,
                 parameters, version, created_at, updated_at, due_at, terms, movable_until)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $32, $33)),
         told AS (
             INSERT INTO reservation_history (reservation, at, from_state, to_state, starts, ends, changed_by, reason)
             VALUES ($1, $17, NULL, $7, $9, $10, $18, $19)),
         noted AS (
             INSERT INTO audit_entry (id, at, actor_kind, actor, origin, site, action, subject, before, after, reason)
             VALUES ($20, $17, $21, $22, $23, $2, $24, $25, NULL, $26, $19))
         INSERT INTO event (id, at, kind, site, subject, audience, audience_person, data)
         VALUES ($27, $17, $28, $2, $25, $29, $30, $31)",
    )
    .bind(new.id.0)
    .bind(new.site.0)
    .bind(new.owner.0)
    .bind(new.project.map(|id| id.0))
    .bind(new.title.as_str())
    .bind(new.privacy.word())
    .bind(new.state.word())
    .bind(new.state_reason.as_ref().map(|text| text.as_str()))
    .bind(new.span.start())
    .bind(new.span.end())
    .bind(to_json(&new.items))
    .bind(to_json(&new.parameters))
    .bind(new.version)
    .bind(new.created_at)
    .bind(new.updated_at)
    .bind(new.state.next_due(new.span, &new.terms))
    .bind(history.at)
    .bind(history.by.map(|by| by.0))
    .bind(history.reason.as_ref().map(|text| text.as_str()))
    .bind(entry.id.0)
    .bind(actor_kind)
    .bind(actor)
    .bind(entry.origin.clone())
    .bind(entry.action.as_str())
    .bind(entry.subject.as_str())
    .bind(entry.after.as_ref().map(|value| value.to_string()))
    .bind(event.id.0)
    .bind(event.kind.as_str())
    .bind(audience)
    .bind(audience_person)
    .bind(event.data.to_string())
    .bind(to_json(&new.terms))
    .bind(new.movable_until())
    .execute(conn)
    .await?;
    Ok(())
}

/// One booking as a row of JSON.
#[derive(Serialize)]
struct Line<'a> {
    nth: usize,
    id: String,
    site: String,
    owner: String,
    project: Option<String>,
    title: &'a str,
    privacy: &'static str,
    state: &'static str,
    state_reason: Option<&'a str>,
    starts: i64,
    ends: i64,
    items: String,
    parameters: String,
    version: u64,
    created_at: i64,
    updated_at: i64,
    due_at: Option<i64>,
    terms: String,
    series: Option<String>,
    occurrence: Option<String>,
    differs: bool,
    movable_until: Option<i64>,
    from_state: Option<&'static str>,
    changed_by: Option<String>,
    #[serde(flatten)]
    trace: Trace<'a>,
}

impl<'a> Line<'a> {
    fn new(nth: usize, booking: &'a Booking) -> Self {
        let Booking {
            reservation: new,
            history,
            entry,
            event,
        } = booking;
        let (series, occurrence, differs) = occurrence_columns(new.occurrence);
        let due_at = new.state.next_due(new.span, &new.terms);
        Self {
            nth,
            id: digits(new.id.0),
            site: digits(new.site.0),
            owner: digits(new.owner.0),
            project: new.project.map(|id| digits(id.0)),
            title: new.title.as_str(),
            privacy: new.privacy.word(),
            state: new.state.word(),
            state_reason: new.state_reason.as_ref().map(|text| text.as_str()),
            starts: new.span.start().as_microsecond(),
            ends: new.span.end().as_microsecond(),
            items: to_json(&new.items),
            parameters: to_json(&new.parameters),
            version: new.version,
            created_at: new.created_at.as_microsecond(),
            updated_at: new.updated_at.as_microsecond(),
            due_at: due_at.map(|at| at.as_microsecond()),
            terms: to_json(&new.terms),
            series: series.map(digits),
            occurrence,
            differs,
            movable_until: new.movable_until().map(|at| at.as_microsecond()),
            from_state: history.from.map(Word::word),
            changed_by: history.by.map(|by| digits(by.0)),
            // The history entry and the audit entry have the same moment and the same reason.
            trace: Trace::new(entry, event).together_with(history.at, history.reason.as_ref()),
        }
    }
}

fn lines(bookings: &[Booking]) -> String {
    let lines = bookings.iter().enumerate();
    to_json(
        &lines
            .map(|(nth, one)| Line::new(nth, one))
            .collect::<Vec<_>>(),
    )
}

/// Inserts many bookings at once, such as the instances of a series. It takes two statements, however many bookings
/// there are.
pub async fn insert_all(conn: &mut Conn, bookings: &[Booking]) -> Result<()> {
    let lines = lines(bookings);
    either(
        "INSERT INTO reservation (id, site, owner, project, title, privacy, state, state_reason, starts, ends, items,
             parameters, version, created_at, updated_at, due_at, terms, series, occurrence, differs, movable_until)
         SELECT unhex(value ->> 'id'), unhex(value ->> 'site'), unhex(value ->> 'owner'), unhex(value ->> 'project'),
             value ->> 'title', value ->> 'privacy', value ->> 'state', value ->> 'state_reason', value ->> 'starts',
             value ->> 'ends', value ->> 'items', value ->> 'parameters', value ->> 'version', value ->> 'created_at',
             value ->> 'updated_at', value ->> 'due_at', value ->> 'terms', unhex(value ->> 'series'),
             value ->> 'occurrence', value ->> 'differs', value ->> 'movable_until'
         FROM json_each($1)",
        "INSERT INTO reservation (id, site, owner, project, title, privacy, state, state_reason, starts, ends, items,
             parameters, version, created_at, updated_at, due_at, terms, series, occurrence, differs, movable_until)
         SELECT id, site, owner, project, title, privacy, state, state_reason, starts, ends, items, parameters, version,
             created_at, updated_at, due_at, terms, series, occurrence, differs, movable_until
         FROM json_to_recordset($1::json) AS line (nth bigint, id uuid, site uuid, owner uuid, project uuid, title text,
             privacy text, state text, state_reason text, starts bigint, ends bigint, items text, parameters text,
             version bigint, created_at bigint, updated_at bigint, due_at bigint, terms text, series uuid,
             occurrence text, differs boolean, movable_until bigint)
         ORDER BY nth",
    )
    .bind(lines.clone())
    .execute(conn)
    .await?;
    leave_behind(conn, lines).await
}

/// Moves bookings to other resources; nothing else about them changes. This transaction has locked them
/// ([`crate::reservations::all_locked`]), so their versions need no second check.
pub async fn move_all(conn: &mut Conn, moved: &[Booking]) -> Result<()> {
    let lines = lines(moved);
    either(
        "UPDATE reservation SET items = value ->> 'items', updated_at = value ->> 'updated_at',
             version = value ->> 'version'
         FROM json_each($1) WHERE reservation.id = unhex(value ->> 'id')",
        "UPDATE reservation SET items = line.items, updated_at = line.updated_at, version = line.version
         FROM json_to_recordset($1::json) AS line (id uuid, items text, updated_at bigint, version bigint)
         WHERE reservation.id = line.id",
    )
    .bind(lines.clone())
    .execute(conn)
    .await?;
    leave_behind(conn, lines).await
}

/// Writes the history entry, the audit entry and the event of each booking.
async fn leave_behind(conn: &mut Conn, lines: String) -> Result<()> {
    either(
        "INSERT INTO reservation_history (reservation, at, from_state, to_state, starts, ends, changed_by, reason)
         SELECT unhex(value ->> 'id'), value ->> 'at', value ->> 'from_state', value ->> 'state', value ->> 'starts',
             value ->> 'ends', unhex(value ->> 'changed_by'), value ->> 'reason'
         FROM json_each($1)",
        "INSERT INTO reservation_history (reservation, at, from_state, to_state, starts, ends, changed_by, reason)
         SELECT id, at, from_state, state, starts, ends, changed_by, reason
         FROM json_to_recordset($1::json) AS line (nth bigint, id uuid, at bigint, from_state text, state text,
             starts bigint, ends bigint, changed_by uuid, reason text)
         ORDER BY nth",
    )
    .bind(lines.clone())
    .execute(conn)
    .await?;
    traces::insert_all(conn, lines).await
}
