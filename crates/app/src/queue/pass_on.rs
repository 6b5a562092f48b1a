//! Passes stops and deadlines from the database to the supervisors on this server's own machine.
//!
//! Only a server on a run's machine can reach its supervisor, and that server need not lead the queue. So each server
//! does this for its own machine, without a lease. It decides nothing that the leader decides, with one exception. If
//! the leader is another server and cannot reach a run that is nearly over or cancelled, this server starts the run's
//! grace period.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use berth_drivers::backend::{Backend, Trouble};
use berth_model::workload::{Because, Run, RunState};
use berth_model::{RunId, SiteId};
use berth_store::{queues, runs, workloads};
use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;

use super::carry::Stop;
use crate::App;
use crate::error::Result;

/// How long the leader may still stop a run, in case it can reach the machine after all.
const LEADER_FIRST: SignedDuration = SignedDuration::from_secs(3);

/// After this uptime, a server knows whether it leads.
const LEADS_BY: Duration = Duration::from_secs(10);

/// What this server has passed on to the supervisors of its machine. After a restart, it passes everything on again.
#[derive(Debug, Default)]
pub(crate) struct Passing {
    /// Calls in progress, each in its own task, so a call that hangs blocks no other.
    calls: JoinSet<(Run, Result<bool, Trouble>)>,
    under_way: HashSet<RunId>,
    /// The version of each run that its supervisor has received.
    received: HashMap<RunId, u64>,
}

impl App {
    /// Passes on every change that its supervisor has not received yet.
    pub(crate) async fn pass_on(&self, passing: &mut Passing) -> Result<()> {
        let Some(backend) = self.backend.clone() else {
            return Ok(());
        };
        let Some(supervisors) = backend.supervisors() else {
            return Ok(());
        };
        self.note_received(passing).await?;
        let mut reader = self.store.read().await?;
        let runs = workloads::live_runs_on(&mut reader, supervisors.machine()).await?;
        let mut graces: HashMap<SiteId, SignedDuration> = HashMap::new();
        for run in &runs {
            if let Entry::Vacant(unknown) = graces.entry(run.site) {
                unknown.insert(queues::policy(&mut reader, run.site).await?.grace);
            }
        }
        drop(reader);
        let live: HashSet<RunId> = runs.iter().map(|run| run.id).collect();
        passing.received.retain(|run, _| live.contains(run));
        for run in runs {
            let grace = graces.get(&run.site).copied().unwrap_or_default();
            let run = self.stop_in_time(run, grace).await?;
            passing.begin(&backend, run);
        }
        Ok(())
    }

    /// Ends runs that are over in the database and still run on this machine.
    pub(crate) async fn end_what_is_over(&self) -> Result<()> {
        let backend = self.backend.as_ref();
        let Some(supervisors) = backend.and_then(|backend| backend.supervisors()) else {
            return Ok(());
        };
        let live = supervisors.live().await?;
        let mut reader = self.store.read().await?;
        let over = runs::ended_by(&mut reader, &live, Timestamp::MAX).await?;
        drop(reader);
        for run in over {
            tracing::warn!(%run, "a run is over in the database and not on this machine; it is ended");
            if let Err(trouble) = supervisors.end(run).await {
                tracing::warn!(%trouble, %run, "a run could not be ended; trying again");
            }
        }
        Ok(())
    }

    /// Records the changes that supervisors have received.
    async fn note_received(&self, passing: &mut Passing) -> Result<()> {
        while let Some(done) = passing.calls.try_join_next() {
            let Ok((run, received)) = done else {
                // A call panicked. Its run is unknown, so all runs may be passed on again.
                passing.under_way.clear();
                continue;
            };
            passing.under_way.remove(&run.id);
            match received {
                Ok(true) => {}
                // The start may still be in progress, or the run's folder was removed.
                Ok(false) => continue,
                Err(trouble) => {
                    tracing::warn!(%trouble, run = %run.id, "a supervisor could not be reached; trying again");
                    continue;
                }
            }
            passing.received.insert(run.id, run.version);
            if run.supervisor_until != Some(run.until) {
                let mut tx = self.store.begin().await?;
                workloads::note_deadline(&mut tx, run.id, run.until).await?;
                tx.commit().await?;
            }
        }
        Ok(())
    }

    /// Stops a run if its leader does not, because the leader is another server that cannot reach this machine.
    async fn stop_in_time(&self, run: Run, grace: SignedDuration) -> Result<Run> {
        let now = self.now();
        let by = match run.state {
            // The request to cancel could not know whether the machine is reachable.
            RunState::Stopping {
                because: Because::Cancelled,
                ..
            } if now.duration_until(run.until) > grace => now + grace,
            RunState::Starting | RunState::Running
                if !self.queues.are_led_here()
                    && self.started.elapsed() > LEADS_BY
                    && run.until.duration_until(now) + grace > LEADER_FIRST =>
            {
                run.until
            }
            _ => return Ok(run),
        };
        let mut tx = self.store.begin().await?;
        let Some(before) = workloads::get_run(&mut tx, run.id).await? else {
            return Ok(run);
        };
        if before.version != run.version {
            return Ok(before);
        }
        let because = match before.state {
            RunState::Stopping { because, .. } => because,
            _ => self.why_over(&mut tx, &before).await?,
        };
        let stop = Stop { by, because, grace };
        let Some(after) = self.write_stop(&mut tx, &before, stop).await? else {
            return Ok(before);
        };
        tx.commit().await?;
        self.written.notify_one();
        Ok(after)
    }

    /// Whether the run reaches its time limit, or ends earlier for a firmer claim.
    async fn why_over(&self, conn: &mut berth_store::Conn, run: &Run) -> Result<Because> {
        let workload = workloads::get(conn, run.site, run.workload).await?;
        let wish = workload
            .as_ref()
            .and_then(|one| one.ask.wishes.get(run.wish));
        let limit = wish.and_then(|wish| run.began.checked_add(wish.limit).ok());
        Ok(match limit {
            Some(limit) if run.until < limit => Because::Preempted,
            _ => Because::TimedOut,
        })
    }
}

impl Passing {
    fn begin(&mut self, backend: &Arc<dyn Backend>, run: Run) {
        let is_received = self.received.get(&run.id) == Some(&run.version);
        if is_received || !self.under_way.insert(run.id) {
            return;
        }
        let backend = backend.clone();
        self.calls.spawn(async move {
            let received = match backend.supervisors() {
                Some(supervisors) => supervisors.pass_on(&run).await,
                None => Ok(false),
            };
            (run, received)
        });
    }
}
