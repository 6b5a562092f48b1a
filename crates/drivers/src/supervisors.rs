//! The supervisors of runs on this server's own machine, for the server that passes on what the database says of them.
//!
//! No fence is checked here: stops and deadlines come from the database, whichever server wrote them.

use berth_model::RunId;
use berth_model::workload::Run;

use crate::backend::Doing;

/// Everything here may be asked twice.
pub trait Supervisors: Send + Sync + std::fmt::Debug {
    /// What this machine is known by.
    fn machine(&self) -> &str;

    /// Passes on a run's deadline, and that it has to stop where it is stopping. Says whether the run was started here.
    fn pass_on<'a>(&'a self, run: &'a Run) -> Doing<'a, bool>;

    /// Runs of which something may still run on this machine.
    fn live(&self) -> Doing<'_, Vec<RunId>>;

    /// Ends a run at once: it is over in the database, and others may have what it had.
    fn end(&self, run: RunId) -> Doing<'_, ()>;
}
