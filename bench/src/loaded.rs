//! With 1,000,000 claims stored: is a booking still quick, and a month of 200 resources?

use anyhow::{Result, ensure};
use berth_store::Engine;
use jiff::{SignedDuration, Timestamp};
use std::time::Instant;

use crate::booking::latencies;
use crate::http::Connection;
use crate::lab::{Lab, RESOURCES};
use crate::report::{Report, percentile, say};

const FEW: usize = 1_000;
const MANY: usize = 1_000_000;
const CALENDAR_ROWS: usize = 200;

pub async fn run(report: &mut Report) -> Result<()> {
    let (mut growth, mut month) = (Vec::new(), Vec::new());
    for (engine, name) in [(Engine::Sqlite, "sqlite"), (Engine::Postgres, "postgres")] {
        say(&format!(
            "loaded, on {name}: laying {FEW} and {MANY} claims"
        ));
        let few = Lab::build(engine, RESOURCES).await?;
        few.lay_claims(FEW).await?;
        let many = Lab::build(engine, RESOURCES).await?;
        many.lay_claims(MANY).await?;
        let (few_server, many_server) = (few.serve().await?, many.serve().await?);
        let (mut with_few, mut with_many) = (Vec::new(), Vec::new());
        // Both take turns in small shares, so that what the machine does besides hits both.
        for _ in 0..10 {
            with_few.extend(latencies(&few, few_server.port(), 4, 100).await?);
            with_many.extend(latencies(&many, many_server.port(), 4, 100).await?);
        }
        let (few_p99, many_p99) = (
            percentile(&mut with_few, 0.99),
            percentile(&mut with_many, 0.99),
        );
        report.add(format!("booking.{name}.p99_ms_at_1k"), few_p99);
        report.add(format!("booking.{name}.p99_ms_at_1m"), many_p99);
        growth.push(many_p99 / few_p99);
        report.add(
            format!("booking.{name}.growth_1k_to_1m"),
            many_p99 / few_p99,
        );
        let mut calendar = months(&many, many_server.port()).await?;
        let p99 = percentile(&mut calendar, 0.99);
        report.add(
            format!("calendar.{name}.month_200.p50_ms"),
            percentile(&mut calendar, 0.5),
        );
        report.add(format!("calendar.{name}.month_200.p99_ms"), p99);
        month.push(p99);
        let (seconds, mib) = everything(&many, many_server.port()).await?;
        report.add(format!("calendar.{name}.all_1m_s"), seconds);
        report.add(format!("calendar.{name}.all_1m_mib"), mib);
    }
    // The goal is for a user, whatever the store: the worse of the two counts.
    report.add(
        "booking.growth_1k_to_1m",
        growth.into_iter().fold(0.0, f64::max),
    );
    report.add(
        "calendar.month_200.p99_ms",
        month.into_iter().fold(0.0, f64::max),
    );
    Ok(())
}

/// How long a month of 200 resources takes to read, over and over at different places.
async fn months(lab: &Lab, port: u16) -> Result<Vec<f64>> {
    let mut connection = Connection::open(port).await?;
    let mut samples = Vec::new();
    for turn in 0..300usize {
        let first = (turn * 37) % (lab.resources.len() - CALENDAR_ROWS);
        let rows: Vec<String> = lab.resources[first..first + CALENDAR_ROWS]
            .iter()
            .map(|id| format!("resource={id}"))
            .collect();
        let from = now() + SignedDuration::from_hours(24 * (turn as i64 % 30 - 15));
        let to = from + SignedDuration::from_hours(24 * 30);
        let path = format!(
            "/api/v1/sites/{}/calendar?from={from}&to={to}&{}",
            lab.site,
            rows.join("&")
        );
        let asked = Instant::now();
        let answer = connection.get(&path, &lab.token).await?;
        samples.push(asked.elapsed().as_secs_f64() * 1000.0);
        ensure!(
            answer.status == 200,
            "the calendar answered {}",
            answer.status
        );
        ensure!(
            answer.body_bytes > 10_000,
            "a month of {CALENDAR_ROWS} resources is not that empty"
        );
    }
    Ok(samples)
}

/// How long the sums of all claims take, and how long the answer is.
async fn everything(lab: &Lab, port: u16) -> Result<(f64, f64)> {
    let mut connection = Connection::open(port).await?;
    let from = now() - SignedDuration::from_hours(24 * 365 * 3);
    let to = now() + SignedDuration::from_hours(24 * 90);
    let path = format!("/api/v1/sites/{}/calendar?from={from}&to={to}", lab.site);
    let asked = Instant::now();
    let answer = connection.get(&path, &lab.token).await?;
    let seconds = asked.elapsed().as_secs_f64();
    ensure!(
        answer.status == 200,
        "the calendar answered {}",
        answer.status
    );
    Ok((seconds, answer.body_bytes as f64 / f64::from(1 << 20)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark looks at the real present"
)]
pub fn now() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH)
}

impl Lab {
    /// Lays `count` claims of one hour evenly over the resources: nine tenths past, one tenth in the next two months,
    /// each with its reservation.
    pub async fn lay_claims(&self, count: usize) -> Result<()> {
        crate::bulk::lay(self, crate::bulk::rows(self, count, now())).await
    }
}
