//! Urgent grants: an admin makes a person or a project urgent, until a moment and for a number of GPU-hours.
//!
//! While a grant lasts, the guaranteed workloads of its account are urgent, as long as the rest of the grant covers
//! their limit. A workload that starts under a grant draws its whole limit until it ends, and then the time it
//! really took. A workload that the rest does not cover waits as a guaranteed one.

use super::super::Micros;
use super::super::lines::Line;
use super::super::quota::{Counted, Volume, volume};
use super::super::share::Account;
use super::{Ask, Class, Key, Planner, Wish};

/// Which account is urgent, until when, and for how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The account of a person, or of a project with all its people.
    pub account: Account,
    pub until: Micros,
    /// The resource that the grant counts, such as GPUs.
    pub counted: Counted,
    /// Amount times duration that remains for use. The caller has already subtracted workloads that have ended.
    pub volume: Volume,
}

/// A grant and the part drawn on it. Running and promised workloads draw their limit; workloads that ended since
/// then draw their run time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Granted {
    grant: Grant,
    drawn: Volume,
}

impl Granted {
    fn left(&self) -> Volume {
        self.grant.volume.saturating_sub(self.drawn)
    }

    fn covers(&self, wish: &Wish) -> bool {
        self.grant.cost_for(wish, wish.limit) <= self.left()
    }
}

impl Grant {
    fn cost_for(&self, wish: &Wish, length: Micros) -> Volume {
        volume(wish.amounts.get(self.counted), length)
    }
}

impl Planner {
    /// Adds a grant from now on. The caller numbers grants. After a restart, add grants before resuming workloads.
    pub fn grant(&mut self, number: u64, grant: Grant) {
        let under = |key: &Key| self.raised.get(key) == Some(&number);
        let running = self.running.iter().filter(|(key, _)| under(key));
        let running = running.map(|(_, one)| grant.cost_for(one.wish(), one.committed));
        let promised = self.promises.iter().filter(|((_, key), _)| under(key));
        let promised = promised.filter_map(|((_, key), promise)| {
            let wish = self.asks.get(key)?.nth(promise.wish);
            Some(grant.cost_for(wish, wish.limit))
        });
        let drawn = running.chain(promised).sum();
        self.grants.insert(number, Granted { grant, drawn });
    }

    /// Removes a grant. Workloads that run under it stay urgent.
    pub fn revoke(&mut self, number: u64) {
        self.grants.remove(&number);
    }

    /// The rest of a grant, after the whole limit of everything that runs under it.
    pub fn left_of_grant(&self, number: u64) -> Option<Volume> {
        self.grants.get(&number).map(Granted::left)
    }

    /// The first grant of the workload's accounts that covers at least one of its variants.
    fn grant_for(&self, ask: &Ask) -> Option<u64> {
        let covers = |granted: &Granted| {
            let mut above = self.shares.up(ask.account);
            above.any(|account| account == granted.grant.account)
                && ask.wishes().any(|wish| granted.covers(wish))
        };
        let mut grants = self.grants.iter();
        grants
            .find(|(_, grant)| covers(grant))
            .map(|(number, _)| *number)
    }

    /// Makes waiting workloads urgent as far as grants cover them, and guaranteed again where no grant covers them any
    /// more.
    pub(super) fn apply_grants(&mut self, now: Micros) {
        if self.grants.is_empty() && self.raised.is_empty() {
            return;
        }
        self.grants.retain(|_, granted| granted.grant.until > now);
        let waits = |key: &&Key| self.asks.contains_key(key);
        let mut keys: Vec<Key> = self.raised.keys().filter(waits).copied().collect();
        for (rank, lines) in &self.lines {
            if rank.0.0 != Class::Guaranteed {
                continue;
            }
            for (account, line) in &lines.accounts {
                let is_theirs =
                    |above: Account| self.grants.values().any(|one| one.grant.account == above);
                if self.shares.up(*account).any(is_theirs) {
                    keys.extend(line.values().flat_map(Line::keys));
                }
            }
        }
        keys.sort_unstable();
        for key in keys {
            let Some(ask) = self.asks.get(&key) else {
                continue;
            };
            // A promise under a grant has already drawn its limit.
            let is_held = self.promises.contains_key(&(ask.due(), key));
            let before = self.raised.get(&key).copied();
            if is_held && before.is_some_and(|number| self.grants.contains_key(&number)) {
                continue;
            }
            let after = self.grant_for(ask);
            if before == after {
                continue;
            }
            if let Some(mut ask) = self.withdraw(key) {
                if let Some(number) = after {
                    ask.class = Class::Urgent;
                    self.raised.insert(key, number);
                }
                self.submit(key, ask);
            }
        }
    }

    /// Whether the rest of its grant covers a variant. True for workloads without a grant.
    pub(super) fn is_covered(&self, key: Key, wish: &Wish) -> bool {
        let Some(number) = self.raised.get(&key) else {
            return true;
        };
        let grant = self.grants.get(number);
        grant.is_some_and(|granted| granted.covers(wish))
    }

    /// Attributes a running urgent workload to a grant of its account.
    pub(super) fn attribute(&mut self, key: Key, ask: &Ask) {
        if ask.class == Class::Urgent
            && let Some(number) = self.grant_for(ask)
        {
            self.raised.insert(key, number);
        }
    }

    /// Draws `length` of a variant from its grant.
    pub(super) fn draw(&mut self, key: Key, wish: &Wish, length: Micros) {
        if let Some(granted) = self.granted(key) {
            granted.drawn += granted.grant.cost_for(wish, length);
        }
    }

    pub(super) fn give_back(&mut self, key: Key, wish: &Wish, length: Micros) {
        if let Some(granted) = self.granted(key) {
            let less = granted.grant.cost_for(wish, length);
            granted.drawn = granted.drawn.saturating_sub(less);
        }
    }

    fn granted(&mut self, key: Key) -> Option<&mut Granted> {
        let number = self.raised.get(&key)?;
        self.grants.get_mut(number)
    }

    /// When the next grant ends.
    pub(super) fn next_end_of_grant(&self, now: Micros) -> Option<Micros> {
        let ends = self.grants.values().map(|granted| granted.grant.until);
        ends.filter(|at| *at > now).min()
    }
}
