//! Promises: a beginning for those who have waited longer than is fair, which nobody behind them can push back.

use crate::fleet::Placement;

use super::super::Micros;
use super::super::track::Taker;
use super::{Ask, Class, Decision, Key, Planner, Why};

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
            self.promise(due, now, done);
        }
    }

    pub(super) fn promise_the_overdue(&mut self, now: Micros, done: &mut Vec<Decision>) {
        let overdue = self.by_due.range(..=(now, Key(u64::MAX)));
        let overdue: Vec<(Micros, Key)> = overdue.copied().collect();
        for due in overdue {
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
        let rate = |key: &Key| self.asks.get(key).map_or(0.0, |ask| ask.rate);
        let promised: f64 = self.promises.keys().map(|(_, key)| rate(key)).sum();
        self.promises.is_empty() || promised + rate(&key) <= self.whole * PROMISED_MAX
    }

    /// Begins it, or promises it the earliest time there is, but never a later one than before.
    pub(super) fn promise(&mut self, due: (Micros, Key), now: Micros, done: &mut Vec<Decision>) {
        let key = due.1;
        let Some(ask) = self.asks.get(&key).cloned() else {
            return;
        };
        let before = self.take_promise(due, &ask);
        self.why.remove(&key);
        let verdict = self.quotas.judge(&self.shares, ask.account, &ask.amounts);
        if !verdict.is_allowed() {
            self.why.insert(key, Why::Quota(verdict));
            return;
        }
        let (class, need, limit) = (ask.class, ask.need, ask.limit);
        // What is softer will be told in time, so it is as good as gone; but not before its grace is over.
        let told = now.saturating_add(self.policy.grace);
        let softer = |by: Taker| self.yields(by, class, told);
        let found = self.ground.earliest(&need, limit, now, |_| false);
        let found = match found {
            Some(found) if found.0 <= now => Some(found),
            found if !self.has_softer(class) => found,
            found => {
                let cleared = self.ground.earliest(&need, limit, told, softer);
                cleared.into_iter().chain(found).min_by_key(|(at, _)| *at)
            }
        };
        let found = found.map(|(at, placement)| Promise { at, placement });
        let best = match (before, found) {
            (Some(before), Some(found)) if before.at <= found.at && before.at > now => Some(before),
            (before, found) => found.or(before),
        };
        match best {
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
        let (class, to) = (ask.class, promise.at.saturating_add(ask.limit));
        // What is promised to an account is as good as held by it.
        self.quotas.hold(&self.shares, ask.account, &ask.amounts);
        self.clear(&promise, to, class, due.1, done);
        self.ground
            .take(Taker(due.1.0), promise.at, to, &promise.placement);
        self.promises.insert(due, promise);
    }

    /// Takes a promise back, if there is one, and all that was kept for it.
    pub(super) fn take_promise(&mut self, due: (Micros, Key), ask: &Ask) -> Option<Promise> {
        let promise = self.promises.remove(&due)?;
        self.ground.release(Taker(due.1.0));
        self.quotas.free(&self.shares, ask.account, &ask.amounts);
        Some(promise)
    }
}
