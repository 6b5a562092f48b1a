//! Calendar feeds: their owners, and the bookings and windows that each one shows.

use std::collections::HashMap;

use berth_model::feed::{Feed, Shows};
use berth_model::person::Person;
use berth_model::reservation::Reservation;
use berth_model::{Claim, FeedId, Holder, PersonId, ResourceId, SiteId, Span, TypeId, WindowId};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::claims::claim;
use crate::error::{Error, Result};
use crate::maintenance::{Window, window};
use crate::people::person;
use crate::reservations::reservation;
use crate::sql::{Conn, Row, either, query};

fn feed(row: &Row) -> Result<Feed> {
    let site = row.get::<Option<Uuid>>("site")?.map(SiteId);
    let kind = row.get::<Option<Uuid>>("type_id")?.map(TypeId);
    let resource = row.get::<Option<Uuid>>("resource")?.map(ResourceId);
    let shows = match (site, kind, resource) {
        (None, None, None) => Shows::Mine,
        (Some(site), None, None) => Shows::Site(site),
        (Some(site), Some(kind), None) => Shows::Type(site, kind),
        (Some(site), None, Some(resource)) => Shows::Resource(site, resource),
        _ => return Err(Error::Corrupt("a feed that shows two things".into())),
    };
    Ok(Feed {
        id: FeedId(row.get("feed_id")?),
        person: PersonId(row.get("maker")?),
        label: row.parsed("label")?,
        shows,
        created_at: row.moment("made_at")?,
        last_read_at: row.optional_moment("last_read_at")?,
    })
}

pub async fn insert(conn: &mut Conn, feed: &Feed, secret_hash: &[u8]) -> Result<()> {
    let (kind, resource) = match feed.shows {
        Shows::Mine | Shows::Site(_) => (None, None),
        Shows::Type(_, kind) => (Some(kind.0), None),
        Shows::Resource(_, resource) => (None, Some(resource.0)),
    };
    query(
        "INSERT INTO feed (id, secret_hash, person, label, site, type_id, resource, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(feed.id.0)
    .bind(secret_hash)
    .bind(feed.person.0)
    .bind(feed.label.as_str())
    .bind(feed.shows.site().map(|site| site.0))
    .bind(kind)
    .bind(resource)
    .bind(feed.created_at)
    .execute(conn)
    .await?;
    Ok(())
}

/// The feed of a secret address, with its owner.
pub async fn find(conn: &mut Conn, secret_hash: &[u8]) -> Result<Option<(Feed, Person)>> {
    let row = query(
        "SELECT p.*, f.id AS feed_id, f.person AS maker, f.label, f.site, f.type_id, f.resource,
             f.created_at AS made_at, f.last_read_at
         FROM feed f JOIN person p ON p.id = f.person WHERE f.secret_hash = $1",
    )
    .bind(secret_hash)
    .optional(conn)
    .await?;
    row.map(|row| Ok((feed(&row)?, person(&row)?))).transpose()
}

/// A person's feeds, oldest first.
pub async fn of_person(conn: &mut Conn, person: PersonId) -> Result<Vec<Feed>> {
    query(
        "SELECT id AS feed_id, person AS maker, label, site, type_id, resource, created_at AS made_at, last_read_at
         FROM feed WHERE person = $1 ORDER BY id",
    )
    .bind(person.0)
    .map(conn, feed)
    .await
}

pub async fn touch(conn: &mut Conn, id: FeedId, now: Timestamp) -> Result<()> {
    query("UPDATE feed SET last_read_at = $1 WHERE id = $2")
        .bind(now)
        .bind(id.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// Returns whether there was a feed to remove.
pub async fn remove(conn: &mut Conn, person: PersonId, id: FeedId) -> Result<bool> {
    let removed = query("DELETE FROM feed WHERE id = $1 AND person = $2")
        .bind(id.0)
        .bind(person.0)
        .execute(conn)
        .await?;
    Ok(removed == 1)
}

pub async fn remove_all(conn: &mut Conn, person: PersonId) -> Result<()> {
    query("DELETE FROM feed WHERE person = $1")
        .bind(person.0)
        .execute(conn)
        .await?;
    Ok(())
}

/// Selects the bookings of a feed: by owner, site or resources.
#[derive(Debug, Clone)]
pub enum Of {
    Owner(PersonId),
    Site(SiteId),
    Resources(Vec<ResourceId>),
}

/// The time range of a feed.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    pub from: Timestamp,
    pub now: Timestamp,
    pub to: Timestamp,
    /// A cancelled, rejected or failed booking is shown if it became so after this moment.
    pub given_up_since: Timestamp,
}

/// The longest a reservation may last, so one that overlaps a time range began at most this long before it.
const LONGEST: SignedDuration = SignedDuration::from_hours(367 * 24);

/// The reservations of a feed, by start. Above `limit`, upcoming ones win over those that have begun: first the soonest
/// upcoming, then the latest begun.
pub async fn reservations(
    conn: &mut Conn,
    of: &Of,
    stretch: Stretch,
    limit: u64,
) -> Result<Vec<Reservation>> {
    let mut found = to_come(conn, of, stretch, limit).await?;
    let room = limit.saturating_sub(found.len() as u64);
    if room > 0 {
        found.extend(begun(conn, of, stretch, room).await?);
    }
    found.sort_by_key(|one| (one.span.start(), one.id));
    Ok(found)
}

async fn to_come(
    conn: &mut Conn,
    of: &Of,
    stretch: Stretch,
    limit: u64,
) -> Result<Vec<Reservation>> {
    let asked = match of {
        Of::Owner(owner) => query(
            "SELECT * FROM reservation WHERE owner = $1 AND starts >= $2 AND starts < $3 AND ends > $4
               AND (state NOT IN ('cancelled', 'rejected', 'failed') OR updated_at > $5)
             ORDER BY starts, id LIMIT $6",
        )
        .bind(owner.0),
        Of::Site(site) => query(
            "SELECT * FROM reservation WHERE site = $1 AND starts >= $2 AND starts < $3 AND ends > $4
               AND (state NOT IN ('cancelled', 'rejected', 'failed') OR updated_at > $5)
             ORDER BY starts, id LIMIT $6",
        )
        .bind(site.0),
        Of::Resources(resources) => either(
            "SELECT * FROM reservation WHERE id IN (
                 SELECT holder FROM claim WHERE resource IN (SELECT unhex(value) FROM json_each($1))
                   AND ends > $2 AND starts < $3)
               AND starts >= $2 AND starts < $3 AND ends > $4
               AND (state NOT IN ('cancelled', 'rejected', 'failed') OR updated_at > $5)
             ORDER BY starts, id LIMIT $6",
            "SELECT * FROM reservation WHERE id IN (
                 SELECT holder FROM claim WHERE resource = ANY($1) AND ends > $2 AND starts < $3)
               AND starts >= $2 AND starts < $3 AND ends > $4
               AND (state NOT IN ('cancelled', 'rejected', 'failed') OR updated_at > $5)
             ORDER BY starts, id LIMIT $6",
        )
        .bind(ids(resources)),
    };
    asked
        .bind(stretch.now)
        .bind(stretch.to)
        .bind(stretch.from)
        .bind(stretch.given_up_since)
        .bind(limit)
        .map(conn, reservation)
        .await
}

async fn begun(conn: &mut Conn, of: &Of, stretch: Stretch, limit: u64) -> Result<Vec<Reservation>> {
    let asked = match of {
        Of::Owner(owner) => query(
            "SELECT * FROM reservation WHERE owner = $1 AND starts >= $2 AND starts < $3 AND ends > $4
               AND (state NOT IN ('cancelled', 'rejected', 'failed') OR updated_at > $5)
             ORDER BY starts DESC, id DESC LIMIT $6",
        )
        .bind(owner.0),
        Of::Site(site) => query(
            "SELECT * FROM reservation WHERE site = $1 AND starts >= $2 AND starts < $3 AND ends > $4
               AND (state NOT IN ('cancelled', 'rejected', 'failed') OR updated_at > $5)
             ORDER BY starts DESC, id DESC LIMIT $6",
        )
        .bind(site.0),
        Of::Resources(resources) => either(
            "SELECT * FROM reservation WHERE id IN (
                 SELECT holder FROM claim WHERE resource IN (SELECT unhex(value) FROM json_each($1))
                   AND ends > $4 AND starts < $3)
               AND starts >= $2 AND starts < $3 AND ends > $4
               AND (state NOT IN ('cancelled', 'rejected', 'failed') OR updated_at > $5)
             ORDER BY starts DESC, id DESC LIMIT $6",
            "SELECT * FROM reservation WHERE id IN (
                 SELECT holder FROM claim WHERE resource = ANY($1) AND ends > $4 AND starts < $3)
               AND starts >= $2 AND starts < $3 AND ends > $4
               AND (state NOT IN ('cancelled', 'rejected', 'failed') OR updated_at > $5)
             ORDER BY starts DESC, id DESC LIMIT $6",
        )
        .bind(ids(resources)),
    };
    asked
        .bind(stretch.from - LONGEST)
        .bind(stretch.now)
        .bind(stretch.from)
        .bind(stretch.given_up_since)
        .bind(limit)
        .map(conn, reservation)
        .await
}

/// The site's maintenance windows in a time range, except cancelled ones, each with the claims it holds or held.
pub async fn windows(
    conn: &mut Conn,
    site: SiteId,
    span: Span,
    limit: u64,
) -> Result<Vec<(Window, Vec<Claim>)>> {
    let windows = query(
        "SELECT * FROM maintenance WHERE site = $1 AND ends > $2 AND starts < $3 AND state <> 'cancelled'
         ORDER BY starts DESC, id DESC LIMIT $4",
    )
    .bind(site.0)
    .bind(span.start())
    .bind(span.end())
    .bind(limit)
    .map(conn, window)
    .await?;
    let held = either(
        "SELECT * FROM claim WHERE holder IN (SELECT unhex(value) FROM json_each($1)) AND standing <> 'void'
         ORDER BY starts, id",
        "SELECT * FROM claim WHERE holder = ANY($1) AND standing <> 'void' ORDER BY starts, id",
    )
    .bind(windows.iter().map(|window| window.id.0).collect::<Vec<_>>())
    .map(conn, claim)
    .await?;
    let mut found: Vec<(Window, Vec<Claim>)> = windows
        .into_iter()
        .map(|window| (window, Vec::new()))
        .collect();
    let place: HashMap<WindowId, usize> = found
        .iter()
        .enumerate()
        .map(|(place, (window, _))| (window.id, place))
        .collect();
    for claim in held {
        if let Holder::Maintenance(id) = claim.holder
            && let Some(place) = place.get(&id)
        {
            found[*place].1.push(claim);
        }
    }
    Ok(found)
}

/// The resource, its ancestors and its descendants: a booking on any of these occupies it, or part of it.
pub async fn line_of(conn: &mut Conn, resource: ResourceId) -> Result<Vec<ResourceId>> {
    query(
        "WITH RECURSIVE up (id, parent) AS (
             SELECT id, parent FROM resource WHERE id = $1
             UNION ALL SELECT r.id, r.parent FROM up JOIN resource r ON r.id = up.parent),
         down (id) AS (
             SELECT id FROM resource WHERE parent = $1
             UNION ALL SELECT r.id FROM down JOIN resource r ON r.parent = down.id)
         SELECT id FROM up UNION ALL SELECT id FROM down",
    )
    .bind(resource.0)
    .map(conn, |row| Ok(ResourceId(row.get("id")?)))
    .await
}

/// The resources of a type, and their ancestors.
pub async fn lines_of_type(conn: &mut Conn, kind: TypeId) -> Result<Vec<ResourceId>> {
    query(
        "WITH RECURSIVE up (id, parent) AS (
             SELECT id, parent FROM resource WHERE type_id = $1 AND removed_at IS NULL
             UNION SELECT r.id, r.parent FROM up JOIN resource r ON r.id = up.parent)
         SELECT id FROM up",
    )
    .bind(kind.0)
    .map(conn, |row| Ok(ResourceId(row.get("id")?)))
    .await
}

fn ids(resources: &[ResourceId]) -> Vec<Uuid> {
    resources.iter().map(|id| id.0).collect()
}
