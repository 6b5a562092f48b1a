//! Ends runs in time, and applies the choice of a reservation's owner for the runs inside it.
//!
//! A run inside a reservation ends with the reservation. The owner can choose otherwise for their own runs. With
//! *keep*, a run stays where it is. Its own claims begin when the reservation ends, and yield to all others. With
//! *checkpoint*, a run is stopped earlier, saves its progress, and goes on in the site's queue.

use std::collections::BTreeMap;

use berth_engine::room;
use berth_model::event::{Audience, EventKind};
use berth_model::reservation::{AtEnd, Reservation};
use berth_model::workload::{Because, Run, RunState};
use berth_model::{
    Claim, ClaimId, Firmness, Holder, ReservationId, ResourceId, RunId, Span, Standing,
};
use berth_store::leases::{self, Lease};
use berth_store::{Conn, claims, inventory, reservations, workloads};
use jiff::Timestamp;

use super::carry::{is_refused, told};
use super::plan::{Plan, Running, Step, weighs};
use crate::App;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::record::{By, Change};
use crate::reservations::Softer;

const ALL: u64 = u64::MAX >> 1;

/// The choice of a reservation's owner for the runs inside it, and when the reservation ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice {
    end: Timestamp,
    at_end: AtEnd,
    lends: Option<bool>,
}

impl From<&Reservation> for Choice {
    fn from(of: &Reservation) -> Choice {
        Choice {
            end: of.span.end(),
            at_end: of.terms.at_end,
            lends: of.terms.lends,
        }
    }
}

impl Plan {
    /// Whether idle time inside a reservation is lent. The owner's setting overrides the site's.
    pub fn lends(&self, reservation: ReservationId) -> bool {
        let chosen = self.choices.get(&reservation);
        let chosen = chosen.and_then(|choice| choice.lends);
        chosen.unwrap_or(self.policy.lends)
    }

    /// Stops the borrowers inside a reservation when the owner no longer lends.
    pub(super) fn no_longer_lent(&self, id: ReservationId, now: Timestamp) -> Vec<Step> {
        if self.lends(id) {
            return Vec::new();
        }
        let lent = self.runs.values().filter(|running| {
            running.run.stands_inside() == Some(id)
                && running.workload.ask.inside.is_none()
                && is_going_on(&running.run)
        });
        let by = now.checked_add(self.policy.grace).unwrap_or(now);
        let stop = |running: &Running| Step::Stop {
            run: running.run.id,
            by: by.min(running.run.until),
            because: Because::Preempted,
        };
        lent.map(stop).collect()
    }

    /// The owner's choice for a run that ends only because its reservation ends. After an early release or an
    /// extension, the reservation and the run end at different times. The run is then treated like any other.
    fn at_end(&self, running: &Running) -> AtEnd {
        let run = &running.run;
        let own = run
            .stands_inside()
            .filter(|id| running.workload.ask.inside == Some(*id));
        let choice = own.and_then(|id| self.choices.get(&id));
        let choice = choice.filter(|choice| choice.end == run.until && is_cut(running));
        choice.map_or(AtEnd::Stop, |choice| choice.at_end)
    }

    /// When to send a run the stop signal, so it is gone when its time is over.
    pub fn told_at(&self, running: &Running) -> Timestamp {
        let run = &running.run;
        let needs = match self.at_end(running) {
            AtEnd::Stop | AtEnd::Keep => self.policy.grace,
            AtEnd::Checkpoint => self.policy.grace.saturating_add(self.policy.checkpoint),
        };
        let at = run.until.checked_sub(needs).unwrap_or(run.began);
        at.max(run.began)
    }

    /// Steps that are due for runs with little time left.
    pub(super) fn times_up(&self, now: Timestamp) -> Vec<Step> {
        let due = self
            .runs
            .values()
            .filter(|running| is_going_on(&running.run) && self.told_at(running) <= now);
        let step = |running: &Running| {
            let run = &running.run;
            let because = match self.at_end(running) {
                AtEnd::Keep => return Step::Keep(run.id),
                AtEnd::Checkpoint => Because::Checkpoint,
                AtEnd::Stop if is_cut(running) => Because::Preempted,
                AtEnd::Stop => Because::TimedOut,
            };
            Step::Stop {
                run: run.id,
                by: run.until,
                because,
            }
        };
        due.map(step).collect()
    }
}

impl App {
    /// Reads the owners' choices for all reservations with runs inside, also for reservations that are over. Other
    /// finished reservations are not needed.
    pub(super) async fn read_choices(&self, conn: &mut Conn, plan: &mut Plan) -> Result<()> {
        let runs = plan.runs.values();
        let mut inside: Vec<ReservationId> =
            runs.filter_map(|one| one.run.stands_inside()).collect();
        inside.sort_unstable();
        inside.dedup();
        for id in inside {
            self.read_choice(conn, plan, id).await?;
        }
        Ok(())
    }

    pub(super) async fn read_choice(
        &self,
        conn: &mut Conn,
        plan: &mut Plan,
        id: ReservationId,
    ) -> Result<()> {
        if let Some(booked) = reservations::get(conn, plan.site, id).await? {
            plan.choices.insert(id, Choice::from(&booked));
        }
        Ok(())
    }

    /// Keeps a run after its reservation, or stops it if that is impossible.
    pub(super) async fn carry_out_keep(
        &self,
        lease: &Lease,
        plan: &mut Plan,
        run: RunId,
    ) -> Result<()> {
        let kept = match self.keep_run(lease, plan, run).await {
            // Another change came first. The next pass tries again.
            Err(Error::Store(berth_store::Error::Retry)) => return Ok(()),
            Err(error) if is_refused(&error) => None,
            kept => kept?,
        };
        let Some(running) = plan.runs.get(&run) else {
            return Ok(());
        };
        let (workload, until) = (running.workload.clone(), running.run.until);
        match kept {
            Some(kept) => plan.resume(kept, workload),
            None => {
                let because = Because::Preempted;
                self.carry_out_stop(lease, plan, run, until, because)
                    .await?;
            }
        }
        Ok(())
    }

    /// Makes the claims that a run keeps after its reservation, until its time limit or until another claim on its
    /// place. Returns `None` if there is no such time, or if the owner's quota does not allow it.
    async fn keep_run(&self, lease: &Lease, plan: &Plan, run: RunId) -> Result<Option<Run>> {
        let mut tx = self.store.begin().await?;
        leases::check(&mut tx, lease).await?;
        let Some(before) = workloads::get_run(&mut tx, run).await? else {
            return Ok(None);
        };
        if before.kept_from.is_some() {
            return Ok(Some(before));
        }
        let known = workloads::get_locked(&mut tx, before.site, before.workload).await?;
        let Some(workload) = known.filter(|_| is_going_on(&before)) else {
            return Ok(None);
        };
        let wish = workload.ask.wishes.get(before.wish);
        let need = wish.and_then(|wish| plan.floor.need(wish));
        let limit = wish.and_then(|wish| before.began.checked_add(wish.limit).ok());
        let placement = plan.floor.placement(&before.pieces);
        let (Some(need), Some(limit), Some(placement)) = (need, limit, placement) else {
            return Ok(None);
        };
        let Ok(longest) = Span::new(before.until, limit) else {
            return Ok(None);
        };
        let now = self.now();
        let (_, takes) = self.takes(&mut tx, plan, &workload, &placement).await?;
        let claim = |(resource, take)| Claim {
            firmness: Firmness::Yielding {
                grace: plan.policy.grace,
            },
            ..Claim::firm(
                ClaimId(fresh(now)),
                plan.site,
                resource,
                longest,
                take,
                Holder::Workload(workload.id),
            )
        };
        let mut wanted: Vec<Claim> = takes.into_iter().map(claim).collect();
        let mut until = limit;
        for one in &wanted {
            until = until.min(self.open_until(&mut tx, one).await?);
        }
        let Some(span) = longest.before(until) else {
            return Ok(None);
        };
        wanted.iter_mut().for_each(|claim| claim.span = span);
        let weighs = weighs(&need);
        let may = self.is_within_quotas(&mut tx, plan, &workload, weighs, until);
        if !may.await? {
            return Ok(None);
        }
        self.hold(&mut tx, &By::SYSTEM, &wanted, Softer::LeftAlone)
            .await?;
        let own = wanted.iter().map(|claim| claim.id);
        let after = Run {
            claims: before.claims.iter().copied().chain(own).collect(),
            kept_from: Some(span.start()),
            until,
            ..before.clone()
        };
        if !workloads::keep_run(&mut tx, &after, weighs, before.version).await? {
            return Ok(None);
        }
        let change = Change::new("workload.keep", Some(before.site), before.workload).tell_only(
            EventKind::WorkloadChanged,
            Audience::Members,
            told(&workload),
        );
        self.announce(&mut tx, change).await?;
        tx.commit().await?;
        self.written.notify_one();
        Ok(Some(Run {
            version: after.version + 1,
            ..after
        }))
    }

    /// Until when no existing claim conflicts with this one.
    async fn open_until(&self, conn: &mut Conn, wanted: &Claim) -> Result<Timestamp> {
        let standing = claims::overlapping(conn, wanted.resource, wanted.span, None, ALL).await?;
        let known = inventory::by_id(conn, wanted.site, wanted.resource).await?;
        let capacity = known.and_then(|known| known.capacity);
        let capacity = capacity.map_or(0, |capacity| capacity.amount.get());
        Ok(room::open_until(wanted, capacity, &standing))
    }
}

/// Until when a run still has all its resources, after bookings may have shortened its claims.
pub(crate) fn has_until(run: &Run, claims: &[Claim]) -> Timestamp {
    let ends = |claim: &Claim| match claim.standing {
        Standing::Void => claim.span.start(),
        Standing::Holding | Standing::Past => claim.span.end(),
    };
    // A claim inside a reservation may be over and continue as a claim of the run's own. So the last claim on each
    // resource counts.
    let mut last: BTreeMap<ResourceId, Timestamp> = BTreeMap::new();
    for claim in claims {
        let known = last.entry(claim.resource).or_insert(Timestamp::MIN);
        *known = ends(claim).max(*known);
    }
    last.into_values().fold(run.until, Timestamp::min)
}

/// Whether the run has to end before its time limit.
fn is_cut(running: &Running) -> bool {
    let Running { run, workload, .. } = running;
    let limit = workload.ask.wishes.get(run.wish).map(|wish| wish.limit);
    limit
        .and_then(|limit| run.began.checked_add(limit).ok())
        .is_some_and(|end| run.until < end)
}

pub(super) fn is_going_on(run: &Run) -> bool {
    matches!(run.state, RunState::Starting | RunState::Running)
}
