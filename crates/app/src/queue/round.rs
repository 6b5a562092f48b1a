//! One round of a site's queue: look what has become of what runs, plan, carry out, tell whatever runs it.

use std::sync::Arc;
use std::time::Duration;

use berth_drivers::backend::{Backend, Doing, Fence, Grant, Job, Sign, Trouble};
use berth_model::workload::{Because, Outcome, Run, RunState, Workload};
use berth_model::{RunId, SiteId};
use berth_store::leases::Lease;
use berth_store::{Error as StoreError, queues};
use futures::future::join_all;
use jiff::Timestamp;

use super::carry::{Begun, Over, is_refused, over};
use super::plan::{Plan, Step};
use super::{For, Kept, Queues};
use crate::App;
use crate::error::{Error, Result};

/// However much can begin at once, a round ends some time; the next one goes on.
const PLANS_MAX: usize = 50;
/// Calls to the backend that a site makes at the same time.
const CALLS_AT_ONCE: usize = 16;
/// How long a backend may take to answer. It is asked again.
const ANSWER: Duration = Duration::from_secs(30);

pub(super) async fn in_time<T>(call: Doing<'_, T>) -> Result<T, Trouble> {
    let answer = tokio::time::timeout(ANSWER, call).await;
    answer.unwrap_or_else(|_| {
        let seconds = ANSWER.as_secs();
        Err(Trouble::NoAnswer(format!("it took more than {seconds} s")))
    })
}

impl App {
    /// The sites whose work is run from here.
    pub(crate) async fn sites_with_queues(&self) -> Result<Vec<SiteId>> {
        // Where nothing runs work, nothing may hold what others could book.
        if self.backend.is_none() {
            return Ok(Vec::new());
        }
        let mut reader = self.store.read().await?;
        Ok(queues::sites(&mut reader).await?)
    }

    /// Carries a site's queue on; says when to look again at the latest.
    pub(crate) async fn carry_queue_on(
        &self,
        lease: &Lease,
        site: SiteId,
    ) -> Result<Option<Timestamp>> {
        let all = self.queues.of(site);
        let mut kept = all.lock().await;
        let ours = For::Carrying(lease.fence);
        // Taken out while it changes: what is cut off half-way is read anew.
        let now = self.now();
        let is_good = |kept: &(For, Plan)| kept.0 == ours && now < kept.1.rations.renewed_at;
        let known = kept.take().filter(is_good);
        let mut plan = Box::pin(self.plan_now(site, known.map(|(_, plan)| plan), true)).await?;
        if self.see_what_is_cut(lease, &mut plan).await? {
            plan = self.read_again(lease, site).await?;
        }
        self.see_what_ended(lease, &mut plan).await?;
        for _ in 0..PLANS_MAX {
            let begun = self.plan_once(lease, &mut plan).await?;
            self.tell(lease, &mut plan).await?;
            if begun == 0 {
                if !self.cut_anew(lease, &mut plan).await? {
                    break;
                }
                plan = self.read_again(lease, site).await?;
            }
            // Whoever asks why they wait does not wait for a long round.
            *kept = Some((ours, plan));
            drop(kept);
            kept = all.lock().await;
            plan = match kept.take() {
                Some((_, plan)) => plan,
                None => Box::pin(self.plan_now(site, None, true)).await?,
            };
        }
        self.note_forecasts(lease, &mut plan).await?;
        let now = self.now();
        let next = plan
            .next_look(now)
            .into_iter()
            .chain(self.next_sign(&plan))
            .min();
        *kept = Some((ours, plan));
        Ok(next)
    }

    /// What there is has changed, by a GPU that is cut: all of it is read again.
    async fn read_again(&self, lease: &Lease, site: SiteId) -> Result<Plan> {
        let mut plan = Box::pin(self.plan_now(site, None, true)).await?;
        self.see_what_is_cut(lease, &mut plan).await?;
        Ok(plan)
    }

    async fn see_what_ended(&self, lease: &Lease, plan: &mut Plan) -> Result<()> {
        let Some(backend) = &self.backend else {
            return Ok(());
        };
        let now = self.now();
        let ended: Vec<_> = {
            let running: Vec<_> = plan.runs.values().collect();
            let jobs: Vec<Job<'_>> = running
                .iter()
                .map(|one| Job {
                    workload: &one.workload,
                    run: &one.run,
                })
                .collect();
            let signs = match in_time(backend.look(&jobs, now)).await {
                Ok(signs) => signs,
                Err(trouble) => {
                    tracing::warn!(%trouble, "what runs could not be looked at; trying again");
                    return Ok(());
                }
            };
            let seen = jobs.iter().zip(signs);
            let over = seen
                .filter_map(|(job, sign): (_, Sign)| Some((job.run.id, over(job.run, sign, now)?)));
            let mut over: Vec<_> = over.collect();
            over.sort_by_key(|(id, over)| (over.at, *id));
            over
        };
        for (run, over) in ended {
            if let Some((workload, run)) = self.end_run(lease, run, over).await? {
                plan.ended(&run, workload, self.now());
                self.let_guests_stay(plan, run.id).await?;
            }
        }
        Ok(())
    }

    /// Plans once, and carries it out; says how many began.
    async fn plan_once(&self, lease: &Lease, plan: &mut Plan) -> Result<usize> {
        let mut begun = 0;
        let mut steps = plan.decide(self.now());
        steps.extend(self.plan_inside(plan).await?);
        for step in steps {
            match step {
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
                        // Others may have what they could not: it is planned again at once.
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

    /// Tells whatever runs the work what has to begin and to end, until it was heard.
    async fn tell(&self, lease: &Lease, plan: &mut Plan) -> Result<()> {
        let Some(backend) = &self.backend else {
            return Ok(());
        };
        let fence = Fence(lease.fence);
        let waiting = plan.runs.values().filter(|one| one.is_to_be_told);
        let waiting = waiting.map(|one| (one.run.clone(), Arc::clone(&one.workload)));
        let mut waiting: Vec<(Run, Arc<Workload>)> = waiting.collect();
        waiting.sort_unstable_by_key(|(run, _)| run.id);
        for some in waiting.chunks(CALLS_AT_ONCE) {
            let mut starts = Vec::new();
            for (run, workload) in some {
                starts.push(match run.state {
                    RunState::Starting => Some(self.what_starts(workload, run).await?),
                    _ => None,
                });
            }
            let calls = some.iter().zip(&starts).map(|((run, workload), start)| {
                let job = Job { workload, run };
                tell_backend(backend.as_ref(), job, start.as_ref(), fence, self.now())
            });
            let heard = join_all(calls).await;
            for ((run, _), heard) in some.iter().zip(heard) {
                self.note_heard(lease, plan, run, heard).await?;
            }
        }
        Ok(())
    }

    /// What a start needs beside what the plan knows; why it cannot begin, where its secrets cannot be opened.
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

    /// What the backend said of what it was told.
    async fn note_heard(
        &self,
        lease: &Lease,
        plan: &mut Plan,
        run: &Run,
        heard: Result<(), Trouble>,
    ) -> Result<()> {
        let id = run.id;
        let now_is: Option<Run> = match heard {
            Ok(()) if run.state == RunState::Starting => self.note_running(lease, run).await?,
            Ok(()) => Some(run.clone()),
            Err(Trouble::Fenced) => return Err(Error::Store(StoreError::Retry)),
            Err(Trouble::Unreachable) => None,
            Err(Trouble::NoAnswer(why)) => {
                tracing::warn!(%why, run = %id, "a run could not be told; trying again");
                None
            }
            Err(Trouble::Refused(why)) => {
                tracing::warn!(%why, run = %id, "a run was refused by what was to run it");
                let failed = Over {
                    at: self.now(),
                    outcome: Outcome::CouldNotStart,
                    said: why.parse().ok(),
                };
                if let Some((workload, run)) = self.end_run(lease, id, failed).await? {
                    plan.ended(&run, workload, self.now());
                    self.let_guests_stay(plan, run.id).await?;
                }
                None
            }
        };
        if let (Some(now_is), Some(running)) = (now_is, plan.runs.get_mut(&id)) {
            running.run = now_is;
            running.is_to_be_told = false;
        }
        Ok(())
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

/// Tells the backend what the run's state asks for. `start` is what a start needs.
async fn tell_backend(
    backend: &dyn Backend,
    job: Job<'_>,
    start: Option<&Result<(Grant, Workload), Trouble>>,
    fence: Fence,
    now: Timestamp,
) -> Result<(), Trouble> {
    match (job.run.state, start) {
        (RunState::Starting, Some(Ok((grant, workload)))) => {
            let job = Job { workload, ..job };
            in_time(backend.start(job, grant, fence, now)).await
        }
        (RunState::Starting, Some(Err(trouble))) => Err(trouble.clone()),
        (RunState::Stopping { .. }, _) => in_time(backend.stop(job, fence, now)).await,
        (RunState::Running, _) => in_time(backend.prolong(job, fence, now)).await,
        (RunState::Starting, None) | (RunState::Ended { .. }, _) => Ok(()),
    }
}

impl Queues {
    /// Another server carries the queues on: what was to be carried out here grows old.
    pub(crate) fn forget(&self) {
        let mut all = self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        // One that is being asked at this moment is forgotten the next time.
        let is_ours = |kept: &Kept| {
            let kept = kept.try_lock();
            kept.is_ok_and(|kept| matches!(*kept, Some((For::Carrying(_), _))))
        };
        all.retain(|_, kept| !is_ours(kept));
    }

    pub(super) fn of(&self, site: SiteId) -> Kept {
        let mut all = self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        all.entry(site).or_default().clone()
    }
}
