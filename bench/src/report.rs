//! The figures: printed as a table, kept as a flat JSON object.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

/// The goals of the issues, by key: what the figure is compared with.
const GOALS: &[(&str, Goal)] = &[
    ("booking.sqlite.vs_bare", Goal::AtLeast(0.5)),
    ("booking.postgres.vs_bare", Goal::AtLeast(0.5)),
    ("booking.growth_1k_to_1m", Goal::AtMost(3.0)),
    ("calendar.month_200.p99_ms", Goal::AtMost(20.0)),
    ("series.1000.vs_single", Goal::AtMost(0.2)),
    ("when.10k_1m.p99_ms", Goal::AtMost(100.0)),
    ("refusal.alternatives.p99_ms", Goal::AtMost(25.0)),
    ("rearrange.1k.p99_ms", Goal::AtMost(50.0)),
    ("queue.openb_default_130", Goal::AtLeast(95.6)),
    ("queue.openb_gpushare100_130", Goal::AtLeast(87.0)),
    ("queue.openb_multigpu50_130", Goal::AtLeast(97.2)),
    ("queue.kth_default", Goal::AtMost(69.0)),
    ("queue.kth_default.largest", Goal::AtMost(14_805.0)),
    ("queue.kth_predicted", Goal::AtMost(62.0)),
    ("queue.kth_predicted.largest", Goal::AtMost(14_805.0)),
    ("queue.kth_reserved.late_s", Goal::AtMost(0.0)),
    ("queue.plan_full_ms", Goal::AtMost(1000.0)),
    ("queue.plan_incremental_ms", Goal::AtMost(10.0)),
    ("queue.growth", Goal::AtMost(1.2)),
    ("queue.mix_vs_bound", Goal::AtMost(1.25)),
    ("queue.bytes_per_workload", Goal::AtMost(2048.0)),
    ("queue.giveback_p99_s", Goal::AtMost(35.0)),
    ("queue.submit_per_s", Goal::AtLeast(2000.0)),
    ("proxy.rps_vs_chp", Goal::AtLeast(5.0)),
    ("proxy.p99_vs_chp", Goal::AtMost(0.5)),
    ("proxy.cpu_vs_direct", Goal::AtMost(2.0)),
    ("proxy.routes_5000_vs_1", Goal::AtMost(1.1)),
    ("proxy.ws_p99_added_ms", Goal::AtMost(2.0)),
    ("notebook.cold_vs_bare", Goal::AtMost(1.1)),
    ("notebook.cold_vs_jupyterhub", Goal::AtMost(0.8)),
    ("notebook.warm_ms", Goal::AtMost(1000.0)),
    ("server.start_ms", Goal::AtMost(300.0)),
    ("cli.round_trip_ms", Goal::AtMost(20.0)),
    ("web.calendar.script_kb", Goal::AtMost(200.0)),
    ("web.timeline_200x2000.cpu_ms", Goal::AtMost(1000.0)),
    ("web.month_2000.cpu_ms", Goal::AtMost(1000.0)),
    ("web.drag.long_frames", Goal::AtMost(0.0)),
    ("web.live_ms", Goal::AtMost(1000.0)),
];

#[derive(Debug, Clone, Copy)]
enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Debug)]
pub struct Report {
    path: PathBuf,
    figures: BTreeMap<String, f64>,
    new: Vec<String>,
}

impl Report {
    pub fn load() -> Result<Self> {
        let path = berth_testkit::repository::root().join("bench/results/latest.json");
        let figures = match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text)
                .context("bench/results/latest.json is not a flat object of numbers")?,
            Err(_) => BTreeMap::new(),
        };
        Ok(Self {
            path,
            figures,
            new: Vec::new(),
        })
    }

    pub fn add(&mut self, key: impl Into<String>, figure: f64) {
        let (key, rounded) = (key.into(), (figure * 1000.0).round() / 1000.0);
        say(&format!("  {key} = {rounded}"));
        self.figures.insert(key.clone(), rounded);
        self.new.push(key);
    }

    /// Both sides of a ratio, and the ratio itself.
    pub fn ratio(&mut self, key: &str, ours: f64, theirs: f64) {
        self.add(format!("{key}.ours"), ours);
        self.add(format!("{key}.theirs"), theirs);
        self.add(key, ours / theirs);
    }

    pub fn finish(self) -> Result<()> {
        let mut table = format!("\n{:<40} {:>12}  goal\n", "key", "figure");
        for key in &self.new {
            let figure = self.figures[key];
            let goal = GOALS
                .iter()
                .find(|(known, _)| known == key)
                .map(|(_, goal)| *goal);
            let told = match goal {
                None => String::new(),
                Some(Goal::AtLeast(least)) => format!(">= {least}  {}", met(figure >= least)),
                Some(Goal::AtMost(most)) => format!("<= {most}  {}", met(figure <= most)),
            };
            table.push_str(format!("{key:<40} {figure:>12.3}  {told}").trim_end());
            table.push('\n');
        }
        say(&table);
        let object: serde_json::Map<String, Value> = self
            .figures
            .into_iter()
            .map(|(key, figure)| (key, figure.into()))
            .collect();
        std::fs::create_dir_all(self.path.parent().context("results have a folder")?)?;
        std::fs::write(&self.path, serde_json::to_string_pretty(&object)? + "\n")?;
        say(&format!("written to {}", self.path.display()));
        Ok(())
    }
}

fn met(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

#[expect(clippy::print_stdout, reason = "the figures are this program's output")]
pub fn say(text: &str) {
    println!("{text}");
}

pub fn percentile(samples: &mut [f64], part: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let place = ((samples.len() as f64 * part).ceil() as usize).clamp(1, samples.len());
    samples[place - 1]
}
