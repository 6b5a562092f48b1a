//! `booking.*.vs_bare`: durable bookings per second through HTTP, beside the bare database.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use berth_model::{ResourceId, Span};
use berth_store::Engine;
use jiff::{SignedDuration, Timestamp};
use rand::RngExt;
use serde_json::{Value, json};

use crate::bare::{self, Sample};
use crate::http::Connection;
use crate::lab::{Lab, RESOURCES};
use crate::report::{Report, percentile, say};

pub const CLIENTS: usize = 64;
/// Ours and theirs take turns, so that a noisy minute hits both.
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(5);
const HORIZON_H: u64 = 24 * 365;

/// A wish: one hour on one of many resources within a year, so that most are granted.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    pub resource: ResourceId,
    pub span: Span,
}

impl Slot {
    pub fn random(lab: &Lab) -> Self {
        Self::among(&lab.resources, rand::rng().random())
    }

    pub fn among(resources: &[ResourceId], chance: u64) -> Self {
        let resource = resources[(chance % resources.len() as u64) as usize];
        let hour = (chance >> 20) % HORIZON_H;
        let start = Timestamp::from_second(next_hour() + hour as i64 * 3600)
            .expect("a moment within a year");
        let span =
            Span::new(start, start + SignedDuration::from_hours(1)).expect("an hour is a span");
        Self { resource, span }
    }

    pub fn body(self) -> String {
        json!({
            "title": "bench", "start": self.span.start(), "end": self.span.end(),
            "resources": [{ "resource": self.resource }],
        })
        .to_string()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark books in the real future"
)]
fn next_hour() -> i64 {
    Timestamp::now().as_second() / 3600 * 3600 + 7200
}

pub async fn run(report: &mut Report) -> Result<()> {
    for (engine, name) in [(Engine::Sqlite, "sqlite"), (Engine::Postgres, "postgres")] {
        say(&format!(
            "booking on {name}: {CLIENTS} clients, {RESOURCES} resources, {ROUNDS} rounds of {ROUND:?} each side"
        ));
        let lab = Lab::build(engine, RESOURCES).await?;
        let bare_lab = Lab::build(engine, RESOURCES).await?;
        let server = lab.serve().await?;
        let sample = sample(&lab, server.port()).await?;
        through_http(&lab, server.port(), Duration::from_secs(1)).await?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(through_http(&lab, server.port(), ROUND).await?);
            theirs.push(match engine {
                Engine::Sqlite => bare::sqlite(&bare_lab, &sample, ROUND).await?,
                Engine::Postgres => bare::postgres(&bare_lab, &sample, ROUND).await?,
            });
        }
        report.ratio(
            &format!("booking.{name}.vs_bare"),
            percentile(&mut ours, 0.5),
            percentile(&mut theirs, 0.5),
        );
    }
    Ok(())
}

/// One real booking, read back, so that the bare rows are as long as the real ones.
async fn sample(lab: &Lab, port: u16) -> Result<Sample> {
    let mut connection = Connection::open(port).await?;
    let answer = connection
        .post(
            &lab.reservations_path(),
            &lab.token,
            &Slot::random(lab).body(),
        )
        .await?;
    ensure!(
        answer.status == 201,
        "a booking was answered {}: {}",
        answer.status,
        String::from_utf8_lossy(&answer.body)
    );
    let store = berth_store::Store::connect(&lab.ground.url, 2).await?;
    let mut reader = store.read().await?;
    let made: Value = serde_json::from_slice(&answer.body)?;
    let id = made["id"]
        .as_str()
        .context("a reservation has an id")?
        .parse()?;
    let stored = berth_store::reservations::get(&mut reader, lab.site, id)
        .await?
        .context("it is stored")?;
    let after = serde_json::to_string(&stored)?;
    let items = serde_json::to_string(&stored.items)?;
    let event = json!({ "reservation": id, "resources": [stored.items[0].resource], "start": stored.span.start(),
        "end": stored.span.end(), "state": "confirmed", "version": 1, "title": "bench", "owner": stored.owner, "reason": null });
    drop(reader);
    store.close().await;
    Ok(Sample {
        items,
        after,
        event: event.to_string(),
        origin: "127.0.0.1 tok_01kc3v9xwbe8rv5w2n9q3m7t4h".into(),
    })
}

/// Bookings per second that were acknowledged.
async fn through_http(lab: &Lab, port: u16, length: Duration) -> Result<f64> {
    let booked = Arc::new(AtomicU64::new(0));
    let path: Arc<str> = lab.reservations_path().into();
    let token: Arc<str> = lab.token.as_str().into();
    let mut tasks = tokio::task::JoinSet::new();
    let started = Instant::now();
    for _ in 0..CLIENTS {
        let (booked, path, token, resources) = (
            booked.clone(),
            path.clone(),
            token.clone(),
            lab.address().resources,
        );
        tasks.spawn(async move {
            let mut connection = Connection::open(port).await?;
            while started.elapsed() < length {
                let body = Slot::among(&resources, rand::rng().random()).body();
                let answer = connection.post(&path, &token, &body).await?;
                match answer.status {
                    201 => booked.fetch_add(1, Ordering::Relaxed),
                    409 => 0,
                    other => anyhow::bail!(
                        "answered {other}: {}",
                        String::from_utf8_lossy(&answer.body)
                    ),
                };
            }
            Ok(())
        });
    }
    for outcome in tasks.join_all().await {
        outcome?;
    }
    Ok(booked.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}

/// The latencies, in milliseconds, of bookings made one after another by `clients` at once.
pub async fn latencies(lab: &Lab, port: u16, clients: usize, each: usize) -> Result<Vec<f64>> {
    let path: Arc<str> = lab.reservations_path().into();
    let token: Arc<str> = lab.token.as_str().into();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..clients {
        let (path, token, resources) = (path.clone(), token.clone(), lab.address().resources);
        tasks.spawn(async move {
            let mut connection = Connection::open(port).await?;
            let mut samples = Vec::with_capacity(each);
            while samples.len() < each {
                let body = Slot::among(&resources, rand::rng().random()).body();
                let asked = Instant::now();
                let answer = connection.post(&path, &token, &body).await?;
                match answer.status {
                    201 => samples.push(asked.elapsed().as_secs_f64() * 1000.0),
                    409 => {}
                    other => anyhow::bail!(
                        "answered {other}: {}",
                        String::from_utf8_lossy(&answer.body)
                    ),
                }
            }
            Ok(samples)
        });
    }
    let mut all = Vec::new();
    for samples in tasks.join_all().await {
        all.extend(samples?);
    }
    Ok(all)
}
