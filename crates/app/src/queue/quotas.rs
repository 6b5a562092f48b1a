//! The final check of quotas. It adds up holdings and usage from the database, inside the transaction that adds to
//! them.

use berth_model::Workload;
use berth_model::queue::{QueuePolicy, Quota, Whose};
use berth_store::workloads::Weighs;
use berth_store::{Conn, workloads};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::plan::{Plan, micros};
use super::rations::{GPU_HOUR, limits_at, month};
use crate::App;
use crate::error::Result;

impl App {
    /// Whether the quotas allow the workload this much more until then.
    pub(super) async fn is_within_quotas(
        &self,
        conn: &mut Conn,
        plan: &Plan,
        workload: &Workload,
        more: Weighs,
        until: Timestamp,
    ) -> Result<bool> {
        let rules = (&plan.policy, &plan.rations.zone);
        self.keeps_quotas(conn, rules, workload, more, until).await
    }

    /// The same with the site's policy and time zone.
    pub(super) async fn keeps_quotas(
        &self,
        conn: &mut Conn,
        (policy, zone): (&QueuePolicy, &TimeZone),
        workload: &Workload,
        more: Weighs,
        until: Timestamp,
    ) -> Result<bool> {
        let now = self.now();
        let concerns = |quota: &&Quota| match quota.whose {
            Whose::Site => true,
            Whose::Project(project) => workload.project == Some(project),
            Whose::Person(person) => workload.owner == person,
        };
        let quotas = &policy.quotas;
        for quota in quotas.iter().filter(concerns) {
            let (project, person) = quota.whose.parts();
            let most = limits_at(quotas, quota.whose, now, zone);
            let held = workloads::held(conn, workload.site, project, person).await?;
            if held.gpus_milli.saturating_add(more.gpus_milli) > most.gpus_milli
                || held.cores_milli.saturating_add(more.cores_milli) > most.cores_milli
            {
                return Ok(false);
            }
        }
        // A budget covers the month, at any hour.
        for quota in quotas.iter().filter(concerns) {
            let Some(hours) = quota.amounts.gpu_hours_month else {
                continue;
            };
            let (project, person) = quota.whose.parts();
            let (begins, _) = month(now, zone);
            let spent = workloads::spent(conn, workload.site, project, person, begins).await?;
            let committed = workloads::committed(conn, workload.site, project, person, now).await?;
            let lasts = micros(now.duration_until(until)).unsigned_abs();
            let more = u128::from(more.gpus_milli) * u128::from(lasts);
            if spent + committed + more > u128::from(hours) * GPU_HOUR {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
