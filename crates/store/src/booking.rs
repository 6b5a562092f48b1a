//! Everything a booking writes besides its claims, in one question to the database.
//!
//! A booking is the one thing that must be quick: its transaction is what others wait for, and each separate
//! statement costs a trip to the database and back. So the reservation, its first line of history, its audit entry
//! and its event go together. Everything else writes them one by one, through the functions of their own files.

use berth_model::audit::AuditEntry;
use berth_model::event::Event;
use berth_model::reservation::{HistoryEntry, Reservation};

use crate::audit::actor_columns;
use crate::error::Result;
use crate::events::audience_columns;
use crate::sql::{Conn, either, to_json};
use crate::words::Word;

pub async fn insert(
    conn: &mut Conn,
    new: &Reservation,
    history: &HistoryEntry,
    entry: &AuditEntry,
    event: &Event,
) -> Result<()> {
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
