//! Claims as the calendar shows them.

use std::collections::BTreeSet;

use berth_model::reservation::{Privacy, State};
use berth_model::{Claim, ClaimId, PersonId, ResourceId, SiteId, Span, Text};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use uuid::Uuid;

use super::{claim, firmness_of, holder_of, span_of, take_of};
use crate::error::{Error, Result};
use crate::sql::{Conn, Row, either, moment};
use crate::words::read;

/// A claim with the data of its reservation, window or workload.
#[derive(Debug, Clone)]
pub struct Entry {
    pub claim: Claim,
    pub title: Option<Text>,
    pub owner: Option<PersonId>,
    pub privacy: Option<Privacy>,
    pub state: Option<State>,
    /// Whether the claim is a buffer before or after a reservation, to set up or to clean up.
    pub is_buffer: bool,
}

/// Selects claims by the kind of their holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holders {
    All,
    /// Reservations and maintenance windows.
    People,
    Workloads,
}

impl Holders {
    fn with_people(self) -> bool {
        self != Holders::Workloads
    }

    fn with_workloads(self) -> bool {
        self != Holders::People
    }
}

/// Counts the claims that occupy the given resources between two moments. Counting stops at `most`.
pub async fn count_up_to(
    conn: &mut Conn,
    resources: &BTreeSet<ResourceId>,
    span: Span,
    holders: Holders,
    most: u64,
) -> Result<u64> {
    let row = either(
        "SELECT count(*) AS n FROM (
             SELECT 1 FROM claim c
             WHERE c.resource IN (SELECT unhex(value) FROM json_each($1)) AND c.ends > $2 AND c.starts < $3
               AND c.standing <> 'void' AND c.container IS NULL
               AND CASE WHEN c.holder_kind = 'workload' THEN $4 ELSE $5 END
             LIMIT $6)",
        "SELECT count(*) AS n FROM (
             SELECT 1 FROM claim c
             WHERE c.resource = ANY($1) AND c.ends > $2 AND c.starts < $3 AND c.standing <> 'void' AND c.container IS NULL
               AND CASE WHEN c.holder_kind = 'workload' THEN $4::boolean ELSE $5::boolean END
             LIMIT $6) found",
    )
    .bind(resources.iter().map(|id| id.0).collect::<Vec<_>>())
    .bind(span.start())
    .bind(span.end())
    .bind(holders.with_workloads())
    .bind(holders.with_people())
    .bind(most)
    .one(conn)
    .await?;
    row.count("n")
}

/// The past and future claims that occupy the given resources between two moments, without claims inside a container.
///
/// SQLite sends rows one by one from its own thread. Waking up for each of a thousand rows costs more than reading
/// them, so SQLite returns them as one text.
pub async fn calendar(
    conn: &mut Conn,
    resources: &BTreeSet<ResourceId>,
    span: Span,
    holders: Holders,
) -> Result<Vec<Entry>> {
    let rows = either(
        "SELECT json_group_array(json_array(hex(id), hex(site), hex(resource), starts, ends, amount, grace_us,
             holder_kind, hex(holder), standing, title, nullif(hex(owner), ''), privacy, state, is_buffer)) AS entries
         FROM (
             SELECT c.*, coalesce(r.title, m.title, w.title) AS title, coalesce(r.owner, w.owner) AS owner, r.privacy, r.state,
                 coalesce(c.ends <= r.starts OR c.starts >= r.ends, FALSE) AS is_buffer
             FROM claim c
             LEFT JOIN reservation r ON r.id = c.holder AND c.holder_kind = 'reservation'
             LEFT JOIN maintenance m ON m.id = c.holder AND c.holder_kind = 'maintenance'
             LEFT JOIN workload w ON w.id = c.holder AND c.holder_kind = 'workload'
             WHERE c.resource IN (SELECT unhex(value) FROM json_each($1)) AND c.ends > $2 AND c.starts < $3
               AND c.standing <> 'void' AND c.container IS NULL
               AND CASE WHEN c.holder_kind = 'workload' THEN $4 ELSE $5 END)",
        "SELECT c.*, coalesce(r.title, m.title, w.title) AS title, coalesce(r.owner, w.owner) AS owner, r.privacy, r.state,
             coalesce(c.ends <= r.starts OR c.starts >= r.ends, FALSE) AS is_buffer
         FROM claim c
         LEFT JOIN reservation r ON r.id = c.holder AND c.holder_kind = 'reservation'
         LEFT JOIN maintenance m ON m.id = c.holder AND c.holder_kind = 'maintenance'
         LEFT JOIN workload w ON w.id = c.holder AND c.holder_kind = 'workload'
         WHERE c.resource = ANY($1) AND c.ends > $2 AND c.starts < $3 AND c.standing <> 'void' AND c.container IS NULL
           AND CASE WHEN c.holder_kind = 'workload' THEN $4::boolean ELSE $5::boolean END",
    )
    .bind(resources.iter().map(|id| id.0).collect::<Vec<_>>())
    .bind(span.start())
    .bind(span.end())
    .bind(holders.with_workloads())
    .bind(holders.with_people())
    .all(conn)
    .await?;
    if conn.is_postgres() {
        return rows.iter().map(entry).collect();
    }
    let mut all = Vec::new();
    for row in &rows {
        let text: String = row.get("entries")?;
        let lines: Vec<Line<'_>> = read_lines(&text)?;
        for line in lines {
            all.push(line.entry()?);
        }
    }
    Ok(all)
}

/// A claim without names, for sums over many claims.
#[derive(Debug, Clone, Copy)]
pub struct Occupying {
    pub resource: ResourceId,
    pub start_us: i64,
    pub end_us: i64,
    /// How much it takes of a divisible resource. `None` takes all.
    pub amount: Option<u64>,
    pub holder: HolderKind,
    pub privacy: Option<Privacy>,
    /// Whether it belongs to [`OccupyingQuery::own`].
    pub is_own: bool,
    pub is_buffer: bool,
    /// Whether it blocks a firm booking: it still holds, and it does not yield.
    pub is_in_the_way: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderKind {
    Reservation,
    Maintenance,
    Workload,
}

/// Selects the claims that [`each_occupying`] reads.
#[derive(Debug, Clone, Copy)]
pub struct OccupyingQuery<'a> {
    pub resources: &'a BTreeSet<ResourceId>,
    pub from: Timestamp,
    pub to: Timestamp,
    pub holders: Holders,
    /// The person whose claims get [`Occupying::is_own`].
    pub own: PersonId,
    /// SQLite returns one text per resource and time slice of this length, by the start of the claims.
    pub batch: SignedDuration,
}

/// Resources per statement, because SQLite sorts in memory.
const RESOURCES_AT_ONCE: usize = 250;

/// Passes the claims that [`calendar`] lists to `read`, ordered by resource and start, without holding all of them in
/// memory.
pub async fn each_occupying(
    conn: &mut Conn,
    query: OccupyingQuery<'_>,
    mut read: impl FnMut(Occupying) + Send,
) -> Result<()> {
    let resources: Vec<Uuid> = query.resources.iter().map(|id| id.0).collect();
    for part in resources.chunks(RESOURCES_AT_ONCE) {
        each_occupying_of(conn, part.to_vec(), query, &mut read).await?;
    }
    Ok(())
}

async fn each_occupying_of(
    conn: &mut Conn,
    resources: Vec<Uuid>,
    query: OccupyingQuery<'_>,
    read: &mut (impl FnMut(Occupying) + Send),
) -> Result<()> {
    let is_postgres = conn.is_postgres();
    let asked = either(
        "SELECT hex(resource) AS resource, json_group_array(json_array(
             starts, ends, amount, holder_kind, privacy, is_own, is_buffer, is_in_the_way)) AS claims
         FROM (
             SELECT c.resource, c.starts, c.ends, c.amount, c.holder_kind, r.privacy,
                 coalesce(r.owner = $6, w.owner = $6, FALSE) AS is_own,
                 coalesce(c.ends <= r.starts OR c.starts >= r.ends, FALSE) AS is_buffer,
                 c.standing = 'holding' AND c.grace_us IS NULL AS is_in_the_way
             FROM claim c
             LEFT JOIN reservation r ON r.id = c.holder AND c.holder_kind = 'reservation'
             LEFT JOIN workload w ON w.id = c.holder AND c.holder_kind = 'workload'
             WHERE c.resource IN (SELECT unhex(value) FROM json_each($1)) AND c.ends > $2 AND c.starts < $3
               AND c.standing <> 'void' AND c.container IS NULL
               AND CASE WHEN c.holder_kind = 'workload' THEN $4 ELSE $5 END) c
         GROUP BY c.resource, max(c.starts - $2, 0) / $7
         ORDER BY c.resource, max(c.starts - $2, 0) / $7",
        "SELECT c.resource, c.starts, c.ends, c.amount, c.holder_kind, r.privacy,
             coalesce(r.owner = $6, w.owner = $6, FALSE) AS is_own,
             coalesce(c.ends <= r.starts OR c.starts >= r.ends, FALSE) AS is_buffer,
             c.standing = 'holding' AND c.grace_us IS NULL AS is_in_the_way
         FROM claim c
         LEFT JOIN reservation r ON r.id = c.holder AND c.holder_kind = 'reservation'
         LEFT JOIN workload w ON w.id = c.holder AND c.holder_kind = 'workload'
         WHERE c.resource = ANY($1) AND c.ends > $2 AND c.starts < $3 AND c.standing <> 'void' AND c.container IS NULL
           AND CASE WHEN c.holder_kind = 'workload' THEN $4::boolean ELSE $5::boolean END AND $7::bigint > 0
         ORDER BY c.resource, c.starts",
    )
    .bind(resources)
    .bind(query.from)
    .bind(query.to)
    .bind(query.holders.with_workloads())
    .bind(query.holders.with_people())
    .bind(query.own.0)
    .bind(i64::try_from(query.batch.as_micros()).unwrap_or(i64::MAX));
    asked
        .each(conn, |row| {
            if is_postgres {
                read(occupying(row)?);
                return Ok(());
            }
            occupying_batch(row)?.into_iter().for_each(&mut *read);
            Ok(())
        })
        .await
}

fn occupying(row: &Row) -> Result<Occupying> {
    Ok(Occupying {
        resource: ResourceId(row.get("resource")?),
        start_us: row.get("starts")?,
        end_us: row.get("ends")?,
        amount: row.get::<Option<i64>>("amount")?.map(i64::unsigned_abs),
        holder: holder_kind(&row.get::<String>("holder_kind")?)?,
        privacy: row.optional_word("privacy")?,
        is_own: row.get("is_own")?,
        is_buffer: row.get("is_buffer")?,
        is_in_the_way: row.get("is_in_the_way")?,
    })
}

/// One resource's claims that begin in one time slice, from SQLite's text.
fn occupying_batch(row: &Row) -> Result<Vec<Occupying>> {
    let resource = row.get::<String>("resource")?;
    let resource = Uuid::try_parse(&resource)
        .map(ResourceId)
        .map_err(|error| Error::Corrupt(format!("resource: {error}")))?;
    let text: String = row.get("claims")?;
    let lines: Vec<OccupyingLine<'_>> = read_lines(&text)?;
    let claims = lines.into_iter().map(|line| {
        Ok(Occupying {
            resource,
            start_us: line.starts,
            end_us: line.ends,
            amount: line.amount.map(i64::unsigned_abs),
            holder: holder_kind(line.holder_kind)?,
            privacy: line.privacy.map(|word| read("privacy", word)).transpose()?,
            is_own: line.is_own > 0,
            is_buffer: line.is_buffer > 0,
            is_in_the_way: line.is_in_the_way > 0,
        })
    });
    let mut claims = claims.collect::<Result<Vec<Occupying>>>()?;
    claims.sort_by_key(|claim| claim.start_us);
    Ok(claims)
}

fn holder_kind(word: &str) -> Result<HolderKind> {
    match word {
        "reservation" => Ok(HolderKind::Reservation),
        "maintenance" => Ok(HolderKind::Maintenance),
        "workload" => Ok(HolderKind::Workload),
        other => Err(Error::Corrupt(format!("holder_kind: `{other}`"))),
    }
}

/// A claim in SQLite's text, in the order of its columns there.
#[derive(Deserialize)]
struct OccupyingLine<'a> {
    starts: i64,
    ends: i64,
    amount: Option<i64>,
    holder_kind: &'a str,
    privacy: Option<&'a str>,
    is_own: u8,
    is_buffer: u8,
    is_in_the_way: u8,
}

fn read_lines<'a, T: Deserialize<'a>>(text: &'a str) -> Result<Vec<T>> {
    serde_json::from_str(text).map_err(|error| Error::Corrupt(format!("a calendar: {error}")))
}

/// The given claims, as the calendar shows them.
pub async fn entries(conn: &mut Conn, ids: Vec<ClaimId>) -> Result<Vec<Entry>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    either(
        "SELECT c.*, coalesce(r.title, m.title, w.title) AS title, coalesce(r.owner, w.owner) AS owner, r.privacy, r.state,
             coalesce(c.ends <= r.starts OR c.starts >= r.ends, FALSE) AS is_buffer
         FROM claim c
         LEFT JOIN reservation r ON r.id = c.holder AND c.holder_kind = 'reservation'
         LEFT JOIN maintenance m ON m.id = c.holder AND c.holder_kind = 'maintenance'
         LEFT JOIN workload w ON w.id = c.holder AND c.holder_kind = 'workload'
         WHERE c.id IN (SELECT unhex(value) FROM json_each($1))",
        "SELECT c.*, coalesce(r.title, m.title, w.title) AS title, coalesce(r.owner, w.owner) AS owner, r.privacy, r.state,
             coalesce(c.ends <= r.starts OR c.starts >= r.ends, FALSE) AS is_buffer
         FROM claim c
         LEFT JOIN reservation r ON r.id = c.holder AND c.holder_kind = 'reservation'
         LEFT JOIN maintenance m ON m.id = c.holder AND c.holder_kind = 'maintenance'
         LEFT JOIN workload w ON w.id = c.holder AND c.holder_kind = 'workload'
         WHERE c.id = ANY($1)",
    )
    .bind(ids.iter().map(|id| id.0).collect::<Vec<_>>())
    .map(conn, entry)
    .await
}

fn entry(row: &Row) -> Result<Entry> {
    Ok(Entry {
        claim: claim(row)?,
        title: row.optional_parsed("title")?,
        owner: row.get::<Option<Uuid>>("owner")?.map(PersonId),
        privacy: row.optional_word("privacy")?,
        state: row.optional_word("state")?,
        is_buffer: row.get("is_buffer")?,
    })
}

/// An entry in SQLite's text, in the order of its columns there.
#[derive(Deserialize)]
struct Line<'a> {
    id: Uuid,
    site: Uuid,
    resource: Uuid,
    starts: i64,
    ends: i64,
    amount: Option<i64>,
    grace_us: Option<i64>,
    holder_kind: &'a str,
    holder: Uuid,
    standing: &'a str,
    title: Option<String>,
    owner: Option<Uuid>,
    privacy: Option<&'a str>,
    state: Option<&'a str>,
    is_buffer: u8,
}

impl Line<'_> {
    fn entry(self) -> Result<Entry> {
        let title = self.title.map(|title| title.parse()).transpose();
        Ok(Entry {
            claim: Claim {
                id: ClaimId(self.id),
                site: SiteId(self.site),
                resource: ResourceId(self.resource),
                span: span_of(moment(self.starts)?, moment(self.ends)?)?,
                take: take_of(self.amount)?,
                firmness: firmness_of(self.grace_us),
                container: None,
                holder: holder_of(self.holder_kind, self.holder)?,
                standing: read("standing", self.standing)?,
            },
            title: title.map_err(|error| Error::Corrupt(format!("title: {error}")))?,
            owner: self.owner.map(PersonId),
            privacy: self.privacy.map(|word| read("privacy", word)).transpose()?,
            state: self.state.map(|word| read("state", word)).transpose()?,
            is_buffer: self.is_buffer > 0,
        })
    }
}
