//! Who of those who wait begins now, who is promised a beginning, and who has to make room.
//!
//! What is firmer comes first, and of the same firmness what has a higher level. Then whose turn it is, the shares say; among
//! one's own, what is expected to be short comes first, since it keeps the fewest others waiting. That alone would let what is long
//! wait for ever. So everybody has a patience, from the limit they asked for, and whoever has waited longer is *overdue*: they are
//! promised a beginning, the earliest at which there is room, and everything else begins only where it does not touch what was
//! promised. A promise is made from limits, never from what is expected, and later ones stand behind it: it only ever moves to an
//! earlier time. At most a quarter of the fleet is promised at once, or one workload, so that there is always room for what is short.
//!
//! What is softer makes room for what is firmer ([`preempt`]): it is told, has a while to come to an end, and waits again with its
//! place kept.
//!
//! Everything that begins has its end by its limit in the [`Ground`], and what is reserved stands there, too: nothing that
//! begins here can be in the way of a reservation. Only what is opportunistic may begin before a wall that it would reach, because it is
//! gone when it is told to.

mod forecast;
mod preempt;
mod promise;
mod running;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::fleet::{Mix, Need, Node, Placement};

use super::Micros;
use super::ground::Ground;
use super::lines::{Lines, Place, Shape, ShapeId, Shapes};
use super::quota::{Amounts, Quotas, Verdict};
use super::share::{Account, Shares};
use super::track::Taker;
use super::turns::Turns;

pub use forecast::{Forecast, Forecasts};
use promise::Promise;
pub use running::Running;

/// A workload, by the number that the caller knows it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

/// How firmly a workload holds what it has. What is reserved is firmer than all of these, and not the queue's to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Fills what is idle, and makes room for everybody else.
    Opportunistic,
    /// Stays until its limit, unless what it has was borrowed and is wanted back.
    Guaranteed,
    /// Guaranteed, and by an admin's word before all others: makes what is merely guaranteed give way.
    Urgent,
}

/// What a workload asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    pub account: Account,
    pub class: Class,
    /// Of the site's priorities; the higher comes first.
    pub level: i32,
    pub need: Need,
    /// How long it may run.
    pub limit: Micros,
    /// How long it is expected to run; never longer than it may.
    pub expected: Micros,
    /// Since when it waits.
    pub since: Micros,
    /// What it counts for against quotas.
    pub amounts: Amounts,
    /// What a second of it costs its account, in the units of the whole fleet's.
    pub rate: f64,
}

impl Ask {
    fn shape(&self) -> Shape {
        (self.class, self.need, self.limit)
    }

    fn rank(&self) -> Rank {
        (Reverse(self.class), Reverse(self.level))
    }
}

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

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    Start(Start),
    Stop(Stop),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    pub key: Key,
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
    /// It could not begin even if the fleet were empty: it asks for more than there is.
    Never,
}

type Rank = (Reverse<Class>, Reverse<i32>);

/// One site's queue.
#[derive(Debug, Clone)]
pub struct Planner {
    policy: Policy,
    ground: Ground,
    pub shares: Shares,
    pub quotas: Quotas,
    asks: HashMap<Key, Ask>,
    lines: BTreeMap<Rank, Lines>,
    by_due: BTreeSet<(Micros, Key)>,
    promises: BTreeMap<(Micros, Key), Promise>,
    /// What a second of all that is promised costs.
    promised: f64,
    running: HashMap<Key, Running>,
    by_end: BTreeSet<(Micros, Key)>,
    /// When something has run long enough to be told to make room.
    ripens: BTreeSet<(Micros, Key)>,
    /// Why those wait for whom there is something particular to say.
    why: HashMap<Key, Why>,
    shapes: Shapes,
    /// What the last plan refused, and why: to everybody, by shape, or to one account.
    closed: Vec<Option<Why>>,
    closed_to: HashMap<(Account, ShapeId), Why>,
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
            shares,
            quotas: Quotas::default(),
            asks: HashMap::new(),
            lines: BTreeMap::new(),
            by_due: BTreeSet::new(),
            promises: BTreeMap::new(),
            promised: 0.0,
            running: HashMap::new(),
            by_end: BTreeSet::new(),
            ripens: BTreeSet::new(),
            why: HashMap::new(),
            shapes: Shapes::default(),
            closed: Vec::new(),
            closed_to: HashMap::new(),
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
    }

    pub fn unreserve(&mut self, reservation: u64) {
        self.ground.release(Taker(reservation | RESERVED));
    }

    pub fn submit(&mut self, key: Key, ask: Ask) {
        self.by_due.insert((ask.due(), key));
        self.join_line(key, ask);
    }

    /// What is now expected of something that waits.
    pub fn expect(&mut self, key: Key, expected: Micros) {
        if let Some(mut ask) = self.leave_line(key) {
            ask.expected = expected.clamp(1, ask.limit.max(1));
            self.join_line(key, ask);
        }
    }

    fn join_line(&mut self, key: Key, ask: Ask) {
        let lines = self.lines.entry(ask.rank()).or_default();
        lines.join(&mut self.shapes, ask.account, ask.shape(), place(key, &ask));
        self.asks.insert(key, ask);
    }

    fn leave_line(&mut self, key: Key) -> Option<Ask> {
        let ask = self.asks.remove(&key)?;
        let lines = self.lines.get_mut(&ask.rank())?;
        let place = place(key, &ask);
        lines.leave(&mut self.shapes, ask.account, &ask.shape(), &place);
        if lines.is_empty() {
            self.lines.remove(&ask.rank());
        }
        Some(ask)
    }

    /// It waits no more, for whatever reason.
    pub fn withdraw(&mut self, key: Key) -> Option<Ask> {
        let due = (self.asks.get(&key)?.due(), key);
        self.take_promise(due);
        self.by_due.remove(&due);
        let ask = self.leave_line(key)?;
        self.why.remove(&key);
        Some(ask)
    }

    /// Why something waits, as of the last plan; none of what does not wait.
    pub fn why(&self, key: Key) -> Option<Why> {
        let ask = self.asks.get(&key)?;
        let own = self.why.get(&key).copied();
        let refused = || {
            let shape = self.shapes.id(&ask.shape())?;
            let to_them = self.closed_to.get(&(ask.account, shape)).copied();
            to_them.or_else(|| *self.closed.get(shape.place())?)
        };
        Some(own.or_else(refused).unwrap_or(Why::NoRoom))
    }

    pub fn waiting(&self) -> usize {
        self.asks.len()
    }

    /// When to look again, though nobody comes or goes: somebody becomes overdue, or is promised to begin.
    pub fn next_look(&self, now: Micros) -> Option<Micros> {
        let due = self.by_due.range((now + 1, Key(0))..).next();
        let promised = self.promises.values().map(|promise| promise.at);
        let promised = promised.filter(|at| *at > now).min();
        due.map(|(due, _)| *due).into_iter().chain(promised).min()
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
        self.ripen(now);
        let mut done = std::mem::take(&mut self.decided);
        self.keep_promises(now, &mut done);
        if self.policy.order == Order::Shortest {
            self.promise_the_overdue(now, &mut done);
        }
        self.shapes.begin_round();
        self.closed.clear();
        self.closed.resize(self.shapes.end(), None);
        self.closed_to.clear();
        let ranks: Vec<Rank> = self.lines.keys().copied().collect();
        for rank in ranks {
            self.take_turns(rank, now, &mut done);
        }
        done
    }

    fn take_turns(&mut self, rank: Rank, now: Micros, done: &mut Vec<Decision>) {
        let Some(lines) = self.lines.get(&rank) else {
            return;
        };
        let is_open = |shape: ShapeId| self.closed[shape.place()].is_none();
        let mut turns = Turns::new(self.policy.order, &self.shares, lines, is_open);
        while let Some(lines) = self.lines.get(&rank) {
            let open = |account, shape: ShapeId| {
                let is_open = self.closed[shape.place()].is_none();
                is_open && !self.closed_to.contains_key(&(account, shape))
            };
            let Some(turn) = turns.next(lines, open) else {
                return;
            };
            let Some(ask) = self.asks.get(&turn.key) else {
                continue;
            };
            let due = (ask.due(), turn.key);
            if self.promises.contains_key(&due) {
                continue;
            }
            turns.took(&self.shares, ask, now);
            let verdict = self.quotas.judge(&self.shares, ask.account, &ask.amounts);
            let (class, need, limit) = (ask.class, ask.need, ask.limit);
            if !verdict.is_allowed() {
                let closed = (turn.account, turn.shape);
                self.closed_to.insert(closed, Why::Quota(verdict));
            } else if let Some(placement) = self.place(class, &need, limit) {
                self.start(turn.key, placement, now, done);
            } else if !self.make_room(due, verdict, now, done) {
                self.closed[turn.shape.place()] = Some(Why::NoRoom);
                turns.close();
                let is_overdue = self.policy.order == Order::Shares && due.0 <= now;
                if is_overdue && class > Class::Opportunistic && self.may_promise(turn.key) {
                    self.promise(due, now, done);
                }
            }
        }
    }

    /// Where it could begin now. What is opportunistic need not reach its limit, only be worth beginning.
    fn place(&mut self, class: Class, need: &Need, limit: Micros) -> Option<Placement> {
        let reaches = match class {
            Class::Opportunistic => limit.min(self.policy.run_min),
            Class::Guaranteed | Class::Urgent => limit,
        };
        self.ground.place(need, reaches)
    }
}

/// Reservations and workloads are takers of the same ground, and never the same one.
const RESERVED: u64 = 1 << 63;

fn place(key: Key, ask: &Ask) -> Place {
    (ask.expected, ask.since, key)
}
