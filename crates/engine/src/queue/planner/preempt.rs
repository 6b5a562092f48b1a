//! Preemption: the planner asks running workloads to stop, and queues them again.
//!
//! Opportunistic workloads are preempted for all higher classes, guaranteed ones for urgent ones. Borrowed
//! resources are preempted for their owner. Of the possible workloads, those go that lose the least work. No
//! workload is preempted before its minimum run time; otherwise two workloads could preempt each other for ever.

use std::collections::HashMap;

use super::super::Micros;
use super::super::quota::{Counted, During, Verdict};
use super::super::seats::Pool;
use super::super::share::Account;
use super::super::track::Taker;
use super::promise::Promise;
use super::{Claim, Class, Decision, Holder, Key, Planner, Policy, Running, Stop, Why, Wish};
use crate::fleet::Placement;

impl Planner {
    /// Whether a running workload can be preempted by this class.
    pub(super) fn has_softer(&self, class: Class) -> bool {
        let [opportunistic, guaranteed, _] = self.counts;
        match class {
            Class::Opportunistic => false,
            Class::Guaranteed => opportunistic > 0,
            Class::Urgent => opportunistic + guaranteed > 0,
        }
    }

    fn has_borrowed(&self, by: Taker) -> bool {
        let running = self.running.get(&Key(by.0));
        running.is_some_and(|running| {
            let (account, amounts) = (running.ask.account, &running.wish().amounts);
            running.ask.class < Class::Urgent
                && !running.is_told
                && self.quotas.has_borrowed(&self.shares, account, amounts)
        })
    }

    /// The work lost if a workload is preempted: the cost of its run so far.
    fn loss(&self, by: Taker, now: Micros) -> f64 {
        let running = self.running.get(&Key(by.0));
        running.map_or(0.0, |running| {
            running.wish().rate * (now - running.began).max(0) as f64
        })
    }

    /// Where a workload could run for `limit` if all workloads that it may preempt were gone. `None` if that is not
    /// enough.
    pub(super) fn cleared(
        &self,
        key: Key,
        wish: usize,
        limit: Micros,
        verdict: Verdict,
        now: Micros,
    ) -> Option<Placement> {
        let ask = self.asks.get(&key)?;
        let may_get_back = verdict == Verdict::Own && self.quotas.are_set();
        if ask.class == Class::Opportunistic || !(self.has_softer(ask.class) || may_get_back) {
            return None;
        }
        let at = now.saturating_add(self.policy.grace);
        // No workload is preempted for its seats.
        let to = at.saturating_add(limit);
        if self.seats.lacking(&ask.seats, at, to, None).is_some() {
            return None;
        }
        let goes = |by: Taker| self.makes_room(by, ask.class, verdict, now);
        let loss = |by: Taker| self.loss(by, now);
        let need = &ask.nth(wish).need;
        self.ground.clearing(need, at, limit, goes, loss)
    }

    fn makes_room(&self, by: Taker, class: Class, verdict: Verdict, now: Micros) -> bool {
        let gives_back = || verdict == Verdict::Own && self.has_borrowed(by);
        let goes = is_softer(&self.running, by, class) || gives_back();
        goes && will_have_run(&self.running, self.policy, by, now)
    }

    /// Preempts as many workloads as needed for this one. Returns false, and preempts nothing, if that is not enough.
    pub(super) fn make_room(
        &mut self,
        due: (Micros, Key),
        wish: usize,
        verdict: Verdict,
        now: Micros,
        done: &mut Vec<Decision>,
    ) -> bool {
        let Some(ask) = self.asks.get(&due.1) else {
            return false;
        };
        let (class, granted) = (ask.class, ask.nth(wish));
        let (limit, at) = (granted.limit, now.saturating_add(self.policy.grace));
        if !ask.is_in_time(granted, at) {
            return false;
        }
        let Some(placement) = self.cleared(due.1, wish, limit, verdict, now) else {
            return false;
        };
        let goes = |by: Taker| self.makes_room(by, class, verdict, now);
        let loss = |by: Taker| self.loss(by, now);
        let to = at.saturating_add(limit);
        let victims = self.ground.in_the_way(&placement, at, to, goes, loss);
        for victim in victims {
            self.tell(victim, at, Holder::Workload(due.1), done);
        }
        self.why.insert(due.1, Why::MakingRoom(at));
        let promise = Promise {
            at,
            wish,
            placement,
            looked: None,
        };
        self.keep_for(due, promise, done);
        true
    }

    /// Preempts workloads of accounts within `within` that have borrowed, until the claimed amount is available. The
    /// workloads with the least lost work go first. Preempts nothing if all of them are not enough.
    pub(super) fn get_back(&mut self, claim: Claim, now: Micros, done: &mut Vec<Decision>) {
        let Claim {
            key,
            within,
            counted,
        } = claim;
        let Some(ask) = self
            .asks
            .get(&key)
            .filter(|ask| ask.class > Class::Opportunistic)
        else {
            return;
        };
        let amount = ask.wish.amounts.get(counted);
        let during = During {
            from: now,
            to: now.saturating_add(ask.wish.limit),
        };
        let mut givers: Vec<(f64, Key, u64)> = Vec::new();
        for (giver, one) in &self.running {
            let by = Taker(giver.0);
            let has = one.wish().amounts.get(counted);
            let is_within = self.shares.up(one.ask.account).any(|above| above == within);
            let has_run = will_have_run(&self.running, self.policy, by, now);
            if has > 0 && is_within && has_run && self.has_borrowed(by) {
                givers.push((self.loss(by, now), *giver, has));
            }
        }
        givers.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let short_of = |planner: &Planner| planner.quotas.short_of(within, counted, amount, during);
        let all: u64 = givers.iter().map(|(.., has)| has).sum();
        if all < short_of(self) {
            return;
        }
        self.claims.push(claim);
        let at = now.saturating_add(self.policy.grace);
        for (_, giver, _) in givers {
            if short_of(self) == 0 {
                break;
            }
            // After one preemption, the next workload of the same account may no longer be borrowed.
            if self.has_borrowed(Taker(giver.0)) {
                self.tell(Taker(giver.0), at, Holder::Workload(key), done);
            }
        }
    }

    /// The resource of a variant that nobody may borrow, because another workload waits for it to be given back.
    pub(super) fn claimed(&self, account: Account, wish: &Wish) -> Option<Counted> {
        let concerns = |claim: &&Claim| {
            let mut above = self.shares.up(account);
            wish.amounts.get(claim.counted) > 0 && above.any(|above| above == claim.within)
        };
        self.claims.iter().find(concerns).map(|claim| claim.counted)
    }

    /// Preempts the lower classes that are in the way of a promise.
    pub(super) fn clear(
        &mut self,
        promise: &Promise,
        to: Micros,
        class: Class,
        holder: Key,
        done: &mut Vec<Decision>,
    ) {
        let softer = |by: Taker| yields(&self.running, self.policy, by, class, promise.at);
        let cost = |by: Taker| self.loss(by, promise.at);
        let victims = self
            .ground
            .in_the_way(&promise.placement, promise.at, to, softer, cost);
        for victim in victims {
            self.tell(victim, promise.at, Holder::Workload(holder), done);
        }
    }

    /// Ends opportunistic workloads before a new reservation starts.
    pub(super) fn clear_for_reservation(
        &mut self,
        reservation: u64,
        placement: &Placement,
        from: Micros,
        to: Micros,
    ) {
        if !self.has_softer(Class::Guaranteed) {
            return;
        }
        let softer = |by: Taker| is_softer(&self.running, by, Class::Guaranteed);
        let victims = self.ground.in_the_way(placement, from, to, softer, |_| 0.0);
        let mut decided = std::mem::take(&mut self.decided);
        for victim in victims {
            self.tell(victim, from, Holder::Reservation(reservation), &mut decided);
        }
        self.decided = decided;
    }

    /// The same for seats: preempts as many as are in excess, the youngest first.
    pub(super) fn clear_seats(&mut self, reservation: u64, pool: Pool, from: Micros, to: Micros) {
        let mut decided = std::mem::take(&mut self.decided);
        loop {
            let takers = self.seats.over(pool, from, to);
            let softer = takers
                .into_iter()
                .filter(|by| is_softer(&self.running, *by, Class::Guaranteed));
            let began = |by: &Taker| self.running.get(&Key(by.0)).map(|one| (one.began, *by));
            let Some(youngest) = softer.max_by_key(began) else {
                break;
            };
            self.tell(
                youngest,
                from,
                Holder::Reservation(reservation),
                &mut decided,
            );
        }
        self.decided = decided;
    }

    fn tell(&mut self, victim: Taker, by: Micros, holder: Holder, done: &mut Vec<Decision>) {
        let key = Key(victim.0);
        let is_news = self
            .running
            .get(&key)
            .is_some_and(|one| !one.is_told || by < one.until);
        self.shorten(key, by);
        if is_news {
            done.push(Decision::Stop(Stop {
                key,
                by,
                makes_room_for: holder,
            }));
        }
    }

    fn shorten(&mut self, key: Key, by: Micros) {
        let Some(running) = self.running.get_mut(&key) else {
            return;
        };
        if !std::mem::replace(&mut running.is_told, true) {
            let (account, amounts) = (running.ask.account, &running.wish().amounts);
            self.quotas.tell(&self.shares, account, amounts);
        }
        if by < running.until {
            self.by_end.remove(&(running.until, key));
            running.until = by;
            self.by_end.insert((by, key));
            self.seats.set_end(Taker(key.0), by);
        }
        self.ground.shorten(Taker(key.0), by);
    }
}

type AllRunning = HashMap<Key, Running>;

/// Whether a taker may be preempted by this class, once it has had its minimum run time.
fn is_softer(running: &AllRunning, by: Taker, class: Class) -> bool {
    let running = running.get(&Key(by.0));
    running.is_some_and(|running| match running.ask.class {
        Class::Opportunistic => class > Class::Opportunistic,
        Class::Guaranteed => class == Class::Urgent,
        Class::Urgent => false,
    })
}

fn will_have_run(running: &AllRunning, policy: Policy, by: Taker, at: Micros) -> bool {
    let running = running.get(&Key(by.0));
    running.is_some_and(|running| at - running.began >= policy.run_min)
}

/// Whether a taker may be preempted by this class at a moment: its class is lower, and it will have had its minimum
/// run time.
pub(super) fn yields(
    running: &AllRunning,
    policy: Policy,
    by: Taker,
    class: Class,
    at: Micros,
) -> bool {
    is_softer(running, by, class) && will_have_run(running, policy, by, at)
}
