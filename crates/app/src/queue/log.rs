//! The log of a run, for its owner and for admins.

use berth_drivers::backend::Job;
use berth_engine::rights::Action;
use berth_model::reference::{SiteReference, WorkloadReference};
use berth_model::workload::{Run, Workload};
use berth_store::workloads;

use crate::App;
use crate::caller::Caller;
use crate::error::Result;

/// Only the end of a log is shown.
const LOG_BYTES: u64 = 64 * 1024;

impl App {
    pub(crate) async fn log_of(&self, workload: &Workload, run: &Run) -> Result<String> {
        let Some(backend) = &self.backend else {
            return Ok(String::new());
        };
        Ok(backend.log(Job { workload, run }, LOG_BYTES).await?)
    }

    /// The end of the log of a workload's newest run. Other members may not read it: the program is the owner's
    /// business.
    pub async fn workload_log(
        &self,
        caller: &Caller,
        site: &SiteReference,
        workload: &WorkloadReference,
    ) -> Result<String> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeQueue)
            .await?;
        let workload = self.workload(&mut reader, &place, workload).await?;
        let is_own = workload.owner == caller.id();
        place.may(caller, Action::SeeSession, is_own, "workload")?;
        let runs = workloads::runs_of(&mut reader, workload.id, 1).await?;
        drop(reader);
        match runs.first() {
            Some(run) => self.log_of(&workload, run).await,
            None => Ok(String::new()),
        }
    }
}
