//! Compares policies on the same trace, in figures: as a table for a terminal, or as a page ([`crate::page`]).

mod table;

use crate::outcome::Outcome;
use crate::policy::{Candidate, Unusable};
use crate::show::{amount, count, counted, duration, percent};
use crate::trace::{Load, Trace};
use crate::{page, world};

/// The outcomes of several policies on one trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The name of the trace, for people.
    pub title: String,
    /// The size of the trace, in words.
    pub facts: String,
    /// In the given order of the policies.
    pub tried: Vec<Tried>,
}

/// A policy and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    pub candidate: Candidate,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    #[error("there is no policy to try")]
    NoPolicy,
    #[error("{0} policies are too many to be told apart; {POLICIES_MAX} are the most")]
    TooMany(usize),
    #[error("two policies are named `{0}`")]
    SameName(String),
    #[error("the trace has no workloads")]
    NoWorkloads,
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

/// The number of colours that everybody can distinguish.
pub const POLICIES_MAX: usize = 8;

/// Plays a trace under each policy. Reports the completed fraction at intervals, 1 at the end.
pub fn compare(
    trace: &Trace,
    candidates: &[Candidate],
    progress: &mut dyn FnMut(f64),
) -> Result<Comparison, Incomparable> {
    match candidates.len() {
        0 => return Err(Incomparable::NoPolicy),
        1..=POLICIES_MAX => {}
        many => return Err(Incomparable::TooMany(many)),
    }
    if trace.arrivals.is_empty() {
        return Err(Incomparable::NoWorkloads);
    }
    for (place, candidate) in candidates.iter().enumerate() {
        candidate.suits(trace)?;
        if candidates[..place]
            .iter()
            .any(|other| other.name == candidate.name)
        {
            return Err(Incomparable::SameName(candidate.name.clone()));
        }
    }
    let all = candidates.len() as f64;
    let mut one = |(place, candidate): (usize, &Candidate)| Tried {
        candidate: candidate.clone(),
        outcome: world::play(trace, candidate, &mut |done| {
            progress((place as f64 + done) / all);
        }),
    };
    Ok(Comparison {
        title: trace.title.clone(),
        facts: facts(trace),
        tried: candidates.iter().enumerate().map(&mut one).collect(),
    })
}

fn facts(trace: &Trace) -> String {
    let fleet = Load::of_nodes(&trace.nodes);
    let come = trace.arrivals.first().zip(trace.arrivals.last());
    let length = come.map_or(0, |(first, last)| last.submit - first.submit);
    let mut facts = format!(
        "{} of {} in {}, submitted over {}, on {} with {} and {}",
        counted(trace.arrivals.len(), "workload", "workloads"),
        counted(trace.people.len(), "person", "people"),
        counted(trace.projects.len(), "project", "projects"),
        duration(length as f64 / 1e6),
        counted(trace.nodes.len(), "node", "nodes"),
        counted((fleet.cpu_milli / 1000) as usize, "core", "cores"),
        counted((fleet.gpu_milli / 1000) as usize, "GPU", "GPUs"),
    );
    if !trace.walls.is_empty() {
        let walls = counted(trace.walls.len(), "reservation", "reservations");
        facts.push_str(&format!(", with {walls}"));
    }
    facts.push('.');
    if trace.left_out > 0 {
        let left_out = counted(trace.left_out, "workload", "workloads");
        facts.push_str(&format!(
            " Left out, since they never ran in the queue: {left_out}."
        ));
    }
    facts
}

/// One row of the table: one figure for every policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub name: &'static str,
    /// The meaning of the figure, in a sentence.
    pub meaning: &'static str,
    /// The values with units, in the policies' order.
    pub shown: Vec<String>,
    /// Which values are the best. All `false` where the values are equal, or where no value is better than another.
    pub best: Vec<bool>,
}

#[derive(Clone, Copy, PartialEq)]
enum Better {
    Less,
    More,
    Neither,
}

type Read = fn(&Outcome) -> Option<f64>;

/// A figure's definition: name, meaning, which direction is better, how to read it and how to show it.
type Kind = (&'static str, &'static str, Better, Read, fn(f64) -> String);

const KINDS: &[Kind] = &[
    (
        "GPUs used",
        "How much of the GPUs workloads had, while work still came.",
        Better::More,
        |outcome| outcome.gpu_used,
        percent,
    ),
    (
        "CPU used",
        "How much of the cores workloads had, while work still came.",
        Better::More,
        |outcome| outcome.cpu_used,
        percent,
    ),
    (
        "Reserved",
        "How much of the fleet was reserved meanwhile.",
        Better::Neither,
        |outcome| Some(outcome.reserved).filter(|part| *part > 0.0),
        percent,
    ),
    (
        "Wait, mean",
        "From asking to being done, without the time it ran.",
        Better::Less,
        |outcome| Some(outcome.wait_mean_s),
        duration,
    ),
    (
        "Wait, median",
        "Half of the workloads waited no longer.",
        Better::Less,
        |outcome| Some(outcome.waits.median_s),
        duration,
    ),
    (
        "Wait, 90 %",
        "Nine of ten workloads waited no longer.",
        Better::Less,
        |outcome| Some(outcome.waits.p90_s),
        duration,
    ),
    (
        "Wait, 99 %",
        "All but one of a hundred workloads waited no longer.",
        Better::Less,
        |outcome| Some(outcome.waits.p99_s),
        duration,
    ),
    (
        "Wait, longest",
        "Nobody waited longer.",
        Better::Less,
        |outcome| Some(outcome.waits.max_s),
        duration,
    ),
    (
        "Slowdown, mean",
        "Waiting and running over running alone (at least ten seconds).",
        Better::Less,
        |outcome| Some(outcome.slowdown_mean),
        |times| format!("{} x", amount(times)),
    ),
    (
        "Slowdown, largest",
        "The same of the workload that fared worst.",
        Better::Less,
        |outcome| Some(outcome.slowdown_max),
        |times| format!("{} x", amount(times)),
    ),
    (
        "Beyond one's due",
        "Of all that firm work used while somebody waited, what projects had beyond what was due to them.",
        Better::Less,
        |outcome| Some(outcome.astray),
        percent,
    ),
    (
        "Starts",
        "How often a workload began.",
        Better::Neither,
        |outcome| Some(outcome.starts as f64),
        |starts| count(starts as u64),
    ),
    (
        "Sent away",
        "How often a workload had to make room and begin again.",
        Better::Less,
        |outcome| Some(outcome.preemptions as f64),
        |times| count(times as u64),
    ),
    (
        "Lost by that",
        "What those had done by then, in hours of GPUs, or of cores where there are no GPUs.",
        Better::Less,
        |outcome| Some(outcome.lost_hours),
        |hours| format!("{} h", amount(hours)),
    ),
    (
        "Reservations late",
        "For how long reservations had to wait for workloads, together.",
        Better::Less,
        |outcome| (outcome.reservations > 0).then_some(outcome.late_s),
        duration,
    ),
    (
        "Bookings refused",
        "Reservations that could not be made, since what ran had their nodes until its limit.",
        Better::Less,
        |outcome| (outcome.reservations > 0).then_some(outcome.refused as f64),
        |refused| count(refused as u64),
    ),
    (
        "Promises made",
        "How many workloads were promised a beginning, since they had waited long.",
        Better::Neither,
        |outcome| Some(outcome.promises as f64),
        |promises| count(promises as u64),
    ),
    (
        "Promises kept",
        "How many of those began when promised, or before.",
        Better::More,
        |outcome| match outcome.promises {
            0 => None,
            made => Some(1.0 - outcome.broken as f64 / made as f64),
        },
        percent,
    ),
    (
        "Never began",
        "Workloads that ask for more than there is, or than their quota allows.",
        Better::Less,
        |outcome| Some(outcome.never as f64),
        |never| count(never as u64),
    ),
];

impl Comparison {
    /// All figures, except those that no policy has.
    pub fn figures(&self) -> Vec<Figure> {
        KINDS.iter().filter_map(|kind| self.figure(kind)).collect()
    }

    fn figure(&self, (name, meaning, better, read, show): &Kind) -> Option<Figure> {
        let tried = self.tried.iter();
        let values: Vec<Option<f64>> = tried.map(|tried| read(&tried.outcome)).collect();
        let numbers = values.iter().flatten().copied();
        let best = match better {
            Better::Less => numbers.min_by(f64::total_cmp),
            Better::More | Better::Neither => numbers.max_by(f64::total_cmp),
        };
        let best = show(best?);
        let shown: Vec<String> = values
            .iter()
            .map(|value| value.map_or_else(|| "-".to_owned(), show))
            .collect();
        // Values that look the same as shown count as equally good.
        let mut known = shown
            .iter()
            .zip(&values)
            .filter(|(_, value)| value.is_some());
        let are_alike = known.all(|(one, _)| *one == best) || *better == Better::Neither;
        Some(Figure {
            name,
            meaning,
            best: shown.iter().map(|one| !are_alike && *one == best).collect(),
            shown,
        })
    }

    /// A self-contained HTML page.
    pub fn html(&self) -> String {
        page::html(self)
    }
}

#[cfg(test)]
mod tests;
