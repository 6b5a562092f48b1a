//! One reconcile pass of a site's queue: find the runs that ended, plan, execute the decisions, call the backend.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError};

use berth_drivers::backend::{Fence, Grant, Job, Sign, Trouble};
use berth_model::workload::{Because, Outcome, Run, RunGpu, RunState, Workload};
use berth_model::{RunId, SiteId};
use berth_store::leases::Lease;
use berth_store::{Error as StoreError, queues};
use jiff::Timestamp;
use tokio::sync::MutexGuard;

use super::calls::{Call, Calls, in_time};
use super::carry::{Begun, Over, is_refused, over};
use super::plan::{Inside, Plan, Starting, Step};
use super::{For, Queues, SiteQueue};
use crate::App;
use crate::error::{Error, Result};

/// Bounds a pass, however many starts are possible. The next pass continues.
const PLANS_MAX: usize = 50;
impl App {
    /// The sites that this server schedules work for.
    pub(crate) async fn sites_with_queues(&self) -> Result<Vec<SiteId>> {
        // Without a backend nothing can run, so the queue must not claim resources that people could book.
        if self.backend.is_none() {
            return Ok(Vec::new());
        }
        let mut reader = self.store.read().await?;
        Ok(queues::sites(&mut reader).await?)
    }

    /// Runs one pass of a site's queue. Returns the latest time of the next pass. The plan is not locked during backend
    /// calls, so no query waits for a backend.
    pub(crate) async fn carry_queue_on(
        &self,
        lease: &Lease,
        site: SiteId,
    ) -> Result<Option<Timestamp>> {
        let queue = self.queues.of(site);
        let mut calls = queue.calls.lock().await;
        calls.under(Fence(lease.fence));
        let mut plan = self.take_plan(&queue, lease, site).await?;
        self.catch_up_with(&mut plan).await?;
        if self.see_what_is_cut(lease, &mut plan).await? {
            *plan = self.read_again(lease, site).await?;
        }
        let running = plan.all_running();
        plan.put_back();
        let over = self.see_what_ended(&running).await;
        let mut plan = self.take_plan(&queue, lease, site).await?;
        self.end_runs(lease, &mut plan, over).await?;
        for _ in 0..PLANS_MAX {
            let mut changed = self.plan_once(lease, &mut plan).await?;
            self.begin_calls(lease, &mut plan, &mut calls).await?;
            plan.put_back();
            let answers = calls.answers().await;
            plan = self.take_plan(&queue, lease, site).await?;
            for (run, answer) in answers {
                changed += self.note_heard(lease, &mut plan, &run, answer).await?;
            }
            if changed > 0 {
                continue;
            }
            if !self.cut_anew(lease, &mut plan).await? {
                break;
            }
            *plan = self.read_again(lease, site).await?;
        }
        self.note_forecasts(lease, &mut plan).await?;
        let now = self.now();
        let next = plan.next_look(now).into_iter().chain(self.next_sign(&plan));
        let next = next.min();
        plan.put_back();
        Ok(next)
    }

    /// Reads the whole plan again after a repartition, because the inventory has changed.
    async fn read_again(&self, lease: &Lease, site: SiteId) -> Result<Plan> {
        let mut plan = Box::pin(self.plan_now(site, true)).await?;
        self.see_what_is_cut(lease, &mut plan).await?;
        Ok(plan)
    }

    /// The runs that are over, in the order of their ends.
    async fn see_what_ended(&self, running: &[(Run, Arc<Workload>)]) -> Vec<(RunId, Over)> {
        let Some(backend) = &self.backend else {
            return Vec::new();
        };
        let now = self.now();
        let jobs = running.iter().map(|(run, workload)| Job { workload, run });
        let jobs: Vec<Job<'_>> = jobs.collect();
        let signs = match in_time(backend.look(&jobs, now)).await {
            Ok(signs) => signs,
            Err(trouble) => {
                tracing::warn!(%trouble, "what runs could not be looked at; trying again");
                return Vec::new();
            }
        };
        let seen = jobs.iter().zip(signs);
        let over =
            seen.filter_map(|(job, sign): (_, Sign)| Some((job.run.id, over(job.run, sign, now)?)));
        let mut over: Vec<_> = over.collect();
        over.sort_by_key(|(id, over)| (over.at, *id));
        over
    }

    async fn end_runs(
        &self,
        lease: &Lease,
        plan: &mut Plan,
        over: Vec<(RunId, Over)>,
    ) -> Result<()> {
        for (run, over) in over {
            if let Some((workload, run)) = self.end_run(lease, run, over).await? {
                plan.ended(&run, workload, self.now());
                self.let_guests_stay(plan, run.id).await?;
            }
        }
        Ok(())
    }

    /// Plans once and executes the decisions. Returns the number of starts.
    async fn plan_once(&self, lease: &Lease, plan: &mut Plan) -> Result<usize> {
        let mut begun = 0;
        let mut steps = plan.decide(self.now());
        steps.extend(self.plan_inside(plan).await?);
        for step in steps {
            match step {
                Step::Start(starting) if plan.is_still_used(&starting) => {
                    // Work inside a reservation or session is planned anew in every pass.
                    if starting.inside.is_none() {
                        plan.refused(&starting, self.now());
                    }
                }
                Step::Start(starting) => {
                    let made = match self.begin_run(lease, plan, &starting).await {
                        Err(error) if is_refused(&error) => Begun::Refused,
                        made => made?,
                    };
                    match made {
                        Begun::Done(made) => {
                            let (workload, run) = *made;
                            plan.started(&starting, run, workload, self.now());
                            begun += 1;
                        }
                        Begun::Refused => plan.refused(&starting, self.now()),
                        // Others may get what this owner may not, so plan again at once.
                        Begun::OverQuota => {
                            plan.refused(&starting, self.now());
                            plan.over_quota(&starting, self.now());
                            begun += 1;
                        }
                    }
                }
                Step::GiveUp { workload, because } => {
                    let given_up = self.give_up_workload(lease, plan.site, workload, because);
                    if let Some(workload) = given_up.await? {
                        plan.sync(Arc::new(workload), self.now());
                    }
                }
                Step::Stop { run, by, because } => {
                    self.carry_out_stop(lease, plan, run, by, because).await?;
                }
                Step::Keep(run) => self.carry_out_keep(lease, plan, run).await?,
            }
        }
        Ok(begun)
    }

    pub(super) async fn carry_out_stop(
        &self,
        lease: &Lease,
        plan: &mut Plan,
        run: RunId,
        by: Timestamp,
        because: Because,
    ) -> Result<()> {
        if let Some(after) = self.stop_run(lease, plan, run, by, because).await?
            && let Some(running) = plan.runs.get_mut(&run)
        {
            running.is_to_be_told |= matches!(after.state, RunState::Stopping { .. });
            running.run = after;
        }
        Ok(())
    }

    /// Begins the backend calls for runs that have to start or stop. It repeats them until the backend answers. Each
    /// machine's own server stops the runs on that machine.
    async fn begin_calls(&self, lease: &Lease, plan: &mut Plan, calls: &mut Calls) -> Result<()> {
        let Some(backend) = &self.backend else {
            return Ok(());
        };
        let mut due = Vec::new();
        for running in plan.runs.values_mut().filter(|one| one.is_to_be_told) {
            let run = &running.run;
            if run.machine.is_some() && run.state != RunState::Starting {
                running.is_to_be_told = false;
                self.to_pass_on.notify_one();
            } else if !calls.is_under_way(run.id) {
                due.push((run.clone(), Arc::clone(&running.workload)));
            }
        }
        due.sort_unstable_by_key(|(run, _)| run.id);
        for (run, workload) in due {
            let start = match run.state {
                RunState::Starting => Some(self.what_starts(&workload, &run).await?),
                _ => None,
            };
            let call = Call {
                run,
                workload,
                start,
                fence: Fence(lease.fence),
                now: self.now(),
            };
            calls.begin(&self.submitted, backend.clone(), call);
        }
        Ok(())
    }

    /// Launch data that the plan does not hold, or the error if the workload's secrets cannot be opened.
    async fn what_starts(
        &self,
        workload: &Workload,
        run: &Run,
    ) -> Result<Result<(Grant, Workload), Trouble>> {
        let grant = self.granted(workload, run).await?;
        let whole = self.to_start(workload).await?;
        Ok(match whole {
            Ok(whole) => Ok((grant, whole)),
            Err(error) => Err(Trouble::Refused(error.to_string())),
        })
    }

    /// Handles the backend's answer about a run. Returns how many runs this ended.
    async fn note_heard(
        &self,
        lease: &Lease,
        plan: &mut Plan,
        run: &Run,
        answer: Result<(), Trouble>,
    ) -> Result<usize> {
        let id = run.id;
        match answer {
            Ok(()) if run.state == RunState::Starting => {
                let known = self.note_running(lease, run).await?;
                if let (Some(known), Some(running)) = (known, plan.runs.get_mut(&id)) {
                    // Somebody may have cancelled the run during its start.
                    running.is_to_be_told = matches!(known.state, RunState::Stopping { .. });
                    running.run = known;
                }
            }
            Ok(()) => {
                let running = plan.runs.get_mut(&id);
                if let Some(running) = running.filter(|one| one.run.version == run.version) {
                    running.is_to_be_told = false;
                }
            }
            Err(Trouble::Fenced) => return Err(Error::Store(StoreError::Retry)),
            Err(Trouble::Unreachable) => {}
            Err(Trouble::NoAnswer(why)) => {
                tracing::warn!(%why, run = %id, "the backend did not answer about a run; trying again");
            }
            Err(Trouble::Refused(why)) => {
                tracing::warn!(%why, run = %id, "a run was refused by what was to run it");
                let failed = Over {
                    at: self.now(),
                    outcome: Outcome::CouldNotStart,
                    said: why.parse().ok(),
                };
                self.end_runs(lease, plan, vec![(id, failed)]).await?;
                return Ok(1);
            }
        }
        Ok(0)
    }

    /// Takes the plan out of its slot while it changes. If the change is interrupted, the slot stays empty, and the
    /// plan is read again.
    async fn take_plan<'a>(
        &self,
        queue: &'a SiteQueue,
        lease: &Lease,
        site: SiteId,
    ) -> Result<Taken<'a>> {
        let mut kept = queue.plan.lock().await;
        let ours = For::Carrying(lease.fence);
        let now = self.now();
        let is_good = |kept: &(For, Plan)| kept.0 == ours && now < kept.1.rations.renewed_at;
        let plan = match kept.take().filter(is_good) {
            Some((_, plan)) => plan,
            None => Box::pin(self.plan_now(site, true)).await?,
        };
        Ok(Taken { kept, ours, plan })
    }

    fn next_sign(&self, plan: &Plan) -> Option<Timestamp> {
        let jobs: Vec<Job<'_>> = plan
            .runs
            .values()
            .map(|one| Job {
                workload: &one.workload,
                run: &one.run,
            })
            .collect();
        self.backend.as_ref()?.next(&jobs, self.now())
    }
}

/// A site's plan during a pass.
struct Taken<'a> {
    kept: MutexGuard<'a, Option<(For, Plan)>>,
    ours: For,
    plan: Plan,
}

impl Taken<'_> {
    fn put_back(self) {
        let Taken {
            mut kept,
            ours,
            plan,
        } = self;
        *kept = Some((ours, plan));
    }
}

impl Deref for Taken<'_> {
    type Target = Plan;
    fn deref(&self) -> &Plan {
        &self.plan
    }
}

impl DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut Plan {
        &mut self.plan
    }
}

impl Plan {
    fn all_running(&self) -> Vec<(Run, Arc<Workload>)> {
        let runs = self.runs.values();
        runs.map(|one| (one.run.clone(), Arc::clone(&one.workload)))
            .collect()
    }

    /// Whether a run still uses a GPU of this start. A claim may be over before its run, if a disconnected server did
    /// not stop the run in time.
    fn is_still_used(&self, starting: &Starting) -> bool {
        let (pieces, _) = self.floor.pieces(&starting.placement);
        let wanted: Vec<&RunGpu> = pieces.iter().flat_map(|piece| &piece.gpus).collect();
        let host = match starting.inside {
            Some((Inside::Session(host), _)) => Some(host),
            _ => None,
        };
        let is_wanted = |used: &RunGpu| {
            let clashes = |new: &&&RunGpu| {
                new.gpu == used.gpu && (new.share.is_none() || used.share.is_none())
            };
            wanted.iter().find(clashes).is_some()
        };
        let mut runs = self.runs.values().map(|running| &running.run);
        !wanted.is_empty()
            && runs.any(|run| {
                let mut gpus = run.pieces.iter().flat_map(|piece| &piece.gpus);
                Some(run.id) != host && gpus.any(is_wanted)
            })
    }
}

impl Queues {
    /// Drops the plans that this server executed. Another server leads the queues now, so these plans grow old.
    pub(crate) fn forget(&self) {
        let mut all = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        // A plan that is locked now is dropped the next time.
        let is_ours = |queue: &SiteQueue| {
            let kept = queue.plan.try_lock();
            kept.is_ok_and(|kept| matches!(*kept, Some((For::Carrying(_), _))))
        };
        all.retain(|_, queue| !is_ours(queue));
    }

    pub(super) fn of(&self, site: SiteId) -> Arc<SiteQueue> {
        let mut all = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(site).or_default().clone()
    }
}
