//! Who of those who wait begins now, who is promised a beginning, and who has to make room.
//!
//! What is firmer comes first, and of the same firmness what has a higher level. Then whose turn it is, the shares say; among
//! one's own, what is expected to be short comes first, since it keeps the fewest others waiting. That alone would let what is long
//! wait for ever. So everybody has a patience, from the limit they asked for, and whoever has waited longer is *overdue*: they are
//! promised a beginning, the earliest at which there is room, and everything else begins only where it does not touch what was
//! promised. A promise is made from limits, never from what is expected, and later ones stand behind it: it only ever moves to an
//! earlier time, unless something is reserved where it stands; then it is made anew. By shares it does so when its account's turn comes, or whoever wants much would stand before those who want
//! little. At most a quarter of the fleet is promised at once, or one workload, so that there is always room for what is short;
//! and never to more than a hundred or so. Whose turn came when that left too little for them is promised something next, before all
//! others; by shares, who has been overdue for a day is promised something whatever else is.
//!
//! What is softer makes room for what is firmer ([`preempt`]): it is told, has a while to come to an end, and waits again with its
//! place kept.
//!
//! Everything that begins has its end by its limit in the [`Ground`], and what is reserved stands there, too: nothing that
//! begins here can be in the way of a reservation. Only what is opportunistic may begin before a wall that it would reach, because it is
//! gone when it is told to.

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

/// A workload, by the number that the caller knows it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

/// Who comes first of those who wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By turns, as the shares say; each their own shortest first.
    Shares,
    /// The shortest of all. The overdue by how long they are.
    Shortest,
}

/// How the queue of a site is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    pub order: Order,
    /// How long something has to come to its end once it is told.
    pub grace: Micros,
    /// Nothing is told to make room before it has run this long, or it would never get anywhere.
    pub run_min: Micros,
}

impl Policy {
    /// Half a minute of grace, and five minutes before anything is sent away.
    pub fn new(order: Order) -> Policy {
        Policy {
            order,
            grace: 30 * SECOND,
            run_min: 300 * SECOND,
        }
    }
}

const SECOND: Micros = 1_000_000;
/// So often those who wait are looked at in one plan, while promises move: each moves only to an earlier time, so mostly twice is enough.
const ROUNDS_MAX: usize = 16;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    Start(Start),
    Stop(Stop),
    /// It can no longer be over by its deadline, and waits no more.
    TooLate(Key),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    pub key: Key,
    /// Which of its wishes was granted: its number, the first being 0.
    pub wish: usize,
    pub placement: Placement,
    /// When it has to be over: its limit, or for what is opportunistic the next wall.
    pub until: Micros,
}

/// Something that runs has to be gone by a moment, to wait again with its place kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    pub key: Key,
    pub by: Micros,
    pub makes_room_for: Holder,
}

/// For whom room is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Workload(Key),
    Reservation(u64),
}

/// Why something waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// There is no room for it now.
    NoRoom,
    /// It waited long, and is promised to begin at this moment at the latest.
    Promised(Micros),
    /// Others are making room for it, and are gone by then.
    MakingRoom(Micros),
    /// Its account holds as much as it may.
    Quota(Verdict),
    /// There are not enough seats of this pool.
    NoSeats(Pool),
    /// It asked not to begin before this.
    NotBefore(Micros),
    /// It could not begin even if the fleet were empty: it asks for more than there is.
    Never,
}

type Rank = (Reverse<Class>, Reverse<i32>);

/// One site's queue.
#[derive(Debug, Clone)]
pub struct Planner {
    policy: Policy,
    ground: Ground,
    seats: Seats,
    pub shares: Shares,
    pub quotas: Quotas,
    asks: HashMap<Key, Ask>,
    /// Of those, who asked not to be looked at yet.
    later: BTreeSet<(Micros, Key)>,
    /// Of those, when it is too late for whom.
    by_deadline: BTreeSet<(Micros, Key)>,
    lines: BTreeMap<Rank, Lines>,
    by_due: BTreeSet<(Micros, Key)>,
    promises: BTreeMap<(Micros, Key), Promise>,
    /// Whose promise was broken by what is reserved, since the last plan.
    broken: BTreeSet<(Micros, Key)>,
    /// A promise was kept or moved in this round, which may have left room for those who were refused before.
    has_moved: bool,
    /// What a second of all that is promised costs.
    promised: f64,
    running: HashMap<Key, Running>,
    by_end: BTreeSet<(Micros, Key)>,
    /// When something has run long enough to be told to make room.
    ripens: BTreeSet<(Micros, Key)>,
    grants: BTreeMap<u64, Granted>,
    /// Who waits or runs as urgent by which grant.
    raised: HashMap<Key, u64>,
    /// Who waits for what is theirs to be given back, and where: nobody borrows there meanwhile.
    claims: Vec<Claim>,
    /// Why those wait for whom there is something particular to say.
    why: HashMap<Key, Why>,
    shapes: Shapes,
    /// What the last plan refused: to everybody, by shape, or to one account.
    closed: Vec<Option<Closing>>,
    closed_to: HashMap<(Account, ShapeId), Closing>,
    /// By shares: whose turn it was to be promised something that is too much beside what is promised. Nobody is promised anything in
    /// their turn before them, or what is little would always leave too little for what is much.
    next_promised: Option<(Micros, Key)>,
    /// How many run of each class.
    counts: [usize; 3],
    /// What was decided between two plans.
    decided: Vec<Decision>,
    /// What a second of the whole fleet costs.
    whole: f64,
}

impl Planner {
    /// A fleet on which nothing runs; `whole` is what a second of all of it costs.
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

    /// What is reserved is not the queue's to give, from the moment it is known.
    pub fn reserve(&mut self, reservation: u64, from: Micros, to: Micros, placement: &Placement) {
        self.clear_for_reservation(reservation, placement, from, to);
        let taker = Taker(reservation | RESERVED);
        self.ground.take(taker, from, to, placement);
        self.break_promises(placement, from, to);
    }

    /// The same of seats.
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

    /// Gives back all that is reserved under this number.
    pub fn unreserve(&mut self, reservation: u64) {
        let taker = Taker(reservation | RESERVED);
        self.ground.release(taker);
        self.seats.release(taker);
    }

    /// From now on there are so many seats of a pool; of one that was never named there are none.
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

    /// What is now expected of something that waits.
    pub fn expect(&mut self, key: Key, expected: Micros) {
        self.expect_of(key, 0, expected);
    }

    /// What is now expected of one wish of something that waits.
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

    /// Whether it was in line.
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

    /// It waits no more, for whatever reason.
    pub fn withdraw(&mut self, key: Key) -> Option<Ask> {
        let mut ask = self.take_out(key)?;
        // A grant is the planner's own affair.
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

    /// Why something waits, as of the last plan; none of what does not wait.
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
        // Whoever asks for more than there is need not wait to be told so.
        let could_ever = || ask.wishes().any(|wish| self.ground.could_hold(&wish.need));
        Some(match why {
            Why::NoRoom if !could_ever() => Why::Never,
            why => why,
        })
    }

    pub fn waiting(&self) -> usize {
        self.asks.len()
    }

    /// When to look again, though nobody comes or goes: somebody becomes overdue, is promised to begin, wanted to wait until then, or
    /// is too late.
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

    /// Forgets what it found out, which must change no answer.
    #[cfg(test)]
    fn forget(&mut self) {
        self.ground.forget();
        for promise in self.promises.values_mut() {
            promise.looked = None;
        }
    }

    /// Begins what can begin, and lets make room for what is firmer.
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
        // Who still waits has claimed it again.
        self.claims.drain(..before);
        done
    }

    /// Looks at all who wait, once.
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
                // Who is not covered any more is looked at as what they were.
                self.apply_grants(now);
                self.closed.resize(self.shapes.end(), None);
            }
            after = Bound::Excluded(rank);
        }
        if !is_improved {
            self.improve_promises(now, done);
        }
    }

    /// Who wanted to wait until now joins the line, and who cannot be in time any more leaves it.
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

    /// The wishes that quotas allow and that would be over in time, what is expected to end first in front; and why others are not allowed.
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

/// Somebody waits for what is theirs, but was lent to others within an account.
#[derive(Debug, Clone, Copy)]
struct Claim {
    key: Key,
    within: Account,
    counted: Counted,
}

/// From which limit on something is refused, and why.
#[derive(Debug, Clone, Copy)]
struct Closing {
    from: Micros,
    /// The limit of whoever was looked at.
    looked_at: Micros,
    why: Why,
}

/// Reservations and workloads are takers of the same ground, and never the same one.
const RESERVED: u64 = 1 << 63;
