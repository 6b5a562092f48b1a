//! A million claims in a minute: rows written in bulk, past ones as past, holding ones under the rule.

use anyhow::Result;
use berth_model::ResourceId;
use jiff::Timestamp;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};
use uuid::Uuid;

use crate::lab::{Lab, fresh};

const HOUR_US: i64 = 3_600_000_000;
const BATCH: usize = 5_000;

#[derive(Debug)]
pub struct Row {
    claim: Uuid,
    reservation: Uuid,
    resource: Uuid,
    starts: i64,
    ends: i64,
    holding: bool,
}

impl Row {
    /// A claim that holds from `starts` to `ends`, microseconds.
    pub fn holding(resource: ResourceId, starts: i64, ends: i64) -> Self {
        Row {
            claim: fresh(),
            reservation: fresh(),
            resource: resource.0,
            starts,
            ends,
            holding: true,
        }
    }
}

/// The n-th claim: round-robin over the resources, back to back in time per resource, some hours apart.
pub fn rows(lab: &Lab, count: usize, now: Timestamp) -> impl Iterator<Item = Row> {
    let now = now.as_microsecond() / HOUR_US * HOUR_US;
    let per_resource = count.div_ceil(lab.resources.len()) as i64;
    let future = (per_resource / 10).max(1);
    let resources = lab.resources.clone();
    (0..count).map(move |n| {
        let nth = (n / resources.len()) as i64;
        // The last tenth of each resource's claims lies ahead, within 60 days; the others within two years back.
        let holding = nth >= per_resource - future;
        let starts = if holding {
            let step = 60 * 24 / future;
            now + HOUR_US * (2 + (nth - (per_resource - future)) * step)
        } else {
            let step = 2 * 365 * 24 / (per_resource - future).max(1);
            now - HOUR_US * (2 + nth * step)
        };
        Row {
            claim: fresh(),
            reservation: fresh(),
            resource: resources[n % resources.len()].0,
            starts,
            ends: starts + HOUR_US,
            holding,
        }
    })
}

/// Writes the claims, each with its reservation.
pub async fn lay(lab: &Lab, rows: impl Iterator<Item = Row>) -> Result<()> {
    if lab.ground.url.starts_with("sqlite:") {
        sqlite(lab, rows).await
    } else {
        postgres(lab, rows).await
    }
}

const RESERVATION: &str = "INSERT INTO reservation (id, site, owner, title, privacy, state, starts, ends, items, parameters, version, created_at, updated_at, due_at) VALUES ($1, $2, $3, 'Training run', 'site', $4, $5, $6, '[]', '{}', 1, $5, $5, $7)";

async fn sqlite(lab: &Lab, rows: impl Iterator<Item = Row>) -> Result<()> {
    let path = lab.ground.url.trim_start_matches("sqlite:");
    let mut connection = SqliteConnectOptions::new()
        .filename(path)
        .pragma("cache_size", "-262144")
        .disable_statement_logging()
        .connect()
        .await?;
    let mut tx = connection.begin().await?;
    for row in rows {
        let (state, due, standing) = if row.holding {
            ("confirmed", Some(row.starts), "holding")
        } else {
            ("done", None, "past")
        };
        sqlx::query(RESERVATION)
            .bind(row.reservation)
            .bind(lab.site.0)
            .bind(lab.person.0)
            .bind(state)
            .bind(row.starts)
            .bind(row.ends)
            .bind(due)
            .execute(&mut *tx)
            .await?;
        sqlx::query("INSERT INTO claim (id, site, resource, starts, ends, holder_kind, holder, standing) VALUES ($1, $2, $3, $4, $5, 'reservation', $6, $7)")
            .bind(row.claim).bind(lab.site.0).bind(row.resource).bind(row.starts).bind(row.ends).bind(row.reservation).bind(standing)
            .execute(&mut *tx).await?;
    }
    tx.commit().await?;
    sqlx::query("ANALYZE").execute(&mut connection).await?;
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut connection)
        .await?;
    connection.close().await?;
    Ok(())
}

async fn postgres(lab: &Lab, rows: impl Iterator<Item = Row>) -> Result<()> {
    let options: PgConnectOptions = lab.ground.url.parse()?;
    let mut connection = options.disable_statement_logging().connect().await?;
    sqlx::query("SET synchronous_commit = off")
        .execute(&mut connection)
        .await?;
    let all: Vec<Row> = rows.collect();
    for batch in all.chunks(BATCH) {
        let reservations: Vec<Uuid> = batch.iter().map(|row| row.reservation).collect();
        let claims: Vec<Uuid> = batch.iter().map(|row| row.claim).collect();
        let resources: Vec<Uuid> = batch.iter().map(|row| row.resource).collect();
        let starts: Vec<i64> = batch.iter().map(|row| row.starts).collect();
        let ends: Vec<i64> = batch.iter().map(|row| row.ends).collect();
        let holding: Vec<bool> = batch.iter().map(|row| row.holding).collect();
        sqlx::query("INSERT INTO reservation (id, site, owner, title, privacy, state, starts, ends, items, parameters, version, created_at, updated_at, due_at) SELECT v.id, $1, $2, 'Training run', 'site', CASE WHEN v.holding THEN 'confirmed' ELSE 'done' END, v.starts, v.ends, '[]', '{}', 1, v.starts, v.starts, CASE WHEN v.holding THEN v.starts END FROM unnest($3::uuid[], $4::bigint[], $5::boolean[], $6::bigint[]) AS v (id, starts, holding, ends)")
            .bind(lab.site.0).bind(lab.person.0).bind(&reservations).bind(&starts).bind(&holding).bind(&ends)
            .execute(&mut connection).await?;
        sqlx::query("INSERT INTO claim (id, site, resource, starts, ends, holder_kind, holder, standing, holds) SELECT v.id, $1, v.resource, v.starts, v.ends, 'reservation', v.reservation, CASE WHEN v.holding THEN 'holding' ELSE 'past' END, CASE WHEN v.holding THEN r.subtree END FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::bigint[], $6::boolean[], $7::bigint[]) AS v (id, resource, reservation, starts, holding, ends) JOIN resource r ON r.id = v.resource")
            .bind(lab.site.0).bind(&claims).bind(&resources).bind(&reservations).bind(&starts).bind(&holding).bind(&ends)
            .execute(&mut connection).await?;
    }
    sqlx::query("VACUUM ANALYZE")
        .execute(&mut connection)
        .await?;
    connection.close().await?;
    Ok(())
}
