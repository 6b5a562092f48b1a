//! Reservations and their history. A state changes only by a [`Transition`], and only from that transition's start
//! state.

use berth_model::reservation::{HistoryEntry, Reservation, State, Transition};
use berth_model::{
    Occurrence, PersonId, ProjectId, ReservationId, ResourceId, SeriesId, SiteId, Span, Text,
};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::sql::{Conn, Row, either, query, to_json};
use crate::words::Word;

pub(crate) fn reservation(row: &Row) -> Result<Reservation> {
    Ok(Reservation {
        id: ReservationId(row.get("id")?),
        site: SiteId(row.get("site")?),
        owner: PersonId(row.get("owner")?),
        project: row.get::<Option<Uuid>>("project")?.map(ProjectId),
        title: row.parsed("title")?,
        privacy: row.word("privacy")?,
        state: row.word("state")?,
        state_reason: row.optional_parsed("state_reason")?,
        span: Span::new(row.moment("starts")?, row.moment("ends")?)
            .map_err(|error| Error::Corrupt(error.to_string()))?,
        items: row.json("items")?,
        parameters: row.json("parameters")?,
        terms: row.json("terms")?,
        occurrence: occurrence(row)?,
        version: row.count("version")?,
        created_at: row.moment("created_at")?,
        updated_at: row.moment("updated_at")?,
    })
}

fn occurrence(row: &Row) -> Result<Option<Occurrence>> {
    let Some(series) = row.get::<Option<Uuid>>("series")? else {
        return Ok(None);
    };
    Ok(Some(Occurrence {
        series: SeriesId(series),
        start: row.parsed("occurrence")?,
        differs: row.get("differs")?,
    }))
}

/// The three columns of an occurrence.
pub(crate) fn occurrence_columns(
    occurrence: Option<Occurrence>,
) -> (Option<Uuid>, Option<String>, bool) {
    (
        occurrence.map(|occurrence| occurrence.series.0),
        occurrence.map(|occurrence| occurrence.start.to_string()),
        occurrence.is_some_and(|occurrence| occurrence.differs),
    )
}

/// Writes all fields but the state, if nobody changed the reservation since `version`.
pub async fn update(conn: &mut Conn, new: &Reservation, version: u64) -> Result<bool> {
    let (series, occurrence, differs) = occurrence_columns(new.occurrence);
    let changed = query(
        "UPDATE reservation SET owner = $1, project = $2, title = $3, privacy = $4, starts = $5, ends = $6, items = $7,
             parameters = $8, updated_at = $9, due_at = $10, terms = $11, movable_until = $12, series = $13,
             occurrence = $14, differs = $15, version = version + 1
         WHERE id = $16 AND version = $17 AND state = $18",
    )
    .bind(new.owner.0)
    .bind(new.project.map(|id| id.0))
    .bind(new.title.as_str())
    .bind(new.privacy.word())
    .bind(new.span.start())
    .bind(new.span.end())
    .bind(to_json(&new.items))
    .bind(to_json(&new.parameters))
    .bind(new.updated_at)
    .bind(new.state.next_due(new.span, &new.terms))
    .bind(to_json(&new.terms))
    .bind(new.movable_until())
    .bind(series)
    .bind(occurrence)
    .bind(differs)
    .bind(new.id.0)
    .bind(version)
    .bind(new.state.word())
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

/// Changes the state by compare-and-set on state and version. Returns whether it did. `after` is the reservation after
/// the transition; only the fields that a transition may change are written.
pub async fn apply(
    conn: &mut Conn,
    transition: Transition,
    after: &Reservation,
    version: u64,
) -> Result<bool> {
    let changed = query(
        "UPDATE reservation SET state = $1, state_reason = $2, starts = $3, ends = $4, updated_at = $5, due_at = $6,
             terms = $7, movable_until = $8, items = $9, version = version + 1
         WHERE id = $10 AND version = $11 AND state = $12",
    )
    .bind(transition.to().word())
    .bind(after.state_reason.as_ref().map(Text::as_str))
    .bind(after.span.start())
    .bind(after.span.end())
    .bind(after.updated_at)
    .bind(transition.to().next_due(after.span, &after.terms))
    .bind(to_json(&after.terms))
    .bind(after.movable_until())
    .bind(to_json(&after.items))
    .bind(after.id.0)
    .bind(version)
    .bind(transition.from().word())
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

pub async fn insert_history(conn: &mut Conn, entry: &HistoryEntry) -> Result<()> {
    query(
        "INSERT INTO reservation_history (reservation, at, from_state, to_state, starts, ends, changed_by, reason)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(entry.reservation.0)
    .bind(entry.at)
    .bind(entry.from.map(Word::word))
    .bind(entry.to.word())
    .bind(entry.span.start())
    .bind(entry.span.end())
    .bind(entry.by.map(|by| by.0))
    .bind(entry.reason.as_ref().map(Text::as_str))
    .execute(conn)
    .await?;
    Ok(())
}

fn history_entry(row: &Row) -> Result<HistoryEntry> {
    Ok(HistoryEntry {
        reservation: ReservationId(row.get("reservation")?),
        at: row.moment("at")?,
        from: row.optional_word("from_state")?,
        to: row.word("to_state")?,
        span: Span::new(row.moment("starts")?, row.moment("ends")?)
            .map_err(|error| Error::Corrupt(error.to_string()))?,
        by: row.get::<Option<Uuid>>("changed_by")?.map(PersonId),
        reason: row.optional_parsed("reason")?,
    })
}

/// The history of a reservation. Each version has one entry, in order: the first belongs to version 1.
pub async fn history(conn: &mut Conn, id: ReservationId) -> Result<Vec<HistoryEntry>> {
    query("SELECT * FROM reservation_history WHERE reservation = $1 ORDER BY ord")
        .bind(id.0)
        .map(conn, history_entry)
        .await
}

/// The history of several reservations, each one's entries in order.
pub async fn histories(conn: &mut Conn, ids: &[ReservationId]) -> Result<Vec<HistoryEntry>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    either(
        "SELECT * FROM reservation_history WHERE reservation IN (SELECT unhex(value) FROM json_each($1))
         ORDER BY reservation, ord",
        "SELECT * FROM reservation_history WHERE reservation = ANY($1) ORDER BY reservation, ord",
    )
    .bind(ids.iter().map(|id| id.0).collect::<Vec<_>>())
    .map(conn, history_entry)
    .await
}

/// Reservations by id, at any site. Unknown ids are left out.
pub async fn of_ids(conn: &mut Conn, ids: &[ReservationId]) -> Result<Vec<Reservation>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    either(
        "SELECT * FROM reservation WHERE id IN (SELECT unhex(value) FROM json_each($1)) ORDER BY starts, id",
        "SELECT * FROM reservation WHERE id = ANY($1) ORDER BY starts, id",
    )
    .bind(ids.iter().map(|id| id.0).collect::<Vec<_>>())
    .map(conn, reservation)
    .await
}

pub async fn get(conn: &mut Conn, site: SiteId, id: ReservationId) -> Result<Option<Reservation>> {
    let row = query("SELECT * FROM reservation WHERE id = $1 AND site = $2")
        .bind(id.0)
        .bind(site.0)
        .optional(conn)
        .await?;
    row.as_ref().map(reservation).transpose()
}

/// The reservation, locked until the transaction ends.
pub async fn get_locked(
    conn: &mut Conn,
    site: SiteId,
    id: ReservationId,
) -> Result<Option<Reservation>> {
    let row = either(
        "SELECT * FROM reservation WHERE id = $1 AND site = $2",
        "SELECT * FROM reservation WHERE id = $1 AND site = $2 FOR UPDATE",
    )
    .bind(id.0)
    .bind(site.0)
    .optional(conn)
    .await?;
    row.as_ref().map(reservation).transpose()
}

/// These reservations of a site, by id, locked until the transaction ends. Unknown ones are left out.
pub async fn all_locked(
    conn: &mut Conn,
    site: SiteId,
    ids: Vec<ReservationId>,
) -> Result<Vec<Reservation>> {
    either(
        "SELECT * FROM reservation WHERE id IN (SELECT unhex(value) FROM json_each($1)) AND site = $2 ORDER BY id",
        "SELECT * FROM reservation WHERE id = ANY($1) AND site = $2 ORDER BY id FOR UPDATE",
    )
    .bind(ids.iter().map(|id| id.0).collect::<Vec<_>>())
    .bind(site.0)
    .map(conn, reservation)
    .await
}

/// The instances of a series in any state, by start.
pub async fn of_series(conn: &mut Conn, series: SeriesId) -> Result<Vec<Reservation>> {
    query("SELECT * FROM reservation WHERE series = $1 ORDER BY starts, id")
        .bind(series.0)
        .map(conn, reservation)
        .await
}

/// The instances of a series in any state, by start, locked until the transaction ends.
pub async fn of_series_locked(conn: &mut Conn, series: SeriesId) -> Result<Vec<Reservation>> {
    either(
        "SELECT * FROM reservation WHERE series = $1 ORDER BY starts, id",
        "SELECT * FROM reservation WHERE series = $1 ORDER BY starts, id FOR UPDATE",
    )
    .bind(series.0)
    .map(conn, reservation)
    .await
}

/// Selects the reservations to list. An empty field does not filter.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub site: Option<SiteId>,
    pub owner: Option<PersonId>,
    pub project: Option<ProjectId>,
    /// With a claim on this very resource, now or in the past.
    pub resource: Option<ResourceId>,
    pub states: Vec<State>,
    /// Ends after this moment.
    pub from: Option<Timestamp>,
    /// Starts before this moment.
    pub to: Option<Timestamp>,
    /// The page begins after this start and id.
    pub after: Option<(Timestamp, ReservationId)>,
    pub limit: u64,
}

/// Reservations by start. Each main filter has a statement of its own, so that it uses its index; the other conditions
/// filter.
pub async fn list(conn: &mut Conn, filter: &Filter) -> Result<Vec<Reservation>> {
    let states: Vec<String> = filter
        .states
        .iter()
        .map(|state| state.word().to_owned())
        .collect();
    let (after_start, after_id) = match filter.after {
        Some((start, id)) => (start.as_microsecond(), id.0),
        None => (i64::MIN, Uuid::nil()),
    };
    let select = match filter.owner {
        Some(owner) => either(
            "SELECT * FROM reservation WHERE owner = $1 AND ($2 IS NULL OR site = $2) AND ($3 IS NULL OR project = $3)
               AND ($4 = '[]' OR state IN (SELECT value FROM json_each($4))) AND ends > $5 AND starts < $6
               AND (starts, id) > ($7, $8)
               AND ($10 IS NULL OR id IN (SELECT holder FROM claim WHERE resource = $10 AND standing <> 'void')) ORDER BY starts, id LIMIT $9",
            "SELECT * FROM reservation WHERE owner = $1 AND ($2::uuid IS NULL OR site = $2) AND ($3::uuid IS NULL OR project = $3)
               AND ($4::text[] = '{}' OR state = ANY($4)) AND ends > $5 AND starts < $6
               AND (starts, id) > ($7, $8)
               AND ($10::uuid IS NULL OR id IN (SELECT holder FROM claim WHERE resource = $10 AND standing <> 'void')) ORDER BY starts, id LIMIT $9",
        )
        .bind(owner.0)
        .bind(filter.site.map(|id| id.0)),
        None => either(
            "SELECT * FROM reservation WHERE ($1 IS NULL OR owner = $1) AND site = $2 AND ($3 IS NULL OR project = $3)
               AND ($4 = '[]' OR state IN (SELECT value FROM json_each($4))) AND ends > $5 AND starts < $6
               AND (starts, id) > ($7, $8)
               AND ($10 IS NULL OR id IN (SELECT holder FROM claim WHERE resource = $10 AND standing <> 'void')) ORDER BY starts, id LIMIT $9",
            "SELECT * FROM reservation WHERE ($1::uuid IS NULL OR owner = $1) AND site = $2 AND ($3::uuid IS NULL OR project = $3)
               AND ($4::text[] = '{}' OR state = ANY($4)) AND ends > $5 AND starts < $6
               AND (starts, id) > ($7, $8)
               AND ($10::uuid IS NULL OR id IN (SELECT holder FROM claim WHERE resource = $10 AND standing <> 'void')) ORDER BY starts, id LIMIT $9",
        )
        .bind(None::<Uuid>)
        .bind(filter.site.map(|id| id.0)),
    };
    select
        .bind(filter.project.map(|id| id.0))
        .bind(states)
        .bind(filter.from.map_or(i64::MIN, |at| at.as_microsecond()))
        .bind(filter.to.map_or(i64::MAX, |at| at.as_microsecond()))
        .bind(after_start)
        .bind(after_id)
        .bind(filter.limit)
        .bind(filter.resource.map(|id| id.0))
        .map(conn, reservation)
        .await
}

/// Reservations that overlap this span and may still move to other resources of the same type, by start.
pub async fn movable(
    conn: &mut Conn,
    site: SiteId,
    during: Span,
    now: Timestamp,
    limit: u64,
) -> Result<Vec<Reservation>> {
    query(
        "SELECT * FROM reservation
         WHERE site = $1 AND movable_until > $2 AND starts < $3 AND ends > $4 ORDER BY starts, id LIMIT $5",
    )
    .bind(site.0)
    .bind(now)
    .bind(during.end())
    .bind(during.start())
    .bind(limit)
    .map(conn, reservation)
    .await
}

/// The waitlist of a site, or of all sites, in order of arrival.
pub async fn waiting(
    conn: &mut Conn,
    site: Option<SiteId>,
    limit: u64,
) -> Result<Vec<Reservation>> {
    either(
        "SELECT * FROM reservation WHERE state = 'waiting' AND ($1 IS NULL OR site = $1) ORDER BY created_at, id LIMIT $2",
        "SELECT * FROM reservation WHERE state = 'waiting' AND ($1::uuid IS NULL OR site = $1)
         ORDER BY created_at, id LIMIT $2",
    )
    .bind(site.map(|id| id.0))
    .bind(limit)
    .map(conn, reservation)
    .await
}

/// Reservations with a due transition, the most overdue first.
pub async fn due(conn: &mut Conn, now: Timestamp, limit: u64) -> Result<Vec<Reservation>> {
    query("SELECT * FROM reservation WHERE due_at <= $1 ORDER BY due_at, id LIMIT $2")
        .bind(now)
        .bind(limit)
        .map(conn, reservation)
        .await
}

/// Confirmed reservations that start after `after` and not after `until`. The query uses `due_at`, which is the start.
pub async fn starting(
    conn: &mut Conn,
    after: Timestamp,
    until: Timestamp,
) -> Result<Vec<Reservation>> {
    query("SELECT * FROM reservation WHERE due_at > $1 AND due_at <= $2 AND state = 'confirmed' ORDER BY due_at, id")
        .bind(after)
        .bind(until)
        .map(conn, reservation)
        .await
}

/// Active reservations that end after `after` and not after `until`.
pub async fn ending(
    conn: &mut Conn,
    after: Timestamp,
    until: Timestamp,
) -> Result<Vec<Reservation>> {
    query("SELECT * FROM reservation WHERE ends > $1 AND ends <= $2 AND state = 'active' ORDER BY ends, id")
        .bind(after)
        .bind(until)
        .map(conn, reservation)
        .await
}

/// When the next reservation is due.
pub async fn next_due(conn: &mut Conn) -> Result<Option<Timestamp>> {
    let row = query("SELECT min(due_at) AS at FROM reservation WHERE due_at IS NOT NULL")
        .one(conn)
        .await?;
    row.optional_moment("at")
}

/// Locks a person until the transaction ends, so that two concurrent requests count each other's bookings.
pub async fn hold_person(conn: &mut Conn, person: PersonId) -> Result<()> {
    either(
        "SELECT id FROM person WHERE id = $1",
        "SELECT id FROM person WHERE id = $1 FOR NO KEY UPDATE",
    )
    .bind(person.0)
    .optional(conn)
    .await?;
    Ok(())
}

/// Locks a project like [`hold_person`].
pub async fn hold_project(conn: &mut Conn, project: ProjectId) -> Result<()> {
    either(
        "SELECT id FROM project WHERE id = $1",
        "SELECT id FROM project WHERE id = $1 FOR NO KEY UPDATE",
    )
    .bind(project.0)
    .optional(conn)
    .await?;
    Ok(())
}

/// The person or project that a booking limit applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Person(PersonId),
    Project(ProjectId),
}

/// The reservations that a limit counts: all in a site that hold time between two moments, or held it. No reservation
/// is longer than `longest`, so the query need not read those that ended long before.
pub async fn counted(
    conn: &mut Conn,
    site: SiteId,
    whose: Whose,
    (from, to): (Timestamp, Timestamp),
    longest: SignedDuration,
) -> Result<Vec<Reservation>> {
    let asked = match whose {
        Whose::Person(person) => query(
            "SELECT * FROM reservation WHERE owner = $1 AND site = $2 AND starts < $4 AND starts > $5 AND ends > $3
               AND state NOT IN ('waiting', 'cancelled', 'rejected', 'failed') ORDER BY starts, id",
        )
        .bind(person.0),
        Whose::Project(project) => query(
            "SELECT * FROM reservation WHERE project = $1 AND site = $2 AND starts < $4 AND starts > $5 AND ends > $3
               AND state NOT IN ('waiting', 'cancelled', 'rejected', 'failed') ORDER BY starts, id",
        )
        .bind(project.0),
    };
    asked
        .bind(site.0)
        .bind(from)
        .bind(to)
        .bind(from - longest)
        .map(conn, reservation)
        .await
}

/// The reservations that wait for approval in the given sites, by start.
pub async fn pending(conn: &mut Conn, sites: &[SiteId], limit: u64) -> Result<Vec<Reservation>> {
    either(
        "SELECT * FROM reservation WHERE site IN (SELECT unhex(value) FROM json_each($1)) AND state = 'pending_approval'
         ORDER BY starts, id LIMIT $2",
        "SELECT * FROM reservation WHERE site = ANY($1) AND state = 'pending_approval' ORDER BY starts, id LIMIT $2",
    )
    .bind(sites.iter().map(|id| id.0).collect::<Vec<_>>())
    .bind(limit)
    .map(conn, reservation)
    .await
}

/// Number of the person's current holds. Locks the person, see [`hold_person`].
pub async fn count_held(conn: &mut Conn, owner: PersonId) -> Result<u64> {
    hold_person(conn, owner).await?;
    query("SELECT count(*) AS held FROM reservation WHERE owner = $1 AND state = 'held'")
        .bind(owner.0)
        .one(conn)
        .await?
        .count("held")
}

/// Number of the person's waitlist entries.
pub async fn count_waiting(conn: &mut Conn, owner: PersonId) -> Result<u64> {
    query("SELECT count(*) AS waiting FROM reservation WHERE owner = $1 AND state = 'waiting'")
        .bind(owner.0)
        .one(conn)
        .await?
        .count("waiting")
}

/// A person's reservations that still hold something, in one site, or in every site for `None`.
pub async fn holding_of(
    conn: &mut Conn,
    owner: PersonId,
    site: Option<SiteId>,
) -> Result<Vec<Reservation>> {
    either(
        "SELECT * FROM reservation WHERE owner = $1 AND ($2 IS NULL OR site = $2)
           AND state NOT IN ('done', 'cancelled', 'rejected', 'failed') ORDER BY starts, id",
        "SELECT * FROM reservation WHERE owner = $1 AND ($2::uuid IS NULL OR site = $2)
           AND state NOT IN ('done', 'cancelled', 'rejected', 'failed') ORDER BY starts, id",
    )
    .bind(owner.0)
    .bind(site.map(|id| id.0))
    .map(conn, reservation)
    .await
}
