//! Who got what while somebody waited, against what was due to them.
//!
//! When all is done, everybody had what they asked for, whatever the policy; what it decides is who has how much while there is
//! not enough. So only that time counts. What is used at a moment is due to projects by their weights; one that wants no more
//! than it has is due no more than that, and what it leaves is due to the others. What is opportunistic is not counted at all.

use berth_engine::queue::Micros;

use super::seconds;

/// A project's part of what was used while somebody waited.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    pub project: String,
    /// From 0 to 1, of what all used.
    pub used: f64,
    pub due: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Account {
    weight: f64,
    /// What it has at the moment, in the fleet's price, and how many of its workloads run and wait.
    rate: f64,
    running: usize,
    waiting: usize,
    used: f64,
    due: f64,
}

#[derive(Debug)]
pub(crate) struct Fairness {
    accounts: Vec<Account>,
    /// Those that run or wait for anything.
    active: Vec<usize>,
    waiting: usize,
}

impl Fairness {
    pub fn new(weights: impl Iterator<Item = f64>) -> Fairness {
        let account = |weight| Account {
            weight,
            ..Account::default()
        };
        Fairness {
            accounts: weights.map(account).collect(),
            active: Vec::new(),
            waiting: 0,
        }
    }

    pub fn waits(&mut self, project: usize) {
        self.is_active(project);
        self.accounts[project].waiting += 1;
        self.waiting += 1;
    }

    pub fn begins(&mut self, project: usize, rate: f64) {
        let account = &mut self.accounts[project];
        account.waiting -= 1;
        account.running += 1;
        account.rate += rate;
        self.waiting -= 1;
    }

    pub fn ends(&mut self, project: usize, rate: f64) {
        let account = &mut self.accounts[project];
        account.running -= 1;
        // Nothing is exactly nothing, whatever was rounded on the way.
        account.rate = match account.running {
            0 => 0.0,
            _ => account.rate - rate,
        };
    }

    fn is_active(&mut self, project: usize) {
        let account = &self.accounts[project];
        if account.running + account.waiting == 0 && !self.active.contains(&project) {
            self.active.push(project);
        }
    }

    /// So much time goes by.
    pub fn pass(&mut self, length: Micros) {
        let accounts = &mut self.accounts;
        self.active
            .retain(|place| accounts[*place].running + accounts[*place].waiting > 0);
        if self.waiting == 0 || length <= 0 {
            return;
        }
        let length_s = seconds(length);
        let used: f64 = self.active.iter().map(|place| accounts[*place].rate).sum();
        // Whoever is content with little for their weight is served first; the rest is for those who want more.
        let ask = |account: &Account| match account.waiting {
            0 => account.rate / account.weight,
            _ => f64::INFINITY,
        };
        self.active.sort_by(|a, b| {
            ask(&accounts[*a])
                .total_cmp(&ask(&accounts[*b]))
                .then(a.cmp(b))
        });
        let mut left = used;
        let mut weights: f64 = self
            .active
            .iter()
            .map(|place| accounts[*place].weight)
            .sum();
        for place in &self.active {
            let account = &mut accounts[*place];
            let part = left * account.weight / weights;
            let due = match account.waiting {
                0 => part.min(account.rate),
                _ => part,
            };
            weights -= account.weight;
            left -= due;
            account.used += account.rate * length_s;
            account.due += due * length_s;
        }
    }

    /// Of each project that used anything or was due anything, and what went astray of all of it.
    pub fn finish<'a>(self, names: impl Iterator<Item = &'a str>) -> (Vec<Share>, f64) {
        let all: f64 = self.accounts.iter().map(|account| account.used).sum();
        let part = |of: f64| if all > 0.0 { of / all } else { 0.0 };
        // Over all the time, since a turn that is missed is made up for later.
        let beyond = |account: &Account| (account.used - account.due).max(0.0);
        let astray = self.accounts.iter().map(beyond).sum();
        let shares = self.accounts.iter().zip(names);
        let shares = shares.filter(|(account, _)| account.used > 0.0 || account.due > 0.0);
        let share = |(account, name): (&Account, &str)| Share {
            project: name.to_owned(),
            used: part(account.used),
            due: part(account.due),
        };
        (shares.map(share).collect(), part(astray))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swf::SECOND;

    fn shares(fairness: Fairness) -> Vec<(f64, f64)> {
        let (shares, _) = fairness.finish(["a", "b", "c"].into_iter());
        let round = |part: f64| (part * 1000.0).round() / 1000.0;
        shares
            .iter()
            .map(|share| (round(share.used), round(share.due)))
            .collect()
    }

    #[test]
    fn what_one_leaves_is_due_to_the_others_by_their_weights() {
        let mut fairness = Fairness::new([5.0, 3.0, 2.0].into_iter());
        for (project, rate) in [(0, 1.0), (1, 6.0), (2, 3.0)] {
            fairness.waits(project);
            fairness.begins(project, rate);
        }
        fairness.pass(SECOND);
        assert_eq!(shares(fairness), [], "nobody waited");

        let mut fairness = Fairness::new([5.0, 3.0, 2.0].into_iter());
        for (project, rate) in [(0, 1.0), (1, 6.0), (2, 3.0)] {
            fairness.waits(project);
            fairness.begins(project, rate);
        }
        fairness.waits(1);
        fairness.waits(2);
        fairness.pass(SECOND);
        // The first is content with a tenth; of the rest three fifths and two fifths are due.
        assert_eq!(shares(fairness), [(0.1, 0.1), (0.6, 0.54), (0.3, 0.36)]);
    }

    #[test]
    fn what_goes_to_others_is_counted() {
        let mut fairness = Fairness::new([1.0, 1.0].into_iter());
        fairness.waits(0);
        fairness.begins(0, 4.0);
        fairness.waits(1);
        fairness.pass(SECOND);
        let (shares, astray) = fairness.finish(["a", "b"].into_iter());
        assert_eq!((shares[0].used, shares[0].due), (1.0, 0.5));
        assert_eq!(astray, 0.5);
    }
}
