//! How big a proof is, and where its chance begins.

use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

/// The size of one run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Requests that got a definite answer.
    pub operations: u64,
    /// Deaths of the server, spread over the operations.
    pub kills: u64,
    pub clients: u64,
}

impl Size {
    /// This size, unless `BERTH_PROOF_OPS` and `BERTH_PROOF_KILLS` ask for another.
    pub fn or_asked_for(self) -> Self {
        Self {
            operations: from_environment("BERTH_PROOF_OPS").unwrap_or(self.operations),
            kills: from_environment("BERTH_PROOF_KILLS").unwrap_or(self.kills),
            ..self
        }
    }
}

/// A new seed each time, or the one that `BERTH_PROOF_SEED` names to see a failure again.
pub fn seed() -> u64 {
    from_environment("BERTH_PROOF_SEED").unwrap_or_else(|| RandomState::new().hash_one(()))
}

fn from_environment<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let read = text.parse().ok();
    Some(read.unwrap_or_else(|| panic!("{name} is a whole number, not `{text}`")))
}
