//! Sends commands to the supervisors of this machine's runs.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::PoisonError;

use berth_model::RunId;
use berth_model::workload::{Run, RunState};

use super::folder::{Folder, uuid_of};
use super::{Errand, Local, SLOW, TELL};
use crate::backend::{Doing, Trouble};
use crate::supervisors::Supervisors;

impl Supervisors for Local {
    fn machine(&self) -> &str {
        &self.identity
    }

    fn pass_on<'a>(&'a self, run: &'a Run) -> Doing<'a, bool> {
        Box::pin(async move {
            if self.is_elsewhere(run) {
                return Err(Trouble::Unreachable);
            }
            self.in_turn(run, TELL, |hands, run, _| {
                match run.state {
                    RunState::Stopping { .. } => hands.stop(run)?,
                    _ => hands.prolong(run)?,
                }
                Ok(hands.folder(run.id).path().exists())
            })
            .await
        })
    }

    fn live(&self) -> Doing<'_, Vec<RunId>> {
        let (runs, over) = (self.settings().folder.join("runs"), self.over.clone());
        self.errand(Errand::Live, move || {
            // Only one such errand runs at a time.
            let mut over = over.lock().unwrap_or_else(PoisonError::into_inner);
            live(&runs, &mut over)
        })
    }

    fn end(&self, run: RunId) -> Doing<'_, ()> {
        let hands = self.hands.clone();
        Box::pin(async move {
            let ended = self.turns.take(run, TELL, move |_| hands.end(run));
            let ended = ended.await;
            ended.unwrap_or_else(|| Err(Trouble::NoAnswer(SLOW.to_owned())))
        })
    }
}

/// The runs with no recorded end in their folder. Ended runs are remembered, and not read again.
fn live(runs: &Path, over: &mut HashSet<RunId>) -> io::Result<Vec<RunId>> {
    let mut found = HashSet::new();
    let mut live = Vec::new();
    for entry in std::fs::read_dir(runs)? {
        let entry = entry?;
        let Some(run) = entry.file_name().to_str().and_then(uuid_of).map(RunId) else {
            continue;
        };
        found.insert(run);
        if over.contains(&run) {
            continue;
        }
        match Folder::at(entry.path()).may_run() {
            Ok(true) => live.push(run),
            Ok(false) => {
                over.insert(run);
            }
            // This run does not block the others, and the next call reads it again.
            Err(error) => tracing::warn!(%error, %run, "the records of a run could not be read"),
        }
    }
    over.retain(|run| found.contains(run));
    Ok(live)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_whose_end_is_recorded_is_not_live() {
        let here = tempfile::tempdir().unwrap();
        let [going, over] = [1, 2].map(|number| RunId(uuid::Uuid::from_u128(number)));
        for run in [going, over] {
            std::fs::create_dir(Folder::of(here.path(), run).path()).unwrap();
        }
        let end = r#"{"at":"2026-01-01T00:00:00Z","how":"stopped","said":"it was told to end"}"#;
        std::fs::write(Folder::of(here.path(), over).path().join("end.json"), end).unwrap();
        let mut known = HashSet::new();
        assert_eq!(live(here.path(), &mut known).unwrap(), [going]);
        assert_eq!(known, HashSet::from([over]));
    }
}
