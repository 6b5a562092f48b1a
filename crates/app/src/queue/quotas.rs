//! The last word on quotas: what is held is summed up from what stands, inside the transaction that adds to it.

use berth_model::Workload;
use berth_model::queue::{QueuePolicy, Quota, Whose};
use berth_store::Conn;
use berth_store::workloads::{self, Weighs};

use crate::App;
use crate::error::Result;

impl App {
    pub(super) async fn is_within_quotas(
        &self,
        conn: &mut Conn,
        policy: &QueuePolicy,
        workload: &Workload,
        more: Weighs,
    ) -> Result<bool> {
        let concerns = |quota: &&Quota| match quota.whose {
            Whose::Site => true,
            Whose::Project(project) => workload.project == Some(project),
            Whose::Person(person) => workload.owner == person,
        };
        for quota in policy.quotas.iter().filter(concerns) {
            let (project, person) = match quota.whose {
                Whose::Site => (None, None),
                Whose::Project(project) => (Some(project), None),
                Whose::Person(person) => (None, Some(person)),
            };
            let held = workloads::held(conn, workload.site, project, person).await?;
            let is_over = |limit: Option<u64>, held: u64, more: u64| {
                limit.is_some_and(|limit| held + more > limit)
            };
            let amounts = &quota.amounts;
            if is_over(amounts.gpus_milli, held.gpus_milli, more.gpus_milli)
                || is_over(amounts.cores_milli, held.cores_milli, more.cores_milli)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
