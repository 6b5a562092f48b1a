//! Passing on the stops and deadlines in the database to the supervisors of this server's own machine.
//!
//! Only a server on a run's machine reaches its supervisor, and that need not be the server that leads the queue. So each
//! server does this for its own machine, without a lease: it decides nothing that the leader decides, except that a run whose
//! time is nearly over, or that is cancelled, has the grace to end, where the leader is another server and cannot say so.

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

/// For so long the leader is left to say how a run ends, if it can reach its machine after all.
const LEADER_FIRST: SignedDuration = SignedDuration::from_secs(3);

/// A server that has run for so long knows whether it leads.
const LEADS_BY: Duration = Duration::from_secs(10);

/// What the supervisors of this machine have received from this server. A server that starts passes everything on again.
#[derive(Debug, Default)]
pub(crate) struct Passing {
    /// Calls that are under way, each in a task of its own: one that hangs is in the way of no other.
    calls: JoinSet<(Run, Result<bool, Trouble>)>,
    under_way: HashSet<RunId>,
    /// The version of each run that its supervisor has received.
    received: HashMap<RunId, u64>,
}

impl App {
    /// Passes on what no supervisor has received yet.
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

    /// Ends what still runs on this machine although it is over in the database.
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

    /// Writes down what supervisors have received.
    async fn note_received(&self, passing: &mut Passing) -> Result<()> {
        while let Some(done) = passing.calls.try_join_next() {
            let Ok((run, received)) = done else {
                // One call panicked; which one is not known, and all may be asked again.
                passing.under_way.clear();
                continue;
            };
            passing.under_way.remove(&run.id);
            match received {
                Ok(true) => {}
                // Its start is on its way, perhaps; or its folder was removed.
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

    /// Writes that a run has to end, where its leader does not: it is elsewhere, and cannot reach this machine.
    async fn stop_in_time(&self, run: Run, grace: SignedDuration) -> Result<Run> {
        let now = self.now();
        let by = match run.state {
            // Whoever cancelled it could not know whether its machine is reached.
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

    /// Whether its time is over because its limit is, or because something firmer begins.
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
