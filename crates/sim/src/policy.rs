//! A candidate policy for a queue, as a file that people write, in TOML or JSON.
//!
//! A missing key has its default. An unknown key is refused, with the closest known key: a policy that silently differs
//! from the intended one would make every comparison worthless.

mod length;

use std::collections::BTreeMap;

use berth_engine::queue::Micros;
use berth_engine::queue::planner::{Order, Policy};
use berth_engine::queue::quota::{Allowance, Amounts, Counted};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::trace::{Load, Trace};

use length::Length;

/// A policy to try, with its other settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub name: String,
    pub policy: Policy,
    pub half_life: Micros,
    /// Whether the shortest-first order uses run times predicted from the owner's last workloads, instead of time
    /// limits.
    pub prediction: bool,
    /// Whether to keep the trace's own reservations.
    pub keeps_reservations: bool,
    /// Reservations to add to the trace.
    pub reserve: Option<Reserve>,
    /// Weights of projects that differ from the trace's own.
    pub weights: BTreeMap<String, f64>,
    pub quotas: Vec<Quota>,
}

/// Random reservations of whole nodes, the same ones at every run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reserve {
    /// Part of the nodes' time, above 0 and at most a half.
    pub part: f64,
    /// How long before its start each reservation is known.
    pub ahead: Micros,
    pub seed: u64,
}

/// A project's quota of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    pub project: String,
    pub of: Thing,
    pub allowance: Allowance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Thing {
    Gpus,
    Cores,
    MemoryGib,
}

impl Thing {
    pub fn counted(self) -> Counted {
        Counted(self as u8)
    }

    /// How many units of the queue one unit in a policy file has.
    pub(crate) fn unit(self) -> u64 {
        match self {
            Thing::Gpus | Thing::Cores => 1000,
            Thing::MemoryGib => 1 << 30,
        }
    }

    /// A load's amounts against quotas.
    pub fn amounts(load: Load) -> Amounts {
        Amounts::of([
            (Thing::Gpus.counted(), load.gpu_milli),
            (Thing::Cores.counted(), load.cpu_milli),
            (Thing::MemoryGib.counted(), load.memory_bytes),
        ])
    }
}

/// Why a policy cannot be tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("the policy is neither TOML nor JSON: {0}")]
    Text(String),
    #[error("`{key}` is not a key of {of}{}", meant(.closest))]
    Key {
        key: String,
        of: &'static str,
        closest: Option<String>,
    },
    #[error("{0}")]
    Value(String),
    #[error("policy `{policy}`: the trace has no project `{project}`{}", meant(.closest))]
    Project {
        policy: String,
        project: String,
        closest: Option<String>,
    },
}

fn meant(closest: &Option<String>) -> String {
    let meant = closest.as_ref();
    meant.map_or_else(String::new, |closest| {
        format!("; did you mean `{closest}`?")
    })
}

const KEYS: &[&str] = &[
    "name",
    "order",
    "half-life",
    "grace",
    "minimum-run",
    "prediction",
    "reservations",
    "reserve",
    "weights",
    "quota",
];
const RESERVE_KEYS: &[&str] = &["part", "ahead", "seed"];
const QUOTA_KEYS: &[&str] = &["project", "of", "guaranteed", "limit"];

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Written {
    name: Option<String>,
    order: Option<WrittenOrder>,
    half_life: Option<Length>,
    grace: Option<Length>,
    minimum_run: Option<Length>,
    prediction: Option<bool>,
    reservations: Option<WrittenReservations>,
    reserve: Option<WrittenReserve>,
    #[serde(default)]
    weights: BTreeMap<String, f64>,
    #[serde(default)]
    quota: Vec<WrittenQuota>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WrittenOrder {
    Shares,
    Shortest,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum WrittenReservations {
    Keep,
    Drop,
}

#[derive(Deserialize)]
struct WrittenReserve {
    part: f64,
    ahead: Option<Length>,
    #[serde(default)]
    seed: u64,
}

#[derive(Deserialize)]
struct WrittenQuota {
    project: String,
    of: Thing,
    #[serde(default)]
    guaranteed: f64,
    limit: Option<f64>,
}

impl Candidate {
    /// The default policy of a site.
    pub fn new(name: &str) -> Candidate {
        Candidate {
            name: name.to_owned(),
            policy: Policy::new(Order::Shares),
            half_life: 7 * length::DAY,
            prediction: true,
            keeps_reservations: true,
            reserve: None,
            weights: BTreeMap::new(),
            quotas: Vec::new(),
        }
    }

    /// Reads a policy. `name` is the name of a policy without one of its own, such as the file's name.
    pub fn parse(text: &str, name: &str) -> Result<Candidate, Unusable> {
        let value = parsed(text)?;
        let Value::Object(keys) = &value else {
            return Err(Unusable::Value("a policy is a table of keys".to_owned()));
        };
        known("a policy", keys, KEYS)?;
        if let Some(Value::Object(keys)) = keys.get("reserve") {
            known("`reserve`", keys, RESERVE_KEYS)?;
        }
        for quota in keys
            .get("quota")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if let Value::Object(keys) = quota {
                known("a `quota`", keys, QUOTA_KEYS)?;
            }
        }
        let written: Written = serde_path_to_error::deserialize(&value)
            .map_err(|error| Unusable::Value(format!("`{}`: {}", error.path(), error.inner())))?;
        written.candidate(name).map_err(Unusable::Value)
    }

    /// Checks that every project it names exists in the trace.
    pub fn suits(&self, trace: &Trace) -> Result<(), Unusable> {
        let names = || trace.projects.iter().map(|project| project.name.as_str());
        let quotas = self.quotas.iter().map(|quota| &quota.project);
        let named = self.weights.keys().chain(quotas);
        let mut strange = named.filter(|name| !names().any(|known| known == *name));
        match strange.next() {
            None => Ok(()),
            Some(project) => Err(Unusable::Project {
                policy: self.name.clone(),
                project: project.clone(),
                closest: closest(project, names()),
            }),
        }
    }
}

impl Written {
    fn candidate(self, name: &str) -> Result<Candidate, String> {
        let mut candidate = Candidate::new(&self.name.unwrap_or_else(|| name.to_owned()));
        crate::trace::check_name("policy", &candidate.name)?;
        if let Some(WrittenOrder::Shortest) = self.order {
            candidate.policy.order = Order::Shortest;
        }
        if let Some(Length(half_life)) = self.half_life {
            if half_life < length::HOUR {
                return Err("`half-life` is shorter than an hour".to_owned());
            }
            candidate.half_life = half_life;
        }
        if let Some(Length(grace)) = self.grace {
            candidate.policy.grace = grace;
        }
        if let Some(Length(run_min)) = self.minimum_run {
            candidate.policy.run_min = run_min;
        }
        candidate.prediction = self.prediction.unwrap_or(candidate.prediction);
        candidate.keeps_reservations = self.reservations != Some(WrittenReservations::Drop);
        candidate.reserve = self.reserve.map(WrittenReserve::checked).transpose()?;
        for (project, weight) in &self.weights {
            if !(weight.is_finite() && *weight > 0.0) {
                return Err(format!("the weight of `{project}` is not above zero"));
            }
        }
        candidate.weights = self.weights;
        let quotas = self.quota.into_iter().map(WrittenQuota::checked);
        candidate.quotas = quotas.collect::<Result<_, _>>()?;
        Ok(candidate)
    }
}

impl WrittenReserve {
    fn checked(self) -> Result<Reserve, String> {
        if !(self.part > 0.0 && self.part <= 0.5) {
            return Err("`part` of `reserve` is above 0 and at most 0.5".to_owned());
        }
        Ok(Reserve {
            part: self.part,
            ahead: self.ahead.map_or(7 * length::DAY, |ahead| ahead.0),
            seed: self.seed,
        })
    }
}

impl WrittenQuota {
    fn checked(self) -> Result<Quota, String> {
        let amount = |key: &str, written: f64| {
            let is_one = written.is_finite() && (0.0..=1e9).contains(&written);
            let told = || {
                format!(
                    "`{key}` of the quota of `{}` is not an amount",
                    self.project
                )
            };
            is_one
                .then(|| (written * self.of.unit() as f64).round() as u64)
                .ok_or_else(told)
        };
        let guaranteed = amount("guaranteed", self.guaranteed)?;
        let limit = self.limit.map(|limit| amount("limit", limit)).transpose()?;
        if limit.is_some_and(|limit| limit < guaranteed) {
            return Err(format!(
                "`limit` of the quota of `{}` is less than what is guaranteed to it",
                self.project
            ));
        }
        Ok(Quota {
            project: self.project,
            of: self.of,
            allowance: Allowance { guaranteed, limit },
        })
    }
}

fn parsed(text: &str) -> Result<Value, Unusable> {
    match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).map_err(|error| Unusable::Text(error.to_string())),
        false => toml::from_str(text)
            .map_err(|error: toml::de::Error| Unusable::Text(error.to_string().trim().to_owned())),
    }
}

fn known(of: &'static str, keys: &Map<String, Value>, all: &[&str]) -> Result<(), Unusable> {
    match keys.keys().find(|key| !all.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(Unusable::Key {
            key: key.clone(),
            of,
            closest: closest(key, all.iter().copied()),
        }),
    }
}

/// The closest known key by edit distance, if it is close enough.
fn closest<'a>(written: &str, all: impl Iterator<Item = &'a str>) -> Option<String> {
    let most = (written.chars().count() / 3).max(2);
    let near = all.map(|one| (changes(written, one), one));
    let near = near.filter(|(changes, _)| *changes <= most).min();
    near.map(|(_, one)| one.to_owned())
}

/// The edit distance in letters.
fn changes(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().take(200).collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, one) in from.chars().take(200).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (place, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(one != *other);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests;
