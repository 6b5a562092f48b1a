//! Decisions of a plan, and the results that come back to it.

use std::sync::Arc;

use berth_engine::fleet::{self, Piece, Placement};
use berth_engine::queue::planner::{Ask, Class, Decision, Key, Why};
use berth_model::workload::{self, Because, Run, RunState, Workload};
use berth_model::{ReservationId, RunId, WorkloadId};
use jiff::{SignedDuration, Timestamp};

use super::super::look::NodeView;
use super::{BACK_OFF, Plan, Running, Stands, Starting, Step, Wall, moment, weighs, without_gpus};

impl Plan {
    /// Applies the changes that come with time alone, and then decides starts and stops.
    pub fn decide(&mut self, now: Timestamp) -> Vec<Step> {
        let at = now.as_microsecond();
        self.backed_off.retain(|_, until| *until > at);
        self.over_quota.retain(|_, until| *until > at);
        while let Some((due, id)) = self.later.first().copied().filter(|(due, _)| *due <= at) {
            self.later.remove(&(due, id));
            if let Some(workload) = self.workloads.get(&id).map(|entry| entry.workload.clone()) {
                self.sync(workload, now);
            }
        }
        self.turn_rations(now);
        let mut steps: Vec<Step> = Vec::new();
        for decision in self.planner.plan(at) {
            match decision {
                Decision::Start(start) => {
                    let Some((id, task)) = self.keys.get(&start.key).copied() else {
                        continue;
                    };
                    let Some(entry) = self.workloads.get_mut(&id) else {
                        continue;
                    };
                    entry.in_line.remove(&task);
                    let workload = entry.workload.clone();
                    let granted = self.floor.usable(&workload);
                    let granted = granted
                        .get(start.wish)
                        .map(|(number, _, need)| (*number, weighs(need)));
                    let (wish, weighs) = granted.unwrap_or_default();
                    steps.push(Step::Start(Starting {
                        key: start.key,
                        workload,
                        task,
                        wish,
                        placement: start.placement,
                        from: moment(at),
                        until: moment(start.until),
                        weighs,
                        inside: None,
                    }));
                }
                Decision::TooLate(key) => {
                    if let Some((workload, task)) = self.keys.get(&key).copied() {
                        self.leave(workload, task, key);
                        steps.push(Step::GiveUp {
                            workload,
                            because: "it could no longer be over by its deadline",
                        });
                    }
                }
                Decision::Stop(stop) => {
                    let found = self.runs.values().find(|running| running.key == stop.key);
                    if let Some(running) = found {
                        steps.push(Step::Stop {
                            run: running.run.id,
                            by: moment(stop.by),
                            because: Because::Preempted,
                        });
                    }
                }
            }
        }
        steps.extend(self.times_up(now));
        steps
    }

    /// Records that a start was executed.
    pub fn started(&mut self, starting: &Starting, run: Run, workload: Workload, now: Timestamp) {
        let workload = Arc::new(workload);
        if starting.inside.is_some() {
            // The task may have been queued for the whole site. It now runs behind the reservation's `Wall`.
            self.planner.withdraw(starting.key);
            self.leave(workload.id, starting.task, starting.key);
        }
        if run.lent_by.is_some() {
            self.resume(run, workload.clone());
        } else {
            let running = Running {
                run,
                workload: workload.clone(),
                key: starting.key,
                is_to_be_told: true,
            };
            self.runs.insert(running.run.id, running);
        }
        let id = workload.id;
        self.sync(workload, now);
        self.begun(id, now);
    }

    /// Start of the first reservation ahead that the workload would run into if its runs ended `by` later.
    pub fn promised_if_longer(
        &self,
        workload: WorkloadId,
        by: SignedDuration,
    ) -> Option<Timestamp> {
        let runs = self.runs.values();
        let runs = runs.filter(|running| running.run.workload == workload);
        let first = runs.filter_map(|running| {
            let placement = self.floor.placement(&running.run.pieces)?;
            let end = running.run.until.checked_add(by).ok()?;
            self.planner
                .promised_before(&placement, end.as_microsecond())
        });
        first.min().map(moment)
    }

    /// A run as the planner sees it: its request and its placement. `None` if the planner does not manage it.
    fn stands_as(&mut self, run: &Run, workload: &Workload) -> Option<(Ask, Placement)> {
        let wish = workload.ask.wishes.get(run.wish);
        // The reservation's `Wall` already covers the runs inside it.
        let wish = wish.filter(|_| run.stands_inside().is_none())?;
        let need = self.floor.need(wish)?;
        let mut ask = self.ask_for(workload, std::iter::once((wish, need)))?;
        // If its node has left the queue, the run goes on and keeps its claims.
        let mut placement = self.floor.placement(&run.pieces)?;
        if run.lent_by.is_some() {
            // The planner counts the GPUs for the session that lends them.
            ask.wish.need.task.gpus = fleet::Gpus::None;
            placement = without_gpus(placement);
        }
        Some((ask, placement))
    }

    pub(in crate::queue) fn resume(&mut self, run: Run, workload: Arc<Workload>) {
        let key = self.fresh_key();
        if let Some((mut ask, placement)) = self.stands_as(&run, &workload) {
            self.keys.insert(key, (workload.id, run.task));
            if run.kept_from.is_some() {
                ask.class = Class::Opportunistic;
            }
            let began = run.kept_from.unwrap_or(run.began).as_microsecond();
            let until = run.until.as_microsecond();
            self.planner.resume(key, ask, placement, began, until);
        }
        let running = Running {
            run,
            workload,
            key,
            is_to_be_told: true,
        };
        self.runs.insert(running.run.id, running);
    }

    /// Records that a run ends later than before, or that its placement is counted in another way.
    pub fn prolong(&mut self, run: RunId, workload: &Arc<Workload>) {
        let Some(running) = self.runs.get_mut(&run) else {
            return;
        };
        running.workload = workload.clone();
        let (run, key) = (running.run.clone(), running.key);
        if let Some((ask, placement)) = self.stands_as(&run, workload) {
            let (began, until) = (run.began.as_microsecond(), run.until.as_microsecond());
            self.planner.resume(key, ask, placement, began, until);
        }
    }

    /// Records that the owner has a full quota over all projects, according to the database. Other people are tried
    /// first.
    pub fn over_quota(&mut self, starting: &Starting, now: Timestamp) {
        let owner = starting.workload.owner;
        let until = now.as_microsecond() + BACK_OFF;
        self.over_quota.insert(owner, until);
        let entries = self
            .workloads
            .values()
            .filter(|entry| entry.workload.owner == owner);
        let theirs: Vec<Arc<Workload>> = entries.map(|entry| entry.workload.clone()).collect();
        for workload in theirs {
            self.later.insert((until, workload.id));
            self.sync(workload, now);
        }
    }

    /// Records that a start could not be executed. The task waits again, and is not tried at once.
    pub fn refused(&mut self, starting: &Starting, now: Timestamp) {
        let until = now.as_microsecond() + BACK_OFF;
        let id = starting.workload.id;
        self.planner.abandon(starting.key);
        self.planner.withdraw(starting.key);
        self.leave(id, starting.task, starting.key);
        self.backed_off.insert((id, starting.task), until);
        self.later.insert((until, id));
    }

    /// Records the end of a run, and the new state of its workload.
    pub fn ended(&mut self, run: &Run, workload: Workload, now: Timestamp) {
        if let Some(running) = self.runs.remove(&run.id) {
            // A kept run that ends before its reservation was never managed by the planner.
            let at = run.kept_from.map_or(now, |from| from.max(now));
            self.planner.end(running.key, at.as_microsecond());
            self.keys.remove(&running.key);
        }
        if let RunState::Ended {
            outcome: workload::Outcome::Completed | workload::Outcome::Failed { .. },
        } = run.state
            && let Some(wish) = workload.ask.wishes.get(run.wish)
            && let Some(need) = self.floor.need(wish)
        {
            let ran = run.began.duration_until(run.ended_at.unwrap_or(now));
            self.learn(workload.owner, wish.limit, weighs(&need), ran);
        }
        let workload = Arc::new(workload);
        self.sync(workload.clone(), now);
        if workload.state.is_final() {
            self.over(&workload, now);
        }
    }

    /// When to plan again, even without an event.
    pub fn next_look(&self, now: Timestamp) -> Option<Timestamp> {
        let at = now.as_microsecond();
        let planner = self.planner.next_look(at);
        let later = self.later.first().map(|(due, _)| *due);
        let told = self
            .runs
            .values()
            .filter(|running| !matches!(running.run.state, RunState::Stopping { .. }));
        let told = told
            .map(|running| self.told_at(running).as_microsecond())
            .min();
        let rations = self.rations.next_change;
        let cut = self.cutting.next_look(now).map(Timestamp::as_microsecond);
        let next = [planner, later, told, rations, cut]
            .into_iter()
            .flatten()
            .min();
        next.map(|next| moment(next.max(at)))
    }

    /// The nodes, and their free resources at this moment.
    pub fn nodes(&self, now: Timestamp) -> Vec<NodeView> {
        let at = now.as_microsecond();
        let held = self
            .runs
            .values()
            .filter_map(|running| self.floor.placement(&running.run.pieces));
        // A part that is out of service or being repartitioned is not free, even if its node is in service.
        let serves = |piece: &Piece| !self.floor.out.contains_key(&piece.node);
        let closed = self.floor.closed.iter();
        let closed = closed.filter(|placement| placement.pieces.iter().all(serves));
        let held = held.chain(closed.cloned());
        let walls = self.walls.values().flatten();
        let standing = walls.filter(|wall| wall.from <= at && at < wall.to);
        // A `Wall` with an account is a person's reservation. The others are maintenance.
        let (reserved, maintained): (Vec<_>, Vec<_>) =
            standing.partition(|wall| wall.account.is_some());
        let placements = |walls: Vec<&Wall>| -> Vec<Placement> {
            walls.iter().map(|wall| wall.placement.clone()).collect()
        };
        let held: Vec<Placement> = held.collect();
        let (reserved, maintained) = (placements(reserved), placements(maintained));
        self.floor.views(&held, &reserved, &maintained)
    }

    /// From when until when a reservation holds node parts.
    pub fn reserved_span(&self, reservation: ReservationId) -> Option<(Timestamp, Timestamp)> {
        let walls = self.walls.get(&reservation.0)?;
        let from = walls.iter().map(|wall| wall.from).min()?;
        let to = walls.iter().map(|wall| wall.to).max()?;
        Some((moment(from), moment(to)))
    }

    /// The planner's key of a queued task. If the task is not queued, a key that no task has.
    pub fn key_of(&self, workload: WorkloadId, task: u32) -> Key {
        let entry = self.workloads.get(&workload);
        entry
            .and_then(|entry| entry.in_line.get(&task))
            .copied()
            .unwrap_or(Key(0))
    }

    /// The task of a workload that starts next.
    pub fn first_in_line(&self, workload: WorkloadId) -> Option<Key> {
        let entry = self.workloads.get(&workload)?;
        let first = entry.workload.waiting.first();
        let first = first.and_then(|task| entry.in_line.get(&task));
        first
            .or_else(|| entry.in_line.values().min_by_key(|key| key.0))
            .copied()
    }

    /// Why a task waits, according to the last planning.
    pub fn why(&self, workload: WorkloadId) -> Option<(Stands, Option<Why>)> {
        let entry = self.workloads.get(&workload)?;
        let first = self.first_in_line(workload);
        let why = first.and_then(|key| self.planner.why(key));
        Some((entry.stands.clone(), why))
    }
}
