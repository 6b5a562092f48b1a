//! Measures the wait of short jobs behind ten thousand jobs of another person.
//!
//! One person's jobs fill a site of thirty nodes for days. Now and then other people submit one GPU for ten minutes.

use std::collections::BTreeSet;

use berth_engine::fleet::{Gpu, Gpus, Mix, Mode, Model, Models, Need, Node, Task};
use berth_engine::queue::Micros;
use berth_engine::queue::planner::{Ask, Decision, Key, Order, Planner, Policy, Wish};
use berth_engine::queue::quota::Amounts;
use berth_engine::queue::share::{Account, Shares};

use crate::random::Random;

const NODES: usize = 30;
const GPUS: usize = 8;
const MANY: u64 = 10_000;
const NEWCOMERS: usize = 200;
const MINUTE: Micros = 60_000_000;
const HOUR: Micros = 60 * MINUTE;
const GIB: u64 = 1 << 30;

/// The wait of each short job, in seconds.
pub fn waits_s(seed: u64) -> Vec<f64> {
    let mut site = Site::new(seed);
    let mut comes = 2 * HOUR;
    let arrivals: Vec<Micros> = (0..NEWCOMERS)
        .map(|_| {
            comes += MINUTE * (1 + site.random.below(30) as Micros);
            comes
        })
        .collect();
    for comes in arrivals {
        site.go_on(Some(comes));
        site.newcomer();
    }
    while site.waits_s.len() < NEWCOMERS {
        site.go_on(None);
    }
    site.waits_s
}

struct Site {
    planner: Planner,
    random: Random,
    now: Micros,
    ends: BTreeSet<(Micros, Key)>,
    project: Account,
    newcomers: Vec<(Key, Micros)>,
    waits_s: Vec<f64>,
}

impl Site {
    fn new(seed: u64) -> Site {
        let gpu = Gpu {
            model: Model::new(0).unwrap_or_else(|| unreachable!("there are 64 models")),
            memory_bytes: 80 * GIB,
            link: Some(0),
            mode: Mode::Shared,
        };
        let node = Node {
            cpu_milli: 128_000,
            memory_bytes: 1024 * GIB,
            gpus: vec![gpu; GPUS],
            rack: 0,
            until_us: i64::MAX,
        };
        let mut shares = Shares::new(7 * 24 * HOUR, 0);
        let busy = shares.add_project(1.0);
        let busy = shares.person(busy, 0);
        let project = shares.add_project(1.0);
        let whole = (NODES * GPUS) as f64;
        let policy = Policy::new(Order::Shares);
        let nodes = vec![node; NODES];
        let mut planner = Planner::new(policy, &nodes, Mix::default(), whole, shares, 0);
        let mut random = Random::new(seed);
        for number in 0..MANY {
            let gpus = [1, 1, 1, 2, 4, 8][random.below(6)];
            let limit = HOUR * (1 + random.below(8) as Micros);
            planner.submit(Key(number), ask(busy, gpus, limit, 0));
        }
        Site {
            planner,
            random,
            now: 0,
            ends: BTreeSet::new(),
            project,
            newcomers: Vec::new(),
            waits_s: Vec::new(),
        }
    }

    /// A new person submits one GPU for ten minutes.
    fn newcomer(&mut self) {
        let number = MANY + self.newcomers.len() as u64;
        let person = self.planner.shares.person(self.project, number);
        let ask = ask(person, 1, 10 * MINUTE, self.now);
        self.planner.submit(Key(number), ask);
        self.newcomers.push((Key(number), self.now));
        self.plan();
    }

    /// Advances to `until`, or to the next event for `None`.
    fn go_on(&mut self, until: Option<Micros>) {
        loop {
            let end = self.ends.first().map(|(at, _)| *at);
            let look = self.planner.next_look(self.now);
            let next = [end, look].into_iter().flatten().min();
            let Some(next) = until.into_iter().chain(next).min() else {
                return;
            };
            self.now = self.now.max(next);
            while let Some((at, key)) = self.ends.first().copied()
                && at <= self.now
            {
                self.ends.remove(&(at, key));
                self.planner.end(key, at);
            }
            self.plan();
            if until.is_none_or(|until| until <= self.now) {
                return;
            }
        }
    }

    fn plan(&mut self) {
        for decision in self.planner.plan(self.now) {
            let Decision::Start(start) = decision else {
                continue;
            };
            // Most jobs end before their limit.
            let limit = start.until - self.now;
            let runs = limit / 5 + self.random.below((limit / 5 * 4) as usize) as Micros;
            self.ends.insert((self.now + runs, start.key));
            if let Some((_, came)) = self.newcomers.iter().find(|(key, _)| *key == start.key) {
                self.waits_s.push((self.now - came) as f64 / 1e6);
            }
        }
    }
}

fn ask(account: Account, gpus: u16, limit: Micros, since: Micros) -> Ask {
    let task = Task {
        cpu_milli: 8000 * u64::from(gpus),
        memory_bytes: 64 * GIB * u64::from(gpus),
        gpus: Gpus::Whole(gpus),
        models: Models::ANY,
        gpu_memory_bytes: 0,
    };
    let wish = Wish {
        need: Need {
            until_us: 0,
            ..Need::one(task)
        },
        limit,
        expected: limit,
        amounts: Amounts::default(),
        rate: f64::from(gpus),
    };
    Ask::new(account, wish, since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_short_begins_within_a_quarter_of_an_hour_behind_ten_thousand_of_one_person() {
        let mut waits_s = waits_s(1);
        assert_eq!(waits_s.len(), NEWCOMERS);
        waits_s.sort_by(f64::total_cmp);
        let p95 = waits_s[NEWCOMERS * 95 / 100 - 1];
        assert!(p95 < 900.0, "{p95} s");
        assert!(p95 > 0.0, "the site was never full");
    }
}
