//! Lends the idle GPUs of sessions to opportunistic work until their owners return.
//!
//! The session keeps its claims, and each borrowed GPU is claimed inside them. Only GPUs are lent: the borrower claims
//! free cores and memory of the node for itself. When the session's run ends, the same transaction turns the borrowed
//! claims into the borrower's own. So no claim is ever inside a released claim.

use std::collections::HashSet;

use berth_engine::fleet::{Gpus, NodeIndex};
use berth_engine::queue::planner::{Decision, Start};
use berth_model::event::{Audience, EventKind};
use berth_model::workload::{Because, Run};
use berth_model::{Claim, ClaimId, Holder, RunId, SessionId, Span, Standing, Take};
use berth_store::{Conn, claims, loans, sessions, workloads};
use jiff::Timestamp;
use serde_json::json;

use super::ending::is_going_on;
use super::inside::{Inner, Task, Who};
use super::plan::{Inside, Plan, Running, Starting, Step, moment, weighs, without_gpus};
use crate::App;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::record::{By, Change};
use crate::reservations::Softer;

const MIB: u64 = 1 << 20;

/// Free cores (in thousandths) and memory (in bytes) of each node at this moment.
type Free = Vec<(u64, u64)>;

impl Plan {
    /// Whether the session's owner is away, and its GPUs may be lent.
    fn is_lending(&self, host: &Running) -> bool {
        let mut lenders = self.lenders.values();
        self.policy.lends
            && is_going_on(&host.run)
            && lenders.any(|lender| *lender == host.run.workload)
            // A run inside a reservation is lent with that reservation, and a borrower may not lend.
            && host.run.inside.is_none()
            && host.run.lent_by.is_none()
    }

    fn guests(&self) -> impl Iterator<Item = (&Running, RunId)> {
        let runs = self.runs.values();
        runs.filter_map(|running| Some((running, running.run.lent_by?)))
    }

    /// Stops the borrowers when the session's owner returns, and at the latest when the session ends.
    pub(super) fn wanted_back(&self, now: Timestamp) -> Vec<Step> {
        let grace = now.checked_add(self.policy.grace).unwrap_or(now);
        let step = |(running, host): (&Running, RunId)| {
            let host = self.runs.get(&host);
            let by = match host.filter(|host| self.is_lending(host)) {
                Some(host) => host.run.until,
                None => host.map_or(grace, |host| host.run.until.min(grace)),
            };
            let is_longer = is_going_on(&running.run) && running.run.until > by;
            is_longer.then_some(Step::Stop {
                run: running.run.id,
                by,
                because: Because::Preempted,
            })
        };
        let mut steps: Vec<Step> = self.guests().filter_map(step).collect();
        steps.sort_by_key(|step| match step {
            Step::Stop { run, .. } => Some(*run),
            _ => None,
        });
        steps
    }

    /// The session's GPUs that nobody has borrowed, as a small fleet with the free cores and memory of their nodes.
    fn idle_of(&self, host: &Run, free: &Free) -> Inner {
        let guests = self.guests().filter(|(_, lender)| *lender == host.id);
        let borrowed: HashSet<_> = guests
            .flat_map(|(guest, _)| &guest.run.pieces)
            .flat_map(|piece| piece.gpus.iter().map(|gpu| gpu.gpu))
            .collect();
        let mut own = host.pieces.clone();
        for piece in &mut own {
            let is_idle = |gpu: &berth_model::workload::RunGpu| {
                gpu.share.is_none() && !borrowed.contains(&gpu.gpu)
            };
            piece.gpus.retain(is_idle);
        }
        let mut inner = Inner::default();
        let pieces = self.floor.placement(&own).map(|placement| placement.pieces);
        for piece in pieces.into_iter().flatten() {
            let known = inner.outer.iter().any(|(node, _)| *node == piece.node);
            let (Some(of), Some(room), false) = (
                self.floor.nodes.get(piece.node.0 as usize),
                free.get(piece.node.0 as usize).copied(),
                known || piece.gpus.is_empty(),
            ) else {
                continue;
            };
            inner.add(of, &piece, room);
        }
        inner
    }

    fn free_now(&self, now: Timestamp) -> Free {
        let nodes = self.nodes(now).into_iter();
        let free = nodes.map(|node| match node.is_in_service {
            true => (node.cores_milli_free, node.memory_mib_free * MIB),
            false => (0, 0),
        });
        free.collect()
    }

    /// A start on the GPUs of a session, if everything it needs stays free for at least the minimum run time.
    fn borrow(
        &self,
        (host, held): (&Run, &[Claim]),
        (workload, task): &Task,
        start: &Start,
        inner: &Inner,
        now: Timestamp,
    ) -> Option<Starting> {
        let need = self.floor.need(workload.ask.wishes.first()?)?;
        let placement = inner.outward(&start.placement)?;
        let beside = self.planner.open_until(&without_gpus(placement.clone()));
        let held_until = held.iter().map(|claim| claim.span.end()).min()?;
        let until = moment(start.until.min(beside))
            .min(host.until)
            .min(held_until);
        let limit = workload.ask.wishes.first()?.limit;
        let least = now.checked_add(limit.min(self.policy.run_min)).ok()?;
        (until >= least).then(|| Starting {
            key: self.key_of(workload.id, *task),
            workload: workload.clone(),
            task: *task,
            wish: 0,
            placement,
            from: moment(now.as_microsecond()),
            until,
            weighs: weighs(&need),
            inside: Some((Inside::Session(host.id), held.to_vec())),
        })
    }
}

impl App {
    /// Reads the site's sessions that lend.
    pub(super) async fn read_lenders(&self, conn: &mut Conn, plan: &mut Plan) -> Result<()> {
        let lending = sessions::lending(conn, Some(plan.site)).await?;
        let known = lending.into_iter();
        plan.lenders = known
            .filter_map(|session| Some((session.id, session.workload?)))
            .collect();
        Ok(())
    }

    pub(super) async fn read_lender(
        &self,
        conn: &mut Conn,
        plan: &mut Plan,
        id: SessionId,
    ) -> Result<()> {
        let session = sessions::get(conn, id).await?;
        let lends = session.filter(|session| session.lends_since.is_some());
        match lends.and_then(|session| session.workload) {
            Some(workload) => plan.lenders.insert(id, workload),
            None => plan.lenders.remove(&id),
        };
        Ok(())
    }

    /// Starts waiting tasks on the idle GPUs of sessions.
    pub(super) async fn plan_on_loan(
        &self,
        conn: &mut Conn,
        plan: &Plan,
        mut offered: Vec<Task>,
    ) -> Result<Vec<Step>> {
        let now = self.now();
        let wants_gpus = |(workload, _): &Task| {
            let need = workload.ask.wishes.first();
            let need = need.and_then(|wish| plan.floor.need(wish));
            need.is_some_and(|need| matches!(need.task.gpus, Gpus::Whole(_)))
        };
        offered.retain(wants_gpus);
        let mut hosts: Vec<&Run> = plan
            .runs
            .values()
            .filter(|host| !offered.is_empty() && plan.is_lending(host))
            .map(|host| &host.run)
            .collect();
        hosts.sort_by_key(|host| host.id);
        let mut steps = Vec::new();
        let mut free = match hosts.is_empty() {
            true => Free::new(),
            false => plan.free_now(now),
        };
        for host in hosts {
            let inner = plan.idle_of(host, &free);
            if offered.is_empty() || inner.nodes.is_empty() {
                continue;
            }
            let held = self.lent_claims(conn, host, now).await?;
            let waiting = offered.clone().into_iter();
            let (mut planner, who) = inner.planner(plan, Vec::new(), waiting, now);
            for decision in planner.plan(now.as_microsecond()) {
                let Decision::Start(start) = decision else {
                    continue;
                };
                let Some(Who::Waits(task)) = who.get(&start.key) else {
                    continue;
                };
                let found = plan.borrow((host, &held), task, &start, &inner, now);
                let Some(starting) = found else {
                    continue;
                };
                for piece in &starting.placement.pieces {
                    take(&mut free, piece.node, piece.cpu_milli, piece.memory_bytes);
                }
                offered.retain(|(workload, nth)| (workload.id, *nth) != (task.0.id, task.1));
                steps.push(Step::Start(starting));
            }
        }
        Ok(steps)
    }

    /// The claims of a session on the GPUs that it lends.
    async fn lent_claims(&self, conn: &mut Conn, host: &Run, now: Timestamp) -> Result<Vec<Claim>> {
        let mut held = claims::held_by(conn, Holder::Workload(host.workload)).await?;
        held.retain(|claim| {
            host.claims.contains(&claim.id)
                && claim.take == Take::Exclusive
                && claim.container.is_none()
                && claim.span.start() <= now
        });
        Ok(held)
    }

    /// Whether the database says that the session of this run still lends.
    pub(super) async fn still_lends(&self, conn: &mut Conn, host: RunId) -> Result<bool> {
        let host = workloads::get_run(conn, host).await?;
        let Some(host) = host.filter(is_going_on) else {
            return Ok(false);
        };
        let session = sessions::by_workload(conn, host.workload).await?;
        Ok(session.is_some_and(|session| session.lends_since.is_some()))
    }

    /// Releases the claims of a run at a moment. Its borrowers continue for the same time with claims of their own.
    /// Nobody else can have a claim there, because everything belonged to this run.
    pub(super) async fn give_back(&self, conn: &mut Conn, run: &Run, at: Timestamp) -> Result<()> {
        let mut parted = Vec::new();
        for guest in loans::guests_of(conn, run.id).await? {
            let mut own = Vec::new();
            for id in &guest.claims {
                let borrowed = claims::get(conn, *id).await?;
                own.extend(borrowed.and_then(|claim| own_rest(claim, run, at, self.now())));
            }
            parted.push((guest, own));
        }
        claims::release(conn, &run.claims, at).await?;
        for (guest, own) in parted {
            self.hold(conn, &By::SYSTEM, &own, Softer::LeftAlone)
                .await?;
            let known = guest.claims.iter().copied();
            let after = Run {
                claims: known.chain(own.iter().map(|claim| claim.id)).collect(),
                lent_by: None,
                ..guest.clone()
            };
            if !loans::part(conn, &after, guest.version).await? {
                return Err(Error::Store(berth_store::Error::Retry));
            }
            let data = json!({ "task": guest.task });
            let change = Change::new("workload.part", Some(guest.site), guest.workload).tell_only(
                EventKind::WorkloadChanged,
                Audience::Members,
                data,
            );
            self.announce(conn, change).await?;
        }
        Ok(())
    }

    /// After a run has ended, its borrowers belong to the planner like any other run.
    pub(super) async fn let_guests_stay(&self, plan: &mut Plan, host: RunId) -> Result<()> {
        let guests = plan.guests().filter(|(_, lender)| *lender == host);
        let guests: Vec<RunId> = guests.map(|(guest, _)| guest.run.id).collect();
        if guests.is_empty() {
            return Ok(());
        }
        let mut reader = self.store.read().await?;
        for id in guests {
            let run = workloads::get_run(&mut reader, id).await?;
            if let (Some(run), Some(known)) = (run, plan.runs.get_mut(&id)) {
                let workload = known.workload.clone();
                known.run = run;
                plan.prolong(id, &workload);
            }
        }
        Ok(())
    }
}

/// The rest of a borrowed claim after its host's end, as an independent claim.
fn own_rest(claim: Claim, host: &Run, at: Timestamp, now: Timestamp) -> Option<Claim> {
    let is_borrowed = claim.container.is_some_and(|id| host.claims.contains(&id));
    if claim.standing != Standing::Holding || !is_borrowed {
        return None;
    }
    let span = Span::new(claim.span.start().max(at), claim.span.end()).ok()?;
    Some(Claim {
        id: ClaimId(fresh(now)),
        container: None,
        span,
        ..claim
    })
}

fn take(free: &mut Free, node: NodeIndex, cpu_milli: u64, memory_bytes: u64) {
    if let Some((cpu, memory)) = free.get_mut(node.0 as usize) {
        *cpu = cpu.saturating_sub(cpu_milli);
        *memory = memory.saturating_sub(memory_bytes);
    }
}
