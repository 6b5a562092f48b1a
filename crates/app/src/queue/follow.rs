//! Reads a plan from the database, and keeps it current: it reads the rows again that changed since the last event.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use berth_engine::fleet::Placement;
use berth_engine::queue::share::Mode;
use berth_model::event::EventKind;
use berth_model::queue::QueuePolicy;
use berth_model::workload::{Outcome, RunState};
use berth_model::{
    Claim, ClaimId, Holder, ReservationId, Resource, ResourceId, SessionId, SiteId, Span, Status,
    WindowId, Workload, WorkloadId,
};
use berth_store::{
    Conn, claims, events, inventory, queues, recuts, reservations, sites, usage, workloads,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use uuid::Uuid;

use super::cuttable::{Cutting, RESTS};
use super::ending::{Choice, has_until};
use super::floor::Floor;
use super::plan::{Plan, Read, Reserved, is_met};
use super::rations::{Rations, month};
use crate::App;
use crate::error::Result;
use crate::inventory::{machine_of, tree_of};

const PAGE: u64 = 2_000;
const RESOURCES_AT_ONCE: usize = 500;
/// After this many half-lives, past usage counts for less than a hundredth.
const HALF_LIVES: i32 = 7;

/// What an event changes in a plan.
enum Means {
    /// This workload has changed.
    Workload(WorkloadId),
    /// The claims of this holder on the nodes have changed.
    Holder(Holder),
    Claim(ClaimId),
    /// A session may have begun or stopped lending its GPUs.
    Session(SessionId),
    /// The whole plan has to be read again.
    Everything,
    Nothing,
}

fn means(kind: EventKind, subject: &str) -> Means {
    use EventKind as Kind;
    let reservation = || {
        subject.parse().map_or(Means::Nothing, |id: ReservationId| {
            Means::Holder(Holder::Reservation(id))
        })
    };
    let window = || {
        subject.parse().map_or(Means::Nothing, |id: WindowId| {
            Means::Holder(Holder::Maintenance(id))
        })
    };
    match kind {
        Kind::WorkloadSubmitted | Kind::WorkloadChanged | Kind::WorkloadCancelled => {
            subject.parse().map_or(Means::Nothing, Means::Workload)
        }
        Kind::ReservationCreated
        | Kind::ReservationChanged
        | Kind::ReservationMoved
        | Kind::ReservationOffered
        | Kind::ReservationNoShow
        | Kind::ReservationApproved
        | Kind::ReservationRejected
        | Kind::ReservationCancelled
        | Kind::ReservationStarted
        | Kind::ReservationEnded
        | Kind::ReservationFailed => reservation(),
        Kind::MaintenancePlanned | Kind::MaintenanceCancelled | Kind::MaintenanceEnded => window(),
        Kind::SessionChanged | Kind::SessionIdle | Kind::SessionFailed => {
            subject.parse().map_or(Means::Nothing, Means::Session)
        }
        Kind::ClaimYielded => subject.parse().map_or(Means::Nothing, Means::Claim),
        Kind::TypeChanged
        | Kind::TypeRemoved
        | Kind::ResourceCreated
        | Kind::ResourceChanged
        | Kind::ResourceMoved
        | Kind::ResourceRemoved
        | Kind::ResourceStatus
        | Kind::SiteChanged
        | Kind::ProjectRemoved
        | Kind::QueueChanged
        | Kind::GrantGiven
        | Kind::GrantRevoked => Means::Everything,
        _ => Means::Nothing,
    }
}

impl App {
    /// Reads the current plan of a site. `carries` is true if this server executes the plan, and false if the plan only
    /// answers a query.
    pub(super) async fn plan_now(&self, site: SiteId, carries: bool) -> Result<Plan> {
        let mut conn = self.store.read().await?;
        self.read_plan(&mut conn, site, carries).await
    }

    async fn read_plan(&self, conn: &mut Conn, site: SiteId, carries: bool) -> Result<Plan> {
        // Read this first. Events during the reading are then read again, and none is missed.
        let seen = events::last_number(conn).await?;
        let now = self.now();
        let policy = queues::policy(conn, site).await?;
        let mut resources = inventory::of_site(conn, site).await?;
        if carries {
            self.leave_out_unreachable(&mut resources);
        }
        let tree = tree_of(&resources)?;
        let floor = Floor::of(&resources, &tree, &policy);
        let waiting = workloads::live(conn, site).await?;
        let runs = workloads::live_runs(conn, site).await?;
        // A cancelled workload is over before its last run is.
        let known: BTreeSet<WorkloadId> = waiting.iter().map(|one| one.id).collect();
        let missing = runs
            .iter()
            .map(|run| run.workload)
            .filter(|id| !known.contains(id));
        let missing = missing.collect::<BTreeSet<_>>().into_iter().collect();
        let mut all = waiting;
        all.extend(workloads::some(conn, site, missing).await?);
        let rations = self.read_rations(conn, site, &policy, now).await?;
        let recent = recuts::recent(conn, site, now - RESTS).await?;
        let cutting = Cutting::of(&resources, &tree, &policy, recent);
        let read = Read {
            site,
            seen,
            policy,
            rations,
            floor,
            workloads: all,
            runs,
        };
        let mut plan = Plan::new(read, now);
        plan.carries = carries;
        plan.cutting = cutting;
        self.remember(conn, &mut plan, now).await?;
        self.read_walls(conn, &mut plan, now).await?;
        self.read_choices(conn, &mut plan).await?;
        self.read_lenders(conn, &mut plan).await?;
        self.read_dependencies(conn, &mut plan).await?;
        Ok(plan)
    }

    /// Takes the machines of other servers out of service for new starts: only their own servers can see and end work
    /// there.
    fn leave_out_unreachable(&self, resources: &mut [Resource]) {
        for resource in resources {
            let machine = machine_of(resource);
            if !self.reaches(machine.as_deref()) {
                resource.status = Status::Unavailable;
            }
        }
    }

    /// Whether this server can start, see and end work on a machine. Every server can see work that has no machine.
    pub(crate) fn reaches(&self, machine: Option<&str>) -> bool {
        match (machine, &self.backend) {
            (Some(machine), Some(backend)) => backend.reaches(machine),
            _ => true,
        }
    }

    /// Updates a plan in place.
    pub(super) async fn catch_up_with(&self, plan: &mut Plan) -> Result<()> {
        let mut conn = self.store.read().await?;
        self.catch_up(&mut conn, plan).await
    }

    async fn catch_up(&self, conn: &mut Conn, plan: &mut Plan) -> Result<()> {
        loop {
            let now = self.now();
            let (news, last) = events::news(conn, plan.site, plan.seen, PAGE).await?;
            let mut changed = BTreeSet::new();
            let mut holders = BTreeSet::new();
            let mut sessions = BTreeSet::new();
            for (kind, subject) in news {
                match means(kind, &subject) {
                    Means::Workload(id) => {
                        changed.insert(id);
                    }
                    Means::Holder(holder) => {
                        holders.insert(holder);
                    }
                    Means::Claim(id) => {
                        let claim = claims::get(conn, id).await?;
                        if let Some(Holder::Workload(id)) = claim.map(|claim| claim.holder) {
                            changed.insert(id);
                        }
                    }
                    Means::Session(id) => {
                        sessions.insert(id);
                    }
                    Means::Everything => {
                        *plan = self.read_plan(conn, plan.site, plan.carries).await?;
                        return Ok(());
                    }
                    Means::Nothing => {}
                }
            }
            for workload in workloads::some(conn, plan.site, changed.into_iter().collect()).await? {
                let workload = Arc::new(workload);
                self.follow_runs(conn, plan, &workload).await?;
                plan.sync(workload.clone(), now);
                if workload.state.is_final() {
                    plan.over(&workload, now);
                }
                self.check_dependencies(conn, plan, &workload).await?;
            }
            for holder in holders {
                let held = claims::held_by(conn, holder).await?;
                let mut walls = self.walls(conn, plan, &held).await?;
                if let Holder::Reservation(id) = holder
                    && walls.is_empty()
                {
                    // The reservation has released its claims, and the runs inside it still have the grace period.
                    walls.extend(plan.still_inside(id, now));
                    plan.choices.remove(&id);
                    if !walls.is_empty() {
                        self.read_choice(conn, plan, id).await?;
                    }
                }
                plan.wall(number(holder), walls, now);
            }
            for session in sessions {
                self.read_lender(conn, plan, session).await?;
            }
            let is_last = last - plan.seen < PAGE;
            plan.seen = last;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Reads the runs of a workload again after a cancellation, an extension, or a booking that cut its claims.
    async fn follow_runs(
        &self,
        conn: &mut Conn,
        plan: &mut Plan,
        workload: &Arc<Workload>,
    ) -> Result<()> {
        for run in workloads::live_runs_of(conn, workload.id).await? {
            let Some(known) = plan.runs.get_mut(&run.id) else {
                continue;
            };
            let before = known.run.until;
            if known.run.version < run.version {
                known.is_to_be_told = true;
                known.run = run.clone();
            }
            let mut held = Vec::new();
            for claim in &run.claims {
                held.extend(claims::get(conn, *claim).await?);
            }
            known.run.until = has_until(&run, &held);
            if before < known.run.until {
                plan.prolong(run.id, workload);
            }
        }
        Ok(())
    }

    async fn read_walls(&self, conn: &mut Conn, plan: &mut Plan, now: Timestamp) -> Result<()> {
        let mut held: HashMap<Holder, Vec<Claim>> = HashMap::new();
        for some in plan.floor.resources().chunks(RESOURCES_AT_ONCE) {
            for claim in claims::holding_on(conn, some.to_vec()).await? {
                held.entry(claim.holder).or_default().push(claim);
            }
        }
        let mut held: Vec<(Holder, Vec<Claim>)> = held.into_iter().collect();
        held.sort_by_key(|(holder, _)| *holder);
        for (holder, claims) in held {
            if !matches!(holder, Holder::Workload(_)) {
                let walls = self.walls(conn, plan, &claims).await?;
                plan.wall(number(holder), walls, now);
            }
        }
        Ok(())
    }

    async fn walls(
        &self,
        conn: &mut Conn,
        plan: &mut Plan,
        held: &[Claim],
    ) -> Result<Vec<Reserved>> {
        let mut walls = Vec::new();
        for claim in held.iter().filter(|claim| claim.container.is_none()) {
            let placement = plan.floor.taken_by(claim);
            let seats: Vec<_> = plan.floor.seats_of(claim).into_iter().collect();
            if placement.is_none() && seats.is_empty() {
                continue;
            }
            let account = match claim.holder {
                Holder::Reservation(id) => {
                    let booked = reservations::get(conn, claim.site, id).await?;
                    booked.map(|booked| {
                        plan.choices.insert(id, Choice::from(&booked));
                        plan.account(booked.project, booked.owner)
                    })
                }
                Holder::Maintenance(_) | Holder::Workload(_) => None,
            };
            let (from, to) = (
                claim.span.start().as_microsecond(),
                claim.span.end().as_microsecond(),
            );
            let pieces = placement
                .map(|placement| placement.pieces)
                .unwrap_or_default();
            walls.push(Reserved {
                from,
                to,
                placement: Placement { pieces },
                seats,
                account,
            });
        }
        Ok(walls)
    }

    async fn read_rations(
        &self,
        conn: &mut Conn,
        site: SiteId,
        policy: &QueuePolicy,
        now: Timestamp,
    ) -> Result<Rations> {
        let known = sites::by_id(conn, site).await?;
        let zone = known.map_or(TimeZone::UTC, |site| site.time_zone.rules());
        let (begins, renewed_at) = month(now, &zone);
        let mut spent_month = HashMap::new();
        for quota in policy
            .quotas
            .iter()
            .filter(|quota| quota.amounts.gpu_hours_month.is_some())
        {
            let (project, person) = quota.whose.parts();
            let spent = workloads::spent(conn, site, project, person, begins).await?;
            spent_month.insert(quota.whose, spent);
        }
        let mut grants = queues::grants(conn, site, now).await?;
        grants.retain(|grant| grant.revoked_at.is_none());
        let mut spent_of_grant = Vec::new();
        for grant in &grants {
            let (project, person) = grant.whose.parts();
            spent_of_grant.push(workloads::spent(conn, site, project, person, grant.from).await?);
        }
        Ok(Rations {
            zone,
            grants,
            spent_month,
            spent_of_grant,
            renewed_at,
            next_change: None,
            granted: 0,
        })
    }

    /// Charges past usage to the fair-share accounts, and learns expected run times from past runs.
    async fn remember(&self, conn: &mut Conn, plan: &mut Plan, now: Timestamp) -> Result<()> {
        let back = plan
            .policy
            .half_life
            .checked_mul(HALF_LIVES)
            .unwrap_or(plan.policy.half_life);
        let Ok(since) = now.checked_sub(back) else {
            return Ok(());
        };
        for past in workloads::past(conn, plan.site, since).await? {
            let part = plan
                .floor
                .part_of(past.weighs.gpus_milli, past.weighs.cores_milli);
            if past.counts_from < past.ended {
                plan.remember(
                    (past.project, past.owner),
                    Mode::Batch,
                    past.counts_from,
                    past.ended,
                    part,
                );
            }
            if let RunState::Ended {
                outcome: Outcome::Completed | Outcome::Failed { .. },
            } = past.state
            {
                let limit = past.began.duration_until(past.until);
                plan.learn(
                    past.owner,
                    limit,
                    past.weighs,
                    past.began.duration_until(past.ended),
                );
            }
        }
        let Ok(during) = Span::new(since, now) else {
            return Ok(());
        };
        let counted: Vec<ResourceId> = plan.floor.resources();
        let mut taken = Vec::new();
        usage::taken(
            conn,
            &counted,
            during,
            crate::reservations::LENGTH_MAX,
            |one| taken.push(one),
        )
        .await?;
        for one in taken.into_iter().filter(|one| !one.is_queued) {
            let (Some(owner), Some(resource)) = (one.owner, counted.get(one.place)) else {
                continue;
            };
            let claim = Claim {
                take: one
                    .amount
                    .map_or(berth_model::Take::Exclusive, berth_model::Take::Amount),
                ..Claim::firm(
                    ClaimId(Uuid::nil()),
                    plan.site,
                    *resource,
                    one.span,
                    berth_model::Take::Exclusive,
                    Holder::Workload(WorkloadId(Uuid::nil())),
                )
            };
            let Some(placement) = plan.floor.taken_by(&claim) else {
                continue;
            };
            let part = plan.floor.part_taken(&placement);
            let (from, to) = (one.span.start().max(since), one.span.end().min(now));
            if from < to {
                plan.remember((one.project, owner), Mode::Reserved, from, to, part);
            }
        }
        Ok(())
    }

    async fn read_dependencies(&self, conn: &mut Conn, plan: &mut Plan) -> Result<()> {
        let waiting: Vec<_> = plan
            .workloads
            .values()
            .map(|entry| entry.workload.clone())
            .collect();
        for workload in waiting
            .iter()
            .filter(|workload| !workload.ask.after.is_empty())
        {
            self.check_dependencies(conn, plan, workload).await?;
        }
        Ok(())
    }

    /// Finds dependencies that can never be met, because the other workload ended before this one was read.
    async fn check_dependencies(
        &self,
        conn: &mut Conn,
        plan: &mut Plan,
        workload: &berth_model::Workload,
    ) -> Result<()> {
        if workload.ask.after.is_empty() || workload.state.is_final() {
            return Ok(());
        }
        let ids = workload
            .ask
            .after
            .iter()
            .map(|after| after.workload)
            .collect();
        let others = workloads::some(conn, plan.site, ids).await?;
        for after in &workload.ask.after {
            let other = others.iter().find(|other| other.id == after.workload);
            if other.is_some_and(|other| other.state.is_final() && !is_met(after.only_if, other)) {
                plan.never(workload.id, after.workload);
            }
        }
        Ok(())
    }
}

fn number(holder: Holder) -> Uuid {
    match holder {
        Holder::Reservation(id) => id.0,
        Holder::Maintenance(id) => id.0,
        Holder::Workload(id) => id.0,
    }
}
