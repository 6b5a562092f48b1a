//! Who of those who wait begins now, and who is promised a beginning.
//!
//! Whose turn it is, the shares say; among one's own, what is expected to be short comes first, since it keeps the fewest
//! others waiting. That alone would let what is long wait for ever. So everybody has a patience, from the limit they
//! asked for, and whoever has waited longer is *overdue*: they are promised a beginning, the earliest at which there is
//! room, and everything else begins only where it does not touch what was promised. A promise is made from limits, never from
//! what is expected, and later ones stand behind it: it only ever moves to an earlier time. At most a quarter
//! of the fleet is promised at once, or one workload, so that there is always room for what is short.
//!
//! Everything that begins has its end by its limit in the [`Ground`], and what is reserved stands there, too: nothing that
//! begins here can be in the way of a reservation.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::fleet::{Mix, Need, Node, Placement};

use super::Micros;
use super::ground::Ground;
use super::quota::{Amounts, Quotas, Verdict};
use super::share::{Account, Commitment, Mode, Shares};
use super::track::Taker;
use super::turns::Turns;

/// A workload, by the number that the caller knows it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

/// What a workload asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    pub account: Account,
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
    fn patience(&self) -> Micros {
        (self.limit / 2).clamp(PATIENCE_MIN, PATIENCE_MAX)
    }

    /// From when on it is overdue.
    fn due(&self) -> Micros {
        self.since.saturating_add(self.patience())
    }
}

const HOUR: Micros = 3_600_000_000;
/// Nobody is overdue sooner than this, and everybody is after the longest.
const PATIENCE_MIN: Micros = HOUR;
const PATIENCE_MAX: Micros = 12 * HOUR;
/// The part of the fleet that may be promised at once.
const PROMISED_MAX: f64 = 0.25;

/// Who comes first of those who wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By turns, as the shares say; each their own shortest first.
    Shares,
    /// The shortest of all. The overdue by how long they are.
    Shortest,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    pub key: Key,
    pub placement: Placement,
    /// When it has to be over.
    pub until: Micros,
}

/// Why something waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It has not been looked at yet.
    New,
    /// There is no room for it now.
    NoRoom,
    /// It waited long, and is promised to begin at this moment at the latest.
    Promised(Micros),
    /// Its account holds as much as it may.
    Quota(Verdict),
    /// It could not begin even if the fleet were empty: it asks for more than there is.
    Never,
}

#[derive(Debug, Clone)]
struct Promise {
    at: Micros,
    placement: Placement,
}

#[derive(Debug, Clone)]
struct Running {
    ask: Ask,
    began: Micros,
    commitment: Commitment,
}

/// What waits in a line: its own shortest first, then by age.
pub(super) type Place = (Micros, Micros, Key);

/// One site's queue.
#[derive(Debug, Clone)]
pub struct Planner {
    order: Order,
    ground: Ground,
    pub shares: Shares,
    pub quotas: Quotas,
    asks: HashMap<Key, Ask>,
    lines: BTreeMap<Account, BTreeSet<Place>>,
    by_due: BTreeSet<(Micros, Key)>,
    promises: BTreeMap<(Micros, Key), Promise>,
    running: HashMap<Key, Running>,
    why: HashMap<Key, Why>,
    /// What a second of the whole fleet costs.
    whole: f64,
}

impl Planner {
    /// A fleet on which nothing runs; `whole` is what a second of all of it costs.
    pub fn new(
        order: Order,
        nodes: &[Node],
        mix: Mix,
        whole: f64,
        shares: Shares,
        now: Micros,
    ) -> Planner {
        Planner {
            order,
            ground: Ground::new(nodes, mix, now),
            shares,
            quotas: Quotas::default(),
            asks: HashMap::new(),
            lines: BTreeMap::new(),
            by_due: BTreeSet::new(),
            promises: BTreeMap::new(),
            running: HashMap::new(),
            why: HashMap::new(),
            whole,
        }
    }

    /// What is reserved is not the queue's to give, from the moment it is known.
    pub fn reserve(&mut self, reservation: u64, from: Micros, to: Micros, placement: &Placement) {
        self.ground
            .take(Taker(reservation | RESERVED), from, to, placement);
    }

    pub fn unreserve(&mut self, reservation: u64) {
        self.ground.release(Taker(reservation | RESERVED));
    }

    pub fn submit(&mut self, key: Key, ask: Ask) {
        self.by_due.insert((ask.due(), key));
        self.lines
            .entry(ask.account)
            .or_default()
            .insert(place(key, &ask));
        self.why.insert(key, Why::New);
        self.asks.insert(key, ask);
    }

    /// What is now expected of something that waits.
    pub fn expect(&mut self, key: Key, expected: Micros) {
        let Some(ask) = self.asks.get_mut(&key) else {
            return;
        };
        let line = self.lines.entry(ask.account).or_default();
        line.remove(&place(key, ask));
        ask.expected = expected.min(ask.limit);
        line.insert(place(key, ask));
    }

    /// It waits no more, for whatever reason.
    pub fn withdraw(&mut self, key: Key) -> Option<Ask> {
        let ask = self.asks.remove(&key)?;
        if let Some(line) = self.lines.get_mut(&ask.account) {
            line.remove(&place(key, &ask));
            if line.is_empty() {
                self.lines.remove(&ask.account);
            }
        }
        let due = (ask.due(), key);
        self.by_due.remove(&due);
        if self.promises.remove(&due).is_some() {
            self.ground.release(Taker(key.0));
        }
        self.why.remove(&key);
        Some(ask)
    }

    /// Something that ran has ended.
    pub fn end(&mut self, key: Key, now: Micros) {
        let Some(running) = self.running.remove(&key) else {
            return;
        };
        self.ground.release(Taker(key.0));
        self.quotas.free(running.ask.account, &running.ask.amounts);
        self.shares.release(running.commitment);
        let Ask { account, rate, .. } = running.ask;
        self.shares
            .charge(account, Mode::Batch, running.began, now, rate);
    }

    pub fn why(&self, key: Key) -> Option<Why> {
        self.why.get(&key).copied()
    }

    pub fn waiting(&self) -> usize {
        self.asks.len()
    }

    /// When to look again, though nobody comes or goes: somebody becomes overdue, or is promised to begin.
    pub fn next_look(&self, now: Micros) -> Option<Micros> {
        let due = self
            .by_due
            .range((now + 1, Key(0))..)
            .next()
            .map(|(due, _)| *due);
        let promised = self
            .promises
            .values()
            .map(|promise| promise.at)
            .filter(|at| *at > now)
            .min();
        due.into_iter().chain(promised).min()
    }

    /// Begins what can begin.
    pub fn plan(&mut self, now: Micros) -> Vec<Start> {
        self.ground.turn(now);
        let mut starts = Vec::new();
        self.keep_promises(now, &mut starts);
        if self.order == Order::Shortest {
            self.promise_the_overdue(now, &mut starts);
        }
        self.take_turns(now, &mut starts);
        starts
    }

    /// Those who hold a promise come before all others, whoever was overdue first before the next.
    fn keep_promises(&mut self, now: Micros, starts: &mut Vec<Start>) {
        let holders: Vec<(Micros, Key)> = self.promises.keys().copied().collect();
        for due in holders {
            self.promise(due, now, starts);
        }
    }

    fn promise_the_overdue(&mut self, now: Micros, starts: &mut Vec<Start>) {
        let overdue: Vec<(Micros, Key)> = self
            .by_due
            .range(..=(now, Key(u64::MAX)))
            .copied()
            .collect();
        for due in overdue {
            if self.promises.contains_key(&due) {
                continue;
            }
            if !self.may_promise(due.1) {
                break;
            }
            self.promise(due, now, starts);
        }
    }

    fn may_promise(&self, key: Key) -> bool {
        let rate = |key: &Key| self.asks.get(key).map_or(0.0, |ask| ask.rate);
        let promised: f64 = self.promises.keys().map(|(_, key)| rate(key)).sum();
        self.promises.is_empty() || promised + rate(&key) <= self.whole * PROMISED_MAX
    }

    /// Begins it, or promises it the earliest time there is, but never a later one than before.
    fn promise(&mut self, due: (Micros, Key), now: Micros, starts: &mut Vec<Start>) {
        let key = due.1;
        let Some(ask) = self.asks.get(&key) else {
            return;
        };
        if !self.quotas.judge(ask.account, &ask.amounts).is_allowed() {
            return;
        }
        let (need, limit) = (ask.need, ask.limit);
        let taker = Taker(key.0);
        let before = self.promises.remove(&due);
        if before.is_some() {
            self.ground.release(taker);
        }
        let found = self.ground.earliest(&need, limit, now);
        let found = found.map(|(at, placement)| Promise { at, placement });
        let best = match (before, found) {
            (Some(before), Some(found)) if before.at <= found.at && before.at > now => Some(before),
            (before, found) => found.or(before),
        };
        let Some(promise) = best else {
            self.why.insert(key, Why::Never);
            return;
        };
        if promise.at <= now {
            return self.start(key, promise.placement, now, starts);
        }
        let end = promise.at.saturating_add(limit);
        self.ground.take(taker, promise.at, end, &promise.placement);
        self.why.insert(key, Why::Promised(promise.at));
        self.promises.insert(due, promise);
    }

    fn take_turns(&mut self, now: Micros, starts: &mut Vec<Start>) {
        let mut turns = Turns::new(self.order, &self.shares, self.lines.keys().copied());
        while let Some(key) = turns.next(&self.lines) {
            let Some(ask) = self.asks.get(&key) else {
                continue;
            };
            turns.took(&self.shares, ask, now);
            let due = (ask.due(), key);
            if self.promises.contains_key(&due) {
                continue;
            }
            let verdict = self.quotas.judge(ask.account, &ask.amounts);
            if !verdict.is_allowed() {
                self.why.insert(key, Why::Quota(verdict));
                continue;
            }
            let (need, limit) = (ask.need, ask.limit);
            if let Some(placement) = self.ground.place(&need, limit) {
                self.start(key, placement, now, starts);
            } else if self.order == Order::Shares && due.0 <= now && self.may_promise(key) {
                self.promise(due, now, starts);
            } else {
                self.why.insert(key, Why::NoRoom);
            }
        }
    }

    fn start(&mut self, key: Key, placement: Placement, now: Micros, starts: &mut Vec<Start>) {
        let Some(ask) = self.withdraw(key) else {
            return;
        };
        let until = now.saturating_add(ask.limit);
        self.ground.take(Taker(key.0), now, until, &placement);
        self.quotas.hold(ask.account, &ask.amounts);
        let expected = now.saturating_add(ask.expected);
        let commitment = self.shares.commit(ask.account, now, expected, ask.rate);
        let running = Running {
            ask,
            began: now,
            commitment,
        };
        self.running.insert(key, running);
        starts.push(Start {
            key,
            placement,
            until,
        });
    }
}

/// Reservations and workloads are takers of the same ground, and never the same one.
const RESERVED: u64 = 1 << 63;

fn place(key: Key, ask: &Ask) -> Place {
    (ask.expected, ask.since, key)
}

#[cfg(test)]
mod tests;
