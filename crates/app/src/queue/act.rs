//! Commands on submitted workloads: hold, release, extend and cancel.

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::reference::{SiteReference, WorkloadReference};
use berth_model::workload::{Because, Run, RunState, State, Tasks, Workload};
use berth_model::{FieldErrors, SiteId, Span, Text, WorkloadId};
use berth_store::workloads::Weighs;
use berth_store::{Conn, claims, queues, workloads};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::carry::{cut_claims, told};
use super::look::WorkloadView;
use crate::App;
use crate::caller::Caller;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::record::{By, Change};
use crate::transact::transact;
use crate::version;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    Hold,
    Release,
    Cancel {
        /// Tasks of the array to cancel; `None` cancels all of them.
        tasks: Option<Tasks>,
        reason: Option<Text>,
    },
    /// Extends the time limit of the live runs by this much.
    Extend {
        by: SignedDuration,
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
        // Only the plan knows the planner's reservations ahead. The transaction below checks the claims.
        let promised = match &act {
            Act::Extend { by } => self.promised_to_others(caller, site, workload, *by).await?,
            Act::Hold | Act::Release | Act::Cancel { .. } => None,
        };
        if let Some(at) = promised {
            return Err(cannot_extend(format!(
                "what it runs on is promised to somebody who has waited long, from {at} on"
            )));
        }
        let done = transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeQueue).await?;
            let known = self.workload(&mut tx, &place, workload).await?;
            place.may(caller, Action::ChangeWorkload, known.owner == caller.id(), "workload")?;
            let before = workloads::get_locked(&mut tx, place.id(), known.id).await?;
            let before = before.ok_or(Error::NotFound("workload"))?;
            caller.expects(before.version)?;
            let now = self.now();
            let (after, word, kind) = match &act {
                Act::Hold => (before.clone().hold()?, "workload.hold", EventKind::WorkloadChanged),
                Act::Release => (before.clone().release()?, "workload.release", EventKind::WorkloadChanged),
                Act::Extend { by } => {
                    let longer = self.extend_runs(&mut tx, &place, &before, *by).await?;
                    (longer, "workload.extend", EventKind::WorkloadChanged)
                }
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
            if matches!(act, Act::Extend { .. }) {
                workloads::set_ask(&mut tx, &after).await?;
            }
            if let Act::Cancel { tasks, .. } = &act {
                let told = self.stop_tasks(&mut tx, &after, tasks.as_ref()).await?;
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
        self.to_pass_on.notify_one();
        done
    }

    /// Cancels a workload inside the caller's transaction, for example for a session that is stopped. Does nothing if
    /// the workload is over.
    pub(crate) async fn cancel_inside(
        &self,
        conn: &mut Conn,
        by: impl Into<By>,
        (site, workload): (SiteId, WorkloadId),
        reason: Option<Text>,
    ) -> Result<()> {
        let before = workloads::get_locked(conn, site, workload).await?;
        let Some(before) = before.filter(|before| !before.state.is_final()) else {
            return Ok(());
        };
        let after = before.clone().cancel(self.now(), reason)?;
        if !workloads::update(conn, &after, before.version).await? {
            return Err(Error::Store(berth_store::Error::Retry));
        }
        self.stop_tasks(conn, &after, None).await?;
        let change = Change::new("workload.cancel", Some(site), after.id)
            .before(json!({ "state": before.state }))
            .after(json!({ "state": after.state }))
            .because(after.reason.clone())
            .tell_only(
                EventKind::WorkloadCancelled,
                Audience::Members,
                told(&after),
            );
        self.record(conn, by, change).await
    }

    /// Start of the first reservation ahead that the workload would run into if its runs ended `by` later.
    async fn promised_to_others(
        &self,
        caller: &Caller,
        site: &SiteReference,
        workload: &WorkloadReference,
        by: SignedDuration,
    ) -> Result<Option<Timestamp>> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeQueue)
            .await?;
        let known = self.workload(&mut reader, &place, workload).await?;
        drop(reader);
        self.with_plan(place.id(), |plan| plan.promised_if_longer(known.id, by))
            .await
    }

    /// Extends the live runs by `by`, if no other claim needs their resources, and returns the workload with the new
    /// limits. A run that a firmer claim has cut short cannot be extended.
    async fn extend_runs(
        &self,
        conn: &mut Conn,
        place: &Place,
        before: &Workload,
        by: SignedDuration,
    ) -> Result<Workload> {
        let policy = queues::policy(conn, place.id()).await?;
        let mut runs = workloads::live_runs_of(conn, before.id).await?;
        runs.retain(|run| matches!(run.state, RunState::Starting | RunState::Running));
        if runs.is_empty() {
            return Err(cannot_extend(
                "nothing of it runs; submit it with a longer limit",
            ));
        }
        let mut after = before.clone();
        for run in &runs {
            let Some(wish) = before.ask.wishes.get(run.wish) else {
                continue;
            };
            let limit = wish.limit.saturating_add(by);
            if limit > policy.limit_max {
                return Err(cannot_extend("that is longer than anything may run here"));
            }
            let (ends, until) = (run.began + wish.limit, run.began + limit);
            if run.until < ends {
                return Err(cannot_extend(
                    "what it runs on is somebody else's when its time is over",
                ));
            }
            let span = Span::new(run.began, until).map_err(|_| Error::NotFound("workload"))?;
            for claim in &run.claims {
                claims::set_span(conn, *claim, span)
                    .await
                    .map_err(|error| match error.refused().is_some() {
                        true => cannot_extend(
                            "somebody else has a claim to what it runs on by then; ask for less",
                        ),
                        false => Error::Store(error),
                    })?;
            }
            let longer = Run {
                until,
                ..run.clone()
            };
            if !workloads::update_run(conn, &longer, run.version).await? {
                return Err(Error::Store(berth_store::Error::Retry));
            }
            after.ask.wishes[run.wish].limit = limit;
        }
        let zone = place.site.time_zone.rules();
        let rules = (&policy, &zone);
        let last = runs.iter().map(|run| run.until).max().unwrap_or(self.now()) + by;
        let may = self.keeps_quotas(conn, rules, before, Weighs::default(), last);
        if !may.await? {
            return Err(cannot_extend(
                "the GPU hours of this month would not be enough",
            ));
        }
        Ok(after)
    }

    /// Gives the live runs of these tasks the grace period to end; `None` means all tasks. Returns how many runs it
    /// stopped.
    pub(crate) async fn stop_tasks(
        &self,
        conn: &mut Conn,
        workload: &Workload,
        tasks: Option<&Tasks>,
    ) -> Result<usize> {
        let now = self.now();
        let grace = queues::policy(conn, workload.site).await?.grace;
        let mut runs = workloads::live_runs_of(conn, workload.id).await?;
        runs.retain(|run| tasks.is_none_or(|tasks| tasks.contains(run.task)));
        for run in &runs {
            // A run on a machine keeps its claims until that machine's own server has read this change.
            let by = match run.machine {
                None => now.checked_add(grace).unwrap_or(run.until).min(run.until),
                Some(_) => run.until,
            };
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
            cut_claims(conn, run, by, now).await?;
            if !workloads::update_run(conn, &after, run.version).await? {
                return Err(Error::Store(berth_store::Error::Retry));
            }
        }
        Ok(runs.len())
    }
}

fn cannot_extend(why: impl Into<String>) -> Error {
    FieldErrors::one("by", why.into()).into()
}

fn none_of_these(tasks: &Tasks, workload: &Workload) -> Error {
    let all = workload.ask.tasks();
    let message = match tasks.iter().any(|task| all.contains(task)) {
        true => "none of these tasks waits or runs any more".to_owned(),
        false => format!("there are no such tasks: they are {all}"),
    };
    FieldErrors::one("tasks", message).into()
}
