//! How much of the counted things an account may hold: a hard limit, a guaranteed part, and what others leave idle.
//!
//! A site's total is what there is to have. Each project below it may have a guaranteed part, which nobody else's use
//! can take from it for long: whoever holds more than their own guaranteed part has *borrowed*, and gives back
//! when it is asked for. A hard limit ends borrowing. A person's limits work the same within their project.
//!
//! Who belongs to whom is the [`Shares`]' to say. What is used is the planner's own sum of what it let begin; the promise that nothing
//! is exceeded is kept where claims are written, in the transaction that writes them.

use super::share::{Account, Shares};

/// One counted thing: GPUs of a model, CPU, memory, seats of a licence. The caller numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counted(pub u8);

/// So much of some counted things; what is not named is none.
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

    /// Those that are not zero.
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

/// What an account is allowed of one counted thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    pub guaranteed: u64,
    /// None: as much as there is.
    pub limit: Option<u64>,
}

/// Whether something may be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Within what is guaranteed to everybody on the way up. If there is no room, those who borrowed give back.
    Own,
    /// More than guaranteed, out of what others leave idle.
    Borrowed,
    /// Everything is in use, part of it lent to others or owned by them: it has to wait.
    NothingIdle { counted: Counted },
    /// More than this account may ever hold at once, with what it holds already.
    OverLimit { account: Account, counted: Counted },
}

impl Verdict {
    pub fn is_allowed(self) -> bool {
        matches!(self, Verdict::Own | Verdict::Borrowed)
    }
}

#[derive(Debug, Clone, Default)]
struct Entry {
    allowed: Vec<Option<Allowance>>,
    used: Amounts,
    /// What of it is told to go, and counts until it is gone.
    leaving: Amounts,
}

impl Entry {
    fn allowance(&self, counted: Counted) -> Option<Allowance> {
        *self.allowed.get(usize::from(counted.0))?
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
    /// What an account is allowed from now on; more than that which is held already stays until it ends.
    pub fn allow(&mut self, account: Account, counted: Counted, allowance: Option<Allowance>) {
        let allowed = &mut self.entry(account).allowed;
        let place = usize::from(counted.0);
        if allowed.len() <= place {
            allowed.resize(place + 1, None);
        }
        allowed[place] = allowance;
    }

    /// Whether anything is rationed at all.
    pub fn are_set(&self) -> bool {
        self.entries.iter().any(|entry| !entry.allowed.is_empty())
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

    /// Some of what is held is told to go: nobody has to ask for it again.
    pub fn tell(&mut self, tree: &Shares, account: Account, amounts: &Amounts) {
        self.each_up(tree, account, |entry| entry.leaving.add(amounts));
    }

    /// What was told to go has gone.
    pub fn free_told(&mut self, tree: &Shares, account: Account, amounts: &Amounts) {
        self.each_up(tree, account, |entry| entry.leaving.take(amounts));
        self.free(tree, account, amounts);
    }

    /// Whether an account may hold so much more.
    pub fn judge(&self, tree: &Shares, account: Account, more: &Amounts) -> Verdict {
        self.judge_each(tree, account, more.each())
    }

    /// Whether it may still hold what is counted as held already.
    pub fn judge_held(&self, tree: &Shares, account: Account, held: &Amounts) -> Verdict {
        let nothing_more = held.each().map(|(counted, _)| (counted, 0));
        self.judge_each(tree, account, nothing_more)
    }

    fn judge_each(
        &self,
        tree: &Shares,
        account: Account,
        more: impl Iterator<Item = (Counted, u64)>,
    ) -> Verdict {
        let mut verdict = Verdict::Own;
        for (counted, amount) in more {
            match self.judge_one(tree, account, counted, amount) {
                Verdict::Own => {}
                Verdict::Borrowed => verdict = Verdict::Borrowed,
                refused => return refused,
            }
        }
        verdict
    }

    fn judge_one(&self, tree: &Shares, account: Account, counted: Counted, amount: u64) -> Verdict {
        let mut is_own = false;
        let mut is_rationed = false;
        for (at, entry) in self.up(tree, account) {
            let Some(allowed) = entry.allowance(counted) else {
                continue;
            };
            if allowed
                .limit
                .is_some_and(|limit| entry.used.get(counted) + amount > limit)
            {
                // The site's limit is what there is; reaching it is no one's fault.
                return match tree.parent(at) {
                    None if is_own => Verdict::Own,
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

    /// Whether what an account holds, and will go on to, is more than what is guaranteed to it, so that others may ask it back.
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

    /// The account and all above it, those of which anything is known.
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
