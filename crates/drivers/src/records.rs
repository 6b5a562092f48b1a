//! What a backend keeps of runs that are over, for the server that removes it some time after their end.

use berth_model::RunId;
use jiff::Timestamp;

use crate::backend::Doing;

/// A kept log has at most so many bytes: the last ones that the run wrote.
pub const KEPT_LOG_BYTES: u64 = 64 * 1024;

/// The records of runs on the disk of a backend. Everything here may be asked twice, and be cut off anywhere.
pub trait RunRecords: Send + Sync + std::fmt::Debug {
    /// Runs that have a folder in which nothing has changed since a moment.
    fn folders(&self, unchanged_since: Timestamp) -> Doing<'_, Vec<RunId>>;

    /// Keeps the end of a run's log and removes its folder. The run's end must be in the database. A folder of which
    /// something may still run stays.
    fn remove_folder(&self, run: RunId) -> Doing<'_, ()>;

    /// Removes what is left of folders whose removal was cut off.
    fn finish_removals(&self) -> Doing<'_, ()>;

    /// Runs with a kept log that ended before a moment.
    fn logs(&self, ended_before: Timestamp) -> Doing<'_, Vec<RunId>>;

    fn remove_log(&self, run: RunId) -> Doing<'_, ()>;
}
