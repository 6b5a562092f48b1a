//! `queue.submit_per_s`: workloads per second that were acknowledged, each on disk, through HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use berth_store::Engine;

use crate::http::Connection;
use crate::lab::Lab;
use crate::report::{Report, percentile, say};

const CLIENTS: usize = 64;
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(5);
const NODES: usize = 100;

pub async fn run(report: &mut Report) -> Result<()> {
    let mut worst = f64::INFINITY;
    for (engine, name) in [(Engine::Sqlite, "sqlite"), (Engine::Postgres, "postgres")] {
        say(&format!(
            "queue: {CLIENTS} clients submit on {name}, {ROUNDS} rounds of {ROUND:?}"
        ));
        let lab = Lab::build(engine, NODES).await?;
        lab.make_queue().await?;
        let server = lab.serve().await?;
        submit(&lab, server.port(), Duration::from_secs(1)).await?;
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push(submit(&lab, server.port(), ROUND).await?);
        }
        let median = percentile(&mut rounds, 0.5);
        report.add(format!("queue.submit_per_s.{name}"), median);
        worst = worst.min(median);
    }
    report.add("queue.submit_per_s", worst);
    Ok(())
}

async fn submit(lab: &Lab, port: u16, length: Duration) -> Result<f64> {
    let done = Arc::new(AtomicU64::new(0));
    let path: Arc<str> = format!("/api/v1/sites/{}/workloads", lab.site).into();
    let token: Arc<str> = lab.token.as_str().into();
    let body: Arc<str> = serde_json::json!({
        "title": "bench", "program": { "command": ["python", "train.py", "--seed", "7"] },
        "wishes": [{ "task": { "cores_milli": 8000, "memory_mib": 65536 }, "limit": "PT2H" }],
    })
    .to_string()
    .into();
    let mut tasks = tokio::task::JoinSet::new();
    let started = Instant::now();
    for _ in 0..CLIENTS {
        let (done, path, token, body) = (done.clone(), path.clone(), token.clone(), body.clone());
        tasks.spawn(async move {
            let mut connection = Connection::open(port).await?;
            while started.elapsed() < length {
                let answer = connection.post(&path, &token, &body).await?;
                let said = String::from_utf8_lossy(&answer.body);
                ensure!(answer.status == 201, "answered {}: {said}", answer.status);
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
    }
    for outcome in tasks.join_all().await {
        outcome?;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}
