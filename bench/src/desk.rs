//! The booking desk: how long "when can I have it?" takes on a large, busy site, what a refusal with alternatives costs,
//! and what it costs to make room.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use berth_model::attribute::{AttributeValue, Attributes};
use berth_store::Engine;
use jiff::{SignedDuration, Timestamp};
use rand::RngExt;
use serde_json::{Value, json};

use crate::bulk::{self, Row};
use crate::http::Connection;
use crate::lab::{Lab, RESOURCES};
use crate::loaded::now;
use crate::report::{Report, percentile, say};

const CLAIMS: usize = 1_000_000;
const ASKED: usize = 400;
const HOUR_US: i64 = 3_600_000_000;
/// Nine of ten hours are taken, at different times on every resource.
const SLOT_US: i64 = 10 * HOUR_US;
const BUSY_US: i64 = 9 * HOUR_US;

pub async fn run(report: &mut Report) -> Result<()> {
    let (mut when, mut refusal) = (Vec::new(), Vec::new());
    for (engine, name) in [(Engine::Sqlite, "sqlite"), (Engine::Postgres, "postgres")] {
        say(&format!(
            "desk, on {name}: laying {CLAIMS} claims on {RESOURCES} resources, nine tenths busy"
        ));
        let lab = Lab::build_with(engine, RESOURCES, kinds).await?;
        bulk::lay(&lab, busy(&lab)).await?;
        let server = lab.serve().await?;
        let mut connection = Connection::open(server.port()).await?;
        let first = Instant::now();
        ask(&lab, &mut connection, true).await?;
        report.add(
            format!("when.{name}.first_ms"),
            first.elapsed().as_secs_f64() * 1000.0,
        );
        let mut asked = Vec::new();
        for number in 0..ASKED {
            asked.push(ask(&lab, &mut connection, number % 2 == 0).await?);
        }
        told(report, &format!("when.{name}.10k_1m"), asked, &mut when);
        let mut refused = Vec::new();
        for _ in 0..ASKED {
            refused.push(be_refused(&lab, &mut connection).await?);
        }
        let key = format!("refusal.{name}.alternatives");
        told(report, &key, refused, &mut refusal);
    }
    report.add("when.10k_1m.p99_ms", worst(when));
    report.add("refusal.alternatives.p99_ms", worst(refusal));
    rearrange(report).await
}

/// A group of its own, besides: it needs no million claims.
pub async fn rearrange(report: &mut Report) -> Result<()> {
    let mut room = Vec::new();
    for (engine, name) in [(Engine::Sqlite, "sqlite"), (Engine::Postgres, "postgres")] {
        say(&format!("rearrange, on {name}"));
        let moved = make_room(engine).await?;
        told(report, &format!("rearrange.{name}.1k"), moved, &mut room);
    }
    report.add("rearrange.1k.p99_ms", worst(room));
    Ok(())
}

/// The goal is for a user, whatever the store: the worse of the two counts.
fn worst(of: Vec<f64>) -> f64 {
    of.into_iter().fold(0.0, f64::max)
}

fn told(report: &mut Report, key: &str, mut samples: Vec<f64>, worst: &mut Vec<f64>) {
    let p99 = percentile(&mut samples, 0.99);
    report.add(format!("{key}.p50_ms"), percentile(&mut samples, 0.5));
    report.add(format!("{key}.p99_ms"), p99);
    worst.push(p99);
}

/// What a resource is: one of four models, with one of three sizes.
fn kinds(number: usize) -> Attributes {
    let text = |text: &str| AttributeValue::Text(text.into());
    let model = ["A100", "H100", "L40", "MI300"][number % 4];
    let memory = [40.0, 80.0, 192.0][number / 4 % 3];
    let attributes = [
        ("gpu_model", text(model)),
        ("memory_gb", AttributeValue::Number(memory)),
    ];
    let named = attributes.map(|(name, value)| Some((name.parse().ok()?, value)));
    named.into_iter().flatten().collect()
}

fn busy(lab: &Lab) -> impl Iterator<Item = Row> {
    let start = now().as_microsecond();
    let each = CLAIMS / lab.resources.len();
    let resources = lab.resources.clone();
    resources.into_iter().flat_map(move |resource| {
        let mut chance = rand::rng();
        let offset = chance.random_range(0..SLOT_US);
        (0..each as i64).map(move |nth| {
            let jitter = rand::rng().random_range(0..(SLOT_US - BUSY_US));
            let starts = start + offset + nth * SLOT_US + jitter;
            // Up to the next slot's earliest start at most, so that none meet.
            Row::holding(resource, starts, starts + BUSY_US)
        })
    })
}

/// Asks for some of a kind; every other time for what cannot be had before its deadline.
async fn ask(lab: &Lab, connection: &mut Connection, is_possible: bool) -> Result<f64> {
    let mut chance = rand::rng();
    let model = ["A100", "H100", "L40", "MI300"][chance.random_range(0..4)];
    let memory = [40, 80][chance.random_range(0..2)];
    // An hour or less is free between two bookings; six hours in one piece on many are not.
    let (count, hours) = if is_possible {
        (4, "PT30M")
    } else {
        (64, "PT6H")
    };
    // From tomorrow on, when all of them have begun to be busy.
    let earliest = now() + SignedDuration::from_hours(24);
    let deadline = now() + SignedDuration::from_hours(24 * chance.random_range(10..35));
    let body = json!({"wish": {
        "what": model, "where": [format!("memory_gb>={memory}")],
        "variants": [{"count": count, "for": hours}], "earliest": earliest, "before": deadline,
    }});
    let asked = Instant::now();
    let answer = connection
        .post("/api/v1/when", &lab.token, &body.to_string())
        .await?;
    let took = asked.elapsed().as_secs_f64() * 1000.0;
    let told: Value = serde_json::from_slice(&answer.body)?;
    ensure!(answer.status == 200, "answered {}: {told}", answer.status);
    let choices = told["choices"].as_array().context("choices")?.len();
    ensure!((choices > 0) == is_possible, "{choices} choices for {body}");
    Ok(took)
}

/// Asks for one resource at a time at which it is taken.
async fn be_refused(lab: &Lab, connection: &mut Connection) -> Result<f64> {
    loop {
        let mut chance = rand::rng();
        let resource = lab.resources[chance.random_range(0..lab.resources.len())];
        let start = now() + SignedDuration::from_hours(24 + chance.random_range(0..240));
        // Short enough for the gaps between bookings, so that there is something to offer.
        let end = start + SignedDuration::from_mins(30);
        let body = json!({"title": "bench", "start": start, "end": end, "resources": [{"resource": resource}]});
        let asked = Instant::now();
        let answer = connection
            .post(&lab.reservations_path(), &lab.token, &body.to_string())
            .await?;
        let took = asked.elapsed().as_secs_f64() * 1000.0;
        if answer.status == 201 {
            continue;
        }
        let told: Value = serde_json::from_slice(&answer.body)?;
        ensure!(answer.status == 409, "answered {}: {told}", answer.status);
        let offered = told["alternatives"].as_array().map_or(0, Vec::len);
        ensure!(offered > 0, "a refusal without alternatives: {told}");
        return Ok(took);
    }
}

/// 100 resources, 1,000 movable bookings on them, and requests that fit only after some of these have moved: how
/// long each takes, accepted or not.
async fn make_room(engine: Engine) -> Result<Vec<f64>> {
    const BOOKINGS: usize = 1_000;
    let lab = Lab::build(engine, 100).await?;
    let server = lab.serve().await?;
    let mut connection = Connection::open(server.port()).await?;
    let path = format!("{}/any", lab.reservations_path());
    let mut chance = rand::rng();
    let first = now() + SignedDuration::from_hours(48);
    let any = async |connection: &mut Connection, start: Timestamp, hours: i64| {
        let end = start + SignedDuration::from_hours(hours);
        let body = json!({"title": "bench", "wish": {
            "what": "server", "variants": [{"for": format!("PT{hours}H")}], "earliest": start, "before": end,
        }});
        let asked = Instant::now();
        let answer = connection
            .post(&path, &lab.token, &body.to_string())
            .await?;
        let took = asked.elapsed().as_secs_f64() * 1000.0;
        ensure!(
            matches!(answer.status, 201 | 409),
            "answered {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
        Ok((answer.status == 201, took))
    };
    // Over twenty days or so, as full as it gets by first fit.
    let mut made = 0;
    while made < BOOKINGS {
        let start = first + SignedDuration::from_hours(chance.random_range(0..200));
        let hours = chance.random_range(4..28);
        let (is_made, _) = any(&mut connection, start, hours).await?;
        made += usize::from(is_made);
    }
    let mut samples = Vec::new();
    let mut accepted = 0;
    for _ in 0..200 {
        let start = first + SignedDuration::from_hours(chance.random_range(0..200));
        let (is_made, took) = any(&mut connection, start, 24).await?;
        samples.push(took);
        accepted += usize::from(is_made);
    }
    say(&format!(
        "  of 200 long ones on a nearly full site {accepted} were accepted"
    ));
    Ok(samples)
}
