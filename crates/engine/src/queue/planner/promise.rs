//! Promises: reservations ahead for workloads that are overdue or near their latest start. No workload behind them
//! can delay a promised start.

use std::ops::Bound;

use super::super::Micros;
use super::super::ground::Seen;
use super::super::seats::{self, Seats};
use super::super::track::Taker;
use super::preempt::yields;
use super::round::Look;
use super::{Class, Decision, Key, Order, Planner, Why};
use crate::fleet::{NodeIndex, Placement};

/// The part of the fleet that may be promised at once, as a part of its cost.
const PROMISED_MAX: f64 = 0.25;
/// Maximum number of promises, however small each is: one ended workload may let the planner move all of them to an
/// earlier time.
const PROMISES_MAX: usize = 128;
/// With [`Order::Shares`], a workload that has been overdue for this long may get a promise beyond
/// [`PROMISED_MAX`]. Where much is reserved, large workloads get promises far ahead, and others would wait all that
/// time for a promise of their own.
const AGED: Micros = 24 * 3_600_000_000;

#[derive(Debug, Clone)]
pub(super) struct Promise {
    pub at: Micros,
    /// Index of the promised variant.
    pub wish: usize,
    pub placement: Placement,
    /// The nodes seen as freed when the promise was the earliest possible; `None` if no search for an earlier one was
    /// made.
    pub looked: Option<Seen>,
}

type Found = (Micros, Placement);

impl Planner {
    /// The first moment before `end` from which a node of this placement is promised to a workload.
    pub fn promised_before(&self, placement: &Placement, end: Micros) -> Option<Micros> {
        let shares = |promised: &Placement| {
            let mut pieces = promised.pieces.iter();
            pieces.any(|piece| placement.pieces.iter().any(|own| own.node == piece.node))
        };
        let promises = self.promises.values();
        let promises = promises.filter(|promise| promise.at < end && shares(&promise.placement));
        promises.map(|promise| promise.at).min()
    }

    /// Until when a placement could stay, starting now, before another taker wants a part of it; now if there is no
    /// room.
    pub fn open_until(&self, placement: &Placement) -> Micros {
        self.ground.open_until(placement)
    }

    /// Starts the workloads that have a promise for now, before all others.
    pub(super) fn keep_promises(&mut self, now: Micros, done: &mut Vec<Decision>) {
        let holders = self
            .promises
            .iter()
            .filter(|(_, promise)| promise.at <= now);
        let holders: Vec<(Micros, Key)> = holders.map(|(due, _)| *due).collect();
        for due in holders {
            self.improve(due, now, done);
        }
    }

    /// Tries to improve every promise, the longest overdue workload first.
    pub(super) fn improve_promises(&mut self, now: Micros, done: &mut Vec<Decision>) {
        let holders: Vec<(Micros, Key)> = self.promises.keys().copied().collect();
        for due in holders {
            self.improve(due, now, done);
        }
    }

    pub(super) fn promise_the_overdue(&mut self, now: Micros, done: &mut Vec<Decision>) {
        let mut after = Bound::Unbounded;
        let end = Bound::Included((now, Key(u64::MAX)));
        while let Some(due) = self.by_due.range((after, end)).next().copied() {
            after = Bound::Excluded(due);
            if !self.wants_promise(due) {
                continue;
            }
            if !self.may_promise(due, now) {
                break;
            }
            self.promise(due, now, done);
        }
    }

    /// Workloads near their latest possible start get a promise without waiting for their turn.
    pub(super) fn promise_before_it_is_too_late(&mut self, now: Micros, done: &mut Vec<Decision>) {
        let keys: Vec<Key> = self.by_deadline.iter().map(|(_, key)| *key).collect();
        for key in keys {
            let Some(due) = self.asks.get(&key).map(|ask| (ask.due(), key)) else {
                continue;
            };
            if due.0 <= now && self.wants_promise(due) && self.may_promise(due, now) {
                self.promise(due, now, done);
            }
        }
    }

    pub(super) fn wants_promise(&self, due: (Micros, Key)) -> bool {
        let ask = self.asks.get(&due.1);
        let is_firm = ask.is_some_and(|ask| ask.class > Class::Opportunistic);
        is_firm && self.by_due.contains(&due) && !self.promises.contains_key(&due)
    }

    /// Makes a promise to the workload at its turn. If too much is promised already, keeps its turn until the promises
    /// leave enough for it. Returns the reason if no promise is possible.
    pub(super) fn promise_in_turn(
        &mut self,
        due: (Micros, Key),
        now: Micros,
        done: &mut Vec<Decision>,
    ) -> Option<Why> {
        if self.next_promised.is_some() {
            return None;
        }
        let ask = self.asks.get(&due.1)?;
        if let (ways, Some(verdict)) = self.allowed(due.1, ask, now)
            && ways.is_empty()
        {
            self.why.insert(due.1, Why::Quota(verdict));
        } else if self.may_promise(due, now) {
            self.promise(due, now, done);
        } else {
            self.next_promised = Some(due);
            return None;
        }
        let why = self.why.get(&due.1).copied();
        why.filter(|_| self.wants_promise(due))
    }

    /// Makes a promise first to the workload that had its turn when too much was promised.
    pub(super) fn promise_the_next(&mut self, now: Micros, done: &mut Vec<Decision>) {
        if let Some(due) = self.next_promised.take()
            && self.wants_promise(due)
        {
            self.promise_in_turn(due, now, done);
        }
    }

    fn may_promise(&self, due: (Micros, Key), now: Micros) -> bool {
        let rate = self.asks.get(&due.1).map_or(0.0, |ask| ask.wish.rate);
        let is_little = self.promised + rate <= self.whole * PROMISED_MAX;
        let in_turn = self.policy.order == Order::Shares;
        let is_aged = in_turn && due.0.saturating_add(AGED) <= now;
        let is_enough = is_little || is_aged;
        self.promises.is_empty() || (is_enough && self.promises.len() < PROMISES_MAX)
    }

    /// Takes back promises that a new reservation makes impossible; [`Planner::mend_promises`] makes new ones. A
    /// promise that cannot be kept would only keep other workloads away.
    pub(super) fn break_promises(&mut self, reserved: &Placement, from: Micros, to: Micros) {
        let is_broken = |(due, promise): (&(Micros, Key), &Promise)| {
            let limit = self.asks.get(&due.1)?.nth(promise.wish).limit;
            let end = promise.at.saturating_add(limit);
            let mut pieces = reserved.pieces.iter();
            let shares_node = pieces.any(|piece| {
                let mut own = promise.placement.pieces.iter();
                own.any(|own| own.node == piece.node)
            });
            let meets = promise.at < to && from < end && shares_node;
            let own = Taker(due.1.0);
            let stands = || self.ground.stands(&promise.placement, promise.at, end, own);
            (meets && !stands()).then_some(*due)
        };
        let broken: Vec<(Micros, Key)> = self.promises.iter().filter_map(is_broken).collect();
        for due in broken {
            self.take_promise(due);
            self.why.remove(&due.1);
            self.broken.insert(due);
        }
    }

    /// Makes new promises to workloads that lost theirs to a reservation, the longest overdue first.
    pub(super) fn mend_promises(&mut self, now: Micros, done: &mut Vec<Decision>) {
        for due in std::mem::take(&mut self.broken) {
            if self.wants_promise(due) {
                self.promise(due, now, done);
            }
        }
    }

    /// Starts a workload, or promises it the earliest possible start.
    pub(super) fn promise(&mut self, due: (Micros, Key), now: Micros, done: &mut Vec<Decision>) {
        let key = due.1;
        let Some(ask) = self.asks.get(&key) else {
            return;
        };
        self.why.remove(&key);
        let (ways, refused) = self.allowed(key, ask, now);
        if let (true, Some(verdict)) = (ways.is_empty(), refused) {
            self.why.insert(key, Why::Quota(verdict));
            return;
        }
        let found = self.soonest(key, now);
        self.settle(due, found, now, done);
    }

    /// The variant that would end first if each of the allowed ones started as early as possible.
    fn soonest(&mut self, key: Key, now: Micros) -> Option<Promise> {
        let (ways, _) = self.allowed(key, self.asks.get(&key)?, now);
        let looked = Some(self.ground.seen());
        let mut best: Option<(Micros, Promise)> = None;
        for (wish, _) in ways {
            let found = self.soonest_of(key, wish, now);
            let ask = self.asks.get(&key)?;
            let Some((at, placement)) = found.filter(|(at, _)| ask.is_in_time(ask.nth(wish), *at))
            else {
                continue;
            };
            let end = at.saturating_add(ask.nth(wish).expected);
            if best.as_ref().is_none_or(|(sooner, _)| end < *sooner) {
                // The planner does not track when seats are freed.
                let looked = looked.filter(|_| ask.seats.is_empty());
                let promise = Promise {
                    at,
                    wish,
                    placement,
                    looked,
                };
                best = Some((end, promise));
            }
        }
        best.map(|(_, promise)| promise)
    }

    fn soonest_of(&mut self, key: Key, wish: usize, now: Micros) -> Option<Found> {
        let ask = self.asks.get(&key)?;
        let (class, need, limit) = (ask.class, ask.nth(wish).need, ask.nth(wish).limit);
        let has_softer = self.has_softer(class);
        let (policy, running, ground) = (self.policy, &self.running, &mut self.ground);
        let find = |from: Micros| {
            let found = match from <= now {
                true => ground.soonest(&need, limit, now, 0, |_| false),
                false => ground.earliest(&need, limit, from, |_| false),
            };
            if !has_softer || found.as_ref().is_some_and(|found| found.0 <= from) {
                return found;
            }
            // Lower classes can be preempted by then, so their nodes count as free, but only after their grace period.
            let told = now.saturating_add(policy.grace);
            let softer = |by: Taker| yields(running, policy, by, class, told);
            let cleared = match from <= told {
                true => ground.soonest(&need, limit, told, 1 + class as u8, softer),
                false => ground.earliest(&need, limit, from, softer),
            };
            cleared.into_iter().chain(found).min_by_key(|(at, _)| *at)
        };
        with_seats(&self.seats, &ask.seats, limit, None, now, find)
    }

    /// Starts a promised workload, or moves its promise to an earlier time if there is one now. A promise never moves
    /// to a later time.
    pub(super) fn improve(&mut self, due: (Micros, Key), now: Micros, done: &mut Vec<Decision>) {
        let key = due.1;
        let (Some(ask), Some(before)) = (self.asks.get(&key), self.promises.get(&due)) else {
            return;
        };
        let amounts = &ask.nth(before.wish).amounts;
        let verdict = self.quotas.judge_held(&self.shares, ask.account, amounts);
        if !verdict.is_allowed() {
            self.take_promise(due);
            self.why.insert(key, Why::Quota(verdict));
            return;
        }
        if before.at <= now {
            let before = self.take_promise(due);
            let Some(ask) = self.asks.get(&key) else {
                return;
            };
            // Quotas may allow this now but not for all of the time until its limit.
            if let (ways, Some(verdict)) = self.allowed(key, ask, now)
                && ways.is_empty()
            {
                self.why.insert(key, Why::Quota(verdict));
                return;
            }
            let found = self.soonest(key, now).or(before);
            return self.settle(due, found, now, done);
        }
        if !ask.or.is_empty() && self.begins_otherwise(due, now, done) {
            return;
        }
        let Some(before) = self.promises.get_mut(&due) else {
            return;
        };
        let freed = before.looked.and_then(|seen| self.ground.freed_since(seen));
        if freed.as_ref().is_some_and(Vec::is_empty) {
            return;
        }
        // The planner does not track when seats are freed.
        before.looked = before.looked.map(|_| self.ground.seen());
        let (wish, looked) = (before.wish, before.looked);
        if let Some((at, placement)) = self.earlier(due, freed.as_deref(), now) {
            self.take_promise(due);
            let found = Promise {
                at,
                wish,
                placement,
                looked,
            };
            self.settle(due, Some(found), now, done);
        }
    }

    /// Starts another variant than the promised one, if it can start now and would end sooner.
    fn begins_otherwise(
        &mut self,
        due: (Micros, Key),
        now: Micros,
        done: &mut Vec<Decision>,
    ) -> bool {
        let has_moved = self.has_moved;
        let Some(promise) = self.take_promise(due) else {
            return false;
        };
        let key = due.1;
        let look = self.look(key, now);
        let is_sooner = |wish: usize| {
            let ask = self.asks.get(&key);
            ask.is_some_and(|ask| {
                let promised = promise.at.saturating_add(ask.nth(promise.wish).expected);
                now.saturating_add(ask.nth(wish).expected) < promised
            })
        };
        match look {
            Look::Room(wish, placement) if is_sooner(wish) => {
                self.start(key, wish, placement, now, done);
                true
            }
            _ => {
                self.keep_for(due, promise, done);
                self.has_moved = has_moved;
                false
            }
        }
    }

    /// An earlier time and placement for a promised workload, if there is one.
    fn earlier(
        &self,
        due: (Micros, Key),
        freed: Option<&[NodeIndex]>,
        now: Micros,
    ) -> Option<Found> {
        let (ask, before) = (self.asks.get(&due.1)?, self.promises.get(&due)?);
        let (class, wish) = (ask.class, ask.nth(before.wish));
        let own = Taker(due.1.0);
        let earlier = |from: Micros, softer: &dyn Fn(Taker) -> bool| {
            let gone = |by: Taker| by == own || softer(by);
            let during = from..before.at;
            self.ground
                .earlier(&wish.need, wish.limit, during, freed, gone)
        };
        let find = |from: Micros| {
            let found = earlier(from, &|_| false);
            if !self.has_softer(class) || found.as_ref().is_some_and(|found| found.0 <= from) {
                return found;
            }
            let told = now.saturating_add(self.policy.grace);
            let softer = |by: Taker| yields(&self.running, self.policy, by, class, told);
            let cleared = earlier(from.max(told), &softer);
            cleared.into_iter().chain(found).min_by_key(|(at, _)| *at)
        };
        with_seats(&self.seats, &ask.seats, wish.limit, Some(own), now, find)
    }

    fn settle(
        &mut self,
        due: (Micros, Key),
        promise: Option<Promise>,
        now: Micros,
        done: &mut Vec<Decision>,
    ) {
        let key = due.1;
        match promise {
            None => {
                self.why.insert(key, Why::Never);
            }
            Some(promise) if promise.at <= now => {
                self.start(key, promise.wish, promise.placement, now, done);
            }
            Some(promise) => {
                self.why.insert(key, Why::Promised(promise.at));
                self.keep_for(due, promise, done);
            }
        }
    }

    /// Takes nodes and seats for a promise, and preempts the workloads in its way.
    pub(super) fn keep_for(
        &mut self,
        due: (Micros, Key),
        promise: Promise,
        done: &mut Vec<Decision>,
    ) {
        let Some(ask) = self.asks.get(&due.1) else {
            return;
        };
        let (class, account, by) = (ask.class, ask.account, Taker(due.1.0));
        let wish = ask.nth(promise.wish).clone();
        let to = promise.at.saturating_add(wish.limit);
        self.seats.take(by, promise.at, to, &ask.seats);
        self.promised += wish.rate;
        // A promise counts against the account's quota like a running workload.
        self.hold(due.1, account, &wish, wish.limit);
        self.clear(&promise, to, class, due.1, done);
        self.ground.take(by, promise.at, to, &promise.placement);
        self.promises.insert(due, promise);
    }

    /// Takes back a promise, if there is one, and releases everything taken for it.
    pub(super) fn take_promise(&mut self, due: (Micros, Key)) -> Option<Promise> {
        let promise = self.promises.remove(&due)?;
        self.has_moved = true;
        self.ground.release(Taker(due.1.0));
        self.seats.release(Taker(due.1.0));
        if let Some(ask) = self.asks.get(&due.1) {
            let (account, wish) = (ask.account, ask.nth(promise.wish).clone());
            self.free(due.1, account, &wish, wish.limit);
            self.promised -= wish.rate;
        }
        // Sums of fractions drift, so reset the sum when no promise is left.
        if self.promises.is_empty() {
            self.promised = 0.0;
        }
        Some(promise)
    }
}

/// The first moment that `find` returns, searching from `from` on, at which there are also enough seats.
fn with_seats(
    seats: &Seats,
    wanted: &[seats::Count],
    limit: Micros,
    own: Option<Taker>,
    mut from: Micros,
    mut find: impl FnMut(Micros) -> Option<Found>,
) -> Option<Found> {
    loop {
        from = seats.earliest(wanted, from, limit, own)?;
        let found = find(from)?;
        let to = found.0.saturating_add(limit);
        if seats.lacking(wanted, found.0, to, own).is_none() {
            return Some(found);
        }
        from = found.0;
    }
}
