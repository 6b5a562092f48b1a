//! Stops idle sessions after a warning.
//!
//! Only activity counts: a kernel that computes, a terminal that somebody types in, processor time, or a request that
//! changes something. An open page alone does not count.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use berth_drivers::backend::{Door, Job, Life};
use berth_drivers::door;
use berth_model::event::EventKind;
use berth_model::session::{Activity, Session, State};
use berth_model::{RunId, SessionId, Text};
use berth_store::sessions;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::follow::{Followed, OTHERS_WAIT};
use super::lend::borrowed_lately;
use crate::App;
use crate::authority::Authority;
use crate::error::Result;
use crate::queue::in_turn;
use crate::record::By;
use crate::transact::transact;

/// When to look for idle sessions, and how long before the stop the owners get a warning.
#[derive(Debug, Clone, Copy)]
pub struct Culling {
    pub every: SignedDuration,
    pub warning: SignedDuration,
    /// How many sessions are checked at the same time.
    pub at_once: usize,
}

impl Default for Culling {
    fn default() -> Self {
        Culling {
            every: SignedDuration::from_secs(600),
            warning: SignedDuration::from_secs(300),
            at_once: 10,
        }
    }
}

/// Last observations of live sessions. They are lost with the server. The first check after that has no processor time
/// to compare with, so it may warn but must not stop.
#[derive(Debug, Default, Clone)]
pub(crate) struct Pulse(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    next: Option<Timestamp>,
    memory_next: Option<Timestamp>,
    /// Checks in progress.
    looks: JoinSet<Looked>,
    /// Checks in progress for lending, and the sessions that they check. A check that hangs blocks no other.
    lending_looks: JoinSet<Looked>,
    lending_under_way: HashSet<SessionId>,
    cpu: HashMap<RunId, (u64, Timestamp)>,
    /// Processor time of lending sessions at the check just before.
    glanced: HashMap<RunId, (u64, Timestamp)>,
    /// Last check of each lending session, and the last time a borrower was seen on each run's GPUs.
    lending: HashMap<SessionId, Timestamp>,
    borrowed: HashMap<RunId, Timestamp>,
}

impl Pulse {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether the memory counters have to be read again. If so, they are next due after `every`.
    pub(super) fn is_memory_due(&self, now: Timestamp, every: SignedDuration) -> bool {
        let mut seen = self.seen();
        let is_due = seen.memory_next.is_none_or(|next| next <= now);
        if is_due {
            seen.memory_next = now.checked_add(every).ok();
        }
        is_due
    }

    /// Last check of each lending session. Also notes the runs with borrowed GPUs.
    pub(super) fn lending_looked(
        &self,
        followed: &[Followed],
        now: Timestamp,
        afterglow: SignedDuration,
    ) -> HashMap<SessionId, Timestamp> {
        let mut seen = self.seen();
        let lending = followed.iter().map(|one| &one.session);
        let lending = lending.filter(|one| one.lends_since.is_some());
        let lending: HashSet<SessionId> = lending.map(|one| one.id).collect();
        seen.lending.retain(|id, _| lending.contains(id));
        let is_recent = |at: &Timestamp| at.duration_until(now) < CPU_WINDOW;
        seen.glanced.retain(|_, (_, at)| is_recent(at));
        borrowed_lately(&mut seen.borrowed, followed, now, afterglow);
        seen.lending.clone()
    }

    pub(super) fn note_lending_look(&self, looked: SessionId, now: Timestamp) {
        let mut seen = self.seen();
        seen.lending.insert(looked, now);
        seen.lending_under_way.remove(&looked);
    }

    /// Marks these sessions as being checked. Returns the ones that were not marked before.
    pub(super) fn begin_lending_looks<'a>(&self, due: &[&'a Followed]) -> Vec<&'a Followed> {
        let mut seen = self.seen();
        let begin = |one: &&&Followed| seen.lending_under_way.insert(one.session.id);
        due.iter().filter(begin).copied().collect()
    }

    /// Takes the checks for lending out, while the caller changes them.
    pub(super) fn take_lending_looks(&self) -> JoinSet<Looked> {
        std::mem::take(&mut self.seen().lending_looks)
    }

    pub(super) fn leave_lending_looks(&self, looks: JoinSet<Looked>) {
        let mut seen = self.seen();
        if looks.is_empty() {
            seen.lending_under_way.clear();
        }
        seen.lending_looks = looks;
    }

    /// Whether a run used processor time since the last check.
    fn compare(
        &self,
        run: RunId,
        (used, now): (u64, Timestamp),
        lends: bool,
        least: SignedDuration,
    ) -> Processor {
        let mut seen = self.seen();
        let known = seen.cpu.get(&run).copied();
        if lends {
            let glanced = seen.glanced.insert(run, (used, now));
            let is_busy = |before| is_work(before, (used, now), BURST_PERMILLE);
            if glanced.is_some_and(is_busy) {
                return Processor::Busy;
            }
        }
        // Over a short time, the work of an open page would look like activity.
        if known.is_some_and(|(_, at)| at.duration_until(now) < least) {
            return Processor::NotCompared;
        }
        match seen.cpu.insert(run, (used, now)) {
            None => Processor::NotCompared,
            Some(before) if is_work(before, (used, now), BUSY_PERMILLE) => Processor::Busy,
            Some(_) => Processor::Idle,
        }
    }
}

/// More than this part of a core, on average since the last check, is activity.
const BUSY_PERMILLE: u128 = 20;
/// More than this is activity even over a short time: an open page alone never uses it.
const BURST_PERMILLE: u128 = 300;
/// Shortest time over which processor time is compared.
const CPU_WINDOW: SignedDuration = SignedDuration::from_secs(30);
const ANSWER: Duration = Duration::from_secs(10);
/// How long a backend may take for a check: a disk or a driver may hang.
const LIFE: Duration = Duration::from_secs(10);
/// When to poll the checks in progress again.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// Result of the check of one session.
#[derive(Debug)]
pub(super) struct Looked {
    pub session: Session,
    idle: SignedDuration,
    pub active_at: Option<Timestamp>,
    /// Whether the backend could report activity in the session.
    pub is_known: bool,
    /// Whether the processor time was compared with an earlier check.
    is_compared: bool,
}

/// Result of comparing the processor time of a run at two checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Processor {
    Busy,
    Idle,
    /// There is no earlier check, or it was only a moment ago.
    NotCompared,
}

impl App {
    /// Records the last activity of visitors in the database, because another server may look for idle sessions.
    pub async fn note_visitors(&self, acted: &[(SessionId, Timestamp)]) -> Result<()> {
        if acted.is_empty() {
            return Ok(());
        }
        transact!(self, tx => {
            for (session, at) in acted {
                if !self.take_back(&mut tx, *session, *at).await? {
                    sessions::note_active(&mut tx, *session, *at).await?;
                }
            }
            Ok(())
        })
    }

    /// Checks for idle sessions if that is due. Returns when it is due next.
    pub(super) async fn cull(
        &self,
        authority: Authority<'_>,
        followed: &[Followed],
    ) -> Result<Option<Timestamp>> {
        let now = self.now();
        let Culling { every, at_once, .. } = self.settings.culling;
        let mut looks = std::mem::take(&mut self.pulse.seen().looks);
        let next = self.pulse.seen().next;
        let is_due = next.is_none_or(|next| next <= now) && looks.is_empty();
        if is_due {
            let runs = followed.iter().filter_map(|one| one.run.as_ref());
            let live: HashSet<RunId> = runs.map(|run| run.id).collect();
            let mut seen = self.pulse.seen();
            seen.next = now.checked_add(every).ok();
            seen.cpu.retain(|run, _| live.contains(run));
        }
        if is_due {
            let places = Arc::new(Semaphore::new(at_once.max(1)));
            let is_ready = |one: &&Followed| one.session.state == State::Ready;
            for one in followed.iter().filter(is_ready) {
                self.look_for_life(&mut looks, one, &places, now);
            }
        }
        // A slow check is read in a later pass, so no start waits for it.
        let patience = Instant::now() + OTHERS_WAIT;
        let mut done = Vec::new();
        while let Ok(Some(looked)) = timeout_at(patience, looks.join_next()).await {
            done.extend(looked);
        }
        let soon = now.checked_add(LOOK_AGAIN).ok();
        let soon = soon.filter(|_| !looks.is_empty());
        {
            let mut seen = self.pulse.seen();
            seen.looks = looks;
            // A session without a comparison is checked again as soon as a comparison is possible, however often
            // servers restart.
            if done.iter().any(|one| !one.is_compared) {
                let compared_at = now.checked_add(CPU_WINDOW).ok();
                seen.next = seen.next.min(compared_at).or(compared_at);
            }
        }
        for looked in done {
            self.warn_or_stop(authority, looked, now).await?;
        }
        let next = self.pulse.seen().next;
        Ok(soon.or(next))
    }

    /// Checks one session in a task of its own, which ends by itself.
    pub(super) fn look_for_life(
        &self,
        tasks: &mut JoinSet<Looked>,
        one: &Followed,
        places: &Arc<Semaphore>,
        now: Timestamp,
    ) {
        if let Some(profile) = &one.profile {
            let idle = profile.idle;
            let activity = one.app.as_ref().map(|app| app.activity);
            let base = self.settings.addresses.base(&one.session.label);
            let path = (activity == Some(Activity::Jupyter)).then_some(base);
            let lends = one.session.lends_since.is_some();
            let is_borrowed = one
                .run
                .as_ref()
                .is_some_and(|run| self.pulse.seen().borrowed.contains_key(&run.id));
            let session = one.session.clone();
            let (backend, pulse) = (self.backend.clone(), self.pulse.clone());
            let least = CPU_WINDOW.min(self.settings.culling.every);
            let (workload, run) = (one.workload.clone(), one.run.clone());
            let look = async move {
                let (used, life, door) = match (&backend, &workload, &run) {
                    (Some(backend), Some(workload), Some(run)) => {
                        let job = Job { workload, run };
                        let used = timeout(LIFE, backend.used(job)).await;
                        let life = timeout(LIFE, backend.life(job)).await;
                        let door = timeout(LIFE, backend.door(job)).await;
                        let used = used.ok().and_then(Result::ok);
                        (
                            used.map(|used| Some((run.id, used?.cpu_us))),
                            life.ok().and_then(Result::ok),
                            door.ok().and_then(Result::ok),
                        )
                    }
                    _ => (Some(None), Some(Life::default()), None),
                };
                let is_known = used.is_some() && life.is_some();
                let life = life.unwrap_or_default();
                let processor = match used {
                    // Its processor time is unknown, so it does not count as idle.
                    None => Processor::NotCompared,
                    // The backend does not count processor time, so there will never be a comparison.
                    Some(None) => Processor::Idle,
                    Some(Some((run, cpu_us))) => pulse.compare(run, (cpu_us, now), lends, least),
                };
                let by_others = [
                    (processor == Processor::Busy).then_some(now),
                    // The clock of another machine may be ahead.
                    life.written_at.map(|at| at.min(now)),
                    // While a borrower has its GPUs, their work says nothing about the owner.
                    (life.computes && !is_borrowed).then_some(now),
                ];
                let by_others = by_others.into_iter().flatten().max();
                let by_kernels = match (door.flatten(), path) {
                    (Some(door), Some(base)) => kernels(&door, &base, now).await,
                    _ => None,
                };
                Looked {
                    session,
                    idle,
                    active_at: by_others.into_iter().chain(by_kernels).max(),
                    is_known,
                    is_compared: is_known && processor != Processor::NotCompared,
                }
            };
            let places = places.clone();
            tasks.spawn(async move { in_turn(&places, Box::pin(look)).await });
        }
    }

    async fn warn_or_stop(
        &self,
        authority: Authority<'_>,
        looked: Looked,
        now: Timestamp,
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let Some(before) = sessions::get_locked(&mut tx, looked.session.id).await? else {
            return Ok(());
        };
        if before.state != State::Ready || before.workload != looked.session.workload {
            return Ok(());
        }
        let active = looked
            .active_at
            .map_or(before.clone(), |at| before.clone().active(at));
        let Culling { every, warning, .. } = self.settings.culling;
        let ends = active.idle_until(looked.idle);
        let was_warned = active
            .warned_at
            .is_some_and(|at| at.duration_until(now) >= warning.min(every));
        let (after, kind) = if now >= ends && was_warned && looked.is_compared {
            let said = idle_words(looked.idle);
            let after = active.stop(said, now)?;
            self.cancel_what_runs(&mut tx, By::SYSTEM, &after).await?;
            (after, EventKind::SessionChanged)
        } else if now + warning.max(every) >= ends && active.warned_at.is_none() {
            let after = Session {
                warned_at: Some(now),
                ..active
            };
            (after, EventKind::SessionIdle)
        } else {
            (active, EventKind::SessionChanged)
        };
        if after != before {
            self.write_session(&mut tx, &before, &after, kind).await?;
        }
        tx.commit().await?;
        self.written.notify_one();
        self.submitted.notify_one();
        Ok(())
    }
}

/// Whether the processor time between two checks was above `permille` thousandths of a core.
fn is_work((before, at): (u64, Timestamp), (used, now): (u64, Timestamp), permille: u128) -> bool {
    let passed = u128::try_from(at.duration_until(now).as_micros()).unwrap_or(0);
    let worked = u128::from(used.saturating_sub(before));
    passed > 0 && worked * 1000 > passed * permille
}

fn idle_words(idle: SignedDuration) -> Option<Text> {
    let minutes = idle.as_mins();
    let words = match minutes {
        0 => "it was stopped because nothing was done in it".to_owned(),
        minutes => format!("it was stopped because nothing was done in it for {minutes} minutes"),
    };
    words.parse().ok()
}

#[derive(Deserialize)]
struct Kernel {
    last_activity: Option<Timestamp>,
    execution_state: Option<String>,
}

/// Last activity of a kernel or a terminal, as the app reports it. `now` while one computes.
async fn kernels(door: &Door, base: &str, now: Timestamp) -> Option<Timestamp> {
    let mut latest: Option<Timestamp> = None;
    for path in ["api/kernels", "api/terminals"] {
        let answer = door::ask(door, &format!("{base}{path}"), ANSWER).await;
        let Ok(answer) = answer else { continue };
        let listed: Vec<Kernel> = serde_json::from_slice(&answer.body).unwrap_or_default();
        for one in listed {
            let at = match one.execution_state.as_deref() {
                Some("busy") => Some(now),
                // A time in the future counts as now.
                _ => one.last_activity.map(|at| at.min(now)),
            };
            latest = latest.into_iter().chain(at).max();
        }
    }
    latest
}
