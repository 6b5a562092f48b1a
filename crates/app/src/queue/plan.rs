//! The plan of one site's queue in memory: the engine's planner, and the workloads, runs and accounts behind its keys.
//!
//! A plan is read from the database once and then follows the events there, like the board of [`crate::desk`]. Its
//! decisions are only proposals until a transaction has made the claims. A plan that cannot continue is dropped and
//! read again, so nothing here has to survive.

pub(super) mod cuts;
mod steps;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use berth_engine::fleet::{Mix, Need, Placement};
use berth_engine::queue::Micros;
use berth_engine::queue::history::{History, Kind};
use berth_engine::queue::planner::{Ask, Class, Forecasts, Key, Order, Planner, Policy, Wish};
use berth_engine::queue::quota::{Amounts, Counted};
use berth_engine::queue::seats::Pool;
use berth_engine::queue::share::{Account, Mode, Shares};
use berth_model::queue::QueuePolicy;
use berth_model::workload::{self, Because, OnlyIf, Run, State, Workload};
use berth_model::{
    Claim, PersonId, ProjectId, ReservationId, RunId, SessionId, SiteId, WorkloadId,
};
use berth_store::workloads::Weighs;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::cuttable::Cutting;
use super::ending::Choice;
use super::floor::Floor;
use super::rations::Rations;

pub(crate) const GPUS: Counted = Counted(0);
pub(crate) const CORES: Counted = Counted(1);

/// How many tasks of one array are queued in the planner at a time. They are all alike, so more of them would add
/// nothing.
const IN_LINE_MAX: usize = 256;
/// Pause after the database refused a start. The plan then knows the change that came first.
const BACK_OFF: Micros = 5_000_000;

#[derive(Debug)]
pub(crate) struct Plan {
    pub site: SiteId,
    /// The last event in this plan.
    pub seen: u64,
    pub policy: QueuePolicy,
    pub rations: Rations,
    pub floor: Floor,
    /// Whether this server executes the plan, or only answers queries with it.
    pub carries: bool,
    pub cutting: Cutting,
    pub planner: Planner,
    projects: HashMap<Option<ProjectId>, Account>,
    people: HashMap<(Option<ProjectId>, PersonId), Account>,
    pub workloads: HashMap<WorkloadId, Waiting>,
    keys: HashMap<Key, (WorkloadId, u32)>,
    next_key: u64,
    pub runs: HashMap<RunId, Running>,
    walls: HashMap<Uuid, Vec<Wall>>,
    pub choices: HashMap<ReservationId, Choice>,
    /// Sessions that lend their GPUs, and the workloads they run as.
    pub lenders: HashMap<SessionId, WorkloadId>,
    next_wall: u64,
    history: History,
    /// When to queue a refused workload again, even without an event.
    later: BTreeSet<(Micros, WorkloadId)>,
    /// Workloads that depend on the end or start of another one, by that other one.
    dependents: HashMap<WorkloadId, Vec<WorkloadId>>,
    backed_off: HashMap<(WorkloadId, u32), Micros>,
    /// People with a full quota according to the database, and until when their work is not tried again.
    over_quota: HashMap<PersonId, Micros>,
    pub forecasts: Option<Forecasts>,
    pub forecast_made: Option<Instant>,
    pub kept_forecasts: HashMap<WorkloadId, Timestamp>,
}

/// A workload that is not over, and its tasks that are queued in the planner.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub workload: Arc<Workload>,
    in_line: HashMap<u32, Key>,
    pub stands: Stands,
}

impl Waiting {
    /// Its first queued task.
    pub fn first_task(&self) -> Option<u32> {
        self.in_line.keys().copied().min()
    }
}

/// Whether a workload is queued in the planner, or why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stands {
    InLine,
    Held,
    /// These workloads have to end or begin first.
    After(Vec<WorkloadId>),
    /// A dependency has ended, and its condition can never be met.
    AfterNever(WorkloadId),
    /// It runs inside a reservation, and waits for it to begin or for room in it.
    Inside(ReservationId),
    /// No GPU of the site matches the request.
    NoSuchGpu,
}

#[derive(Debug)]
pub(crate) struct Running {
    pub run: Run,
    pub workload: Arc<Workload>,
    key: Key,
    /// Whether the backend still has to receive the state of the run.
    pub is_to_be_told: bool,
}

#[derive(Debug, Clone)]
struct Wall {
    number: u64,
    from: Micros,
    to: Micros,
    placement: Placement,
    account: Option<Account>,
}

/// Resources that another holder has for a time.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub from: Micros,
    pub to: Micros,
    pub placement: Placement,
    pub seats: Vec<(Pool, u64)>,
    pub account: Option<Account>,
}

/// A decision to execute.
#[derive(Debug)]
pub(crate) enum Step {
    Start(Starting),
    /// The workload can never start.
    GiveUp {
        workload: WorkloadId,
        because: &'static str,
    },
    /// The run has to be gone by a moment.
    Stop {
        run: RunId,
        by: Timestamp,
        because: Because,
    },
    /// The run continues after its reservation.
    Keep(RunId),
}

#[derive(Debug)]
pub(crate) struct Starting {
    pub key: Key,
    pub workload: Arc<Workload>,
    pub task: u32,
    pub wish: usize,
    pub placement: Placement,
    /// When the start was decided. Executing it takes a while, which does not count as run time.
    pub from: Timestamp,
    pub until: Timestamp,
    pub weighs: Weighs,
    /// The reservation or session that it runs inside, and the claims of that holder.
    pub inside: Option<(Inside, Vec<Claim>)>,
}

/// The holder of the claims that a run's own claims are inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inside {
    Reservation(ReservationId),
    /// A session's run that lends its idle GPUs. The borrower claims everything else for itself.
    Session(RunId),
}

/// Input of a plan.
#[derive(Debug)]
pub(crate) struct Read {
    pub site: SiteId,
    pub seen: u64,
    pub policy: QueuePolicy,
    pub rations: Rations,
    pub floor: Floor,
    pub workloads: Vec<Workload>,
    pub runs: Vec<Run>,
}

impl Plan {
    pub fn new(read: Read, now: Timestamp) -> Plan {
        let at = now.as_microsecond();
        let Read {
            site,
            seen,
            policy,
            rations,
            floor,
            workloads,
            runs,
        } = read;
        let needs = workloads.iter().flat_map(|workload| &workload.ask.wishes);
        let needs =
            needs.filter_map(|wish| Some((floor.need(wish)?.task, u64::from(wish.tasks.get()))));
        let mix = Mix::of(needs.take(10_000));
        let shares = Shares::new(micros(policy.half_life).max(1), at);
        let rules = Policy {
            order: Order::Shares,
            grace: micros(policy.grace),
            run_min: micros(policy.run_min),
        };
        let planner = Planner::new(rules, &floor.nodes, mix, 1.0, shares, at);
        let mut plan = Plan {
            site,
            seen,
            policy,
            rations,
            planner,
            projects: HashMap::new(),
            people: HashMap::new(),
            workloads: HashMap::new(),
            keys: HashMap::new(),
            next_key: 1,
            runs: HashMap::new(),
            walls: HashMap::new(),
            choices: HashMap::new(),
            lenders: HashMap::new(),
            next_wall: 1,
            history: History::default(),
            later: BTreeSet::new(),
            dependents: HashMap::new(),
            backed_off: HashMap::new(),
            over_quota: HashMap::new(),
            forecasts: None,
            forecast_made: None,
            kept_forecasts: HashMap::new(),
            carries: false,
            cutting: Cutting::default(),
            floor,
        };
        plan.ration(now);
        for (pool, total) in plan.floor.pools() {
            plan.planner.provide_seats(pool, total);
        }
        plan.close_nodes(at);
        let known: HashMap<WorkloadId, Arc<Workload>> = workloads
            .into_iter()
            .map(|one| (one.id, Arc::new(one)))
            .collect();
        for run in runs {
            if let Some(workload) = known.get(&run.workload) {
                plan.resume(run, workload.clone());
            }
        }
        let mut known: Vec<Arc<Workload>> = known.into_values().collect();
        known.sort_by_key(|workload| workload.number);
        for workload in &known {
            let waiting = Waiting {
                workload: workload.clone(),
                in_line: HashMap::new(),
                stands: Stands::Held,
            };
            plan.workloads.insert(workload.id, waiting);
        }
        for workload in known {
            plan.sync(workload, now);
        }
        plan
    }

    /// Reserves resources that are out of service without an end.
    fn close_nodes(&mut self, now: Micros) {
        for placement in self.floor.closed.clone() {
            self.planner
                .reserve(self.next_wall, now, Micros::MAX, &placement);
            self.next_wall += 1;
        }
    }

    pub(super) fn project(&mut self, project: Option<ProjectId>) -> Account {
        if let Some(known) = self.projects.get(&project) {
            return *known;
        }
        let weight = project
            .and_then(|id| self.policy.shares.get(&id))
            .copied()
            .unwrap_or_default();
        let account = self.planner.shares.add_project(f64::from(weight.get()));
        self.projects.insert(project, account);
        account
    }

    pub fn account(&mut self, project: Option<ProjectId>, person: PersonId) -> Account {
        if let Some(known) = self.people.get(&(project, person)) {
            return *known;
        }
        let of = self.project(project);
        let account = self.planner.shares.person(of, number_of(person));
        self.people.insert((project, person), account);
        self.ration_person(account, person);
        account
    }

    /// The accounts of all projects, and of the people in them.
    pub fn accounts(
        &self,
    ) -> impl Iterator<Item = ((Option<ProjectId>, Option<PersonId>), Account)> + '_ {
        let projects = self
            .projects
            .iter()
            .map(|(project, account)| ((*project, None), *account));
        let people = self
            .people
            .iter()
            .map(|((project, person), account)| ((*project, Some(*person)), *account));
        projects.chain(people)
    }

    pub fn projects(&self) -> impl Iterator<Item = (Option<ProjectId>, Account)> + '_ {
        self.projects
            .iter()
            .map(|(project, account)| (*project, *account))
    }

    /// The engine's form of a request, with the variants that some GPU matches.
    pub(super) fn ask(&mut self, workload: &Workload) -> Option<Ask> {
        let usable = self.floor.usable(workload);
        self.ask_for(
            workload,
            usable.into_iter().map(|(_, wish, need)| (wish, need)),
        )
    }

    fn ask_for<'a>(
        &mut self,
        workload: &Workload,
        wishes: impl Iterator<Item = (&'a workload::Wish, Need)>,
    ) -> Option<Ask> {
        let account = self.account(workload.project, workload.owner);
        let mut wishes = wishes.map(|(wish, need)| self.wish(workload, wish, need));
        let first = wishes.next()?;
        let or: Vec<Wish> = wishes.collect();
        let level = workload
            .ask
            .level
            .as_ref()
            .and_then(|name| self.policy.levels.get(name));
        let seats = workload.ask.seats.iter().filter_map(|seats| {
            let pool = self.floor.pool(&seats.resource)?;
            Some((pool, seats.amount.get()))
        });
        let since = workload.since.as_microsecond();
        Some(Ask {
            class: match workload.ask.class {
                workload::Class::Opportunistic => Class::Opportunistic,
                workload::Class::Guaranteed => Class::Guaranteed,
            },
            level: level.map_or(0, |level| level.number),
            or,
            seats: seats.collect(),
            not_before: workload.ask.not_before.map(Timestamp::as_microsecond),
            deadline: workload.ask.deadline.map(Timestamp::as_microsecond),
            ..Ask::new(account, first, since)
        })
    }

    fn wish(&self, workload: &Workload, wish: &workload::Wish, need: Need) -> Wish {
        let limit = micros(wish.limit);
        let weighs = weighs(&need);
        Wish {
            need,
            limit,
            expected: self.history.expected(&kind(workload.owner, limit, weighs)),
            amounts: Amounts::of([(GPUS, weighs.gpus_milli), (CORES, weighs.cores_milli)]),
            rate: self.floor.part_of_site(&need),
        }
    }

    pub(super) fn fresh_key(&mut self) -> Key {
        self.next_key += 1;
        Key(self.next_key)
    }

    /// Updates a workload from its row in the database.
    pub fn sync(&mut self, workload: Arc<Workload>, now: Timestamp) {
        let id = workload.id;
        let stands = self.where_it_stands(&workload);
        let entry = self.workloads.entry(id).or_insert_with(|| Waiting {
            workload: workload.clone(),
            in_line: HashMap::new(),
            stands: Stands::Held,
        });
        entry.workload = workload.clone();
        entry.stands = stands.clone();
        let in_line: Vec<(u32, Key)> = entry
            .in_line
            .iter()
            .map(|(task, key)| (*task, *key))
            .collect();
        let may_stand = stands == Stands::InLine && !workload.state.is_final();
        let wanted = if may_stand {
            self.in_line(&workload, now)
        } else {
            HashSet::new()
        };
        for (task, key) in in_line {
            if !wanted.contains(&task) {
                self.planner.withdraw(key);
                self.leave(id, task, key);
            }
        }
        let ask = if wanted.is_empty() {
            None
        } else {
            self.ask(&workload)
        };
        if let Some(ask) = ask {
            let mut wanted: Vec<u32> = wanted.into_iter().collect();
            wanted.sort_unstable();
            for task in wanted {
                let is_new = self
                    .workloads
                    .get(&id)
                    .is_some_and(|entry| !entry.in_line.contains_key(&task));
                if is_new {
                    let key = self.fresh_key();
                    self.keys.insert(key, (id, task));
                    if let Some(entry) = self.workloads.get_mut(&id) {
                        entry.in_line.insert(task, key);
                    }
                    self.planner.submit(key, ask.clone());
                }
            }
        }
        if let Stands::After(others) = stands {
            for other in others {
                let waiting = self.dependents.entry(other).or_default();
                if !waiting.contains(&id) {
                    waiting.push(id);
                }
            }
        }
        if workload.state.is_final() {
            self.workloads.remove(&id);
            self.kept_forecasts.remove(&id);
        }
    }

    fn leave(&mut self, workload: WorkloadId, task: u32, key: Key) {
        self.keys.remove(&key);
        if let Some(entry) = self.workloads.get_mut(&workload) {
            entry.in_line.remove(&task);
        }
    }

    /// The tasks that should be queued in the planner now.
    pub(super) fn in_line(&self, workload: &Workload, now: Timestamp) -> HashSet<u32> {
        let at_once = workload.ask.array.as_ref().and_then(|array| array.at_once);
        let running = workload.counts.running as usize;
        let most = at_once.map_or(usize::MAX, |most| {
            (most.get() as usize).saturating_sub(running)
        });
        let at = now.as_microsecond();
        let is_owner_open = self
            .over_quota
            .get(&workload.owner)
            .is_none_or(|until| *until <= at);
        if !is_owner_open {
            return HashSet::new();
        }
        let is_open = |task: &u32| {
            self.backed_off
                .get(&(workload.id, *task))
                .is_none_or(|until| *until <= at)
        };
        workload
            .waiting
            .iter()
            .filter(is_open)
            .take(most.min(IN_LINE_MAX))
            .collect()
    }

    pub(super) fn where_it_stands(&self, workload: &Workload) -> Stands {
        if workload.state == State::Held {
            return Stands::Held;
        }
        // A dependency that can never be met stays so: the other workload does not end again.
        let known = self.workloads.get(&workload.id).map(|entry| &entry.stands);
        if let Some(never @ Stands::AfterNever(_)) = known {
            return never.clone();
        }
        // A workload that is not in the plan is over. The plan checked how it ended when it read the dependent one.
        let open = |after: &&workload::After| match self.workloads.get(&after.workload) {
            None => false,
            Some(other) => match after.only_if {
                OnlyIf::Begun => !other.workload.counts.has_begun(),
                OnlyIf::Completed | OnlyIf::Failed | OnlyIf::Over => true,
            },
        };
        let open: Vec<WorkloadId> = workload
            .ask
            .after
            .iter()
            .filter(open)
            .map(|after| after.workload)
            .collect();
        if !open.is_empty() {
            return Stands::After(open);
        }
        if let Some(reservation) = workload.ask.inside {
            return Stands::Inside(reservation);
        }
        if self.floor.usable(workload).is_empty() {
            return Stands::NoSuchGpu;
        }
        Stands::InLine
    }

    /// Handles the end of a workload that others depend on. Dependents with a met condition are queued. The others
    /// never start.
    pub fn over(&mut self, workload: &Workload, now: Timestamp) {
        for id in self.dependents.remove(&workload.id).unwrap_or_default() {
            let Some(waiting) = self.workloads.get(&id).map(|entry| entry.workload.clone()) else {
                continue;
            };
            let after = waiting
                .ask
                .after
                .iter()
                .find(|after| after.workload == workload.id);
            if after.is_some_and(|after| !is_met(after.only_if, workload)) {
                self.never(id, workload.id);
            } else {
                self.sync(waiting, now);
            }
        }
    }

    /// Handles the start of a workload that others depend on.
    pub fn begun(&mut self, workload: WorkloadId, now: Timestamp) {
        for id in self.dependents.get(&workload).cloned().unwrap_or_default() {
            if let Some(waiting) = self.workloads.get(&id).map(|entry| entry.workload.clone()) {
                self.sync(waiting, now);
            }
        }
    }

    /// Marks a workload that never starts, because a dependency ended otherwise than required.
    pub fn never(&mut self, id: WorkloadId, because: WorkloadId) {
        if let Some(entry) = self.workloads.get_mut(&id) {
            entry.stands = Stands::AfterNever(because);
            let keys: Vec<(u32, Key)> = entry.in_line.drain().collect();
            for (_, key) in keys {
                self.planner.withdraw(key);
                self.keys.remove(&key);
            }
        }
    }

    /// Replaces the reserved resources of a holder.
    pub fn wall(&mut self, holder: Uuid, claims: Vec<Reserved>, now: Timestamp) {
        let at = now.as_microsecond();
        for wall in self.walls.remove(&holder).unwrap_or_default() {
            self.planner.unreserve(wall.number);
            // Reserved time counts as usage up to its release, used or not.
            if let Some(account) = wall.account.filter(|_| wall.from < at) {
                let part = self.floor.part_taken(&wall.placement);
                self.planner.shares.charge(
                    account,
                    Mode::Reserved,
                    wall.from,
                    wall.to.min(at),
                    part,
                );
            }
        }
        let mut walls = Vec::new();
        for Reserved {
            from,
            to,
            placement,
            seats,
            account,
        } in claims
        {
            let number = self.next_wall;
            self.next_wall += 1;
            self.planner.reserve(number, from, to, &placement);
            self.planner.reserve_seats(number, from, to, &seats);
            walls.push(Wall {
                number,
                from: from.max(at),
                to,
                placement,
                account,
            });
        }
        if !walls.is_empty() {
            self.walls.insert(holder, walls);
        }
    }

    /// The reservations that hold node parts at this moment.
    pub fn reserved_at(&self, at: Micros) -> impl Iterator<Item = ReservationId> + '_ {
        let is_on = move |wall: &Wall| wall.account.is_some() && wall.from <= at && at < wall.to;
        let owned = self
            .walls
            .iter()
            .filter(move |(_, walls)| walls.iter().any(is_on));
        owned.map(|(holder, _)| ReservationId(*holder))
    }

    /// Charges usage from before this plan was read.
    pub fn remember(
        &mut self,
        whose: (Option<ProjectId>, PersonId),
        mode: Mode,
        from: Timestamp,
        to: Timestamp,
        part: f64,
    ) {
        let account = self.account(whose.0, whose.1);
        self.planner.shares.charge(
            account,
            mode,
            from.as_microsecond(),
            to.as_microsecond(),
            part,
        );
    }

    pub fn learn(
        &mut self,
        owner: PersonId,
        limit: SignedDuration,
        weighs: Weighs,
        ran: SignedDuration,
    ) {
        self.history
            .learn(&kind(owner, micros(limit), weighs), micros(ran));
    }
}

/// Whether a finished workload meets the condition of a dependent one.
pub(crate) fn is_met(only_if: OnlyIf, over: &Workload) -> bool {
    match only_if {
        OnlyIf::Completed => over.state == State::Completed && over.cancelled() == 0,
        OnlyIf::Failed => over.state == State::Failed,
        OnlyIf::Over => over.state.is_final(),
        OnlyIf::Begun => over.state != State::Cancelled || over.counts.has_begun(),
    }
}

/// The placement without its GPUs, which another holder has.
pub(crate) fn without_gpus(mut placement: Placement) -> Placement {
    for piece in &mut placement.pieces {
        piece.gpus.clear();
    }
    placement
}

pub(crate) fn weighs(need: &berth_engine::fleet::Need) -> Weighs {
    let tasks = u64::from(need.tasks);
    Weighs {
        gpus_milli: tasks * u64::from(need.task.gpus.thousandths()),
        cores_milli: tasks * need.task.cpu_milli,
    }
}

fn kind(owner: PersonId, limit: Micros, weighs: Weighs) -> Kind {
    Kind {
        person: number_of(owner),
        limit,
        size: weighs.gpus_milli.max(weighs.cores_milli),
    }
}

fn number_of(person: PersonId) -> u64 {
    person.0.as_u64_pair().1
}

pub(crate) fn micros(length: SignedDuration) -> Micros {
    Micros::try_from(length.as_micros()).unwrap_or(Micros::MAX)
}

pub(crate) fn moment(at: Micros) -> Timestamp {
    Timestamp::from_microsecond(at).unwrap_or(Timestamp::MAX)
}
