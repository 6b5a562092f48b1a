//! The data for the usage figures of a site: its resources, their outages, the claims and their owners, and the
//! outcomes of bookings.
//!
//! The two long lists, of claims and of bookings, are passed on row by row: a year of a busy site is a million rows,
//! and no caller needs them all at once.

use berth_model::reservation::State;
use berth_model::{Amount, PersonId, ProjectId, ResourceId, SiteId, Span, Status, TypeId};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::sql::{Conn, Row, either, query};

/// A resource and when it existed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    pub id: ResourceId,
    pub parent: Option<ResourceId>,
    pub kind: TypeId,
    pub capacity: Option<Amount>,
    pub created_at: Timestamp,
    pub removed_at: Option<Timestamp>,
}

/// The resources of a site that existed during a part of a span, in the current tree.
pub async fn things(conn: &mut Conn, site: SiteId, during: Span) -> Result<Vec<Thing>> {
    query(
        "SELECT id, parent, type_id, capacity, created_at, removed_at FROM resource
         WHERE site = $1 AND (removed_at IS NULL OR removed_at > $2) AND created_at < $3 ORDER BY id",
    )
    .bind(site.0)
    .bind(during.start())
    .bind(during.end())
    .map(conn, |row| {
        Ok(Thing {
            id: ResourceId(row.get("id")?),
            parent: row.get::<Option<Uuid>>("parent")?.map(ResourceId),
            kind: TypeId(row.get("type_id")?),
            capacity: amount(row, "capacity")?,
            created_at: row.moment("created_at")?,
            removed_at: row.optional_moment("removed_at")?,
        })
    })
    .await
}

fn amount(row: &Row, column: &str) -> Result<Option<Amount>> {
    let amount = row.get::<Option<i64>>(column)?;
    let amount = amount.map(|amount| Amount::new(amount.unsigned_abs()));
    amount
        .transpose()
        .map_err(|error| Error::Corrupt(format!("{column}: {error}")))
}

/// Every change of status in a site up to a moment, by resource, the oldest first.
pub async fn status_changes(
    conn: &mut Conn,
    site: SiteId,
    until: Timestamp,
) -> Result<Vec<(ResourceId, Status, Timestamp)>> {
    query(
        "SELECT s.resource, s.status, s.at FROM resource r JOIN status_change s ON s.resource = r.id
         WHERE r.site = $1 AND s.at < $2 ORDER BY s.resource, s.at, s.id",
    )
    .bind(site.0)
    .bind(until)
    .map(conn, |row| {
        let resource = ResourceId(row.get("resource")?);
        Ok((resource, row.word("status")?, row.moment("at")?))
    })
    .await
}

/// The claims of a site's maintenance windows within a span.
pub async fn maintained(
    conn: &mut Conn,
    site: SiteId,
    during: Span,
) -> Result<Vec<(ResourceId, Span)>> {
    query(
        "SELECT c.resource, c.starts, c.ends FROM maintenance m JOIN claim c ON c.holder = m.id
         WHERE m.site = $1 AND m.starts < $3 AND m.ends > $2
           AND c.starts < $3 AND c.ends > $2 AND c.standing <> 'void'",
    )
    .bind(site.0)
    .bind(during.start())
    .bind(during.end())
    .map(conn, |row| {
        Ok((ResourceId(row.get("resource")?), span(row)?))
    })
    .await
}

fn span(row: &Row) -> Result<Span> {
    Span::new(row.moment("starts")?, row.moment("ends")?)
        .map_err(|error| Error::Corrupt(error.to_string()))
}

/// A claim that is not maintenance, and its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The index of its resource in `resources` of [`taken`].
    pub place: usize,
    pub span: Span,
    pub amount: Option<Amount>,
    /// `None` if no person booked it.
    pub owner: Option<PersonId>,
    pub project: Option<ProjectId>,
    /// Whether it is a workload's claim from the queue rather than a booking.
    pub is_queued: bool,
}

/// Passes on all claims on these resources that overlap a span, in the past or the future. No claim lasts longer than
/// `longest`, so a query about last year does not read all later claims.
pub async fn taken(
    conn: &mut Conn,
    resources: &[ResourceId],
    during: Span,
    longest: SignedDuration,
    mut each: impl FnMut(Taken) + Send,
) -> Result<()> {
    let ends_before = during.end().checked_add(longest).unwrap_or(Timestamp::MAX);
    either(
        "SELECT v.key AS place, c.starts, c.ends, c.amount, coalesce(r.owner, w.owner) AS owner,
             coalesce(r.project, w.project) AS project, w.id IS NOT NULL AS is_queued
         FROM json_each($1) v CROSS JOIN claim c ON c.resource = unhex(v.value)
         LEFT JOIN reservation r ON r.id = c.holder
         LEFT JOIN workload w ON w.id = c.holder
         WHERE c.ends > $2 AND c.ends < $4 AND c.starts < $3 AND c.standing <> 'void'
           AND c.container IS NULL AND c.holder_kind <> 'maintenance'",
        "SELECT v.nth - 1 AS place, c.starts, c.ends, c.amount, coalesce(r.owner, w.owner) AS owner,
             coalesce(r.project, w.project) AS project, w.id IS NOT NULL AS is_queued
         FROM unnest($1::uuid[]) WITH ORDINALITY AS v (id, nth) JOIN claim c ON c.resource = v.id
         LEFT JOIN reservation r ON r.id = c.holder
         LEFT JOIN workload w ON w.id = c.holder
         WHERE c.ends > $2 AND c.ends < $4 AND c.starts < $3 AND c.standing <> 'void'
           AND c.container IS NULL AND c.holder_kind <> 'maintenance'",
    )
    .bind(resources.iter().map(|id| id.0).collect::<Vec<_>>())
    .bind(during.start())
    .bind(during.end())
    .bind(ends_before)
    .each(conn, |row| {
        each(Taken {
            place: usize::try_from(row.count("place")?).unwrap_or(usize::MAX),
            span: span(row)?,
            amount: amount(row, "amount")?,
            owner: row.get::<Option<Uuid>>("owner")?.map(PersonId),
            project: row.get::<Option<Uuid>>("project")?.map(ProjectId),
            is_queued: row.get("is_queued")?,
        });
        Ok(())
    })
    .await
}

/// The data of a booking that its outcome depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Booking {
    pub owner: PersonId,
    pub project: Option<ProjectId>,
    pub state: State,
    pub span: Span,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The check-in deadline, if the owner never checked in.
    pub awaited_until: Option<Timestamp>,
    /// The state before the cancellation, if it was cancelled.
    pub cancelled_from: Option<State>,
}

/// Passes on the reservations of a site that start within a span.
pub async fn bookings(
    conn: &mut Conn,
    site: SiteId,
    during: Span,
    mut each: impl FnMut(Booking) + Send,
) -> Result<()> {
    either(
        "SELECT r.owner, r.project, r.state, r.starts, r.ends, r.created_at, r.updated_at,
             json_extract(r.terms, '$.check_in.until') AS awaited,
             CASE WHEN r.state = $4 THEN (SELECT h.from_state FROM reservation_history h WHERE h.reservation = r.id
                 ORDER BY h.ord DESC LIMIT 1) END AS was
         FROM reservation r WHERE r.site = $1 AND r.starts >= $2 AND r.starts < $3",
        "SELECT r.owner, r.project, r.state, r.starts, r.ends, r.created_at, r.updated_at,
             r.terms::json #>> '{check_in,until}' AS awaited,
             CASE WHEN r.state = $4 THEN (SELECT h.from_state FROM reservation_history h WHERE h.reservation = r.id
                 ORDER BY h.ord DESC LIMIT 1) END AS was
         FROM reservation r WHERE r.site = $1 AND r.starts >= $2 AND r.starts < $3",
    )
    .bind(site.0)
    .bind(during.start())
    .bind(during.end())
    .bind(State::Cancelled.as_str())
    .each(conn, |row| {
        each(Booking {
            owner: PersonId(row.get("owner")?),
            project: row.get::<Option<Uuid>>("project")?.map(ProjectId),
            state: row.word("state")?,
            span: span(row)?,
            created_at: row.moment("created_at")?,
            updated_at: row.moment("updated_at")?,
            awaited_until: row.optional_parsed("awaited")?,
            cancelled_from: row.optional_word("was")?,
        });
        Ok(())
    })
    .await
}

/// Number of refused bookings in a site on one of its days, for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusals {
    pub site: SiteId,
    pub day: Date,
    pub code: String,
    /// The policy rule that refused them, if one did.
    pub rule: Option<String>,
    pub count: u64,
}

/// Adds to the existing count.
pub async fn add_refusals(conn: &mut Conn, new: &Refusals) -> Result<()> {
    query(
        "INSERT INTO refusal (site, day, code, rule, count) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (site, day, code, rule) DO UPDATE SET count = refusal.count + excluded.count",
    )
    .bind(new.site.0)
    .bind(new.day.to_string())
    .bind(new.code.as_str())
    .bind(new.rule.as_deref().unwrap_or_default())
    .bind(new.count)
    .execute(conn)
    .await?;
    Ok(())
}

/// The refusals in a site from one day to another, both included: code, rule and count, the most frequent first.
pub async fn refusals(
    conn: &mut Conn,
    site: SiteId,
    from: Date,
    to: Date,
) -> Result<Vec<(String, Option<String>, u64)>> {
    query(
        "SELECT code, rule, CAST(sum(count) AS BIGINT) AS n FROM refusal WHERE site = $1 AND day >= $2 AND day <= $3
         GROUP BY code, rule ORDER BY n DESC, code, rule",
    )
    .bind(site.0)
    .bind(from.to_string())
    .bind(to.to_string())
    .map(conn, |row| {
        let rule = Some(row.get::<String>("rule")?).filter(|rule| !rule.is_empty());
        Ok((row.get("code")?, rule, row.count("n")?))
    })
    .await
}
