//! Attempts on the boundaries of runs, for the audit log of their sites.

use std::collections::BTreeMap;

use berth_drivers::backend::Attempt;
use berth_model::RunId;
use berth_model::workload::Run;
use berth_store::workloads;
use serde_json::{Map, Value};

use crate::App;
use crate::error::Result;
use crate::record::{By, Change};
use crate::transact::transact;

impl App {
    /// Writes into the audit log what the backend has counted since the last time, one entry for each run. The backend
    /// sums: a flood of attempts doubles its number for each entry.
    pub async fn record_attempts(&self) -> Result<()> {
        let Some(backend) = &self.backend else {
            return Ok(());
        };
        let attempts = backend.attempts().await?;
        if attempts.is_empty() {
            return Ok(());
        }
        let mut by_run: BTreeMap<RunId, Vec<&Attempt>> = BTreeMap::new();
        for attempt in &attempts {
            by_run.entry(attempt.run).or_default().push(attempt);
        }
        for (run, attempts) in by_run {
            transact!(self, tx => {
                // A run that the database does not know is of a database that was restored, or removed.
                if let Some(run) = workloads::get_run(&mut tx, run).await? {
                    self.record(&mut tx, By::SYSTEM, change(&run, &attempts)).await?;
                }
                Ok(())
            })?;
        }
        Ok(backend.forget_attempts(&attempts).await?)
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
