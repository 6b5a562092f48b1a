//! What runs: from the moment it begins, here or before this planner was made, until it ends or turns out never to have begun.
//!
//! Whatever runs is counted in four places: on the ground, in its account's quotas, in its account's shares, and by its class.
//! It comes to all of them in [`Planner::enter`] and goes from all of them in [`Planner::leave`], and nowhere else.

use crate::fleet::Placement;

use super::super::Micros;
use super::super::share::{Account, Commitment, Mode};
use super::super::track::Taker;
use super::{Ask, Class, Decision, Key, Planner, Start, Wish};

#[derive(Debug, Clone)]
pub struct Running {
    pub ask: Ask,
    /// Which of its wishes was granted.
    pub number: usize,
    pub placement: Placement,
    pub began: Micros,
    /// When it has to be gone: by its limit, or by what it was told.
    pub until: Micros,
    /// It was told to make room.
    pub is_told: bool,
    /// For how long it counts against budgets while it runs.
    pub committed: Micros,
    commitment: Commitment,
}

impl Running {
    /// The wish that was granted.
    pub fn wish(&self) -> &Wish {
        self.ask.nth(self.number)
    }
}

impl Planner {
    /// What a second of the whole fleet costs.
    pub fn whole(&self) -> f64 {
        self.whole
    }

    /// All that runs, in no order.
    pub fn running(&self) -> impl Iterator<Item = (Key, &Running)> {
        self.running.iter().map(|(key, running)| (*key, running))
    }

    /// Something runs already, since before this planner was made: nothing is decided, but from now on it counts.
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

    /// The same of something to which another than its first wish was granted.
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
        // What should be gone already still has what it has: the next plan gives it time to be told so.
        self.enter(key, (ask, wish), placement, began, until.max(began + 1));
    }

    /// A beginning that was decided could not be carried out. It is as if it had never been: it waits again, with its place kept.
    pub fn abandon(&mut self, key: Key) {
        if let Some(mut running) = self.leave(key) {
            if self.raised.remove(&key).is_some() {
                running.ask.class = Class::Guaranteed;
            }
            self.submit(key, running.ask);
        }
    }

    /// Something that ran has ended.
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

    /// Counts what is held, or promised, for so long at most.
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

    /// From when on something can be told to make room, having run long enough when its grace is over.
    fn ripe(&self, began: Micros) -> Micros {
        began
            .saturating_add(self.policy.run_min)
            .saturating_sub(self.policy.grace)
    }

    /// What has come to run long enough can be sent away: to those who are firmer, that is as if it came free.
    pub(super) fn ripen(&mut self, now: Micros) {
        while let Some((at, key)) = self.ripens.first().copied().filter(|(at, _)| *at <= now) {
            self.ripens.remove(&(at, key));
            self.ground.free_ahead(Taker(key.0));
        }
    }

    /// What has not ended by its limit still has what it has, for as long as it takes to be told that it is gone.
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
