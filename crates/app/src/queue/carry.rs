//! Executes the decisions of a plan.
//!
//! Each step is a transaction of its own under the controller's lease. The server calls the backend only after the
//! commit. The process may stop between any two instructions. The database then holds the truth, and the next leader
//! repeats the calls that the backend may have missed.

use berth_drivers::backend::Sign;
use berth_engine::fleet::Placement;
use berth_model::event::{Audience, EventKind};
use berth_model::workload::{Because, Outcome, Run, RunPiece, RunState, Workload};
use berth_model::{
    Claim, ClaimId, Firmness, Holder, Reference, ResourceId, RunId, SiteId, Span, Standing, Take,
    Text, WorkloadId,
};
use berth_store::leases::{self, Lease};
use berth_store::workloads::Weighs;
use berth_store::{Conn, claims, workloads};
use jiff::Timestamp;
use serde_json::json;

use super::plan::{Inside, Plan, Starting};
use crate::App;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::record::{By, Change};
use crate::reservations::Softer;

impl App {
    /// Makes the claims of a start and inserts its run. Returns `Begun::Refused` if the task no longer waits, or if a
    /// rule refuses the start.
    pub(super) async fn begin_run(
        &self,
        lease: &Lease,
        plan: &Plan,
        starting: &Starting,
    ) -> Result<Begun> {
        let now = self.now();
        let Some(span) = Span::new(starting.from, starting.until).ok() else {
            return Ok(Begun::Refused);
        };
        let mut tx = self.store.begin().await?;
        leases::check(&mut tx, lease).await?;
        let known = workloads::get_locked(&mut tx, plan.site, starting.workload.id).await?;
        let Some(before) = known else {
            return Ok(Begun::Refused);
        };
        let Some(after) = before.clone().begin(starting.task) else {
            return Ok(Begun::Refused);
        };
        // Work inside a reservation needs no quota: the reservation itself was allowed.
        let is_rationed = before.ask.inside.is_none();
        if is_rationed
            && !self
                .is_within_quotas(&mut tx, plan, &before, starting.weighs, starting.until)
                .await?
        {
            return Ok(Begun::OverQuota);
        }
        let (pieces, mut takes) = self
            .takes(&mut tx, plan, &before, &starting.placement)
            .await?;
        let firmness = match before.ask.class {
            berth_model::workload::Class::Guaranteed => Firmness::Firm,
            berth_model::workload::Class::Opportunistic => Firmness::Yielding {
                grace: plan.policy.grace,
            },
        };
        let inside = starting.inside.as_ref();
        let container = |resource: ResourceId| {
            let (_, held) = inside?;
            let around = held
                .iter()
                .find(|claim| plan.floor.is_at_or_below(resource, claim.resource));
            around.map(|claim| claim.id)
        };
        let claim = |(resource, take): (ResourceId, Take)| Claim {
            firmness,
            container: container(resource),
            ..Claim::firm(
                ClaimId(fresh(now)),
                plan.site,
                resource,
                span,
                take,
                Holder::Workload(before.id),
            )
        };
        let (reservation, host) = match inside {
            None => (None, None),
            Some((Inside::Reservation(id), _)) => (Some(*id), None),
            Some((Inside::Session(host), _)) => (None, Some(*host)),
        };
        if let Some(host) = host
            && !self.still_lends(&mut tx, host).await?
        {
            return Ok(Begun::Refused);
        }
        // The cores and memory next to a reserved GPU are not counted, unless they are reserved, too.
        let is_seats = |id: ResourceId| plan.floor.pool(&Reference::Id(id)).is_some();
        takes.retain(|(id, _)| reservation.is_none() || container(*id).is_some() || is_seats(*id));
        let wanted: Vec<Claim> = takes.into_iter().map(claim).collect();
        self.hold(&mut tx, &By::SYSTEM, &wanted, Softer::LeftAlone)
            .await?;
        let run = Run {
            id: RunId(fresh(now)),
            workload: before.id,
            site: plan.site,
            task: starting.task,
            attempt: workloads::attempts(&mut tx, before.id, starting.task).await? + 1,
            wish: starting.wish,
            inside: reservation,
            kept_from: None,
            lent_by: host,
            machine: self.machine_of(&pieces),
            pieces,
            claims: wanted.iter().map(|claim| claim.id).collect(),
            state: RunState::Starting,
            began: starting.from,
            until: starting.until,
            supervisor_until: None,
            ended_at: None,
            said: None,
            version: 1,
        };
        let weighs = if is_rationed {
            starting.weighs
        } else {
            Weighs::default()
        };
        workloads::insert_run(&mut tx, &run, weighs).await?;
        if !workloads::update(&mut tx, &after, before.version).await? {
            return Ok(Begun::Refused);
        }
        if run.attempt == 1 && !before.counts.has_begun() {
            workloads::score_forecasts(&mut tx, before.id, now).await?;
        }
        let change = Change::new("workload.start", Some(plan.site), before.id).tell_only(
            EventKind::WorkloadStarted,
            Audience::Members,
            told(&after),
        );
        self.announce(&mut tx, change).await?;
        tx.commit().await?;
        self.written.notify_one();
        let version = after.version + 1;
        Ok(Begun::Done(Box::new((Workload { version, ..after }, run))))
    }

    /// Returns the node allocations of a placed workload, and the amounts to claim: of nodes, and of seats, which
    /// belong to no node.
    pub(super) async fn takes(
        &self,
        conn: &mut Conn,
        plan: &Plan,
        workload: &Workload,
        placement: &Placement,
    ) -> Result<(Vec<RunPiece>, Vec<(ResourceId, Take)>)> {
        let (pieces, mut takes) = plan.floor.pieces(placement);
        for seats in &workload.ask.seats {
            let found = self.resource(conn, plan.site, &seats.resource).await?;
            takes.push((found.id, Take::Amount(seats.amount)));
        }
        Ok((pieces, takes))
    }

    /// Cancels a workload that can never start.
    pub(super) async fn give_up_workload(
        &self,
        lease: &Lease,
        site: SiteId,
        workload: WorkloadId,
        because: &str,
    ) -> Result<Option<Workload>> {
        let mut tx = self.store.begin().await?;
        leases::check(&mut tx, lease).await?;
        let Some(before) = workloads::get_locked(&mut tx, site, workload).await? else {
            return Ok(None);
        };
        let reason = because.parse().ok();
        let Ok(after) = before.clone().give_up(self.now(), reason) else {
            return Ok(None);
        };
        if !workloads::update(&mut tx, &after, before.version).await? {
            return Ok(None);
        }
        let change = Change::new("workload.cancel", Some(site), workload)
            .before(json!({ "state": before.state }))
            .after(json!({ "state": after.state }))
            .because(after.reason.clone())
            .tell_only(
                EventKind::WorkloadCancelled,
                Audience::Members,
                told(&after),
            );
        self.record(&mut tx, By::SYSTEM, change).await?;
        tx.commit().await?;
        self.written.notify_one();
        let version = after.version + 1;
        Ok(Some(Workload { version, ..after }))
    }

    fn machine_of(&self, pieces: &[RunPiece]) -> Option<String> {
        let nodes: Vec<ResourceId> = pieces.iter().map(|piece| piece.node).collect();
        self.backend.as_ref()?.machine(&nodes)
    }

    /// Marks a run as running after the backend has accepted its start.
    pub(super) async fn note_running(&self, lease: &Lease, run: &Run) -> Result<Option<Run>> {
        let mut tx = self.store.begin().await?;
        leases::check(&mut tx, lease).await?;
        let Some(known) = workloads::get_run(&mut tx, run.id).await? else {
            return Ok(None);
        };
        if known.state != RunState::Starting {
            return Ok(Some(known));
        }
        let after = Run {
            state: RunState::Running,
            ..known
        };
        if !workloads::update_run(&mut tx, &after, after.version).await? {
            return Ok(None);
        }
        tx.commit().await?;
        Ok(Some(Run {
            version: after.version + 1,
            ..after
        }))
    }

    /// Makes a run end by `by`. The run gets the stop signal when only the grace period is left. A run that has to
    /// write a checkpoint gets it at once.
    pub(super) async fn stop_run(
        &self,
        lease: &Lease,
        plan: &Plan,
        run: RunId,
        by: Timestamp,
        because: Because,
    ) -> Result<Option<Run>> {
        let mut tx = self.store.begin().await?;
        leases::check(&mut tx, lease).await?;
        let Some(before) = workloads::get_run(&mut tx, run).await? else {
            return Ok(None);
        };
        // A run on an unreachable machine keeps its claims until a server can stop it.
        if before.state.is_over() || !self.reaches(before.machine.as_deref()) {
            return Ok(Some(before));
        }
        let stop = Stop {
            by,
            because,
            grace: plan.policy.grace,
        };
        let after = self.write_stop(&mut tx, &before, stop).await?;
        if after.as_ref().is_some_and(|after| *after != before) {
            tx.commit().await?;
            self.written.notify_one();
        }
        Ok(after)
    }

    /// Writes that a run has to end by a moment. Returns `None` if the run was changed since it was read.
    pub(super) async fn write_stop(
        &self,
        conn: &mut Conn,
        before: &Run,
        stop: Stop,
    ) -> Result<Option<Run>> {
        let (now, Stop { by, because, grace }) = (self.now(), stop);
        let is_told_now =
            because == Because::Checkpoint || by.checked_sub(grace).unwrap_or(now) <= now;
        let state = match before.state {
            RunState::Starting | RunState::Running if is_told_now => RunState::Stopping {
                because,
                since: now,
            },
            state => state,
        };
        // A claim cannot end before it begins, however early the stop is.
        let least = before
            .began
            .checked_add(jiff::SignedDuration::from_micros(1))
            .unwrap_or(before.began);
        let until = before.until.min(by).max(least);
        let after = Run {
            state,
            until,
            ..before.clone()
        };
        if after == *before {
            return Ok(Some(after));
        }
        cut_claims(conn, before, until, now).await?;
        if !workloads::update_run(conn, &after, before.version).await? {
            return Ok(None);
        }
        // Members read this event, and only the owner may know the id of a run.
        let data = json!({ "task": after.task, "until": after.until, "because": because });
        let change = Change::new("workload.stop", Some(before.site), before.workload).tell_only(
            EventKind::WorkloadStopping,
            Audience::Members,
            data,
        );
        self.announce(conn, change).await?;
        Ok(Some(Run {
            version: after.version + 1,
            ..after
        }))
    }

    /// Ends a run and releases its claims. Its workload continues, or is over, too.
    pub(super) async fn end_run(
        &self,
        lease: &Lease,
        run: RunId,
        over: Over,
    ) -> Result<Option<(Workload, Run)>> {
        let Over { at, outcome, said } = over;
        let now = self.now();
        let mut tx = self.store.begin().await?;
        leases::check(&mut tx, lease).await?;
        let Some(before) = workloads::get_run(&mut tx, run).await? else {
            return Ok(None);
        };
        let Some(workload) = workloads::get_locked(&mut tx, before.site, before.workload).await?
        else {
            return Ok(None);
        };
        if before.state.is_over() {
            return Ok(Some((workload, before)));
        }
        let outcome = before.state.come_to(outcome);
        let at = at.min(now).max(before.began);
        self.give_back(&mut tx, &before, at).await?;
        let after = Run {
            state: RunState::Ended { outcome },
            ended_at: Some(at),
            said,
            ..before.clone()
        };
        let went_on = workload.clone().end(before.task, &outcome, at);
        if went_on.ask != workload.ask {
            workloads::set_ask(&mut tx, &went_on).await?;
        }
        let is_written = workloads::update_run(&mut tx, &after, before.version).await?
            && workloads::update(&mut tx, &went_on, workload.version).await?;
        if !is_written {
            return Ok(None);
        }
        let kind = match went_on.waiting.contains(before.task) {
            true => EventKind::WorkloadRequeued,
            false => EventKind::WorkloadEnded,
        };
        let change = Change::new("workload.end", Some(before.site), before.workload).tell_only(
            kind,
            Audience::Members,
            told(&went_on),
        );
        self.announce(&mut tx, change).await?;
        tx.commit().await?;
        self.written.notify_one();
        self.run_ended.notify_one();
        let version = went_on.version + 1;
        Ok(Some((
            Workload { version, ..went_on },
            Run {
                version: after.version + 1,
                ..after
            },
        )))
    }
}

/// Deadline and reason of a stop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stop {
    pub by: Timestamp,
    pub because: Because,
    pub grace: jiff::SignedDuration,
}

/// When and how a run ended.
pub(super) struct Over {
    pub at: Timestamp,
    pub outcome: Outcome,
    pub said: Option<Text>,
}

impl Over {
    pub fn plainly(at: Timestamp, outcome: Outcome) -> Over {
        Over {
            at,
            outcome,
            said: None,
        }
    }
}

/// Maps the backend's `Sign` of a run to the end of that run, if it is over. A run that the backend does not know has
/// lost its node. In the state `Starting`, it still has to be started.
pub(super) fn over(run: &Run, sign: Sign, now: Timestamp) -> Option<Over> {
    match (sign, run.state) {
        (Sign::Ended { at, outcome, said }, _) => Some(Over { at, outcome, said }),
        (Sign::Unknown, RunState::Starting) => None,
        (Sign::Unknown, RunState::Stopping { because, .. }) => {
            Some(Over::plainly(now, because.outcome()))
        }
        (Sign::Unknown, _) => Some(Over::plainly(now, Outcome::NodeFailed)),
        // A supervisor ends its run in time without any server. So a machine that never returns does not hold quota
        // forever.
        (Sign::Unreachable, state) if is_long_over(run, now) => {
            let outcome = match state {
                RunState::Starting => Outcome::NodeFailed,
                RunState::Stopping { because, .. } => because.outcome(),
                RunState::Running | RunState::Ended { .. } => Outcome::TimedOut,
            };
            Some(Over::plainly(gone_by(run), outcome))
        }
        (Sign::Running | Sign::Unreachable, _) => None,
    }
}

/// Margin for the clocks of machines, which differ, and for a supervisor, which takes a moment to end a run.
const LONG_OVER: jiff::SignedDuration = jiff::SignedDuration::from_mins(5);

fn is_long_over(run: &Run, now: Timestamp) -> bool {
    gone_by(run).duration_until(now) > LONG_OVER
}

/// When the supervisor ends the run at the latest. A shortened deadline may not have reached the supervisor.
fn gone_by(run: &Run) -> Timestamp {
    run.supervisor_until
        .map_or(run.until, |received| received.max(run.until))
}

pub(crate) fn told(workload: &Workload) -> serde_json::Value {
    json!({
        "workload": workload.id,
        "number": workload.number,
        "title": workload.ask.title,
        "owner": workload.owner,
        "state": workload.state,
        "running": workload.counts.running,
    })
}

/// Shortens the claims of a run to `until`. A booking may have shortened some of them already.
pub(super) async fn cut_claims(
    conn: &mut Conn,
    run: &Run,
    until: Timestamp,
    now: Timestamp,
) -> Result<()> {
    for id in &run.claims {
        let held = claims::get(conn, *id).await?;
        let is_longer =
            |held: &Claim| held.standing == Standing::Holding && held.span.end() > until;
        let Some(held) = held.filter(is_longer) else {
            continue;
        };
        match held.span.before(until) {
            Some(left) => claims::shrink(conn, *id, left, now).await?,
            // This claim was to begin only after the run's reservation.
            None => claims::release(conn, &[*id], now).await?,
        }
    }
    Ok(())
}

/// Result of a start.
pub(super) enum Begun {
    Done(Box<(Workload, Run)>),
    /// The task no longer waits, or a rule refuses it, because another change came first.
    Refused,
    OverQuota,
}

/// Whether the database, or a change since the planning, refuses a start.
pub(super) fn is_refused(error: &Error) -> bool {
    match error {
        Error::Store(berth_store::Error::Retry) => true,
        Error::Store(error) => error.refused().is_some(),
        other => matches!(other, Error::NotFound(_) | Error::Leaf),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_over_when_its_supervisor_must_have_ended_it() {
        let id = uuid::Uuid::nil();
        let at = |text: &str| text.parse::<Timestamp>().expect("a moment");
        let run = |received: &str| -> Run {
            serde_json::from_value(json!({
                "id": RunId(id), "workload": WorkloadId(id), "site": SiteId(id), "task": 1, "attempt": 1, "wish": 0, "inside": null,
                "machine": "another", "pieces": [], "claims": [], "began": "2026-11-16T08:00:00Z",
                "state": {"state": "stopping", "because": "cancelled", "since": "2026-11-16T09:00:00Z"},
                "until": "2026-11-16T09:01:00Z", "supervisor_until": received, "ended_at": null, "version": 3,
            }))
            .expect("a run")
        };
        let heard = run("2026-11-16T09:01:00Z");
        let not_heard = run("2026-11-16T12:00:00Z");
        let over = |run: &Run, now: &str| over(run, Sign::Unreachable, at(now)).map(|over| over.at);
        assert_eq!(over(&heard, "2026-11-16T09:05:00Z"), None, "clocks differ");
        assert_eq!(over(&heard, "2026-11-16T09:07:00Z"), Some(heard.until));
        assert_eq!(over(&not_heard, "2026-11-16T12:04:00Z"), None);
        let ended = over(&not_heard, "2026-11-16T12:06:00Z");
        assert_eq!(ended, Some(at("2026-11-16T12:00:00Z")));
    }
}
