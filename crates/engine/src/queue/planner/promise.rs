//! Promises: a beginning for those who have waited longer than is fair, which nobody behind them can push back.

use std::ops::Bound;

use super::super::Micros;
use super::super::ground::Seen;
use super::super::track::Taker;
use super::preempt::yields;
use super::{Ask, Class, Decision, Key, Planner, Why};
use crate::fleet::{NodeIndex, Placement};

const HOUR: Micros = 3_600_000_000;
/// Nobody is overdue sooner than this, and everybody is after the longest.
const PATIENCE_MIN: Micros = HOUR;
const PATIENCE_MAX: Micros = 12 * HOUR;
/// The part of the fleet that may be promised at once.
const PROMISED_MAX: f64 = 0.25;

#[derive(Debug, Clone)]
pub(super) struct Promise {
    pub at: Micros,
    pub placement: Placement,
    /// What had come free when it was found to be the earliest there is; none if nobody looked for an earlier one.
    pub looked: Option<Seen>,
}

impl Ask {
    fn patience(&self) -> Micros {
        (self.limit / 2).clamp(PATIENCE_MIN, PATIENCE_MAX)
    }

    /// From when on it is overdue.
    pub(super) fn due(&self) -> Micros {
        self.since.saturating_add(self.patience())
    }
}

impl Planner {
    /// Those who hold a promise come before all others, whoever was overdue first before the next.
    pub(super) fn keep_promises(&mut self, now: Micros, done: &mut Vec<Decision>) {
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
            let ask = self.asks.get(&due.1);
            let waits_in_vain = ask.is_none_or(|ask| ask.class == Class::Opportunistic);
            if waits_in_vain || self.promises.contains_key(&due) {
                continue;
            }
            if !self.may_promise(due.1) {
                break;
            }
            self.promise(due, now, done);
        }
    }

    pub(super) fn may_promise(&self, key: Key) -> bool {
        let rate = self.asks.get(&key).map_or(0.0, |ask| ask.rate);
        self.promises.is_empty() || self.promised + rate <= self.whole * PROMISED_MAX
    }

    /// Begins it, or promises it the earliest time there is.
    pub(super) fn promise(&mut self, due: (Micros, Key), now: Micros, done: &mut Vec<Decision>) {
        let key = due.1;
        let Some(ask) = self.asks.get(&key) else {
            return;
        };
        self.why.remove(&key);
        let verdict = self.quotas.judge(&self.shares, ask.account, &ask.amounts);
        if !verdict.is_allowed() {
            self.why.insert(key, Why::Quota(verdict));
            return;
        }
        let found = self.soonest(key, now);
        self.settle(due, found, now, done);
    }

    fn soonest(&mut self, key: Key, now: Micros) -> Option<Promise> {
        let ask = self.asks.get(&key)?;
        let (class, need, limit) = (ask.class, ask.need, ask.limit);
        let has_softer = self.has_softer(class);
        let looked = Some(self.ground.seen());
        let (policy, running) = (self.policy, &self.running);
        let found = self.ground.soonest(&need, limit, now, 0, |_| false);
        let found = match found {
            found if !has_softer || found.as_ref().is_some_and(|found| found.0 <= now) => found,
            found => {
                // What is softer will be told in time, so it is as good as gone; but not before its grace is over.
                let told = now.saturating_add(policy.grace);
                let softer = |by: Taker| yields(running, policy, by, class, told);
                let by_class = 1 + class as u8;
                let cleared = self.ground.soonest(&need, limit, told, by_class, softer);
                cleared.into_iter().chain(found).min_by_key(|(at, _)| *at)
            }
        };
        let (at, placement) = found?;
        Some(Promise {
            at,
            placement,
            looked,
        })
    }

    /// Begins what was promised, or promises an earlier time, if there is one by now: a promise never moves to a later one.
    fn improve(&mut self, due: (Micros, Key), now: Micros, done: &mut Vec<Decision>) {
        let key = due.1;
        let (Some(ask), Some(before)) = (self.asks.get(&key), self.promises.get(&due)) else {
            return;
        };
        let verdict = self
            .quotas
            .judge_held(&self.shares, ask.account, &ask.amounts);
        if !verdict.is_allowed() {
            self.take_promise(due);
            self.why.insert(key, Why::Quota(verdict));
            return;
        }
        if before.at <= now {
            let before = self.take_promise(due);
            let found = self.soonest(key, now).or(before);
            return self.settle(due, found, now, done);
        }
        let freed = before.looked.and_then(|seen| self.ground.freed_since(seen));
        if freed.as_ref().is_some_and(Vec::is_empty) {
            return;
        }
        let found = self.earlier(due, freed.as_deref(), now);
        let looked = Some(self.ground.seen());
        match found {
            None => {
                if let Some(promise) = self.promises.get_mut(&due) {
                    promise.looked = looked;
                }
            }
            Some((at, placement)) => {
                self.take_promise(due);
                let found = Promise {
                    at,
                    placement,
                    looked,
                };
                self.settle(due, Some(found), now, done);
            }
        }
    }

    /// A better time and place for what has a promise, if there is any.
    fn earlier(
        &self,
        due: (Micros, Key),
        freed: Option<&[NodeIndex]>,
        now: Micros,
    ) -> Option<(Micros, Placement)> {
        let (ask, before) = (self.asks.get(&due.1)?, self.promises.get(&due)?);
        let (need, limit, class) = (&ask.need, ask.limit, ask.class);
        let own = Taker(due.1.0);
        let earlier = |from: Micros, softer: &dyn Fn(Taker) -> bool| {
            let gone = |by: Taker| by == own || softer(by);
            self.ground
                .earlier(need, limit, from..before.at, freed, gone)
        };
        let found = earlier(now, &|_| false);
        if !self.has_softer(class) || found.as_ref().is_some_and(|found| found.0 <= now) {
            return found;
        }
        let told = now.saturating_add(self.policy.grace);
        let softer = |by: Taker| yields(&self.running, self.policy, by, class, told);
        let cleared = earlier(told, &softer);
        cleared.into_iter().chain(found).min_by_key(|(at, _)| *at)
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
            Some(promise) if promise.at <= now => self.start(key, promise.placement, now, done),
            Some(promise) => {
                self.why.insert(key, Why::Promised(promise.at));
                self.keep_for(due, promise, done);
            }
        }
    }

    /// Keeps a place from a moment on, and tells those who are in the way.
    pub(super) fn keep_for(
        &mut self,
        due: (Micros, Key),
        promise: Promise,
        done: &mut Vec<Decision>,
    ) {
        let Some(ask) = self.asks.get(&due.1) else {
            return;
        };
        let (class, to, rate) = (ask.class, promise.at.saturating_add(ask.limit), ask.rate);
        // What is promised to an account is as good as held by it.
        self.quotas.hold(&self.shares, ask.account, &ask.amounts);
        self.clear(&promise, to, class, due.1, done);
        self.ground
            .take(Taker(due.1.0), promise.at, to, &promise.placement);
        self.promised += rate;
        self.promises.insert(due, promise);
    }

    /// Takes a promise back, if there is one, and all that was kept for it.
    pub(super) fn take_promise(&mut self, due: (Micros, Key)) -> Option<Promise> {
        let promise = self.promises.remove(&due)?;
        self.ground.release(Taker(due.1.0));
        if let Some(ask) = self.asks.get(&due.1) {
            self.quotas.free(&self.shares, ask.account, &ask.amounts);
            self.promised -= ask.rate;
        }
        // Sums of fractions drift; with nothing promised, nothing is.
        if self.promises.is_empty() {
            self.promised = 0.0;
        }
        Some(promise)
    }
}
