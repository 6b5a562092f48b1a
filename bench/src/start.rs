//! `server.start_ms` and `cli.round_trip_ms`: how long until it is there, and how long a command takes.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, ensure};
use berth_store::Engine;

use crate::lab::{Lab, RESOURCES, binary};
use crate::report::{Report, percentile, say};

const STARTS: usize = 15;
const CALLS: usize = 60;
const CLAIMS: usize = 100_000;

pub async fn run(report: &mut Report) -> Result<()> {
    say(&format!(
        "start: {STARTS} starts on a database of {CLAIMS} claims, {CALLS} CLI calls"
    ));
    let lab = Lab::build(Engine::Sqlite, RESOURCES).await?;
    lab.lay_claims(CLAIMS).await?;
    let mut server = lab.serve().await?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        server.stop().await?;
        let started = Instant::now();
        server.restart().await?;
        starts.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    report.add("server.start_ms", percentile(&mut starts, 0.5));
    let url = server.url("");
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        let started = Instant::now();
        let done = Command::new(binary()?)
            .args(["site", "list", "-o", "json"])
            .env("BERTH_SERVER", &url)
            .env("BERTH_TOKEN", &lab.token)
            .stdout(Stdio::piped())
            .output()?;
        calls.push(started.elapsed().as_secs_f64() * 1000.0);
        ensure!(
            done.status.success(),
            "berth site list failed: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        ensure!(!done.stdout.is_empty(), "berth site list said nothing");
    }
    report.add("cli.round_trip_ms", percentile(&mut calls, 0.5));
    report.add("cli.round_trip_p99_ms", percentile(&mut calls, 0.99));
    Ok(())
}
