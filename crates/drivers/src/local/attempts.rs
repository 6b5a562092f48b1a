//! Attempts on the boundary of a run, from the supervisor that sees them to the server that writes them into the audit
//! log.
//!
//! Each count is one empty file: its name holds the run, the kind and the number. The files are next to the runs'
//! folders, in a folder that no run sees. The server removes a file after recording it; if it is killed before that, it
//! records the same count twice.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use berth_model::RunId;

use crate::backend::{Attempt, AttemptKind};

/// Maximum number of files read at once; the rest waits for the next call.
const READ_MAX: usize = 1_000;

/// The folder of the counts, inside the server's work folder.
pub fn folder_in(work: &Path) -> PathBuf {
    work.join("attempts")
}

/// The counts of one run.
#[derive(Debug)]
pub struct Attempts {
    folder: PathBuf,
    run: RunId,
    counts: Mutex<BTreeMap<AttemptKind, u64>>,
}

impl Attempts {
    pub fn of(run: RunId, work: &Path) -> Attempts {
        Attempts {
            folder: folder_in(work),
            run,
            counts: Mutex::default(),
        }
    }

    /// Counts one attempt. It writes the first of a kind and then every doubling, so a flood costs only a few files.
    pub fn note(&self, kind: AttemptKind) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let times = counts.entry(kind).or_default();
        *times += 1;
        if times.is_power_of_two() {
            self.write(kind, *times).ok();
        }
    }

    /// Writes the last counts when the run ends.
    pub fn settle(&self) -> io::Result<()> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unwritten = counts.iter().filter(|(_, times)| !times.is_power_of_two());
        unwritten.try_for_each(|(kind, times)| self.write(*kind, *times))
    }

    fn write(&self, kind: AttemptKind, times: u64) -> io::Result<()> {
        let run = self.run.0.simple();
        let name = format!("{run}.{}.{times}", kind.word());
        File::create(self.folder.join(name)).map(drop)
    }
}

/// Attempts that no server has recorded yet: the highest count of each run and kind.
pub fn unrecorded(work: &Path) -> io::Result<Vec<Attempt>> {
    let mut highest: BTreeMap<(RunId, AttemptKind), u64> = BTreeMap::new();
    for entry in fs::read_dir(folder_in(work))?.take(READ_MAX) {
        let name = entry?.file_name();
        if let Some(attempt) = name.to_str().and_then(attempt_of) {
            let times = highest.entry((attempt.run, attempt.kind)).or_default();
            *times = attempt.times.max(*times);
        }
    }
    let all = highest.into_iter();
    let all = all.map(|((run, kind), times)| Attempt { run, kind, times });
    Ok(all.collect())
}

/// Removes the files of recorded counts. A count written since then stays.
pub fn forget(work: &Path, recorded: &[Attempt]) -> io::Result<()> {
    for entry in fs::read_dir(folder_in(work))? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(attempt) = name.to_str().and_then(attempt_of) else {
            continue;
        };
        let is_recorded = |known: &Attempt| {
            (known.run, known.kind) == (attempt.run, attempt.kind) && attempt.times <= known.times
        };
        if recorded.iter().any(is_recorded) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn attempt_of(name: &str) -> Option<Attempt> {
    let mut parts = name.split('.');
    let (run, kind, times) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Attempt {
        run: RunId(uuid::Uuid::try_parse(run).ok()?),
        kind: AttemptKind::from_word(kind)?,
        times: times.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_summed_written_a_few_times_and_told_once() {
        let work = tempfile::tempdir().unwrap();
        fs::create_dir(folder_in(work.path())).unwrap();
        let run = RunId(uuid::Uuid::from_u128(7));
        let attempts = Attempts::of(run, work.path());
        let told = |kind, times| Attempt { run, kind, times };
        for _ in 0..1000 {
            attempts.note(AttemptKind::WrongKey);
        }
        assert_eq!(fs::read_dir(folder_in(work.path())).unwrap().count(), 10);
        let first = unrecorded(work.path()).unwrap();
        assert_eq!(first, [told(AttemptKind::WrongKey, 512)]);
        attempts.note(AttemptKind::StrangeMessage);
        forget(work.path(), &first).unwrap();
        attempts.settle().unwrap();
        let next = unrecorded(work.path()).unwrap();
        let expected = [
            told(AttemptKind::WrongKey, 1000),
            told(AttemptKind::StrangeMessage, 1),
        ];
        assert_eq!(next, expected);
        forget(work.path(), &next).unwrap();
        assert!(unrecorded(work.path()).unwrap().is_empty());
    }
}
