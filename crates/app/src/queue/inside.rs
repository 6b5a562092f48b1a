//! Schedules work inside reservations: the owner's own work, and other work on idle resources that are lent.
//!
//! While it lasts, a reservation is a small fleet: the node parts that its claims hold. Every pass plans it anew from
//! the runs and the waiting tasks. Stop decisions are stored in the runs, so this module keeps no state. The owner's
//! work is guaranteed inside. Borrowers are opportunistic, and stop when the owner needs the resources.

use std::collections::HashMap;
use std::sync::Arc;

use berth_engine::fleet::{Mix, Need, Node, NodeIndex, Part, Piece, Placement, UNDIVIDED};
use berth_engine::queue::planner::{Ask, Class, Decision, Key, Order, Planner, Policy, Wish};
use berth_engine::queue::quota::Amounts;
use berth_engine::queue::share::Shares;
use berth_model::reservation::{Reservation, State};
use berth_model::workload::{self, Because, RunState, Workload};
use berth_model::{Claim, Holder, ReservationId, RunId, WorkloadId};
use berth_store::{Conn, claims, reservations};
use jiff::Timestamp;

use super::plan::{
    Inside, Plan, Reserved, Running, Stands, Starting, Step, micros, moment, weighs,
};
use crate::App;
use crate::error::Result;

/// Limit on the waiting tasks that are offered idle resources in a reservation.
const OFFERED_MAX: usize = 64;

/// A workload and one of its tasks.
pub(super) type Task = (Arc<Workload>, u32);

/// What a key of the inner planner stands for.
pub(super) enum Who {
    Runs(RunId),
    Waits(Task),
}

impl App {
    /// Starts and stops inside reservations.
    pub(super) async fn plan_inside(&self, plan: &Plan) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        let now = self.now();
        let mut offered = plan.idle_hands(now);
        let concerned = plan.reservations_concerned(!offered.is_empty(), now);
        steps.extend(plan.wanted_back(now));
        if concerned.is_empty() && plan.lenders.is_empty() {
            return Ok(steps);
        }
        let mut reader = self.store.read().await?;
        for id in concerned {
            match reservations::get(&mut reader, plan.site, id).await? {
                Some(found) if !found.state.is_final() => {
                    let inside = self.plan_inside_of(&mut reader, plan, &found, &mut offered);
                    steps.extend(inside.await?);
                }
                found => {
                    let beyond = found.map(|found| plan.beyond(&found, self.now()));
                    steps.extend(beyond.into_iter().flatten());
                    steps.extend(plan.orphans(id));
                }
            }
        }
        steps.extend(self.plan_on_loan(&mut reader, plan, offered).await?);
        Ok(steps)
    }

    async fn plan_inside_of(
        &self,
        conn: &mut Conn,
        plan: &Plan,
        reservation: &Reservation,
        offered: &mut Vec<Task>,
    ) -> Result<Vec<Step>> {
        let now = self.now();
        let mut steps = plan.beyond(reservation, now);
        steps.extend(plan.no_longer_lent(reservation.id, now));
        let span = reservation.span;
        if reservation.state != State::Active || now < span.start() || span.end() <= now {
            return Ok(steps);
        }
        let mut held = claims::held_by(conn, Holder::Reservation(reservation.id)).await?;
        held.retain(|claim| claim.container.is_none() && claim.span.start() <= now);
        let last = held
            .iter()
            .map(|claim| claim.span.end())
            .min()
            .unwrap_or(span.end());
        let inner = Inner::of(plan, &held);
        let own = plan.waiting_inside(reservation.id, now);
        let is_lent = plan.lends(reservation.id) && own.is_empty();
        let lent = if is_lent {
            std::mem::take(offered)
        } else {
            Vec::new()
        };
        let (mut planner, who) = inner.planner(
            plan,
            plan.running_inside(reservation.id),
            own.into_iter().chain(lent.clone()),
            now,
        );
        let mut begun: Vec<(WorkloadId, u32)> = Vec::new();
        for decision in planner.plan(now.as_microsecond()) {
            match decision {
                Decision::Start(start) => {
                    let Some(Who::Waits((workload, task))) = who.get(&start.key) else {
                        continue;
                    };
                    let need = workload
                        .ask
                        .wishes
                        .first()
                        .and_then(|wish| plan.floor.need(wish));
                    let (Some(need), Some(placement)) = (need, inner.outward(&start.placement))
                    else {
                        continue;
                    };
                    begun.push((workload.id, *task));
                    steps.push(Step::Start(Starting {
                        key: plan.key_of(workload.id, *task),
                        workload: workload.clone(),
                        task: *task,
                        wish: 0,
                        placement,
                        from: moment(now.as_microsecond()),
                        until: moment(start.until).min(span.end()).min(last),
                        weighs: weighs(&need),
                        inside: Some((Inside::Reservation(reservation.id), held.clone())),
                    }));
                }
                Decision::Stop(stop) => {
                    if let Some(Who::Runs(run)) = who.get(&stop.key) {
                        let because = Because::Preempted;
                        steps.push(Step::Stop {
                            run: *run,
                            by: moment(stop.by),
                            because,
                        });
                    }
                }
                Decision::TooLate(_) => {}
            }
        }
        // A task without room here may fit into the next reservation.
        let still = |(workload, task): &Task| !begun.contains(&(workload.id, *task));
        offered.extend(lent.into_iter().filter(still));
        Ok(steps)
    }
}

/// The nodes of a reservation, and their numbers and GPUs in the site.
#[derive(Default)]
pub(super) struct Inner {
    pub nodes: Vec<Node>,
    pub outer: Vec<(NodeIndex, Vec<u16>)>,
}

impl Inner {
    fn of(plan: &Plan, held: &[Claim]) -> Inner {
        let mut parts: Vec<Piece> = Vec::new();
        let taken = held.iter().filter_map(|claim| plan.floor.taken_by(claim));
        // Nothing starts on nodes out of service, or on machines that this server does not reach.
        let in_service = |piece: &Piece| !plan.floor.out.contains_key(&piece.node);
        for mut piece in taken.flat_map(|taken| taken.pieces).filter(in_service) {
            piece
                .gpus
                .retain(|part| !plan.floor.is_closed(piece.node, part.gpu));
            match parts.iter_mut().find(|known| known.node == piece.node) {
                None => parts.push(piece),
                Some(known) => {
                    known.cpu_milli += piece.cpu_milli;
                    known.memory_bytes += piece.memory_bytes;
                    known.gpus.extend(piece.gpus);
                }
            }
        }
        let mut inner = Inner::default();
        for piece in parts {
            let of = &plan.floor.nodes[piece.node.0 as usize];
            // If only GPUs are reserved, the cores of their nodes are not counted.
            let or_all = |held: u64, all: u64| if held == 0 { all } else { held };
            let cpu_milli = or_all(piece.cpu_milli, of.cpu_milli);
            let memory_bytes = or_all(piece.memory_bytes, of.memory_bytes);
            inner.add(of, &piece, (cpu_milli, memory_bytes));
        }
        inner
    }

    /// Adds a node with the GPUs of `piece` and with these cores and this memory.
    pub fn add(&mut self, of: &Node, piece: &Piece, (cpu_milli, memory_bytes): (u64, u64)) {
        // A fraction of a GPU cannot serve a request for a whole one.
        let whole = piece
            .gpus
            .iter()
            .filter(|part| part.thousandths == UNDIVIDED);
        let gpus: Vec<u16> = whole.map(|part| part.gpu).collect();
        let known = gpus.iter().filter_map(|gpu| of.gpus.get(usize::from(*gpu)));
        self.nodes.push(Node {
            cpu_milli,
            memory_bytes,
            gpus: known.copied().collect(),
            rack: of.rack,
            until_us: i64::MAX,
        });
        self.outer.push((piece.node, gpus));
    }

    /// Builds a planner with these runs and waiting tasks.
    pub fn planner(
        &self,
        plan: &Plan,
        running: Vec<&Running>,
        waiting: impl Iterator<Item = Task>,
        now: Timestamp,
    ) -> (Planner, HashMap<Key, Who>) {
        let at = now.as_microsecond();
        let rules = Policy {
            order: Order::Shares,
            grace: micros(plan.policy.grace),
            // The owner does not wait for the minimum run time of a borrower.
            run_min: 0,
        };
        let shares = Shares::new(micros(plan.policy.half_life).max(1), at);
        let mut planner = Planner::new(rules, &self.nodes, Mix::default(), 1.0, shares, at);
        let mut who = HashMap::new();
        let mut keys = (1..).map(Key);
        for (running, key) in running.into_iter().zip(&mut keys) {
            let Running { run, workload, .. } = running;
            let got = workload.ask.wishes.get(run.wish);
            let got = got.and_then(|wish| Some((wish, plan.floor.need(wish)?)));
            let placement = plan.floor.placement(&run.pieces);
            let placement = placement.and_then(|placement| self.inward(&placement));
            if let (Some((wish, need)), Some(placement)) = (got, placement) {
                let ask = ask(&planner, workload, wish, need);
                let (began, until) = (run.began.as_microsecond(), run.until.as_microsecond());
                planner.resume(key, ask, placement, began, until);
                who.insert(key, Who::Runs(run.id));
            }
        }
        for (task, key) in waiting.zip(&mut keys) {
            let workload = &task.0;
            let wish = workload.ask.wishes.first();
            if let Some((wish, need)) = wish.and_then(|wish| Some((wish, plan.floor.need(wish)?))) {
                let ask = ask(&planner, workload, wish, need);
                planner.submit(key, ask);
                who.insert(key, Who::Waits(task));
            }
        }
        (planner, who)
    }

    /// Translates the reservation's own numbers to the site's. `None` if a part is not in this reservation.
    pub fn outward(&self, placement: &Placement) -> Option<Placement> {
        let piece = |piece: &Piece| {
            let (node, gpus) = self.outer.get(piece.node.0 as usize)?;
            let part = |part: &Part| {
                Some(Part {
                    gpu: *gpus.get(usize::from(part.gpu))?,
                    ..*part
                })
            };
            let gpus = piece.gpus.iter().map(part).collect::<Option<_>>()?;
            Some(Piece {
                node: *node,
                gpus,
                ..piece.clone()
            })
        };
        let pieces = placement.pieces.iter().map(piece).collect::<Option<_>>()?;
        Some(Placement { pieces })
    }

    fn inward(&self, placement: &Placement) -> Option<Placement> {
        let piece = |piece: &Piece| {
            let place = self
                .outer
                .iter()
                .position(|(node, _)| *node == piece.node)?;
            let own = &self.outer[place].1;
            let part = |part: &Part| {
                let gpu = own.iter().position(|gpu| *gpu == part.gpu)?;
                Some(Part {
                    gpu: u16::try_from(gpu).ok()?,
                    ..*part
                })
            };
            let gpus = piece.gpus.iter().map(part).collect::<Option<_>>()?;
            Some(Piece {
                node: NodeIndex(place as u32),
                gpus,
                ..piece.clone()
            })
        };
        let pieces = placement.pieces.iter().map(piece).collect::<Option<_>>()?;
        Some(Placement { pieces })
    }
}

/// The owner's work is always guaranteed inside, and a borrower's never is.
fn ask(planner: &Planner, workload: &Workload, wish: &workload::Wish, need: Need) -> Ask {
    let limit = micros(wish.limit);
    let wish = Wish {
        need,
        limit,
        expected: limit,
        amounts: Amounts::default(),
        rate: 0.0,
    };
    let class = match workload.ask.inside {
        Some(_) => Class::Guaranteed,
        None => Class::Opportunistic,
    };
    Ask {
        class,
        ..Ask::new(planner.shares.site(), wish, workload.since.as_microsecond())
    }
}

/// Whether `not_before` and `deadline` allow the workload to start now.
fn may_begin(workload: &Workload, now: Timestamp) -> bool {
    let is_early = workload.ask.not_before.is_some_and(|at| at > now);
    let wish = workload.ask.wishes.first();
    let ends = wish.and_then(|wish| now.checked_add(wish.limit).ok());
    let is_late = workload
        .ask
        .deadline
        .is_some_and(|deadline| ends.is_none_or(|ends| ends > deadline));
    !is_early && !is_late
}

impl Plan {
    /// Reservations with runs or waiting work inside. If idle time is lent and a task would take it, all lending
    /// reservations, too.
    fn reservations_concerned(&self, is_lent: bool, now: Timestamp) -> Vec<ReservationId> {
        let running = self
            .runs
            .values()
            .filter_map(|running| running.run.stands_inside());
        let waiting = self
            .workloads
            .values()
            .filter_map(|entry| match entry.stands {
                Stands::Inside(id) if !entry.workload.waiting.is_empty() => Some(id),
                _ => None,
            });
        let lent = self
            .reserved_at(now.as_microsecond())
            .filter(|id| is_lent && self.lends(*id));
        let mut all: Vec<ReservationId> = running.chain(waiting).chain(lent).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn running_inside(&self, id: ReservationId) -> Vec<&Running> {
        let mut inside: Vec<_> = self
            .runs
            .values()
            .filter(|one| one.run.inside == Some(id))
            .collect();
        inside.sort_by_key(|one| one.run.id);
        inside
    }

    fn waiting_inside(&self, id: ReservationId, now: Timestamp) -> Vec<Task> {
        let entries = self
            .workloads
            .values()
            .filter(|entry| entry.stands == Stands::Inside(id));
        let mut all: Vec<Task> = Vec::new();
        for entry in entries.filter(|entry| may_begin(&entry.workload, now)) {
            let tasks = self.in_line(&entry.workload, now);
            all.extend(tasks.into_iter().map(|task| (entry.workload.clone(), task)));
        }
        all.sort_by_key(|(workload, task)| (workload.number, *task));
        all
    }

    /// Opportunistic tasks that found no room, the oldest first. Empty if nothing is lent.
    fn idle_hands(&self, now: Timestamp) -> Vec<Task> {
        let mut reserved = self.reserved_at(now.as_microsecond());
        if self.lenders.is_empty() && !reserved.any(|id| self.lends(id)) {
            return Vec::new();
        }
        let is_soft = |workload: &Workload| {
            workload.ask.class == workload::Class::Opportunistic && may_begin(workload, now)
        };
        let entries = self.workloads.values();
        let soft =
            entries.filter(|entry| entry.stands == Stands::InLine && is_soft(&entry.workload));
        let mut all: Vec<Task> = soft
            .filter_map(|entry| Some((entry.workload.clone(), entry.first_task()?)))
            .collect();
        all.sort_by_key(|(workload, _)| workload.number);
        all.truncate(OFFERED_MAX);
        all
    }

    /// The runs inside a reservation that has released its claims. Each blocks its place for others until it is gone.
    pub(super) fn still_inside(&self, id: ReservationId, now: Timestamp) -> Vec<Reserved> {
        let at = now.as_microsecond();
        let to = at.saturating_add(micros(self.policy.grace).max(1));
        let running = self.running_inside(id).into_iter();
        let running = running.filter(|running| running.run.stands_inside() == Some(id));
        let placements = running.filter_map(|running| self.floor.placement(&running.run.pieces));
        let wall = |placement| Reserved {
            from: at,
            to,
            placement,
            seats: Vec::new(),
            account: None,
        };
        placements.map(wall).collect()
    }

    /// Gives up the workloads that wait for a reservation that is over.
    fn orphans(&self, id: ReservationId) -> Vec<Step> {
        let entries = self
            .workloads
            .values()
            .filter(|entry| entry.stands == Stands::Inside(id))
            // All tasks of this workload run already, perhaps kept after the end.
            .filter(|entry| !entry.workload.waiting.is_empty());
        let because = "the reservation inside which it was to run is over";
        entries
            .map(|entry| Step::GiveUp {
                workload: entry.workload.id,
                because,
            })
            .collect()
    }

    /// Stops the runs inside a reservation that is over, or that ends sooner than before.
    fn beyond(&self, reservation: &Reservation, now: Timestamp) -> Vec<Step> {
        let is_over = reservation.state.is_final() || reservation.state == State::Ending;
        let end = if is_over {
            now
        } else {
            reservation.span.end().max(now)
        };
        let beyond = self
            .running_inside(reservation.id)
            .into_iter()
            .filter(|running| running.run.stands_inside() == Some(reservation.id))
            .filter(|running| {
                running.run.until > end && !matches!(running.run.state, RunState::Stopping { .. })
            });
        let because = Because::Preempted;
        beyond
            .map(|running| Step::Stop {
                run: running.run.id,
                by: end,
                because,
            })
            .collect()
    }
}
