//! Records attempts to cross the boundary of a run in the audit log of its site.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use berth_drivers::backend::{Attempt, AttemptKind};
use berth_model::RunId;
use berth_model::workload::Run;
use berth_store::workloads;
use serde_json::{Map, Value};

use crate::App;
use crate::error::Result;
use crate::record::{By, Change};
use crate::transact::transact;

/// Limit on the number of sums. Attempts of further runs and kinds are not counted.
const SUMS_MAX: usize = 10_000;

/// Attempts that this server has seen itself, summed by run and kind.
#[derive(Debug, Default)]
pub(crate) struct SeenAttempts(Mutex<BTreeMap<(RunId, AttemptKind), Sum>>);

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    times: u64,
    recorded: u64,
}

impl SeenAttempts {
    fn note(&self, run: RunId, kind: AttemptKind) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sums.len() < SUMS_MAX || sums.contains_key(&(run, kind)) {
            sums.entry((run, kind)).or_default().times += 1;
        }
    }

    /// Sums that have at least doubled since they were last recorded.
    fn unrecorded(&self) -> Vec<Attempt> {
        let sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = sums
            .iter()
            .filter(|(_, sum)| sum.times > sum.recorded && sum.times >= 2 * sum.recorded);
        let attempt = |(&(run, kind), sum): (&(RunId, AttemptKind), &Sum)| Attempt {
            run,
            kind,
            times: sum.times,
        };
        new.map(attempt).collect()
    }

    fn recorded(&self, attempt: &Attempt) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sum) = sums.get_mut(&(attempt.run, attempt.kind)) {
            sum.recorded = attempt.times;
        }
    }

    /// A run that is over makes no more attempts.
    fn forget(&self, run: RunId) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sums.retain(|(known, _), _| *known != run);
    }
}

impl App {
    /// Counts an attempt that this server saw. [`App::record_attempts`] writes it into the audit log.
    pub fn note_attempt(&self, run: RunId, kind: AttemptKind) {
        self.seen_attempts.note(run, kind);
    }

    /// Writes the attempts that the backend and this server counted since the last call into the audit log, one entry
    /// for each run. Both keep sums: in a flood of attempts, each new entry has at least twice the number of the last
    /// one.
    pub async fn record_attempts(&self) -> Result<()> {
        let Some(backend) = &self.backend else {
            return Ok(());
        };
        let (counted, seen) = (backend.attempts().await?, self.seen_attempts.unrecorded());
        let mut by_run: BTreeMap<RunId, Vec<&Attempt>> = BTreeMap::new();
        for attempt in counted.iter().chain(&seen) {
            by_run.entry(attempt.run).or_default().push(attempt);
        }
        for (id, attempts) in by_run {
            let is_over = transact!(self, tx => {
                // The database does not know the run if the database was restored, or if the run was removed.
                let Some(run) = workloads::get_run(&mut tx, id).await? else {
                    return Ok(true);
                };
                self.record(&mut tx, By::SYSTEM, change(&run, &attempts)).await?;
                Ok(run.state.is_over())
            })?;
            for attempt in attempts {
                self.seen_attempts.recorded(attempt);
            }
            if is_over {
                self.seen_attempts.forget(id);
            }
        }
        match counted.is_empty() {
            true => Ok(()),
            false => Ok(backend.forget_attempts(&counted).await?),
        }
    }
}

fn change(run: &Run, attempts: &[&Attempt]) -> Change {
    let times = attempts.iter().map(|attempt| {
        let word = attempt.kind.word().to_owned();
        (word, Value::from(attempt.times))
    });
    let sentences: Vec<String> = attempts
        .iter()
        .map(|attempt| format!("{}: {} times", attempt.kind.sentence(), attempt.times))
        .collect();
    let mut after: Map<String, Value> = times.collect();
    after.insert("run".to_owned(), Value::from(run.id.to_string()));
    Change::new("run.attempt", Some(run.site), run.workload)
        .after(after)
        .because(sentences.join("; ").parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_that_the_server_sees_is_summed_and_recorded_at_each_doubling() {
        let seen = SeenAttempts::default();
        let run = RunId(uuid::Uuid::from_u128(7));
        let mut recorded = Vec::new();
        for _ in 0..1000 {
            seen.note(run, AttemptKind::ForeignWord);
            for attempt in seen.unrecorded() {
                recorded.push(attempt.times);
                seen.recorded(&attempt);
            }
        }
        assert_eq!(recorded, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
        seen.forget(run);
        assert!(seen.0.lock().unwrap().is_empty());
    }
}
