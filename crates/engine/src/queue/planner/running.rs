//! Running workloads, from their start until they end or their start fails. They started in this planner or before
//! it was made.
//!
//! A running workload counts in four places: on the ground, in its account's quotas, in its account's shares, and
//! in the number of its class. [`Planner::enter`] adds it to all of them, and [`Planner::leave`] removes it. No
//! other code does.

use crate::fleet::Placement;

use super::super::Micros;
use super::super::share::{Account, Commitment, Mode};
use super::super::track::Taker;
use super::{Ask, Class, Decision, Key, Planner, Start, Wish};

#[derive(Debug, Clone)]
pub struct Running {
    pub ask: Ask,
    /// Index of the granted variant.
    pub number: usize,
    pub placement: Placement,
    pub began: Micros,
    /// When it must end: at its limit, or earlier if it was preempted.
    pub until: Micros,
    /// It was preempted.
    pub is_told: bool,
    /// The time that counts against budgets while it runs.
    pub committed: Micros,
    commitment: Commitment,
}

impl Running {
    /// The variant that was granted.
    pub fn wish(&self) -> &Wish {
        self.ask.nth(self.number)
    }
}

impl Planner {
    /// The cost of one second of the whole fleet.
    pub fn whole(&self) -> f64 {
        self.whole
    }

    /// All running workloads, in no order.
    pub fn running(&self) -> impl Iterator<Item = (Key, &Running)> {
        self.running.iter().map(|(key, running)| (*key, running))
    }

    /// Adds a workload that has been running since before this planner was made. Decides nothing; from now on the
    /// workload counts.
    pub fn resume(
        &mut self,
        key: Key,
        ask: Ask,
        placement: Placement,
        began: Micros,
        until: Micros,
    ) {
        self.resume_with(key, ask, 0, placement, began, until);
    }

    /// The same for a workload that runs in another than its first variant.
    pub fn resume_with(
        &mut self,
        key: Key,
        ask: Ask,
        wish: usize,
        placement: Placement,
        began: Micros,
        until: Micros,
    ) {
        self.withdraw(key);
        self.leave(key);
        self.raised.remove(&key);
        self.attribute(key, &ask);
        // A workload past its end keeps its nodes: the next plan gives it a grace period to stop.
        self.enter(key, (ask, wish), placement, began, until.max(began + 1));
    }

    /// The caller could not carry out a start. Undoes it: the workload waits again at its old place.
    pub fn abandon(&mut self, key: Key) {
        if let Some(mut running) = self.leave(key) {
            if self.raised.remove(&key).is_some() {
                running.ask.class = Class::Guaranteed;
            }
            self.submit(key, running.ask);
        }
    }

    /// A running workload has ended.
    pub fn end(&mut self, key: Key, now: Micros) {
        if let Some(running) = self.leave(key) {
            let (account, ran) = (running.ask.account, now.saturating_sub(running.began));
            let amounts = &running.wish().amounts;
            self.quotas.spend(&self.shares, account, amounts, ran);
            self.draw(key, running.wish(), ran);
            self.raised.remove(&key);
            let (account, rate) = (running.ask.account, running.wish().rate);
            self.shares
                .charge(account, Mode::Batch, running.began, now, rate);
        }
    }

    pub(super) fn start(
        &mut self,
        key: Key,
        wish: usize,
        placement: Placement,
        now: Micros,
        done: &mut Vec<Decision>,
    ) {
        let Some(ask) = self.take_out(key) else {
            return;
        };
        let mut until = now.saturating_add(ask.nth(wish).limit);
        if ask.class == Class::Opportunistic {
            until = until.min(self.ground.open_until(&placement));
            until = until.min(self.seats.open_until(&ask.seats, now));
        }
        self.enter(key, (ask, wish), placement.clone(), now, until);
        done.push(Decision::Start(Start {
            key,
            wish,
            placement,
            until,
        }));
    }

    fn enter(
        &mut self,
        key: Key,
        (ask, number): (Ask, usize),
        placement: Placement,
        began: Micros,
        until: Micros,
    ) {
        self.ground.take(Taker(key.0), began, until, &placement);
        self.seats.take(Taker(key.0), began, until, &ask.seats);
        let (account, wish) = (ask.account, ask.nth(number).clone());
        let committed = until.saturating_sub(began);
        self.hold(key, account, &wish, committed);
        self.counts[ask.class as usize] += 1;
        self.by_end.insert((until, key));
        self.ripens.insert((self.ripe(began), key));
        let expected = began.saturating_add(wish.expected);
        let running = Running {
            commitment: self.shares.commit(account, began, expected, wish.rate),
            ask,
            number,
            placement,
            began,
            until,
            is_told: false,
            committed,
        };
        self.running.insert(key, running);
    }

    fn leave(&mut self, key: Key) -> Option<Running> {
        let running = self.running.remove(&key)?;
        self.by_end.remove(&(running.until, key));
        self.ripens.remove(&(self.ripe(running.began), key));
        self.counts[running.ask.class as usize] -= 1;
        self.ground.release(Taker(key.0));
        self.seats.release(Taker(key.0));
        let (account, wish) = (running.ask.account, running.wish());
        if running.is_told {
            self.quotas.untell(&self.shares, account, &wish.amounts);
        }
        self.free(key, account, wish, running.committed);
        self.shares.release(running.commitment);
        Some(running)
    }

    /// Counts a variant as held or promised, for `length` at most.
    pub(super) fn hold(&mut self, key: Key, account: Account, wish: &Wish, length: Micros) {
        self.quotas.hold(&self.shares, account, &wish.amounts);
        self.quotas
            .commit(&self.shares, account, &wish.amounts, length);
        self.draw(key, wish, length);
    }

    /// Undoes [`Planner::hold`].
    pub(super) fn free(&mut self, key: Key, account: Account, wish: &Wish, length: Micros) {
        self.quotas.free(&self.shares, account, &wish.amounts);
        self.quotas
            .uncommit(&self.shares, account, &wish.amounts, length);
        self.give_back(key, wish, length);
    }

    /// From when on a workload may be preempted: it has its minimum run time when its grace period ends.
    fn ripe(&self, began: Micros) -> Micros {
        began
            .saturating_add(self.policy.run_min)
            .saturating_sub(self.policy.grace)
    }

    /// Marks the nodes of workloads past their minimum run time as freed: higher classes may now preempt them.
    pub(super) fn ripen(&mut self, now: Micros) {
        while let Some((at, key)) = self.ripens.first().copied().filter(|(at, _)| *at <= now) {
            self.ripens.remove(&(at, key));
            self.ground.free_ahead(Taker(key.0));
        }
    }

    /// Extends workloads that overrun their limit by a grace period. They hold their nodes until the caller reports
    /// their end.
    pub(super) fn hold_what_overruns(&mut self, now: Micros) {
        while let Some((until, key)) = self
            .by_end
            .first()
            .copied()
            .filter(|(until, _)| *until <= now)
        {
            self.by_end.remove(&(until, key));
            let until = now.saturating_add(self.policy.grace.max(1));
            if let Some(running) = self.running.get_mut(&key) {
                let longer = until.saturating_sub(running.until);
                running.until = until;
                running.committed = running.committed.saturating_add(longer);
                let (account, wish) = (running.ask.account, running.wish().clone());
                self.quotas
                    .commit(&self.shares, account, &wish.amounts, longer);
                self.draw(key, &wish, longer);
                self.by_end.insert((until, key));
                self.ground.lengthen(Taker(key.0), until);
                self.seats.set_end(Taker(key.0), until);
            }
        }
    }
}
