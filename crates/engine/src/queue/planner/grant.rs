//! Urgent by an admin's word: for a person or a project, until a moment, and for so many GPU-hours and no more.
//!
//! While it lasts, what would be guaranteed is urgent, so far as its limit is covered by what is left. What begins under a grant counts
//! against it for all of its limit until it ends, then for what it took. What is left too little for waits on as what it was.

use super::super::Micros;
use super::super::lines::Line;
use super::super::quota::{Counted, Volume, volume};
use super::super::share::Account;
use super::{Ask, Class, Key, Planner, Wish};

/// Who may be urgent, until when, and for how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// A person's account, or a project's with all of its people.
    pub account: Account,
    pub until: Micros,
    /// Of this thing, such as GPUs,
    pub counted: Counted,
    /// so much for so long may be had, what has ended already not counted.
    pub volume: Volume,
}

/// A grant, and what was drawn on it: what runs, or is promised, for as long as it may; and what has ended since it was given.
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
    /// Makes somebody urgent from now on; the caller numbers grants. After a restart, grants come before what is resumed.
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

    /// Takes a grant back. What runs under it stays what it is.
    pub fn revoke(&mut self, number: u64) {
        self.grants.remove(&number);
    }

    /// What is left of a grant, with all that runs under it taken for its whole limit.
    pub fn left_of_grant(&self, number: u64) -> Option<Volume> {
        self.grants.get(&number).map(Granted::left)
    }

    /// Of the grants of somebody, the first that covers at least one of their wishes.
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

    /// Raises those who wait as far as grants cover them, and lowers those whom they cover no more.
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
            // What is promised under a grant is covered by what was taken from it.
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

    /// Whether a wish of somebody who was raised is covered by what is left.
    pub(super) fn is_covered(&self, key: Key, wish: &Wish) -> bool {
        let Some(number) = self.raised.get(&key) else {
            return true;
        };
        let grant = self.grants.get(number);
        grant.is_some_and(|granted| granted.covers(wish))
    }

    /// What runs already as urgent does so under the grant of its account.
    pub(super) fn attribute(&mut self, key: Key, ask: &Ask) {
        if ask.class == Class::Urgent
            && let Some(number) = self.grant_for(ask)
        {
            self.raised.insert(key, number);
        }
    }

    /// Takes from the grant, or gives back to it, what a wish is or was held for.
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
