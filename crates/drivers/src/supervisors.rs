//! The supervisors of runs on this server's own machine. Through them, a server passes on stops and deadlines from the
//! database.
//!
//! No fence is checked here: stops and deadlines come from the database, and any server may have written them.

use berth_model::RunId;
use berth_model::workload::Run;

use crate::backend::Doing;

/// Every call must be idempotent.
pub trait Supervisors: Send + Sync + std::fmt::Debug {
    /// The stable id of this machine.
    fn machine(&self) -> &str;

    /// Passes on a run's deadline and, if the run is stopping, the stop. Returns whether the run was started here.
    fn pass_on<'a>(&'a self, run: &'a Run) -> Doing<'a, bool>;

    /// Runs that may have processes on this machine.
    fn live(&self) -> Doing<'_, Vec<RunId>>;

    /// Ends a run at once: it has ended in the database, and others may have its resources.
    fn end(&self, run: RunId) -> Doing<'_, ()>;
}
