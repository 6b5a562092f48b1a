//! How good the queue's plans are, on public traces. They stay outside the repository; a file that is not there leaves its keys out.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use berth_sim::crowd::{Crowd, Limits};
use berth_sim::kueue;
use berth_sim::openb::{self, ModelNames};
use berth_sim::patience;
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
    memory(report);
    crowds(report);
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
        let mut crowd = Crowd::new(queued, Limits::Few, 1);
        let full = timed(|| {
            crowd.plan();
        });
        report.add(format!("queue.plan_{queued}_ms"), full);
        points.push(((queued as f64).ln(), full.max(0.001).ln()));
        if queued < 100_000 {
            continue;
        }
        report.add("queue.plan_full_ms", full);
        one_by_one(report, &mut crowd, "queue.plan_incremental");
        let forecast = timed(|| {
            crowd.planner.forecast(crowd.now);
        });
        report.add("queue.forecast_ms", forecast);
        // When many have waited too long, a quarter of the fleet is promised, and each end may bring all of that forward.
        crowd.advance(3 * 3_600_000_000);
        let overdue = timed(|| {
            crowd.plan();
        });
        report.add("queue.plan_overdue_ms", overdue);
        one_by_one(report, &mut crowd, "queue.plan_overdue_incremental");
    }
    report.add("queue.growth", slope(&points));
    say("queue: 100000 who wait, no two for equally long");
    let mut crowd = Crowd::new(100_000, Limits::Varied, 1);
    let full = timed(|| {
        crowd.plan();
    });
    report.add("queue.plan_full_varied_ms", full);
    let forecast = timed(|| {
        crowd.planner.forecast(crowd.now);
    });
    report.add("queue.forecast_varied_ms", forecast);
    one_by_one(report, &mut crowd, "queue.plan_incremental_varied");
}

/// How long a plan takes after something ended or somebody came, by turns.
fn one_by_one(report: &mut Report, crowd: &mut Crowd, key: &str) {
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
    report.add(format!("{key}_ms"), percentile(&mut each, 0.5));
    report.add(format!("{key}_p99_ms"), percentile(&mut each, 0.99));
}

/// How this program is called to be a process in which nothing was given back before that could be used again.
pub const ALONE: &str = "as-crowd";

/// What one who waits costs, as a process of its own says.
fn memory(report: &mut Report) {
    let alone = std::env::current_exe().and_then(|program| {
        let mut command = std::process::Command::new(program);
        command.arg(ALONE).output()
    });
    let said = alone.map(|alone| String::from_utf8_lossy(&alone.stdout).into_owned());
    match said.ok().and_then(|said| said.trim().parse().ok()) {
        Some(each) => report.add("queue.bytes_per_workload", each),
        None => say("queue: this system does not say how much memory a process has"),
    }
}

/// By how much this process grows for each when a hundred thousand more come.
pub fn growth_for_each() -> Option<f64> {
    const MORE: usize = 100_000;
    let mut crowd = Crowd::new(1_000, Limits::Few, 1);
    crowd.plan();
    let before = resident_bytes()?;
    for _ in 0..MORE {
        crowd.arrive();
    }
    crowd.plan();
    let after = resident_bytes()?;
    Some(after.saturating_sub(before) as f64 / MORE as f64)
}

fn resident_bytes() -> Option<u64> {
    const PAGE_BYTES: u64 = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

/// How long made-up crowds take, against the least that is possible.
fn crowds(report: &mut Report) {
    say("queue: Kueue's performance test, 15,000 workloads in 30 queues");
    let outcome = kueue::run(1);
    report.add("queue.mix_vs_bound", outcome.over_bound());
    report.add("queue.mix_given_back", outcome.given_back as f64);
    for (size, waited_s) in ["small", "medium", "large"].iter().zip(outcome.waited_s) {
        report.add(format!("queue.mix_waited_{size}_s"), waited_s);
    }
    let mut waits_s = patience::waits_s(1);
    report.add(
        "queue.short_behind_many_p95_s",
        percentile(&mut waits_s, 0.95),
    );
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
