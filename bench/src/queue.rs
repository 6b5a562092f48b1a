//! How good the queue's plans are, on public traces. They stay outside the repository; a file that is not there leaves its keys out.

use std::path::PathBuf;

use anyhow::{Context, Result};
use berth_sim::openb::{self, Models64};
use berth_sim::replay::{Play, Times, a_tenth_reserved, replay};
use berth_sim::swf;
use sha2::{Digest, Sha256};

use crate::report::{Report, say};

const SEEDS: std::ops::RangeInclusive<u64> = 42..=51;
const PROCESSORS: u32 = 100;

pub fn run(report: &mut Report) -> Result<()> {
    for list in ["default", "gpushare100", "multigpu50"] {
        packing(report, list)?;
    }
    slowdown(report)
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
    let mut models = Models64::default();
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
