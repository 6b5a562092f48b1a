//! Claims as the calendar shows them.

use std::collections::BTreeSet;

use berth_model::reservation::{Privacy, State};
use berth_model::{Claim, ClaimId, PersonId, ResourceId, SiteId, Span, Text};
use serde::Deserialize;
use uuid::Uuid;

use super::{claim, firmness_of, holder_of, span_of, take_of};
use crate::error::{Error, Result};
use crate::sql::{Conn, Row, either, moment};
use crate::words::read;

/// A claim with the reservation or window behind it.
#[derive(Debug, Clone)]
pub struct Entry {
    pub claim: Claim,
    pub title: Option<Text>,
    pub owner: Option<PersonId>,
    pub privacy: Option<Privacy>,
    pub state: Option<State>,
    /// Whether it holds time before or after a reservation, to set up or to clean up.
    pub is_buffer: bool,
}

/// What occupies the given resources between two moments, past and to come, on the sites' own timelines.
///
/// SQLite's rows come one by one from a thread of its own, and waking up for each of a thousand costs more than reading
/// them, so it hands them over as one text.
pub async fn calendar(
    conn: &mut Conn,
    resources: &BTreeSet<ResourceId>,
    span: Span,
    limit: u64,
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
             LIMIT $4)",
        "SELECT c.*, coalesce(r.title, m.title, w.title) AS title, coalesce(r.owner, w.owner) AS owner, r.privacy, r.state,
             coalesce(c.ends <= r.starts OR c.starts >= r.ends, FALSE) AS is_buffer
         FROM claim c
         LEFT JOIN reservation r ON r.id = c.holder AND c.holder_kind = 'reservation'
         LEFT JOIN maintenance m ON m.id = c.holder AND c.holder_kind = 'maintenance'
         LEFT JOIN workload w ON w.id = c.holder AND c.holder_kind = 'workload'
         WHERE c.resource = ANY($1) AND c.ends > $2 AND c.starts < $3 AND c.standing <> 'void' AND c.container IS NULL
         LIMIT $4",
    )
    .bind(resources.iter().map(|id| id.0).collect::<Vec<_>>())
    .bind(span.start())
    .bind(span.end())
    .bind(limit)
    .all(conn)
    .await?;
    if conn.is_postgres() {
        return rows.iter().map(entry).collect();
    }
    let mut all = Vec::new();
    for row in &rows {
        let text: String = row.get("entries")?;
        let lines: Vec<Line<'_>> = serde_json::from_str(&text)
            .map_err(|error| Error::Corrupt(format!("a calendar: {error}")))?;
        for line in lines {
            all.push(line.entry()?);
        }
    }
    Ok(all)
}

/// Particular claims, as the calendar shows them.
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
