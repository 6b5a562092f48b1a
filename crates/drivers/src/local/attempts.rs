//! Attempts on the boundary of a run that its keeper saw, counted for the server, which tells the site's admins.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::folder::Folder;

/// What was attempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A connection to the run's relay with another key, or of another user.
    WrongKey,
    /// A message to the keeper that the first process of the sandbox does not send.
    StrangeMessage,
}

impl Kind {
    pub fn sentence(self) -> &'static str {
        match self {
            Kind::WrongKey => "a connection to the app did not have the run's key",
            Kind::StrangeMessage => "the keeper got a message that Berth's own program never sends",
        }
    }
}

pub type Counts = BTreeMap<Kind, u64>;

/// The counts of one run, kept in its folder.
#[derive(Debug)]
pub struct Attempts {
    folder: Folder,
    counts: Mutex<Counts>,
}

impl Attempts {
    pub fn of(folder: &Folder) -> Attempts {
        Attempts {
            folder: folder.clone(),
            counts: Mutex::new(folder.attempts().unwrap_or_default()),
        }
    }

    /// Counts one. The first of a kind, and then every doubling, is written down: a flood costs a few writes.
    pub fn note(&self, kind: Kind) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(kind).or_default();
        *count += 1;
        if count.is_power_of_two() {
            self.folder.set_attempts(&counts).ok();
        }
    }

    /// Writes down what is left, when the run ends.
    pub fn settle(&self) -> io::Result<()> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.is_empty() {
            true => Ok(()),
            false => self.folder.set_attempts(&counts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_summed_and_written_a_few_times() {
        let here = tempfile::tempdir().unwrap();
        let folder = Folder::at(here.path().to_owned());
        let attempts = Attempts::of(&folder);
        for _ in 0..1000 {
            attempts.note(Kind::WrongKey);
        }
        assert_eq!(folder.attempts().unwrap()[&Kind::WrongKey], 512);
        attempts.settle().unwrap();
        assert_eq!(folder.attempts().unwrap()[&Kind::WrongKey], 1000);
        let next = Attempts::of(&folder);
        next.note(Kind::StrangeMessage);
        assert_eq!(folder.attempts().unwrap().len(), 2);
    }
}
