//! What the database holds, read row by row with SQL of our own: the store's own functions are under test.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use berth_model::reservation::{Item, Reservation, State};
use berth_model::{Amount, Claim, ReservationId, ResourceId, SeriesId, Span, Status};
use jiff::Timestamp;

use super::known::{Content, Known};
use super::rows::{
    AuditRow, ClaimRow, EventRow, HeadRow, HistoryRow, KeyRow, Moved, Reader, ReservationRow,
    ResourceRow, SeriesRow, Table, span,
};

/// Everything that the sweep looks at.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    pub resources: BTreeMap<ResourceId, Place>,
    pub claims: Vec<Claim>,
    pub bookings: BTreeMap<ReservationId, Booking>,
    /// Every series, with the bookings that say they belong to it.
    pub series: BTreeMap<SeriesId, BTreeSet<ReservationId>>,
    pub events: Vec<Event>,
    /// The number that the last event has, as the store says.
    pub events_head: u64,
    /// What the idempotency keys stand for.
    pub keys: Vec<(String, String)>,
    pub moves: Vec<(ResourceId, Option<ResourceId>)>,
    pub statuses: Vec<(ResourceId, Status)>,
    /// What people made of bookings that waited for approval.
    pub decisions: Vec<(ReservationId, State)>,
    /// The lines of the resources' own status history.
    pub status_changes: u64,
}

/// Where a resource stands.
#[derive(Debug, Clone)]
pub struct Place {
    pub parent: Option<ResourceId>,
    pub capacity: Option<Amount>,
    pub status: Status,
}

/// A reservation with all that tells of it.
#[derive(Debug, Clone)]
pub struct Booking {
    pub now: Known,
    pub items: Vec<Item>,
    /// Its history: from, to, span.
    pub history: Vec<(Option<State>, State, Span)>,
    pub trail: Vec<Step>,
}

/// An audit entry of a reservation.
#[derive(Debug, Clone)]
pub struct Step {
    pub action: String,
    pub at: Timestamp,
    pub by_a_person: bool,
    pub before: Option<Known>,
    pub after: Known,
}

impl Step {
    /// Whether somebody decided here about what was asked.
    pub fn is_decision(&self) -> bool {
        let decides = ["reservation.approve", "reservation.reject"];
        self.by_a_person && decides.contains(&self.action.as_str())
    }
}

#[derive(Debug, Clone)]
pub struct Event {
    pub number: Option<u64>,
    pub kind: String,
    pub subject: String,
}

impl Stored {
    pub async fn read(url: &str) -> Result<Self> {
        let mut database = Reader::connect(url).await?;
        let mut stored = Self::default();
        stored.read_resources(&mut database).await?;
        stored.read_claims(&mut database).await?;
        stored.read_bookings(&mut database).await?;
        stored.read_audit(&mut database).await?;
        stored.read_events(&mut database).await?;
        Ok(stored)
    }

    async fn read_resources(&mut self, database: &mut Reader) -> Result<()> {
        let table = Table {
            name: "resource",
            ids: &["id", "parent"],
            columns: &["capacity", "status"],
            order: "id",
        };
        let into = &mut self.resources;
        database
            .each(table, |row: ResourceRow| {
                let place = Place {
                    parent: row.parent.map(ResourceId),
                    capacity: row.capacity.map(Amount::new).transpose()?,
                    status: serde_json::from_value(row.status.to_uppercase().into())?,
                };
                into.insert(ResourceId(row.id), place);
                Ok(())
            })
            .await?;
        let table = Table {
            name: "status_change",
            ids: &["id"],
            columns: &[],
            order: "id",
        };
        let lines = &mut self.status_changes;
        database
            .each(table, |_: serde_json::Value| {
                *lines += 1;
                Ok(())
            })
            .await
    }

    async fn read_claims(&mut self, database: &mut Reader) -> Result<()> {
        let table = Table {
            name: "claim",
            ids: &["id", "site", "resource", "container", "holder"],
            columns: &[
                "starts",
                "ends",
                "amount",
                "grace_us",
                "holder_kind",
                "standing",
            ],
            order: "id",
        };
        let into = &mut self.claims;
        database
            .each(table, |row: ClaimRow| {
                into.push(row.claim()?);
                Ok(())
            })
            .await
    }

    async fn read_bookings(&mut self, database: &mut Reader) -> Result<()> {
        let table = Table {
            name: "series",
            ids: &["id"],
            columns: &[],
            order: "id",
        };
        let series = &mut self.series;
        database
            .each(table, |row: SeriesRow| {
                series.insert(SeriesId(row.id), BTreeSet::new());
                Ok(())
            })
            .await?;
        let table = Table {
            name: "reservation",
            ids: &["id", "series"],
            columns: &["title", "state", "starts", "ends", "items", "version"],
            order: "id",
        };
        let into = &mut self.bookings;
        database
            .each(table, |row: ReservationRow| {
                let items: Vec<Item> = serde_json::from_str(&row.items)?;
                let id = ReservationId(row.id);
                if let Some(of) = row.series {
                    let of = series.get_mut(&SeriesId(of));
                    of.context("an instance of nothing")?.insert(id);
                }
                let now = Known {
                    id,
                    version: row.version,
                    state: state(&row.state)?,
                    content: Content {
                        title: row.title.parse()?,
                        span: span(row.starts, row.ends)?,
                        items: items
                            .iter()
                            .map(|item| (item.resource, item.take))
                            .collect(),
                    },
                };
                let booking = Booking {
                    now,
                    items,
                    history: Vec::new(),
                    trail: Vec::new(),
                };
                into.insert(id, booking);
                Ok(())
            })
            .await?;
        let table = Table {
            name: "reservation_history",
            ids: &["reservation"],
            columns: &["from_state", "to_state", "starts", "ends"],
            order: "ord",
        };
        database
            .each(table, |row: HistoryRow| {
                let from = row.from_state.as_deref().map(state).transpose()?;
                let line = (from, state(&row.to_state)?, span(row.starts, row.ends)?);
                let booking = into.get_mut(&ReservationId(row.reservation));
                booking.context("a history of nothing")?.history.push(line);
                Ok(())
            })
            .await
    }

    async fn read_audit(&mut self, database: &mut Reader) -> Result<()> {
        let table = Table {
            name: "audit_entry",
            ids: &[],
            columns: &["at", "actor_kind", "action", "subject", "before", "after"],
            order: "number",
        };
        database
            .each(table, |row: AuditRow| self.take_audit(row))
            .await
    }

    fn take_audit(&mut self, row: AuditRow) -> Result<()> {
        let after = row.after.as_deref().unwrap_or("null");
        match row.action.as_str() {
            "resource.move" => {
                let moved: Moved = serde_json::from_str(after)?;
                self.moves.push((row.subject.parse()?, moved.parent));
            }
            "resource.status" => {
                let status = serde_json::from_str(after)?;
                self.statuses.push((row.subject.parse()?, status));
            }
            action if action.starts_with("reservation.") => {
                let reservation =
                    |text: &str| -> Result<Reservation> { Ok(serde_json::from_str(text)?) };
                let before = row.before.as_deref().map(reservation).transpose()?;
                let step = Step {
                    action: row.action,
                    at: Timestamp::from_microsecond(row.at)?,
                    by_a_person: row.actor_kind == "person",
                    before: before.as_ref().map(Known::from),
                    after: Known::from(&reservation(after)?),
                };
                let id = row.subject.parse()?;
                if step.is_decision() {
                    self.decisions.push((id, step.after.state));
                }
                let booking = self.bookings.get_mut(&id);
                booking
                    .with_context(|| format!("the audit log tells of {}", row.subject))?
                    .trail
                    .push(step);
            }
            _ => {}
        }
        Ok(())
    }

    async fn read_events(&mut self, database: &mut Reader) -> Result<()> {
        let table = Table {
            name: "event",
            ids: &[],
            columns: &["number", "kind", "subject"],
            order: "number",
        };
        let into = &mut self.events;
        database
            .each(table, |row: EventRow| {
                into.push(Event {
                    number: row.number,
                    kind: row.kind,
                    subject: row.subject,
                });
                Ok(())
            })
            .await?;
        let (head, _) = heads(database).await?;
        self.events_head = head;
        let table = Table {
            name: "idempotency",
            ids: &[],
            columns: &["key", "subject"],
            order: "key",
        };
        let into = &mut self.keys;
        database
            .each(table, |row: KeyRow| {
                into.push((row.key, row.subject));
                Ok(())
            })
            .await
    }
}

/// The number of the last event, and whether any event or audit entry still waits for its number.
pub async fn numbered(url: &str) -> Result<(u64, bool)> {
    heads(&mut Reader::connect(url).await?).await
}

async fn heads(database: &mut Reader) -> Result<(u64, bool)> {
    let mut head = 0;
    let table = Table {
        name: "sequence_head",
        ids: &[],
        columns: &["name", "number"],
        order: "name",
    };
    database
        .each(table, |row: HeadRow| {
            if row.name == "event" {
                head = row.number;
            }
            Ok(())
        })
        .await?;
    let mut waiting = false;
    for name in [
        "event WHERE number IS NULL",
        "audit_entry WHERE number IS NULL",
    ] {
        let table = Table {
            name,
            ids: &[],
            columns: &["ord"],
            order: "ord LIMIT 1",
        };
        database
            .each(table, |_: serde_json::Value| {
                waiting = true;
                Ok(())
            })
            .await?;
    }
    Ok((head, waiting))
}

fn state(word: &str) -> Result<State> {
    Ok(serde_json::from_value(word.into())?)
}
