//! Quotas: how much of each counted resource an account may hold. An account has a hard limit, a guaranteed part,
//! and may borrow what others leave idle.
//!
//! A site's total is all that exists. Each project below it may have a guaranteed part, which the use of others
//! cannot take from it for long. An account that holds more than its guaranteed part has *borrowed*, and gives back
//! when the owner needs it. A hard limit bounds borrowing. Limits of persons work the same way within their
//! project.
//!
//! An allowance may differ by hour and day ([`Timetable`]). An account may also have a *budget*: an amount times a
//! duration until it is renewed, such as GPU-hours per month. A running workload counts against the budget for its
//! whole limit until it ends, then for the time it took. So no workload that keeps its limit can exceed a budget.
//!
//! [`Shares`] knows which account belongs to which. Usage here is the planner's own sum of the workloads it
//! started. The transaction that writes claims enforces that nothing is exceeded.

mod timetable;

use std::collections::BTreeMap;

use super::Micros;
use super::share::{Account, Shares};

pub use timetable::{Hours, LocalTime, Timetable};

/// One counted resource: GPUs of a model, CPU, memory, seats of a licence. The caller numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counted(pub u8);

/// Amounts of counted resources; a resource without an entry has zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Amounts(Vec<u64>);

impl Amounts {
    pub fn of(amounts: impl IntoIterator<Item = (Counted, u64)>) -> Amounts {
        let mut all = Amounts::default();
        for (counted, amount) in amounts {
            all.set(counted, amount);
        }
        all
    }

    pub fn get(&self, counted: Counted) -> u64 {
        self.0.get(usize::from(counted.0)).copied().unwrap_or(0)
    }

    pub fn set(&mut self, counted: Counted, amount: u64) {
        let place = usize::from(counted.0);
        if self.0.len() <= place {
            self.0.resize(place + 1, 0);
        }
        self.0[place] = amount;
    }

    /// All entries except zeros.
    pub fn each(&self) -> impl Iterator<Item = (Counted, u64)> + '_ {
        let named = self.0.iter().enumerate().filter(|(_, amount)| **amount > 0);
        named.map(|(place, amount)| (Counted(place as u8), *amount))
    }

    fn add(&mut self, other: &Amounts) {
        for (counted, amount) in other.each() {
            self.set(counted, self.get(counted).saturating_add(amount));
        }
    }

    fn take(&mut self, other: &Amounts) {
        for (counted, amount) in other.each() {
            self.set(counted, self.get(counted).saturating_sub(amount));
        }
    }
}

/// The allowance of an account for one counted resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    pub guaranteed: u64,
    /// `None`: no limit.
    pub limit: Option<u64>,
}

/// Whether an account may hold something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Within the guaranteed part of the account or of one above it, or no allowance applies. Without room, borrowers
    /// give back.
    Own,
    /// More than guaranteed, from resources that others leave idle.
    Borrowed,
    /// Guaranteed to it, but everything within this account is held, partly by borrowers. They give back.
    Lent { account: Account, counted: Counted },
    /// Everything is in use, by borrowers or by owners: it must wait.
    NothingIdle { counted: Counted },
    /// With the amount it holds already, more than this account may ever hold at once.
    OverLimit { account: Account, counted: Counted },
    /// More than the rest of this account's budget, if it runs until its limit.
    OverBudget { account: Account, counted: Counted },
}

/// An amount of a counted resource times a duration in microseconds.
pub type Volume = u128;

pub(super) fn volume(amount: u64, length: Micros) -> Volume {
    u128::from(amount) * length.max(0) as u128
}

/// The amount times duration that an account may use of a counted resource until its budget is renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Budget {
    total: Volume,
    spent: Volume,
}

/// The time for which something is or would be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct During {
    pub from: Micros,
    pub to: Micros,
}

impl During {
    pub fn length(self) -> Micros {
        self.to.saturating_sub(self.from)
    }
}

impl Verdict {
    pub fn is_allowed(self) -> bool {
        matches!(self, Verdict::Own | Verdict::Borrowed)
    }
}

/// A moment, and the limit from then on.
pub(super) type Change = (Micros, Option<u64>);

#[derive(Debug, Clone, Default)]
struct Entry {
    allowed: Vec<Option<Allowance>>,
    used: Amounts,
    /// The part of `used` that is preempted. It counts until it is gone.
    leaving: Amounts,
    timetables: BTreeMap<Counted, Timetable>,
    /// For each counted resource, the changes of its limit.
    ahead: BTreeMap<Counted, Vec<Change>>,
    budgets: BTreeMap<Counted, Budget>,
    /// The amount times duration spent if everything held is held until its limit.
    committed: BTreeMap<Counted, Volume>,
}

impl Entry {
    fn allowance(&self, counted: Counted) -> Option<Allowance> {
        *self.allowed.get(usize::from(counted.0))?
    }

    /// The lowest limit between now and `to`, if there is any.
    fn limit(&self, counted: Counted, to: Micros) -> Option<u64> {
        let now = self.allowance(counted).and_then(|allowed| allowed.limit);
        let ahead = self.ahead.get(&counted).into_iter().flatten();
        let before = ahead.take_while(|(at, _)| *at < to);
        before.filter_map(|(_, limit)| *limit).chain(now).min()
    }

    fn is_within_budget(&self, counted: Counted, more: Volume) -> bool {
        let Some(budget) = self.budgets.get(&counted) else {
            return true;
        };
        budget.spent + self.committed(counted) + more <= budget.total
    }

    fn committed(&self, counted: Counted) -> Volume {
        self.committed.get(&counted).copied().unwrap_or(0)
    }

    fn guaranteed(&self, counted: Counted) -> u64 {
        self.allowance(counted)
            .map_or(0, |allowed| allowed.guaranteed)
    }

    fn is_within_guaranteed(&self, counted: Counted, more: u64) -> bool {
        self.used.get(counted) + more <= self.guaranteed(counted)
    }

    fn stays(&self, counted: Counted) -> u64 {
        self.used
            .get(counted)
            .saturating_sub(self.leaving.get(counted))
    }
}

/// The quotas of one site, by the accounts of its shares.
#[derive(Debug, Clone, Default)]
pub struct Quotas {
    entries: Vec<Entry>,
}

impl Quotas {
    /// Sets the allowance of an account from now on. A workload that exceeds it keeps running until it ends.
    pub fn allow(&mut self, account: Account, counted: Counted, allowance: Option<Allowance>) {
        let allowed = &mut self.entry(account).allowed;
        let place = usize::from(counted.0);
        if allowed.len() <= place {
            allowed.resize(place + 1, None);
        }
        allowed[place] = allowance;
    }

    /// Sets the allowance of an account by hours. It applies from the next [`Quotas::turn`] on.
    pub fn schedule(&mut self, account: Account, counted: Counted, timetable: Option<Timetable>) {
        let entry = self.entry(account);
        match timetable {
            Some(timetable) => {
                entry.timetables.insert(counted, timetable);
            }
            None => {
                entry.timetables.remove(&counted);
                entry.ahead.remove(&counted);
                self.allow(account, counted, None);
            }
        }
    }

    /// Advances the clock. `local` converts a moment to the local time of the site. Returns the moment of the next
    /// change of an allowance; the caller calls again by then.
    pub fn turn(&mut self, now: Micros, local: impl Fn(Micros) -> LocalTime) -> Option<Micros> {
        let mut next: Option<Micros> = None;
        for entry in &mut self.entries {
            for (counted, timetable) in &entry.timetables {
                let (allowance, changes) = timetable.ahead(now, &local);
                let place = usize::from(counted.0);
                if entry.allowed.len() <= place {
                    entry.allowed.resize(place + 1, None);
                }
                entry.allowed[place] = allowance;
                next = next
                    .into_iter()
                    .chain(changes.first().map(|(at, _)| *at))
                    .min();
                let limit = |(at, allowance): &(Micros, Option<Allowance>)| {
                    (*at, allowance.and_then(|allowed| allowed.limit))
                };
                let limits = changes.iter().map(limit).collect();
                entry.ahead.insert(*counted, limits);
            }
        }
        next
    }

    /// Sets the budget of an account as its total and the part already spent by ended workloads; `None` for no budget.
    pub fn budget(&mut self, account: Account, counted: Counted, of: Option<(Volume, Volume)>) {
        let budgets = &mut self.entry(account).budgets;
        match of {
            Some((total, spent)) => budgets.insert(counted, Budget { total, spent }),
            None => budgets.remove(&counted),
        };
    }

    /// The amounts spent of a budget by ended workloads and committed by workloads that hold something.
    pub fn spent(&self, account: Account, counted: Counted) -> (Volume, Volume) {
        let entry = self.known(account);
        entry.map_or((0, 0), |entry| {
            let budget = entry.budgets.get(&counted);
            let spent = budget.map_or(0, |budget| budget.spent);
            (spent, entry.committed(counted))
        })
    }

    /// Commits budget for workloads that will run for `length` at most.
    pub fn commit(&mut self, tree: &Shares, account: Account, amounts: &Amounts, length: Micros) {
        for (counted, amount) in amounts.each() {
            let more = volume(amount, length);
            self.each_up(tree, account, |entry| {
                *entry.committed.entry(counted).or_default() += more;
            });
        }
    }

    /// Undoes [`Quotas::commit`].
    pub fn uncommit(&mut self, tree: &Shares, account: Account, amounts: &Amounts, length: Micros) {
        for (counted, amount) in amounts.each() {
            let less = volume(amount, length);
            self.each_up(tree, account, |entry| {
                let committed = entry.committed.entry(counted).or_default();
                *committed = committed.saturating_sub(less);
            });
        }
    }

    /// Spends budget for a workload that ran for `length`.
    pub fn spend(&mut self, tree: &Shares, account: Account, amounts: &Amounts, length: Micros) {
        for (counted, amount) in amounts.each() {
            self.each_up(tree, account, |entry| {
                if let Some(budget) = entry.budgets.get_mut(&counted) {
                    budget.spent += volume(amount, length);
                }
            });
        }
    }

    /// All limits of accounts, now and at each change ahead.
    pub(super) fn limits<'a>(
        &'a self,
        tree: &'a Shares,
    ) -> impl Iterator<Item = (Account, Counted, Option<u64>, &'a [Change])> + 'a {
        let entries = tree.all().filter_map(|at| Some((at, self.known(at)?)));
        entries.flat_map(|(account, entry)| {
            let counted = (0..entry.allowed.len()).map(|place| Counted(place as u8));
            counted.filter_map(move |counted| {
                let limit = entry.allowance(counted).and_then(|allowed| allowed.limit);
                let ahead = entry.ahead.get(&counted).map_or(&[][..], Vec::as_slice);
                let is_limited = limit.is_some() || !ahead.is_empty();
                is_limited.then_some((account, counted, limit, ahead))
            })
        })
    }

    /// The rest of budgets after ended workloads.
    pub(super) fn budgets<'a>(
        &'a self,
        tree: &'a Shares,
    ) -> impl Iterator<Item = ((Account, Counted), i128)> + 'a {
        let entries = tree.all().filter_map(|at| Some((at, self.known(at)?)));
        entries.flat_map(|(account, entry)| {
            let budgets = entry.budgets.iter();
            budgets.map(move |(counted, budget)| {
                let left = budget.total as i128 - budget.spent as i128;
                ((account, *counted), left)
            })
        })
    }

    /// Whether any account has a quota.
    pub fn are_set(&self) -> bool {
        let is_set = |entry: &Entry| {
            !entry.allowed.is_empty() || !entry.timetables.is_empty() || !entry.budgets.is_empty()
        };
        self.entries.iter().any(is_set)
    }

    pub fn used(&self, account: Account, counted: Counted) -> u64 {
        self.known(account)
            .map_or(0, |entry| entry.used.get(counted))
    }

    pub fn hold(&mut self, tree: &Shares, account: Account, amounts: &Amounts) {
        self.each_up(tree, account, |entry| entry.used.add(amounts));
    }

    pub fn free(&mut self, tree: &Shares, account: Account, amounts: &Amounts) {
        self.each_up(tree, account, |entry| entry.used.take(amounts));
    }

    /// Marks a part of the held amounts as preempted, so that nobody preempts it again.
    pub fn tell(&mut self, tree: &Shares, account: Account, amounts: &Amounts) {
        self.each_up(tree, account, |entry| entry.leaving.add(amounts));
    }

    /// Undoes [`Quotas::tell`].
    pub fn untell(&mut self, tree: &Shares, account: Account, amounts: &Amounts) {
        self.each_up(tree, account, |entry| entry.leaving.take(amounts));
    }

    /// Releases preempted amounts that are gone.
    pub fn free_told(&mut self, tree: &Shares, account: Account, amounts: &Amounts) {
        self.untell(tree, account, amounts);
        self.free(tree, account, amounts);
    }

    /// Whether an account may hold this much more.
    pub fn judge(&self, tree: &Shares, account: Account, more: &Amounts) -> Verdict {
        self.judge_each(tree, account, more.each(), None)
    }

    /// Whether an account may hold this much more for all of a time that begins now.
    pub fn judge_during(
        &self,
        tree: &Shares,
        account: Account,
        more: &Amounts,
        during: During,
    ) -> Verdict {
        self.judge_each(tree, account, more.each(), Some(during))
    }

    /// Whether an account may still hold amounts that count as held already.
    pub fn judge_held(&self, tree: &Shares, account: Account, held: &Amounts) -> Verdict {
        let nothing_more = held.each().map(|(counted, _)| (counted, 0));
        self.judge_each(tree, account, nothing_more, None)
    }

    fn judge_each(
        &self,
        tree: &Shares,
        account: Account,
        more: impl Iterator<Item = (Counted, u64)>,
        during: Option<During>,
    ) -> Verdict {
        let mut verdict = Verdict::Own;
        let mut lent = None;
        for (counted, amount) in more {
            match self.judge_one(tree, account, counted, amount, during) {
                Verdict::Own => {}
                Verdict::Borrowed => verdict = Verdict::Borrowed,
                is_lent @ Verdict::Lent { .. } => lent = Some(is_lent),
                refused => return refused,
            }
        }
        lent.unwrap_or(verdict)
    }

    fn judge_one(
        &self,
        tree: &Shares,
        account: Account,
        counted: Counted,
        amount: u64,
        during: Option<During>,
    ) -> Verdict {
        let to = during.map_or(Micros::MIN, |during| during.to);
        let used = during.map_or(0, |during| volume(amount, during.length()));
        let over = |(_, entry): &(Account, &Entry)| !entry.is_within_budget(counted, used);
        if let Some((account, _)) = self.up(tree, account).find(over) {
            return Verdict::OverBudget { account, counted };
        }
        let mut is_own = false;
        let mut is_rationed = false;
        for (at, entry) in self.up(tree, account) {
            let limit = entry.limit(counted, to);
            if entry.allowance(counted).is_none() && limit.is_none() {
                continue;
            }
            if limit.is_some_and(|limit| entry.used.get(counted) + amount > limit) {
                return match tree.parent(at) {
                    _ if is_own => Verdict::Lent {
                        account: at,
                        counted,
                    },
                    // The site's limit is all that exists; no account is at fault for reaching it.
                    None => Verdict::NothingIdle { counted },
                    Some(_) => Verdict::OverLimit {
                        account: at,
                        counted,
                    },
                };
            }
            if tree.parent(at).is_some() {
                is_rationed = true;
                is_own |= entry.is_within_guaranteed(counted, amount);
            }
        }
        match is_own || !is_rationed {
            true => Verdict::Own,
            false => Verdict::Borrowed,
        }
    }

    /// The amount to preempt, beyond everything already preempted, before an account may hold this much more.
    pub fn short_of(&self, account: Account, counted: Counted, more: u64, during: During) -> u64 {
        let Some(entry) = self.known(account) else {
            return 0;
        };
        let limit = entry.limit(counted, during.to).unwrap_or(u64::MAX);
        (entry.stays(counted) + more).saturating_sub(limit)
    }

    /// Whether an account holds more than its guaranteed part, without amounts that are being preempted. Then owners
    /// may ask it back.
    pub fn has_borrowed(&self, tree: &Shares, account: Account, amounts: &Amounts) -> bool {
        let borrowed = |counted| {
            let mut rationed = self.up(tree, account).filter(|(at, entry)| {
                tree.parent(*at).is_some() && entry.allowance(counted).is_some()
            });
            let first = rationed.next();
            first.is_some_and(|(_, entry)| entry.stays(counted) > entry.guaranteed(counted))
        };
        amounts.each().any(|(counted, _)| borrowed(counted))
    }

    fn entry(&mut self, account: Account) -> &mut Entry {
        let place = account.place();
        if self.entries.len() <= place {
            self.entries.resize(place + 1, Entry::default());
        }
        &mut self.entries[place]
    }

    fn known(&self, account: Account) -> Option<&Entry> {
        self.entries.get(account.place())
    }

    /// The account and all above it that have an entry.
    fn up<'a>(
        &'a self,
        tree: &'a Shares,
        account: Account,
    ) -> impl Iterator<Item = (Account, &'a Entry)> + 'a {
        tree.up(account)
            .filter_map(|account| Some((account, self.known(account)?)))
    }

    fn each_up(&mut self, tree: &Shares, account: Account, mut change: impl FnMut(&mut Entry)) {
        for account in tree.up(account) {
            change(self.entry(account));
        }
    }
}

#[cfg(test)]
mod tests;
