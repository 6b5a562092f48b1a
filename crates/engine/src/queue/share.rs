//! Fair share: which account is next, over site, project and person.
//!
//! One ledger records every second of every held resource, by reservations (used or not), sessions, jobs and Ray
//! clusters. Older use counts less, by half with each half-life. Of two projects, the one that used less for its
//! weight goes first. The same holds for the people within a project.
//!
//! All accounts decay at the same pace, so their order changes only when an account is charged. The ledger
//! therefore records later charges in larger units instead of shrinking all older ones. Comparing two accounts is
//! comparing two numbers, however many accounts there are and however much time went by.
//!
//! A workload that starts is charged its expected run time ahead ([`Shares::commit`]), corrected at its end.
//! Otherwise the first account would get all free resources at once, before anything is charged.

use std::collections::HashMap;

use super::Micros;

/// An account: of a person within a project, of a project, or of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account(u32);

impl Account {
    pub(super) fn place(self) -> usize {
        self.0 as usize
    }
}

/// How a resource was held. Statistics show the modes apart; fair share counts them alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    Reserved,
    Interactive,
    Batch,
    Ray,
}

const MODES: usize = 4;
/// Beyond this many half-lives the units would outgrow a float. Then the ledger starts again with the units of that
/// moment.
const UNITS_MAX: f64 = 512.0;

/// The use of a person or project compared with its fair share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// 1.4 is two fifths more than the fair share; 0 is nothing used.
    pub of_share: f64,
    /// The fair share if every asking account used all of its own: from 0 to 1.
    pub due: f64,
    /// The part of all use.
    pub used: f64,
    /// The parts of its own use by mode, in the order of [`Mode`].
    pub modes: [f64; MODES],
}

/// The accounts of one site.
#[derive(Debug, Clone)]
pub struct Shares {
    half_life: Micros,
    /// The moment that defines the units of the ledger.
    epoch: Micros,
    accounts: Vec<Entry>,
    people: HashMap<(Account, u64), Account>,
}

#[derive(Debug, Clone)]
struct Entry {
    parent: Option<Account>,
    weight: f64,
    /// In the units of the epoch.
    used: [f64; MODES],
    committed: f64,
}

impl Entry {
    fn sum(&self) -> f64 {
        self.used.iter().sum()
    }

    /// Used and committed cost for each unit of weight. The account with the lowest load goes first.
    fn load(&self) -> f64 {
        (self.sum() + self.committed).max(0.0) / self.weight
    }
}

impl Shares {
    /// Only the site's own account, with nothing used.
    pub fn new(half_life: Micros, now: Micros) -> Shares {
        let site = Entry {
            parent: None,
            weight: 1.0,
            used: [0.0; MODES],
            committed: 0.0,
        };
        Shares {
            half_life: half_life.max(1),
            epoch: now,
            accounts: vec![site],
            people: HashMap::new(),
        }
    }

    pub fn site(&self) -> Account {
        Account(0)
    }

    /// Adds a project's account. A weight of zero or less counts as very small, so that nobody waits for ever.
    pub fn add_project(&mut self, weight: f64) -> Account {
        self.add(self.site(), weight)
    }

    /// The account of a person within a project. The caller numbers persons.
    pub fn person(&mut self, project: Account, person: u64) -> Account {
        if let Some(known) = self.people.get(&(project, person)) {
            return *known;
        }
        let account = self.add(project, 1.0);
        self.people.insert((project, person), account);
        account
    }

    fn add(&mut self, parent: Account, weight: f64) -> Account {
        self.accounts.push(Entry {
            parent: Some(parent),
            weight: weight.max(1e-6),
            used: [0.0; MODES],
            committed: 0.0,
        });
        Account(self.accounts.len() as u32 - 1)
    }

    /// Every account, the site's first.
    pub fn all(&self) -> impl Iterator<Item = Account> + use<> {
        (0..self.accounts.len() as u32).map(Account)
    }

    pub fn parent(&self, account: Account) -> Option<Account> {
        self.accounts[account.place()].parent
    }

    /// The account and all above it, the site's last.
    pub fn up(&self, account: Account) -> impl Iterator<Item = Account> + '_ {
        std::iter::successors(Some(account), |account| self.parent(*account))
    }

    /// Charges `rate` for each second that was held between two moments.
    pub fn charge(&mut self, account: Account, mode: Mode, from: Micros, to: Micros, rate: f64) {
        if to <= from {
            return;
        }
        self.keep_units(to);
        let cost = rate * (self.integral(to) - self.integral(from));
        self.each_up(account, |entry| entry.used[mode as usize] += cost);
    }

    /// Charges the expected use ahead. Give the result to [`Shares::release`] at the end.
    pub fn commit(&mut self, account: Account, from: Micros, to: Micros, rate: f64) -> Commitment {
        self.keep_units(from);
        // In the units of the start: the time ahead is not worth more than the past.
        let cost = rate * seconds(to - from) * self.unit(from);
        self.each_up(account, |entry| entry.committed += cost);
        Commitment {
            account,
            cost,
            epoch: self.epoch,
        }
    }

    pub fn release(&mut self, commitment: Commitment) {
        let cost = commitment.cost * self.unit(commitment.epoch);
        self.each_up(commitment.account, |entry| {
            entry.committed = (entry.committed - cost).max(0.0);
        });
    }

    /// The load of an account. Only comparisons of loads have a meaning.
    pub fn load(&self, account: Account) -> f64 {
        self.accounts[account.place()].load()
    }

    /// The amount by which this cost, now, would raise an account's [`Shares::load`].
    pub fn load_of(&self, account: Account, cost: f64, now: Micros) -> f64 {
        cost * self.unit(now) / self.accounts[account.place()].weight
    }

    /// The standing of an account in its site. `asking` says which other accounts count: accounts that have used or
    /// want something.
    pub fn standing(&self, account: Account, asking: impl Fn(Account) -> bool) -> Standing {
        let mut due = 1.0;
        let mut at = account;
        while let Some(parent) = self.parent(at) {
            let weights = self
                .all()
                .filter(|one| self.parent(*one) == Some(parent) && (*one == at || asking(*one)))
                .map(|one| self.accounts[one.place()].weight);
            due *= self.accounts[at.place()].weight / weights.sum::<f64>();
            at = parent;
        }
        let own = &self.accounts[account.place()];
        let all = self.accounts[0].sum();
        let used = if all > 0.0 { own.sum() / all } else { 0.0 };
        let part = |mode: f64| {
            if own.sum() > 0.0 {
                mode / own.sum()
            } else {
                0.0
            }
        };
        Standing {
            of_share: used / due,
            due,
            used,
            modes: own.used.map(part),
        }
    }

    fn each_up(&mut self, account: Account, mut change: impl FnMut(&mut Entry)) {
        let mut at = Some(account);
        while let Some(account) = at {
            let entry = &mut self.accounts[account.place()];
            change(entry);
            at = entry.parent;
        }
    }

    fn half_lives(&self, at: Micros) -> f64 {
        (at - self.epoch) as f64 / self.half_life as f64
    }

    /// The worth of one second at that moment in seconds of the epoch.
    fn unit(&self, at: Micros) -> f64 {
        self.half_lives(at).exp2()
    }

    /// The worth of all seconds up to a moment, plus a constant.
    fn integral(&self, at: Micros) -> f64 {
        self.unit(at) * seconds(self.half_life) / std::f64::consts::LN_2
    }

    /// Moves the epoch to now before the units outgrow the precision of a float.
    fn keep_units(&mut self, now: Micros) {
        if self.half_lives(now) < UNITS_MAX {
            return;
        }
        let shrink = 1.0 / self.unit(now);
        self.epoch = now;
        for entry in &mut self.accounts {
            entry.used = entry.used.map(|used| used * shrink);
            entry.committed *= shrink;
        }
    }
}

/// A charge ahead.
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use = "what is committed must be released when it is over"]
pub struct Commitment {
    account: Account,
    cost: f64,
    epoch: Micros,
}

fn seconds(micros: Micros) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests;
