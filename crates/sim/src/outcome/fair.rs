//! The use of each project while workloads waited, against its fair share.
//!
//! In the end every project has all its work done, under any policy. A policy decides how much each project has while
//! there is not enough. So only that time counts. At each moment the use is divided among projects by their weights. A
//! project that wants no more than it has gets no larger share, and the rest goes to the others. Opportunistic
//! workloads are not counted at all.

use berth_engine::queue::Micros;

use super::seconds;

/// A project's part of the use while workloads waited.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    pub project: String,
    /// From 0 to 1, of all use.
    pub used: f64,
    pub due: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Account {
    weight: f64,
    /// Its current use in the fleet's price, and the numbers of its running and waiting workloads.
    rate: f64,
    running: usize,
    waiting: usize,
    used: f64,
    due: f64,
}

#[derive(Debug)]
pub(crate) struct Fairness {
    accounts: Vec<Account>,
    /// The projects with running or waiting workloads.
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
        // With nothing running, the rate must be exactly zero, in spite of rounding errors.
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

    /// Adds a period of this length to the sums.
    pub fn pass(&mut self, length: Micros) {
        let accounts = &mut self.accounts;
        self.active
            .retain(|place| accounts[*place].running + accounts[*place].waiting > 0);
        if self.waiting == 0 || length <= 0 {
            return;
        }
        let length_s = seconds(length);
        let used: f64 = self.active.iter().map(|place| accounts[*place].rate).sum();
        // A project that has no waiting workloads and uses little for its weight is served first. The rest goes to
        // projects that want more.
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

    /// The shares of each project with use or a fair share, and the total use beyond fair shares.
    pub fn finish<'a>(self, names: impl Iterator<Item = &'a str>) -> (Vec<Share>, f64) {
        let all: f64 = self.accounts.iter().map(|account| account.used).sum();
        let part = |of: f64| if all > 0.0 { of / all } else { 0.0 };
        // Over the whole time, because a missed turn is made up for later.
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
        // The first wants only a tenth; the rest is divided three to two.
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
