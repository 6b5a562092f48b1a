//! How good the queue's plans are, on public traces. They stay outside the repository; a file that is not there leaves its keys out.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use berth_sim::crowd::Crowd;
use berth_sim::openb::{self, ModelNames};
use berth_sim::replay::{Play, Times, a_tenth_reserved, replay};
use berth_sim::swf;
use sha2::{Digest, Sha256};

use crate::report::{Report, percentile, say};

const SEEDS: std::ops::RangeInclusive<u64> = 42..=51;
const PROCESSORS: u32 = 100;

pub fn run(report: &mut Report) -> Result<()> {
    for list in ["default", "gpushare100", "multigpu50"] {
        packing(report, list)?;
    }
    slowdown(report)?;
    speed(report);
    Ok(())
}

/// How long a plan takes, with what waits, runs and is reserved on ten thousand GPUs: one for all who wait, and one after somebody
/// came or something ended.
fn speed(report: &mut Report) {
    let mut points = Vec::new();
    for queued in [1_000, 10_000, 100_000] {
        say(&format!(
            "queue: {queued} who wait, on 10,000 GPUs with 10,000 reservations ahead"
        ));
        let mut crowd = Crowd::new(queued, 1);
        let full = timed(|| {
            crowd.plan();
        });
        report.add(format!("queue.plan_{queued}_ms"), full);
        points.push(((queued as f64).ln(), full.max(0.001).ln()));
        if queued < 100_000 {
            continue;
        }
        report.add("queue.plan_full_ms", full);
        let mut each: Vec<f64> = Vec::new();
        for turn in 0..60 {
            if turn % 2 == 0 {
                crowd.end_one();
            } else {
                crowd.arrive();
            }
            each.push(timed(|| {
                crowd.plan();
            }));
        }
        report.add("queue.plan_incremental_ms", percentile(&mut each, 0.5));
        report.add("queue.plan_incremental_p99_ms", percentile(&mut each, 0.99));
    }
    report.add("queue.growth", slope(&points));
}

fn timed(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64() * 1000.0
}

/// Of the line through the points that is nearest to them.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let up: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let along: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    up / along
}

/// A trace and its checksum, so that a figure can be told to be that of this very file.
fn trace(name: &str) -> Option<String> {
    let folder: PathBuf = berth_testkit::repository::root().join("../shared/data");
    let Ok(text) = std::fs::read_to_string(folder.join(name)) else {
        say(&format!(
            "queue: {name} is not there, and neither are its keys"
        ));
        return None;
    };
    let sum: String = Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    say(&format!("queue: {name}, sha256 {sum}"));
    Some(text)
}

/// How much of the GPUs is given out, as the published table measures it.
fn packing(report: &mut Report, list: &str) -> Result<()> {
    let nodes = trace("openb/openb_node_list_gpu_node.csv");
    let pods = trace(&format!("openb/openb_pod_list_{list}.csv"));
    let (Some(nodes), Some(pods)) = (nodes, pods) else {
        return Ok(());
    };
    let mut models = ModelNames::default();
    let nodes = openb::nodes(&nodes, &mut models).context("the list of nodes")?;
    let pods = openb::pods(&pods, &mut models).context("the list of pods")?;
    let share = |seed| openb::allocated(&nodes, &pods, &openb::drawn(&pods, &nodes, seed));
    let shares: Vec<f64> = SEEDS.map(share).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    report.add(format!("queue.openb_{list}_130"), mean);
    Ok(())
}

/// How much longer than they ran people had to wait, in the mean.
fn slowdown(report: &mut Report) -> Result<()> {
    let Some(log) = trace("kth-sp2/log.swf") else {
        return Ok(());
    };
    let jobs = swf::read(&log, PROCESSORS)?;
    let mut play = Play {
        processors: PROCESSORS,
        times: Times::Asked,
        walls: Vec::new(),
    };
    for (times, key) in [
        (Times::Asked, "queue.kth_default"),
        (Times::Predicted, "queue.kth_predicted"),
    ] {
        play.times = times;
        let outcome = replay(&jobs, &play);
        report.add(key, outcome.slowdown_mean);
        report.add(format!("{key}.largest"), outcome.slowdown_max);
        report.add(format!("{key}.broken_promises"), outcome.broken as f64);
    }
    play.times = Times::Asked;
    play.walls = a_tenth_reserved(&jobs, PROCESSORS, 1);
    say(&format!(
        "  with {} reservations laid over it",
        play.walls.len()
    ));
    let outcome = replay(&jobs, &play);
    report.add("queue.kth_reserved.late_s", outcome.late_s);
    report.add("queue.kth_reserved.slowdown", outcome.slowdown_mean);
    Ok(())
}
