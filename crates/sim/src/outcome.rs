//! The outcome of a replay, in figures.

mod fair;
mod over_time;

use std::collections::BTreeMap;

use berth_engine::fleet::Gpus;
use berth_engine::queue::Micros;

use crate::swf::SECOND;
use crate::trace::{Arrival, Load, Trace};

pub use fair::Share;
pub use over_time::OverTime;

pub(crate) use fair::Fairness;
pub(crate) use over_time::{Recorder, RightNow};

/// A shorter job counts as this long, because slowdown has no meaning for a job that takes no time.
const TAU_S: f64 = 10.0;

/// The outcome of a replay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// (wait + run time) / run time, at least 1: the bounded slowdown of the literature, with ten seconds.
    pub slowdown_mean: f64,
    pub slowdown_max: f64,
    pub wait_mean_s: f64,
    /// Total time by which workloads delayed reservations.
    pub late_s: f64,
    /// Reservations requested, and those refused because running workloads or other reservations held the resources.
    pub reservations: usize,
    pub refused: usize,
    pub promises: usize,
    /// Promised starts that were missed.
    pub broken: usize,
    /// Workloads that ran to completion, and those that never started because they ask for more than exists or is
    /// allowed.
    pub done: usize,
    pub never: usize,
    /// Number of starts; more than `done` where workloads had to start again.
    pub starts: usize,
    /// Number of preemptions, and the work lost by them, in GPU hours (core hours where there are no GPUs).
    pub preemptions: usize,
    pub lost_hours: f64,
    pub waits: Waits,
    /// All waits in seconds, the shortest first.
    pub waits_s: Vec<f64>,
    pub by_project: Vec<(String, Waits)>,
    /// From the smallest to the largest.
    pub by_size: Vec<(&'static str, Waits)>,
    /// Part of the fleet that workloads used while more work came, from 0 to 1. `None` if the fleet has none.
    pub cpu_used: Option<f64>,
    pub gpu_used: Option<f64>,
    /// Part of the fleet that was reserved in that time, by the fleet's price.
    pub reserved: f64,
    pub shares: Vec<Share>,
    /// Use beyond projects' fair shares, as a part of all use while workloads waited, from 0 to 1.
    pub astray: f64,
    pub over_time: OverTime,
}

/// Wait times: from submission to completion, without the run time. Work lost by preemption counts as waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waits {
    pub count: usize,
    pub mean_s: f64,
    pub median_s: f64,
    pub p90_s: f64,
    pub p99_s: f64,
    pub max_s: f64,
}

impl Waits {
    fn of_sorted(waits_s: &[f64]) -> Waits {
        let count = waits_s.len();
        Waits {
            count,
            mean_s: waits_s.iter().sum::<f64>() / count.max(1) as f64,
            median_s: quantile(waits_s, 0.5),
            p90_s: quantile(waits_s, 0.9),
            p99_s: quantile(waits_s, 0.99),
            max_s: quantile(waits_s, 1.0),
        }
    }
}

/// The smallest value that is not below this part of all values.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = (part * sorted.len() as f64).ceil() as usize;
    let last = sorted.len().saturating_sub(1);
    sorted
        .get(place.saturating_sub(1).min(last))
        .copied()
        .unwrap_or(0.0)
}

/// A workload that ran to completion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    /// Sequence number of its last start among all starts.
    pub started: usize,
    pub arrival: usize,
    pub waited: Micros,
}

impl Outcome {
    /// Fills in all figures about waiting.
    pub(crate) fn count_waits(&mut self, trace: &Trace, mut done: Vec<Done>) {
        done.sort_by_key(|done| done.started);
        let mut slowdowns = 0.0;
        let mut waited_s = 0.0;
        let mut by_project: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut by_size: BTreeMap<(usize, &'static str), Vec<f64>> = BTreeMap::new();
        for one in &done {
            let arrival = &trace.arrivals[one.arrival];
            let (wait_s, ran_s) = (seconds(one.waited), seconds(arrival.runs));
            let slowdown = ((wait_s + ran_s) / ran_s.max(TAU_S)).max(1.0);
            slowdowns += slowdown;
            waited_s += wait_s;
            self.slowdown_max = self.slowdown_max.max(slowdown);
            self.waits_s.push(wait_s);
            let projects = by_project.entry(arrival.owner.project).or_default();
            projects.push(wait_s);
            by_size.entry(size(arrival)).or_default().push(wait_s);
        }
        let count = done.len().max(1) as f64;
        self.done = done.len();
        self.slowdown_mean = slowdowns / count;
        self.wait_mean_s = waited_s / count;
        let waits = |waits_s: &mut Vec<f64>| {
            waits_s.sort_by(f64::total_cmp);
            Waits::of_sorted(waits_s)
        };
        self.waits = waits(&mut self.waits_s);
        let project = |place: usize| trace.projects[place].name.clone();
        self.by_project = by_project
            .into_iter()
            .map(|(place, mut all)| (project(place), waits(&mut all)))
            .collect();
        self.by_size = by_size
            .into_iter()
            .map(|((_, name), mut all)| (name, waits(&mut all)))
            .collect();
    }
}

/// The size of a workload, in words that people use.
fn size(arrival: &Arrival) -> (usize, &'static str) {
    let Load {
        gpu_milli,
        cpu_milli,
        ..
    } = arrival.load();
    match (arrival.task.gpus, gpu_milli.div_ceil(1000)) {
        (Gpus::None, _) | (_, 0) => match cpu_milli.div_ceil(1000) {
            0..=1 => (0, "1 core"),
            2..=4 => (1, "2-4 cores"),
            5..=16 => (2, "5-16 cores"),
            17..=64 => (3, "17-64 cores"),
            _ => (4, "65 and more cores"),
        },
        (Gpus::Share(_), _) => (5, "a part of a GPU"),
        (_, 1) => (6, "1 GPU"),
        (_, 2..=4) => (7, "2-4 GPUs"),
        (_, 5..=8) => (8, "5-8 GPUs"),
        (_, 9..=64) => (9, "9-64 GPUs"),
        _ => (10, "65 and more GPUs"),
    }
}

pub(crate) fn seconds(micros: Micros) -> f64 {
    micros as f64 / SECOND as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let sorted: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(quantile(&sorted, 0.5), 5.0);
        assert_eq!(quantile(&sorted, 0.9), 9.0);
        assert_eq!(quantile(&sorted, 0.99), 10.0);
        assert_eq!(quantile(&sorted, 0.0), 1.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
