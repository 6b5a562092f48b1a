//! Whose turn it is: fair share over site, project and person.
//!
//! Every second of everything that is held is written to one ledger, whatever holds it: a reservation (used or not), a
//! session, a job, a Ray cluster. What was used long ago counts less, by half with each half-life. Of two
//! projects the one is first that used less for its weight; within a project, the same holds for its people.
//!
//! All accounts forget at the same pace, so who is ahead of whom changes only when something is charged. The ledger
//! therefore writes what is charged later in larger units instead of shrinking everything there is: comparing two
//! accounts is comparing two numbers, however many there are and however much time went by.
//!
//! What has begun is charged for all the time it is expected to take ([`Shares::commit`]), and corrected at its end.
//! Otherwise the one who is ahead would be given everything that is free at once, before anything is charged.

use std::collections::HashMap;

use super::Micros;

/// An account: a person's within a project, a project's, or the site's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account(u32);

impl Account {
    pub(super) fn place(self) -> usize {
        self.0 as usize
    }
}

/// What was held: shown apart, counted alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    Reserved,
    Interactive,
    Batch,
    Ray,
}

const MODES: usize = 4;
/// Beyond this many half-lives the units would outgrow a float, and the ledger begins anew at today's.
const UNITS_MAX: f64 = 512.0;

/// How much a person or project holds of what there is, against what is theirs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// 1.4 is two fifths more than one's share; 0 is nothing used.
    pub of_share: f64,
    /// What one's part would be, were everybody to ask for all of theirs: from 0 to 1.
    pub due: f64,
    /// What one's part was, of all that was used.
    pub used: f64,
    /// What of it was held how, in the order of [`Mode`]: parts of one's own use.
    pub modes: [f64; MODES],
}

/// The accounts of one site.
#[derive(Debug, Clone)]
pub struct Shares {
    half_life: Micros,
    /// The moment whose units are the ledger's own.
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

    /// By this the one who is first is found: what was used and is committed, for each part of weight.
    fn load(&self) -> f64 {
        (self.sum() + self.committed).max(0.0) / self.weight
    }
}

impl Shares {
    /// Only the site's own account, and nothing used.
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

    /// A project's account. A weight that is not above zero counts as very little, so that nobody waits for ever.
    pub fn add_project(&mut self, weight: f64) -> Account {
        self.add(self.site(), weight)
    }

    /// The account of a person within a project, by a number that the caller knows the person by.
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

    /// Charges what was held from one moment to another, at so much a second.
    pub fn charge(&mut self, account: Account, mode: Mode, from: Micros, to: Micros, rate: f64) {
        if to <= from {
            return;
        }
        self.keep_units(to);
        let cost = rate * (self.integral(to) - self.integral(from));
        self.each_up(account, |entry| entry.used[mode as usize] += cost);
    }

    /// Charges beforehand what is expected to be used; give the same to [`Shares::release`] when it is over.
    pub fn commit(&mut self, account: Account, from: Micros, to: Micros, rate: f64) -> Commitment {
        self.keep_units(from);
        // In the units of the beginning: what lies ahead is not worth more than what was.
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

    /// How much for its weight, in units that only comparisons understand.
    pub fn load(&self, account: Account) -> f64 {
        self.accounts[account.place()].load()
    }

    /// By how much such a cost, now, would raise an account's [`Shares::load`].
    pub fn load_of(&self, account: Account, cost: f64, now: Micros) -> f64 {
        cost * self.unit(now) / self.accounts[account.place()].weight
    }

    /// How somebody stands among all of the site; `asking` says whose share counts: those who have used or want anything.
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

    /// What a second at that moment is worth in seconds of the epoch.
    fn unit(&self, at: Micros) -> f64 {
        self.half_lives(at).exp2()
    }

    /// What all seconds up to a moment are worth, but for a constant.
    fn integral(&self, at: Micros) -> f64 {
        self.unit(at) * seconds(self.half_life) / std::f64::consts::LN_2
    }

    /// Begins anew with today's units before they outgrow what a float can tell apart.
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

/// What was charged beforehand.
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
