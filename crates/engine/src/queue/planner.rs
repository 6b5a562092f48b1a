//! The scheduler of one site: which waiting workload starts now, which gets a promised start, and which running
//! workload is preempted.
//!
//! A higher class goes first; within a class, a higher level (priority). Then the shares decide which account is
//! next. Within an account, the workload with the shortest expected run time goes first, since it delays the fewest
//! others. That alone could starve long workloads. So each workload has a patience, computed from its limit. When
//! it has waited longer, it is *overdue*.
//!
//! An overdue workload gets a promise: a reservation of the earliest start for which there is room. The planner
//! backfills around promises: another workload starts only if it does not touch a promise. Promises are computed
//! from limits, never from expected run times, and later promises are placed behind earlier ones. So a promise only
//! ever moves to an earlier time. The exception is a reservation at its place: then the planner makes a new
//! promise. With [`Order::Shares`], a promise moves to an earlier time only at its account's turn; otherwise large
//! workloads would get ahead of small ones.
//!
//! At most a quarter of the fleet is promised at once, or one workload, so there is always room for short
//! workloads. The number of promises is limited, too (about a hundred). If the limit leaves too little for the
//! workload at its turn, it gets the next promise, before all others. With [`Order::Shares`], a workload that has
//! been overdue for a day gets a promise despite the quarter.
//!
//! Workloads of a lower class are preempted for those of a higher class ([`preempt`]). The planner asks such a
//! workload to stop, leaves it a grace period, and queues it again at its old place.
//!
//! Every workload that starts holds its nodes in the [`Ground`] until its limit. Reservations are in the ground,
//! too, so no workload that starts here can block a reservation. Only opportunistic workloads may start before a
//! wall (the start of a claim ahead) that they would reach, because they stop when the planner asks them to.

mod ask;
mod forecast;
mod grant;
mod preempt;
mod promise;
mod round;
mod running;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use crate::fleet::{Mix, Node, Placement};

use super::Micros;
use super::ground::Ground;
use super::lines::{Lines, ShapeId, Shapes};
use super::quota::{Counted, During, Quotas, Verdict};
use super::seats::{self, Pool, Seats};
use super::share::{Account, Shares};
use super::track::Taker;

pub use ask::{Ask, Class, Wish};
pub use forecast::{Forecast, Forecasts};
pub use grant::Grant;
use grant::Granted;
use promise::Promise;
pub use running::Running;

/// A workload, by the number that the caller gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

/// The order in which waiting workloads are examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By fair share between accounts; within an account, the shortest first.
    Shares,
    /// The shortest of all accounts first. Overdue workloads: the longest overdue first.
    Shortest,
}

/// How the queue of a site is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    pub order: Order,
    /// Grace period: time to shut down after the planner asks a workload to stop.
    pub grace: Micros,
    /// Minimum run time before a workload may be preempted. Without it, a workload might never make progress.
    pub run_min: Micros,
}

impl Policy {
    /// Half a minute of grace, and five minutes of run time before a preemption.
    pub fn new(order: Order) -> Policy {
        Policy {
            order,
            grace: 30 * SECOND,
            run_min: 300 * SECOND,
        }
    }
}

const SECOND: Micros = 1_000_000;
/// Maximum number of rounds over the queue in one plan. A plan repeats the round while promises move. A promise
/// moves only to an earlier time, so two rounds are mostly enough.
const ROUNDS_MAX: usize = 16;

/// One decision of a plan, which the caller carries out.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    Start(Start),
    Stop(Stop),
    /// It can no longer end by its deadline. The planner has removed it from the queue.
    TooLate(Key),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    pub key: Key,
    /// Index of the granted variant; 0 is the first.
    pub wish: usize,
    pub placement: Placement,
    /// When it must end: at its limit, or for an opportunistic workload at the next wall if that is earlier.
    pub until: Micros,
}

/// A running workload must stop by `by`. It waits again at its old place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    pub key: Key,
    pub by: Micros,
    pub makes_room_for: Holder,
}

/// The workload or reservation that needs the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Workload(Key),
    Reservation(u64),
}

/// Why a workload waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// There is no room for it now.
    NoRoom,
    /// It is overdue and has a promise: it starts at this moment at the latest.
    Promised(Micros),
    /// The planner has preempted others for it; they are gone by this moment.
    MakingRoom(Micros),
    /// Its account holds as much as its quota allows.
    Quota(Verdict),
    /// This pool has too few free seats.
    NoSeats(Pool),
    /// It asked not to start before this moment.
    NotBefore(Micros),
    /// It could not start even on an empty fleet: it asks for more than there is.
    Never,
}

type Rank = (Reverse<Class>, Reverse<i32>);

/// The queue of one site.
#[derive(Debug, Clone)]
pub struct Planner {
    policy: Policy,
    ground: Ground,
    seats: Seats,
    pub shares: Shares,
    pub quotas: Quotas,
    asks: HashMap<Key, Ask>,
    /// Workloads in `asks` that asked not to be examined before a moment.
    later: BTreeSet<(Micros, Key)>,
    /// Workloads in `asks` with a deadline, by their latest possible start.
    by_deadline: BTreeSet<(Micros, Key)>,
    lines: BTreeMap<Rank, Lines>,
    by_due: BTreeSet<(Micros, Key)>,
    promises: BTreeMap<(Micros, Key), Promise>,
    /// Workloads that lost their promise to a reservation since the last plan.
    broken: BTreeSet<(Micros, Key)>,
    /// A promise was made, moved or removed in this round. That may have left room for workloads refused earlier.
    has_moved: bool,
    /// The cost of one second of everything that is promised.
    promised: f64,
    running: HashMap<Key, Running>,
    by_end: BTreeSet<(Micros, Key)>,
    /// From when on each running workload may be asked to stop for others.
    ripens: BTreeSet<(Micros, Key)>,
    grants: BTreeMap<u64, Granted>,
    /// Workloads that wait or run as urgent under a grant, with the number of the grant.
    raised: HashMap<Key, u64>,
    /// Workloads that wait for their account's lent resources to be given back. Nobody borrows there meanwhile.
    claims: Vec<Claim>,
    /// The reasons of workloads that have a reason of their own.
    why: HashMap<Key, Why>,
    shapes: Shapes,
    /// The refusals of the last plan: for a whole shape, or for one account and shape.
    closed: Vec<Option<Closing>>,
    closed_to: HashMap<(Account, ShapeId), Closing>,
    /// With [`Order::Shares`]: at its turn this workload should have got a promise, but it was too large beyond the
    /// existing promises. Until it has one, no other gets a promise at its turn. Otherwise small workloads would
    /// always leave too little for large ones.
    next_promised: Option<(Micros, Key)>,
    /// Number of running workloads of each class.
    counts: [usize; 3],
    /// Decisions made between two plans.
    decided: Vec<Decision>,
    /// The cost of one second of the whole fleet.
    whole: f64,
}

impl Planner {
    /// A fleet on which nothing runs. `whole` is the cost of one second of all of it.
    pub fn new(
        policy: Policy,
        nodes: &[Node],
        mix: Mix,
        whole: f64,
        shares: Shares,
        now: Micros,
    ) -> Planner {
        Planner {
            policy,
            ground: Ground::new(nodes, mix, now),
            seats: Seats::default(),
            shares,
            quotas: Quotas::default(),
            asks: HashMap::new(),
            later: BTreeSet::new(),
            by_deadline: BTreeSet::new(),
            lines: BTreeMap::new(),
            by_due: BTreeSet::new(),
            promises: BTreeMap::new(),
            broken: BTreeSet::new(),
            has_moved: false,
            promised: 0.0,
            running: HashMap::new(),
            by_end: BTreeSet::new(),
            ripens: BTreeSet::new(),
            grants: BTreeMap::new(),
            raised: HashMap::new(),
            claims: Vec::new(),
            why: HashMap::new(),
            shapes: Shapes::default(),
            closed: Vec::new(),
            closed_to: HashMap::new(),
            next_promised: None,
            counts: [0; 3],
            decided: Vec::new(),
            whole,
        }
    }

    /// Takes nodes for a reservation. From this call on, the queue plans around them.
    pub fn reserve(&mut self, reservation: u64, from: Micros, to: Micros, placement: &Placement) {
        self.clear_for_reservation(reservation, placement, from, to);
        let taker = Taker(reservation | RESERVED);
        self.ground.take(taker, from, to, placement);
        self.break_promises(placement, from, to);
    }

    /// Takes seats for a reservation.
    pub fn reserve_seats(
        &mut self,
        reservation: u64,
        from: Micros,
        to: Micros,
        seats: &[seats::Count],
    ) {
        let taker = Taker(reservation | RESERVED);
        self.seats.take(taker, from, to, seats);
        for (pool, _) in seats {
            self.clear_seats(reservation, *pool, from, to);
        }
    }

    /// Releases all nodes and seats reserved under this number.
    pub fn unreserve(&mut self, reservation: u64) {
        let taker = Taker(reservation | RESERVED);
        self.ground.release(taker);
        self.seats.release(taker);
    }

    /// Sets the number of seats in a pool. A pool that was never named has none.
    pub fn provide_seats(&mut self, pool: Pool, total: u64) {
        self.seats.provide(pool, total);
    }

    pub fn submit(&mut self, key: Key, ask: Ask) {
        if let Some(latest) = ask.latest_beginning() {
            self.by_deadline.insert((latest, key));
        }
        match ask.not_before {
            Some(not_before) => {
                self.later.insert((not_before, key));
            }
            None => self.join_line(key, &ask),
        }
        self.asks.insert(key, ask);
    }

    /// Sets the expected run time of a waiting workload.
    pub fn expect(&mut self, key: Key, expected: Micros) {
        self.expect_of(key, 0, expected);
    }

    /// Sets the expected run time of one variant of a waiting workload.
    pub fn expect_of(&mut self, key: Key, wish: usize, expected: Micros) {
        let Some(mut ask) = self.asks.get(&key).cloned() else {
            return;
        };
        let is_in_line = self.leave_line(key, &ask);
        if let Some(wish) = ask.nth_mut(wish) {
            wish.expected = expected.clamp(1, wish.limit.max(1));
        }
        if is_in_line {
            self.join_line(key, &ask);
        }
        self.asks.insert(key, ask);
    }

    fn join_line(&mut self, key: Key, ask: &Ask) {
        self.by_due.insert((ask.due(), key));
        let lines = self.lines.entry(ask.rank()).or_default();
        let (account, shape, place) = (ask.account, ask.shape(), ask.place(key));
        lines.join(&mut self.shapes, account, shape, place, ask.due());
    }

    /// Returns whether it was in line.
    fn leave_line(&mut self, key: Key, ask: &Ask) -> bool {
        if !self.by_due.remove(&(ask.due(), key)) {
            return false;
        }
        if let Some(lines) = self.lines.get_mut(&ask.rank()) {
            let (account, shape, place) = (ask.account, ask.shape(), ask.place(key));
            lines.leave(&mut self.shapes, account, &shape, &place, ask.due());
            if lines.is_empty() {
                self.lines.remove(&ask.rank());
            }
        }
        true
    }

    /// Removes a waiting workload from the queue.
    pub fn withdraw(&mut self, key: Key) -> Option<Ask> {
        let mut ask = self.take_out(key)?;
        // The caller never sees that the planner raised the workload by a grant.
        if self.raised.remove(&key).is_some() {
            ask.class = Class::Guaranteed;
        }
        Some(ask)
    }

    fn take_out(&mut self, key: Key) -> Option<Ask> {
        let due = (self.asks.get(&key)?.due(), key);
        self.take_promise(due);
        let ask = self.asks.remove(&key)?;
        self.leave_line(key, &ask);
        if let Some(not_before) = ask.not_before {
            self.later.remove(&(not_before, key));
        }
        if let Some(latest) = ask.latest_beginning() {
            self.by_deadline.remove(&(latest, key));
        }
        self.why.remove(&key);
        Some(ask)
    }

    /// Why a workload waits, as of the last plan; `None` if it does not wait.
    pub fn why(&self, key: Key) -> Option<Why> {
        let ask = self.asks.get(&key)?;
        let later = ask.not_before.filter(|at| self.later.contains(&(*at, key)));
        if let Some(not_before) = later {
            return Some(Why::NotBefore(not_before));
        }
        let own = self.why.get(&key).copied();
        let refused = || {
            let shape = self.shapes.id(&ask.shape())?;
            let to_them = self.closed_to.get(&(ask.account, shape));
            let to_all = self.closed.get(shape.place()).and_then(Option::as_ref);
            let closings = to_them.into_iter().chain(to_all);
            let mut theirs = closings.filter(|closing| closing.from <= ask.wish.limit);
            theirs.next().map(|closing| closing.why)
        };
        let why = own.or_else(refused).unwrap_or(Why::NoRoom);
        // A workload that asks for more than the fleet has gets `Never` at once.
        let could_ever = || ask.wishes().any(|wish| self.ground.could_hold(&wish.need));
        Some(match why {
            Why::NoRoom if !could_ever() => Why::Never,
            why => why,
        })
    }

    pub fn waiting(&self) -> usize {
        self.asks.len()
    }

    /// When to plan again if nobody submits or ends anything. At that moment a workload becomes overdue, has its
    /// promised start or its `not_before`, misses its deadline, or a grant ends.
    pub fn next_look(&self, now: Micros) -> Option<Micros> {
        let after = (now + 1, Key(0));
        let due = self.by_due.range(after..).next();
        let later = self.later.range(after..).next();
        let first = |one: Option<&(Micros, Key)>| one.map(|(at, _)| *at);
        let too_late = first(self.by_deadline.range((now, Key(0))..).next());
        let promised = self.promises.values().map(|promise| promise.at);
        let moments = [
            first(due),
            first(later),
            too_late.map(|latest| latest.saturating_add(1)),
            promised.filter(|at| *at > now).min(),
            self.next_end_of_grant(now),
        ];
        moments.into_iter().flatten().min()
    }

    /// Drops all caches. This must change no answer.
    #[cfg(test)]
    fn forget(&mut self) {
        self.ground.forget();
        for promise in self.promises.values_mut() {
            promise.looked = None;
        }
    }

    /// Decides which workloads start now and which ones are preempted.
    pub fn plan(&mut self, now: Micros) -> Vec<Decision> {
        self.hold_what_overruns(now);
        self.ground.turn(now);
        self.seats.turn(now);
        self.ripen(now);
        let mut done = std::mem::take(&mut self.decided);
        self.watch_the_clock(now, &mut done);
        self.apply_grants(now);
        self.mend_promises(now, &mut done);
        match self.policy.order {
            Order::Shortest => {
                self.improve_promises(now, &mut done);
                self.promise_the_overdue(now, &mut done);
            }
            Order::Shares => {
                self.keep_promises(now, &mut done);
                self.promise_the_next(now, &mut done);
            }
        }
        self.promise_before_it_is_too_late(now, &mut done);
        let asks = &self.asks;
        self.claims.retain(|claim| asks.contains_key(&claim.key));
        let before = self.claims.len();
        for _ in 0..ROUNDS_MAX {
            self.has_moved = false;
            self.go_round(now, &mut done);
            if !self.has_moved {
                break;
            }
        }
        // Workloads that still wait have added their `Claim` again in this plan.
        self.claims.drain(..before);
        done
    }

    /// Examines all waiting workloads once.
    fn go_round(&mut self, now: Micros, done: &mut Vec<Decision>) {
        self.shapes.begin_round();
        self.closed.clear();
        self.closed.resize(self.shapes.end(), None);
        self.closed_to.clear();
        let mut is_improved = self.policy.order == Order::Shortest;
        let mut after = Bound::Unbounded;
        while let Some(rank) = self.lines.range((after, Bound::Unbounded)).next() {
            let rank = *rank.0;
            if rank.0.0 == Class::Opportunistic && !is_improved {
                self.improve_promises(now, done);
                is_improved = true;
            }
            self.take_turns(rank, now, done);
            if rank.0.0 == Class::Urgent {
                // The planner examines workloads that their grant no longer covers as guaranteed ones.
                self.apply_grants(now);
                self.closed.resize(self.shapes.end(), None);
            }
            after = Bound::Excluded(rank);
        }
        if !is_improved {
            self.improve_promises(now, done);
        }
    }

    /// Puts workloads into their line when their `not_before` has passed, and removes workloads that can no longer
    /// meet their deadline.
    fn watch_the_clock(&mut self, now: Micros, done: &mut Vec<Decision>) {
        while let Some((at, key)) = self.later.first().copied().filter(|(at, _)| *at <= now) {
            self.later.remove(&(at, key));
            if let Some(ask) = self.asks.remove(&key) {
                self.join_line(key, &ask);
                self.asks.insert(key, ask);
            }
        }
        while let Some((_, key)) = self
            .by_deadline
            .first()
            .copied()
            .filter(|(at, _)| *at < now)
        {
            self.withdraw(key);
            done.push(Decision::TooLate(key));
        }
    }

    /// The variants that quotas allow and that meet the deadline, the shortest expected run time first. Also the first
    /// refusal of another variant.
    fn allowed(
        &self,
        key: Key,
        ask: &Ask,
        begin: Micros,
    ) -> (Vec<(usize, Verdict)>, Option<Verdict>) {
        let mut ways = Vec::with_capacity(1);
        let mut refused = None;
        for (number, wish) in ask.wishes().enumerate() {
            if !ask.is_in_time(wish, begin) || !self.is_covered(key, wish) {
                continue;
            }
            let during = During {
                from: begin,
                to: begin.saturating_add(wish.limit),
            };
            let verdict =
                self.quotas
                    .judge_during(&self.shares, ask.account, &wish.amounts, during);
            let claimed = Some(verdict).filter(|verdict| *verdict == Verdict::Borrowed);
            let claimed = claimed.and_then(|_| self.claimed(ask.account, wish));
            let verdict = claimed.map_or(verdict, |counted| Verdict::NothingIdle { counted });
            match verdict.is_allowed() {
                true => ways.push((number, verdict)),
                false => refused = refused.or(Some(verdict)),
            }
        }
        ways.sort_by_key(|(number, _)| ask.nth(*number).expected);
        (ways, refused)
    }
}

/// A workload waits for its own account's resources, which are lent to others within an account.
#[derive(Debug, Clone, Copy)]
struct Claim {
    key: Key,
    within: Account,
    counted: Counted,
}

/// From which limit on a shape is refused, and why.
#[derive(Debug, Clone, Copy)]
struct Closing {
    from: Micros,
    /// The limit of the workload that was examined.
    looked_at: Micros,
    why: Why,
}

/// This bit marks the takers of reservations: reservations and workloads are takers of the same ground and need
/// different numbers.
const RESERVED: u64 = 1 << 63;
