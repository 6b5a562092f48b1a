//! The other side of `vs_bare`: the same rows, written straight to the same schema with the same constraint.
//!
//! On SQLite one connection writes 64 bookings per transaction; on PostgreSQL 64 connections write one per
//! transaction. Nothing is read, checked or decided: this is what the database alone can take.

use anyhow::Result;
use rand::RngExt;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};
use std::time::{Duration, Instant};
use uuid::Uuid;

use crate::booking::{CLIENTS, Slot};
use crate::lab::{Lab, fresh};

/// Texts as long as those a real booking writes, taken from one that the server wrote.
#[derive(Debug, Clone)]
pub struct Sample {
    pub items: String,
    pub after: String,
    pub event: String,
    pub origin: String,
}

macro_rules! write_booking {
    ($connection:expr, $claim:literal, $lab:expr, $sample:expr, $slot:expr) => {{
        let (reservation, claim, now) = (fresh(), fresh(), 1_800_000_000_000_000i64);
        let (site, person, resource): (Uuid, Uuid, Uuid) = ($lab.site.0, $lab.person.0, $slot.resource.0);
        let (starts, ends) = ($slot.span.start().as_microsecond(), $slot.span.end().as_microsecond());
        let wrote = sqlx::query($claim)
            .bind(claim).bind(site).bind(resource).bind(starts).bind(ends).bind(reservation)
            .execute($connection).await;
        match wrote {
            Ok(done) if done.rows_affected() == 1 => {
                sqlx::query("INSERT INTO reservation (id, site, owner, title, privacy, state, starts, ends, items, parameters, version, created_at, updated_at, due_at) VALUES ($1, $2, $3, 'bench', 'site', 'confirmed', $4, $5, $6, '{}', 1, $7, $7, $4)")
                    .bind(reservation).bind(site).bind(person).bind(starts).bind(ends).bind(&$sample.items).bind(now)
                    .execute($connection).await?;
                sqlx::query("INSERT INTO reservation_history (reservation, at, to_state, starts, ends, changed_by) VALUES ($1, $2, 'confirmed', $3, $4, $5)")
                    .bind(reservation).bind(now).bind(starts).bind(ends).bind(person)
                    .execute($connection).await?;
                sqlx::query("INSERT INTO audit_entry (id, at, actor_kind, actor, origin, site, action, subject, after) VALUES ($1, $2, 'person', $3, $4, $5, 'reservation.create', $6, $7)")
                    .bind(fresh()).bind(now).bind(person).bind(&$sample.origin).bind(site).bind(reservation.to_string()).bind(&$sample.after)
                    .execute($connection).await?;
                sqlx::query("INSERT INTO event (id, at, kind, site, subject, audience, data) VALUES ($1, $2, 'reservation.created', $3, $4, 'members', $5)")
                    .bind(fresh()).bind(now).bind(site).bind(reservation.to_string()).bind(&$sample.event)
                    .execute($connection).await?;
                true
            }
            // The rule refused it, as it refuses some of ours.
            Ok(_) => false,
            Err(error) if error.as_database_error().is_some() => false,
            Err(error) => return Err(error.into()),
        }
    }};
}

pub async fn sqlite(lab: &Lab, sample: &Sample, length: Duration) -> Result<f64> {
    let path = lab.ground.url.trim_start_matches("sqlite:");
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(10))
        .pragma("cache_size", "-65536")
        .pragma("mmap_size", "268435456")
        .disable_statement_logging();
    let mut connection: SqliteConnection = options.connect().await?;
    let started = Instant::now();
    let mut written = 0u64;
    while started.elapsed() < length {
        sqlx::query("BEGIN IMMEDIATE")
            .execute(&mut connection)
            .await?;
        for _ in 0..CLIENTS {
            let slot = Slot::random(lab);
            let booked = write_booking!(
                &mut connection,
                "INSERT INTO claim (id, site, resource, starts, ends, holder_kind, holder, standing) VALUES ($1, $2, $3, $4, $5, 'reservation', $6, 'holding')",
                lab,
                sample,
                slot
            );
            written += u64::from(booked);
        }
        sqlx::query("COMMIT").execute(&mut connection).await?;
    }
    let rate = written as f64 / started.elapsed().as_secs_f64();
    connection.close().await?;
    Ok(rate)
}

pub async fn postgres(lab: &Lab, sample: &Sample, length: Duration) -> Result<f64> {
    let options: PgConnectOptions = lab.ground.url.parse()?;
    let options = options.disable_statement_logging();
    let mut connections = Vec::new();
    for _ in 0..CLIENTS {
        connections.push(options.connect().await?);
    }
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for connection in connections {
        let (lab, sample) = (lab.address(), sample.clone());
        tasks.spawn(write_until(connection, lab, sample, started + length));
    }
    let mut written = 0;
    for outcome in tasks.join_all().await {
        written += outcome?;
    }
    Ok(written as f64 / started.elapsed().as_secs_f64())
}

async fn write_until(
    mut connection: PgConnection,
    lab: crate::lab::Address,
    sample: Sample,
    end: Instant,
) -> Result<u64> {
    let mut written = 0;
    while Instant::now() < end {
        let slot = Slot::among(&lab.resources, rand::rng().random());
        let mut tx = connection.begin().await?;
        let booked = write_booking!(
            &mut *tx,
            "INSERT INTO claim (id, site, resource, starts, ends, holder_kind, holder, standing, holds) SELECT $1, $2, id, $4, $5, 'reservation', $6, 'holding', subtree FROM resource WHERE id = $3 ON CONFLICT DO NOTHING",
            lab,
            sample,
            slot
        );
        tx.commit().await?;
        written += u64::from(booked);
    }
    Ok(written)
}
