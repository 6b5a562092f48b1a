//! What people do to work that is submitted: hold it, let it go on, cancel it.

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::reference::{SiteReference, WorkloadReference};
use berth_model::workload::{Because, Run, RunState, State, Tasks, Workload};
use berth_model::{FieldErrors, Text};
use berth_store::{Conn, queues, workloads};
use serde_json::json;

use super::carry::{cut_claims, told};
use super::look::WorkloadView;
use crate::App;
use crate::caller::Caller;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::record::Change;
use crate::transact::transact;
use crate::version;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    Hold,
    Release,
    Cancel {
        /// Those of an array that are meant; all of it, if none are named.
        tasks: Option<Tasks>,
        reason: Option<Text>,
    },
}

impl App {
    pub async fn act_on_workload(
        &self,
        caller: &Caller,
        site: &SiteReference,
        workload: &WorkloadReference,
        act: Act,
    ) -> Result<WorkloadView> {
        let done = transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeQueue).await?;
            let known = self.workload(&mut tx, &place, workload).await?;
            place.may(caller, Action::ChangeWorkload, known.owner == caller.id(), "workload")?;
            let before = workloads::get_locked(&mut tx, place.id(), known.id).await?;
            let before = before.ok_or(Error::NotFound("workload"))?;
            let now = self.now();
            let (after, word, kind) = match &act {
                Act::Hold => (before.clone().hold()?, "workload.hold", EventKind::WorkloadChanged),
                Act::Release => (before.clone().release()?, "workload.release", EventKind::WorkloadChanged),
                Act::Cancel { tasks: None, reason } => {
                    (before.clone().cancel(now, reason.clone())?, "workload.cancel", EventKind::WorkloadCancelled)
                }
                Act::Cancel { tasks: Some(tasks), reason } => {
                    let after = before.clone().cancel_tasks(tasks, now, reason.clone())?;
                    let kind = match after.state {
                        State::Cancelled => EventKind::WorkloadCancelled,
                        _ => EventKind::WorkloadChanged,
                    };
                    (after, "workload.cancel", kind)
                }
            };
            if !workloads::update(&mut tx, &after, before.version).await? {
                return Err(version::overtaken(before.version));
            }
            if let Act::Cancel { tasks, .. } = &act {
                let told = self.stop_tasks(&mut tx, &place, &after, tasks.as_ref()).await?;
                if let Some(tasks) = tasks && told == 0 && after.waiting == before.waiting {
                    return Err(none_of_these(tasks, &before));
                }
            }
            let change = Change::new(word, Some(place.id()), after.id)
                .before(json!({ "state": before.state }))
                .after(json!({ "state": after.state }))
                .because(after.reason.clone())
                .tell_only(kind, Audience::Members, told(&after));
            self.record(&mut tx, caller, change).await?;
            let version = after.version + 1;
            self.view(&mut tx, place, Workload { version, ..after }).await
        });
        self.submitted.notify_one();
        done
    }

    /// What runs of it, or of these tasks, has the grace to come to its end; says how many were told.
    async fn stop_tasks(
        &self,
        conn: &mut Conn,
        place: &Place,
        workload: &Workload,
        tasks: Option<&Tasks>,
    ) -> Result<usize> {
        let now = self.now();
        let grace = queues::policy(conn, place.id()).await?.grace;
        let mut runs = workloads::live_runs_of(conn, workload.id).await?;
        runs.retain(|run| tasks.is_none_or(|tasks| tasks.contains(run.task)));
        for run in &runs {
            let by = now.checked_add(grace).unwrap_or(run.until).min(run.until);
            let since = match run.state {
                RunState::Stopping { since, .. } => since,
                _ => now,
            };
            let state = RunState::Stopping {
                because: Because::Cancelled,
                since,
            };
            let after = Run {
                state,
                until: by,
                ..run.clone()
            };
            if !workloads::update_run(conn, &after, run.version).await? {
                return Err(Error::Store(berth_store::Error::Retry));
            }
            cut_claims(conn, run, by, now).await?;
        }
        Ok(runs.len())
    }
}

fn none_of_these(tasks: &Tasks, workload: &Workload) -> Error {
    let all = workload.ask.tasks();
    let message = match tasks.iter().any(|task| all.contains(task)) {
        true => "none of these tasks waits or runs any more".to_owned(),
        false => format!("there are no such tasks: they are {all}"),
    };
    FieldErrors::one("tasks", message).into()
}
