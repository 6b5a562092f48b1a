//! Claims: insert, change and release them under the claim rule, which the database itself enforces.

use berth_model::{
    Amount, Claim, ClaimId, Firmness, Holder, ReservationId, ResourceId, SiteId, Span, Standing,
    Take, WindowId, WorkloadId,
};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::error::{Error, Refused, Result};
use crate::sql::{Conn, Row, either, query, to_json};
use crate::words::Word;

mod calendar;

pub use calendar::{
    Entry, HolderKind, Holders, Occupying, OccupyingQuery, calendar, count_up_to, each_occupying,
    entries,
};

pub(crate) fn claim(row: &Row) -> Result<Claim> {
    Ok(Claim {
        id: ClaimId(row.get("id")?),
        site: SiteId(row.get("site")?),
        resource: ResourceId(row.get("resource")?),
        span: span_of(row.moment("starts")?, row.moment("ends")?)?,
        take: take_of(row.get("amount")?)?,
        firmness: firmness_of(row.get("grace_us")?),
        container: row.get::<Option<Uuid>>("container")?.map(ClaimId),
        holder: holder_of(&row.get::<String>("holder_kind")?, row.get("holder")?)?,
        standing: row.word("standing")?,
    })
}

fn span_of(start: Timestamp, end: Timestamp) -> Result<Span> {
    Span::new(start, end).map_err(|error| Error::Corrupt(error.to_string()))
}

fn take_of(amount: Option<i64>) -> Result<Take> {
    let amount = amount.map(|amount| Amount::new(amount as u64)).transpose();
    let amount = amount.map_err(|error| Error::Corrupt(error.to_string()))?;
    Ok(amount.map_or(Take::Exclusive, Take::Amount))
}

fn firmness_of(grace: Option<i64>) -> Firmness {
    grace.map_or(Firmness::Firm, |micros| Firmness::Yielding {
        grace: SignedDuration::from_micros(micros),
    })
}

fn holder_of(kind: &str, id: Uuid) -> Result<Holder> {
    Ok(match kind {
        "reservation" => Holder::Reservation(ReservationId(id)),
        "maintenance" => Holder::Maintenance(WindowId(id)),
        "workload" => Holder::Workload(WorkloadId(id)),
        other => return Err(Error::Corrupt(format!("holder_kind: `{other}`"))),
    })
}

fn holder_columns(holder: Holder) -> (&'static str, Uuid) {
    match holder {
        Holder::Reservation(id) => ("reservation", id.0),
        Holder::Maintenance(id) => ("maintenance", id.0),
        Holder::Workload(id) => ("workload", id.0),
    }
}

fn amount_column(take: Take) -> Option<i64> {
    take.amount().map(|amount| amount.get() as i64)
}

fn grace_column(firmness: Firmness) -> Option<i64> {
    match firmness {
        Firmness::Firm => None,
        Firmness::Yielding { grace } => Some(grace.as_micros() as i64),
    }
}

/// Inserts holding claims, all or none. After an error the caller must drop the transaction.
pub async fn insert(conn: &mut Conn, claims: &[Claim]) -> Result<()> {
    if conn.is_postgres() {
        insert_postgres(conn, claims).await
    } else {
        insert_sqlite(conn, claims).await
    }
}

/// One statement for all claims, in the given order: a series has a thousand.
async fn insert_sqlite(conn: &mut Conn, claims: &[Claim]) -> Result<()> {
    let id = |id: Uuid| id.simple().to_string();
    let row = |claim: &Claim| {
        let (holder_kind, holder) = holder_columns(claim.holder);
        (
            id(claim.id.0),
            id(claim.site.0),
            id(claim.resource.0),
            claim.span.start().as_microsecond(),
            claim.span.end().as_microsecond(),
            amount_column(claim.take),
            grace_column(claim.firmness),
            claim.container.map(|container| id(container.0)),
            holder_kind,
            id(holder),
        )
    };
    either(
        "INSERT INTO claim (id, site, resource, starts, ends, amount, grace_us, container, holder_kind, holder, standing)
         SELECT unhex(value ->> 0), unhex(value ->> 1), unhex(value ->> 2), value ->> 3, value ->> 4, value ->> 5,
             value ->> 6, unhex(value ->> 7), value ->> 8, unhex(value ->> 9), 'holding'
         FROM json_each($1)",
        "SELECT NULL",
    )
    .bind(to_json(&claims.iter().map(row).collect::<Vec<_>>()))
    .execute(conn)
    .await?;
    Ok(())
}

/// One statement for all claims, in the order of the tree's codes, and without waiting on a conflict that is certain.
/// Both keep transactions that want the same resources from deadlocking. (A container comes before the claims inside
/// it: its code is no longer, it starts no later, and it comes first in `claims`.)
async fn insert_postgres(conn: &mut Conn, claims: &[Claim]) -> Result<()> {
    let rows = either(
        "SELECT NULL",
        "INSERT INTO claim (id, site, resource, starts, ends, amount, grace_us, container, holder_kind, holder, standing, holds)
         SELECT v.id, v.site, v.resource, v.starts, v.ends, v.amount, v.grace_us,
             nullif(v.container, '00000000-0000-0000-0000-000000000000'), v.holder_kind, v.holder, 'holding', r.subtree
         FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::uuid[],
             $9::text[], $10::uuid[])
             WITH ORDINALITY AS v (id, site, resource, starts, ends, amount, grace_us, container, holder_kind, holder, nth)
         CROSS JOIN LATERAL (SELECT * FROM resource WHERE id = v.resource OFFSET 0) r
         WHERE r.site = v.site AND r.removed_at IS NULL
         ORDER BY r.subtree, v.starts, v.nth
         ON CONFLICT DO NOTHING",
    )
    .bind(claims.iter().map(|c| c.id.0).collect::<Vec<_>>())
    .bind(claims.iter().map(|c| c.site.0).collect::<Vec<_>>())
    .bind(claims.iter().map(|c| c.resource.0).collect::<Vec<_>>())
    .bind(claims.iter().map(|c| c.span.start().as_microsecond()).collect::<Vec<_>>())
    .bind(claims.iter().map(|c| c.span.end().as_microsecond()).collect::<Vec<_>>())
    .bind(claims.iter().map(|c| amount_column(c.take)).collect::<Vec<_>>())
    .bind(claims.iter().map(|c| grace_column(c.firmness)).collect::<Vec<_>>())
    .bind(claims.iter().map(|c| c.container.map_or(Uuid::nil(), |id| id.0)).collect::<Vec<_>>())
    .bind(claims.iter().map(|c| holder_columns(c.holder).0.to_owned()).collect::<Vec<_>>())
    .bind(claims.iter().map(|c| holder_columns(c.holder).1).collect::<Vec<_>>())
    .execute(conn)
    .await?;
    if rows == claims.len() as u64 {
        return Ok(());
    }
    let row = either(
        "SELECT NULL",
        "SELECT count(*) AS there FROM unnest($1::uuid[], $2::uuid[]) AS v (site, resource)
         JOIN resource r ON r.id = v.resource AND r.site = v.site AND r.removed_at IS NULL",
    )
    .bind(claims.iter().map(|c| c.site.0).collect::<Vec<_>>())
    .bind(claims.iter().map(|c| c.resource.0).collect::<Vec<_>>())
    .one(conn)
    .await?;
    Err(Error::Refused(
        if row.count("there")? < claims.len() as u64 {
            Refused::Resource
        } else {
            Refused::Claim
        },
    ))
}

pub async fn get(conn: &mut Conn, id: ClaimId) -> Result<Option<Claim>> {
    let row = query("SELECT * FROM claim WHERE id = $1")
        .bind(id.0)
        .optional(conn)
        .await?;
    row.as_ref().map(claim).transpose()
}

/// The claims in the order in which [`insert`] locks several claims. A caller that changes several claims one by one
/// uses this order, so that two such callers never deadlock. On SQLite any order will do.
pub async fn in_order(conn: &mut Conn, ids: Vec<ClaimId>) -> Result<Vec<ClaimId>> {
    if ids.len() < 2 || !conn.is_postgres() {
        return Ok(ids);
    }
    either(
        "SELECT NULL",
        "SELECT id FROM claim WHERE id = ANY($1) ORDER BY holds, starts, id",
    )
    .bind(ids.iter().map(|id| id.0).collect::<Vec<_>>())
    .map(conn, |row| Ok(ClaimId(row.get("id")?)))
    .await
}

/// Moves a holding claim in time, under the claim rule.
pub async fn set_span(conn: &mut Conn, id: ClaimId, span: Span) -> Result<()> {
    let changed =
        query("UPDATE claim SET starts = $1, ends = $2 WHERE id = $3 AND standing = 'holding'")
            .bind(span.start())
            .bind(span.end())
            .bind(id.0)
            .execute(conn)
            .await?;
    if changed == 1 {
        Ok(())
    } else {
        Err(Error::Refused(Refused::NotHolding))
    }
}

/// Gives a holding claim another span and another amount at once, so that the claim rule checks only the result.
pub async fn reshape(conn: &mut Conn, id: ClaimId, span: Span, take: Take) -> Result<()> {
    let changed = query(
        "UPDATE claim SET starts = $1, ends = $2, amount = $3 WHERE id = $4 AND standing = 'holding'",
    )
    .bind(span.start())
    .bind(span.end())
    .bind(amount_column(take))
    .bind(id.0)
    .execute(conn)
    .await?;
    if changed == 1 {
        Ok(())
    } else {
        Err(Error::Refused(Refused::NotHolding))
    }
}

/// Moves a holding claim to another resource, under the claim rule.
pub async fn rebind(conn: &mut Conn, id: ClaimId, resource: ResourceId, take: Take) -> Result<()> {
    let changed = either(
        "UPDATE claim SET resource = $1, amount = $2 WHERE id = $3 AND standing = 'holding'",
        "UPDATE claim SET resource = r.id, amount = $2, holds = r.subtree
         FROM resource r WHERE r.id = $1 AND r.site = claim.site AND r.removed_at IS NULL
           AND claim.id = $3 AND claim.standing = 'holding'",
    )
    .bind(resource.0)
    .bind(amount_column(take))
    .bind(id.0)
    .execute(conn)
    .await?;
    if changed == 1 {
        return Ok(());
    }
    let holding = get(conn, id)
        .await?
        .is_some_and(|claim| claim.standing == Standing::Holding);
    Err(Error::Refused(if holding {
        Refused::Resource
    } else {
        Refused::NotHolding
    }))
}

/// Ends claims at `now`. A claim that has begun keeps the time it used; one that has not begun becomes void. Claims
/// inside these are released first.
pub async fn release(conn: &mut Conn, ids: &[ClaimId], now: Timestamp) -> Result<()> {
    let mut levels = vec![ids.to_vec()];
    loop {
        let outer: Vec<Uuid> = levels.last().into_iter().flatten().map(|id| id.0).collect();
        let inside = inside(conn, outer).await?;
        if inside.is_empty() {
            break;
        }
        levels.push(inside.iter().map(|claim| claim.id).collect());
    }
    for level in levels.iter().rev() {
        either(
            "UPDATE claim SET standing = CASE WHEN starts < $2 THEN 'past' ELSE 'void' END,
                 ends = CASE WHEN starts < $2 AND ends > $2 THEN $2 ELSE ends END
             WHERE id IN (SELECT unhex(value) FROM json_each($1)) AND standing = 'holding'",
            "UPDATE claim SET standing = CASE WHEN starts < $2 THEN 'past' ELSE 'void' END, holds = NULL,
                 ends = CASE WHEN starts < $2 AND ends > $2 THEN $2 ELSE ends END
             WHERE id = ANY($1) AND standing = 'holding'",
        )
        .bind(level.iter().map(|id| id.0).collect::<Vec<_>>())
        .bind(now)
        .execute(conn)
        .await
        .map_err(settled_too_early)?;
    }
    Ok(())
}

/// The caller settled all claims inside, so a claim found there now was inserted in between.
fn settled_too_early(error: Error) -> Error {
    match error {
        Error::Refused(Refused::HasInside) => Error::Retry,
        other => other,
    }
}

/// The holding claims directly inside any of `containers`, locked until the transaction ends.
async fn inside(conn: &mut Conn, containers: Vec<Uuid>) -> Result<Vec<Claim>> {
    either(
        "SELECT * FROM claim WHERE container IN (SELECT unhex(value) FROM json_each($1)) AND standing = 'holding'",
        "SELECT * FROM claim WHERE container = ANY($1) AND holds IS NOT NULL FOR NO KEY UPDATE",
    )
    .bind(containers)
    .map(conn, claim)
    .await
}

/// Shortens a claim to `span`, and settles the claims inside it first. A claim partly outside `span` is cut to it; a
/// claim wholly outside is released.
pub async fn shrink(conn: &mut Conn, id: ClaimId, span: Span, now: Timestamp) -> Result<()> {
    let mut pending = vec![id];
    let mut order = Vec::new();
    while let Some(container) = pending.pop() {
        for inner in inside(conn, vec![container.0]).await? {
            pending.push(inner.id);
            order.push(inner);
        }
    }
    for inner in order.iter().rev() {
        match inner.span.intersection(span) {
            Some(left) if left == inner.span => {}
            Some(left) => set_span(conn, inner.id, left)
                .await
                .map_err(settled_too_early)?,
            None => release(conn, &[inner.id], now).await?,
        }
    }
    set_span(conn, id, span).await.map_err(settled_too_early)
}

pub async fn held_by(conn: &mut Conn, holder: Holder) -> Result<Vec<Claim>> {
    query("SELECT * FROM claim WHERE holder = $1 AND standing = 'holding' ORDER BY id")
        .bind(holder_columns(holder).1)
        .map(conn, claim)
        .await
}

/// All claims that a holder has or had, released ones included.
pub async fn all_of(conn: &mut Conn, holder: Holder) -> Result<Vec<Claim>> {
    query("SELECT * FROM claim WHERE holder = $1 ORDER BY id")
        .bind(holder_columns(holder).1)
        .map(conn, claim)
        .await
}

/// The holding claims of one scope that overlap `span` on the resource, above it or below it.
///
/// Here and in the two functions below, `CROSS JOIN` and `OFFSET 0` fix the join order: from the few resources of a
/// line to their claims. Without them the planner reads all past claims for every refusal.
pub async fn overlapping(
    conn: &mut Conn,
    resource: ResourceId,
    span: Span,
    container: Option<ClaimId>,
    limit: u64,
) -> Result<Vec<Claim>> {
    either(
        "WITH line (id) AS (SELECT above FROM resource_line WHERE below = $1
                            UNION SELECT below FROM resource_line WHERE above = $1)
         SELECT c.* FROM line CROSS JOIN claim c ON c.resource = line.id AND c.scope = coalesce($4, x'')
         WHERE c.standing = 'holding' AND c.amount IS NULL AND c.starts < $3 AND c.ends > $2
         UNION ALL
         SELECT c.* FROM line CROSS JOIN claim c ON c.resource = line.id AND c.scope = coalesce($4, x'')
         WHERE c.standing = 'holding' AND c.amount IS NOT NULL AND c.starts < $3 AND c.ends > $2
         ORDER BY starts, id LIMIT $5",
        "SELECT c.* FROM resource r JOIN claim c ON c.holds && r.subtree AND c.during && int8range($2, $3)
         WHERE r.id = $1 AND c.scope = CASE WHEN $4::uuid IS NULL THEN 0 ELSE (SELECT nr FROM claim WHERE id = $4) END
         ORDER BY c.starts, c.id LIMIT $5",
    )
    .bind(resource.0)
    .bind(span.start())
    .bind(span.end())
    .bind(container.map(|id| id.0))
    .bind(limit)
    .map(conn, claim)
    .await
}

/// The ended claims that overlapped `span`, on the resource, above it or below it in the current tree. Claims inside a
/// container are left out; the container's own claim stands for them.
pub async fn over_during(
    conn: &mut Conn,
    resource: ResourceId,
    span: Span,
    limit: u64,
) -> Result<Vec<Claim>> {
    either(
        "WITH line (id) AS (SELECT above FROM resource_line WHERE below = $1
                            UNION SELECT below FROM resource_line WHERE above = $1)
         SELECT c.* FROM line CROSS JOIN claim c ON c.resource = line.id AND c.ends > $2
         WHERE c.starts < $3 AND c.standing = 'past' AND c.standing <> 'void' AND c.container IS NULL
         ORDER BY c.starts, c.id LIMIT $4",
        "WITH RECURSIVE up (id, parent) AS (
             SELECT id, parent FROM resource WHERE id = $1
             UNION ALL SELECT r.id, r.parent
             FROM up CROSS JOIN LATERAL (SELECT id, parent FROM resource WHERE id = up.parent OFFSET 0) r),
         down (id) AS (
             SELECT id FROM resource WHERE parent = $1
             UNION ALL SELECT r.id
             FROM down CROSS JOIN LATERAL (SELECT id FROM resource WHERE parent = down.id OFFSET 0) r)
         SELECT c.* FROM (SELECT id FROM up UNION ALL SELECT id FROM down) line
         CROSS JOIN LATERAL (
             SELECT * FROM claim
             WHERE resource = line.id AND ends > $2 AND starts < $3 AND standing = 'past' AND standing <> 'void'
               AND container IS NULL
             OFFSET 0) c
         ORDER BY c.starts, c.id LIMIT $4",
    )
    .bind(resource.0)
    .bind(span.start())
    .bind(span.end())
    .bind(limit)
    .map(conn, claim)
    .await
}

/// Every holding claim on a resource or below it, in any scope: the claims that a move of the resource takes along.
pub async fn holding_below(conn: &mut Conn, resource: ResourceId) -> Result<Vec<Claim>> {
    either(
        "SELECT c.* FROM resource_line l CROSS JOIN claim c ON c.resource = l.below
         WHERE l.above = $1 AND c.standing = 'holding' AND c.amount IS NULL
         UNION ALL
         SELECT c.* FROM resource_line l CROSS JOIN claim c ON c.resource = l.below
         WHERE l.above = $1 AND c.standing = 'holding' AND c.amount IS NOT NULL",
        "SELECT c.* FROM resource r JOIN claim c ON c.holds <<= r.subtree WHERE r.id = $1",
    )
    .bind(resource.0)
    .map(conn, claim)
    .await
}

/// The resources on which these reservations, windows or claims have, or had, a claim. Unknown ids are ignored.
pub async fn touched_by(conn: &mut Conn, subjects: Vec<Uuid>) -> Result<Vec<ResourceId>> {
    either(
        "SELECT resource FROM claim WHERE holder IN (SELECT unhex(value) FROM json_each($1))
         UNION SELECT resource FROM claim WHERE id IN (SELECT unhex(value) FROM json_each($1))",
        "SELECT resource FROM claim WHERE holder = ANY($1) UNION SELECT resource FROM claim WHERE id = ANY($1)",
    )
    .bind(subjects)
    .map(conn, |row| Ok(ResourceId(row.get("resource")?)))
    .await
}

/// Every holding claim on the given resources.
pub async fn holding_on(conn: &mut Conn, resources: Vec<ResourceId>) -> Result<Vec<Claim>> {
    either(
        "SELECT * FROM claim WHERE resource IN (SELECT unhex(value) FROM json_each($1)) AND standing = 'holding'
             AND amount IS NULL
         UNION ALL
         SELECT * FROM claim WHERE resource IN (SELECT unhex(value) FROM json_each($1)) AND standing = 'holding'
             AND amount IS NOT NULL",
        "SELECT * FROM claim WHERE resource = ANY($1) AND standing = 'holding'",
    )
    .bind(resources.iter().map(|id| id.0).collect::<Vec<_>>())
    .map(conn, claim)
    .await
}

/// Every claim of the store at one moment, for tests that check the claim rule from outside. It is one statement,
/// because a commit between two statements would show a claim together with its replacement.
pub async fn all(conn: &mut Conn) -> Result<Vec<Claim>> {
    query("SELECT * FROM claim ORDER BY id")
        .map(conn, claim)
        .await
}

/// The number of claims, and the number of holding claims.
pub async fn counts(conn: &mut Conn) -> Result<(u64, u64)> {
    let row = query(
        "SELECT count(*) AS n, coalesce(sum(CASE WHEN standing = $1 THEN 1 ELSE 0 END), 0) AS holding FROM claim",
    )
    .bind(Standing::Holding.word())
    .one(conn)
    .await?;
    Ok((row.count("n")?, row.count("holding")?))
}
