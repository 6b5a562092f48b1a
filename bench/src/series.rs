//! `series.1000.vs_single`: a series of a thousand instances over a thousand single bookings, both
//! through HTTP, one request after the other as one person's client makes them.

use std::time::Instant;

use anyhow::{Result, ensure};
use berth_model::ResourceId;
use berth_store::Engine;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::http::Connection;
use crate::lab::Lab;
use crate::report::{Report, percentile, say};

const INSTANCES: usize = 1000;
/// Series and single bookings take turns, so that a noisy minute hits both.
const ROUNDS: usize = 3;

pub async fn run(report: &mut Report) -> Result<()> {
    let mut worst: Option<(f64, f64)> = None;
    for (engine, name) in [(Engine::Sqlite, "sqlite"), (Engine::Postgres, "postgres")] {
        say(&format!(
            "series on {name}: {INSTANCES} instances and as many single bookings, {ROUNDS} rounds"
        ));
        // A resource of its own for every series and every round of single bookings.
        let lab = Lab::build(engine, 2 * ROUNDS + 1).await?;
        let server = lab.serve().await?;
        let mut connection = Connection::open(server.port()).await?;
        series(&mut connection, &lab, lab.resources[2 * ROUNDS]).await?;
        let (mut together, mut single) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            together.push(series(&mut connection, &lab, lab.resources[2 * round]).await?);
            single.push(one_by_one(&mut connection, &lab, lab.resources[2 * round + 1]).await?);
        }
        let sides = (percentile(&mut together, 0.5), percentile(&mut single, 0.5));
        report.ratio(&format!("series.1000.{name}.vs_single"), sides.0, sides.1);
        // The promise is for both databases, so the worse of them counts.
        if worst.is_none_or(|worst| sides.0 / sides.1 > worst.0 / worst.1) {
            worst = Some(sides);
        }
    }
    if let Some((together, single)) = worst {
        report.add("series.1000.vs_single", together / single);
    }
    Ok(())
}

/// The milliseconds that a series takes.
async fn series(connection: &mut Connection, lab: &Lab, resource: ResourceId) -> Result<f64> {
    let body = json!({
        "title": "bench", "start": hour(0), "end": hour(1),
        "rule": format!("FREQ=DAILY;COUNT={INSTANCES}"), "resources": [{ "resource": resource }],
    });
    let asked = Instant::now();
    book(connection, &lab.series_path(), lab, &body.to_string()).await?;
    Ok(asked.elapsed().as_secs_f64() * 1000.0)
}

/// The milliseconds that the same bookings take one by one.
async fn one_by_one(connection: &mut Connection, lab: &Lab, resource: ResourceId) -> Result<f64> {
    let path = lab.reservations_path();
    let asked = Instant::now();
    for day in 0..INSTANCES as i64 {
        let body = json!({
            "title": "bench", "start": hour(24 * day), "end": hour(24 * day + 1),
            "resources": [{ "resource": resource }],
        });
        book(connection, &path, lab, &body.to_string()).await?;
    }
    Ok(asked.elapsed().as_secs_f64() * 1000.0)
}

async fn book(connection: &mut Connection, path: &str, lab: &Lab, body: &str) -> Result<()> {
    let answer = connection.post(path, &lab.token, body).await?;
    ensure!(
        answer.status == 201,
        "answered {}: {}",
        answer.status,
        String::from_utf8_lossy(&answer.body)
    );
    Ok(())
}

/// An hour from the day after tomorrow on, in UTC like the lab.
#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark books in the real future"
)]
fn hour(hours: i64) -> Timestamp {
    let midnight_s = Timestamp::now().as_second() / 86_400 * 86_400 + 2 * 86_400;
    Timestamp::from_second(midnight_s).expect("a moment that can be kept")
        + SignedDuration::from_hours(hours)
}
