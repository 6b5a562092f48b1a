//! The records that a backend keeps of ended runs. The server removes them some time after the end.

use berth_model::RunId;
use jiff::Timestamp;

use crate::backend::Doing;

/// Maximum size of a kept log: the last bytes that the run wrote.
pub const KEPT_LOG_BYTES: u64 = 64 * 1024;

/// The records of runs on the disk of a backend. Every call must be idempotent, and may be interrupted anywhere.
pub trait RunRecords: Send + Sync + std::fmt::Debug {
    /// Runs with a folder in which nothing has changed since a time.
    fn folders(&self, unchanged_since: Timestamp) -> Doing<'_, Vec<RunId>>;

    /// Keeps the end of a run's log and removes its folder. The run's end must be in the database. The folder stays if
    /// the run may still have processes.
    fn remove_folder(&self, run: RunId) -> Doing<'_, ()>;

    /// Completes removals that were interrupted.
    fn finish_removals(&self) -> Doing<'_, ()>;

    /// Runs with a kept log that ended before a time.
    fn logs(&self, ended_before: Timestamp) -> Doing<'_, Vec<RunId>>;

    fn remove_log(&self, run: RunId) -> Doing<'_, ()>;
}
