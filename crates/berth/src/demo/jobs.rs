//! The workloads that the demo's people submit to each site's queue, all day and all night.
//!
//! They name no environment. The simulated nodes have none, and Berth refuses a workload whose environment its site
//! does not have.

mod bologna;
mod torino;

use std::ops::RangeInclusive;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::chance::Chance;
use super::people::{Character, bookers};
use super::script::{Act, Script, Season};

/// How long before the world was made its people began to submit: enough for a queue that is full, and quickly replayed.
pub const BEFORE: SignedDuration = SignedDuration::from_hours(14);

/// The sites whose people submit work.
pub static SITES: [SiteJobs; 2] = [torino::JOBS, bologna::JOBS];

/// What the people of one site submit.
#[derive(Debug)]
pub struct SiteJobs {
    pub site: &'static str,
    /// Seconds from one submission to the next while the past is replayed.
    every_s: RangeInclusive<i64>,
    kinds: &'static [JobKind],
}

#[derive(Debug)]
struct JobKind {
    titles: &'static [&'static str],
    /// How often people submit this kind, relative to the others.
    often: i64,
    tasks: u32,
    cores: u32,
    memory_gib: u32,
    gpus: fn() -> Option<Value>,
    limits_min: &'static [i64],
    class: &'static str,
    array: Option<&'static str>,
}

/// Writes the submissions of the season's last hours into the script.
pub fn write(script: &mut Script, chance: &Chance, season: Season) {
    for jobs in &SITES {
        let mut chance = chance.fork("jobs").fork(jobs.site);
        let mut at = season.from.max(season.until - BEFORE);
        while at < season.until {
            if let Some((who, act)) = jobs.submission(&mut chance, 0) {
                script.scene(at, who.login, act);
            }
            at += SignedDuration::from_secs(chance.between(jobs.every_s.clone()));
        }
    }
}

impl SiteJobs {
    /// What a member of the site submits on that day; none while nobody works there.
    pub fn submission(&self, chance: &mut Chance, day: i64) -> Option<(&'static Character, Act)> {
        let people = bookers(self.site, day);
        if people.is_empty() {
            return None;
        }
        let who = chance.pick(&people);
        let all: i64 = self.kinds.iter().map(|kind| kind.often).sum();
        let mut drawn = chance.between(0..=all - 1);
        let kind = self.kinds.iter().find(|kind| {
            drawn -= kind.often;
            drawn < 0
        })?;
        let act = Act::Submit {
            site: self.site,
            project: who.project_in(self.site),
            ask: kind.ask(chance),
        };
        Some((who, act))
    }
}

impl JobKind {
    fn ask(&self, chance: &mut Chance) -> Value {
        let limit = chance.pick(self.limits_min);
        let mut task =
            json!({ "cores_milli": self.cores * 1000, "memory_mib": self.memory_gib * 1024 });
        if let Some(gpus) = (self.gpus)() {
            task["gpus"] = gpus;
        }
        json!({
            "title": chance.pick(self.titles), "class": self.class, "level": null, "seats": [], "inside": null,
            "not_before": null, "deadline": null, "after": [], "requeue": true,
            "array": self.array.map(|tasks| json!({ "tasks": tasks, "at_once": 8 })),
            "program": { "command": ["python", "train.py"] },
            "wishes": [{ "tasks": self.tasks, "task": task, "limit": format!("PT{limit}M") }],
        })
    }
}
