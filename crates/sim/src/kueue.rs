//! Reproduces Kueue's performance test of its scheduler: how long the same load takes here, and how long with perfect
//! packing.
//!
//! There are thirty queues in five cohorts of six. Each queue owns 20 of its cohort's 120 units and may borrow the
//! rest. Each gets 350 small workloads, 100 of medium size and 50 large ones, in three streams; larger ones have
//! priority, and a queue may reclaim the units it lent. (From the baseline of the project's
//! `test/performance/scheduler`; only the figures are taken from it.) Cohorts share nothing, so each is a site here.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::fleet::{Gpus, Mix, Models, Need, Node, Task};
use berth_engine::queue::Micros;
use berth_engine::queue::planner::{Ask, Decision, Key, Order, Planner, Policy, Start, Wish};
use berth_engine::queue::quota::{Allowance, Amounts, Counted};
use berth_engine::queue::share::{Account, Shares};

use crate::random::Random;

const COHORTS: usize = 5;
const QUEUES: usize = 6;
const OWNS: u64 = 20;
const UNITS: Counted = Counted(0);
const MILLISECOND: Micros = 1000;
const DAY: Micros = 86_400_000 * MILLISECOND;

/// One stream of identical workloads.
#[derive(Debug, Clone, Copy)]
struct Stream {
    count: usize,
    every_ms: i64,
    runs_ms: i64,
    units: u64,
    level: i32,
}

const STREAMS: [Stream; 3] = [
    Stream {
        count: 350,
        every_ms: 100,
        runs_ms: 200,
        units: 1,
        level: 50,
    },
    Stream {
        count: 100,
        every_ms: 500,
        runs_ms: 500,
        units: 5,
        level: 100,
    },
    Stream {
        count: 50,
        every_ms: 1200,
        runs_ms: 1000,
        units: 20,
        level: 200,
    },
];

#[derive(Debug, Clone, Copy)]
struct Workload {
    comes: Micros,
    queue: usize,
    stream: usize,
}

/// The outcome of the test.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub workloads: usize,
    /// When the last workload ended.
    pub took_s: f64,
    /// A lower bound for it.
    pub bound_s: f64,
    /// Number of preemptions of workloads on borrowed units.
    pub given_back: usize,
    /// Mean wait: small, medium, large.
    pub waited_s: [f64; 3],
}

impl Outcome {
    pub fn over_bound(&self) -> f64 {
        self.took_s / self.bound_s
    }
}

/// Runs all cohorts one after the other. The slowest one gives the total time.
pub fn run(seed: u64) -> Outcome {
    let random = Random::new(seed);
    let cohort = |number: usize| Cohort::new(random.fork(&format!("cohort {number}"))).run();
    let all: Vec<Outcome> = (0..COHORTS).map(cohort).collect();
    let largest = |of: fn(&Outcome) -> f64| all.iter().map(of).fold(0.0, f64::max);
    let mut waited_s = [0.0; 3];
    for one in &all {
        for (sum, waited) in waited_s.iter_mut().zip(one.waited_s) {
            *sum += waited / COHORTS as f64;
        }
    }
    Outcome {
        workloads: all.iter().map(|one| one.workloads).sum(),
        took_s: largest(|one| one.took_s),
        bound_s: largest(|one| one.bound_s),
        given_back: all.iter().map(|one| one.given_back).sum(),
        waited_s,
    }
}

#[derive(Debug)]
struct Cohort {
    planner: Planner,
    queues: Vec<Account>,
    crowd: Vec<Workload>,
    now: Micros,
    next: usize,
    ends: BTreeSet<(Micros, Key)>,
    runs: BTreeMap<Key, Micros>,
    given_back: usize,
    waited: [Micros; 3],
}

impl Cohort {
    fn new(mut random: Random) -> Cohort {
        let all = OWNS * QUEUES as u64;
        let node = Node {
            cpu_milli: all * 1000,
            memory_bytes: 0,
            gpus: Vec::new(),
            rack: 0,
            until_us: i64::MAX,
        };
        let mut shares = Shares::new(DAY, 0);
        let queues: Vec<Account> = (0..QUEUES).map(|_| shares.add_project(1.0)).collect();
        // Workloads here last a second at most, and a preempted one stops at once.
        let policy = Policy {
            grace: 0,
            run_min: 0,
            ..Policy::new(Order::Shares)
        };
        let mix = Mix::default();
        let mut planner = Planner::new(policy, &[node], mix, all as f64, shares, 0);
        for queue in &queues {
            let allowance = Allowance {
                guaranteed: OWNS,
                limit: Some(all),
            };
            planner.quotas.allow(*queue, UNITS, Some(allowance));
        }
        let mut crowd = Vec::new();
        for queue in 0..QUEUES {
            for (number, stream) in STREAMS.iter().enumerate() {
                // Each stream begins at a different moment.
                let first = random.below(stream.every_ms as usize) as i64;
                crowd.extend((0..stream.count as i64).map(|place| Workload {
                    comes: (first + place * stream.every_ms) * MILLISECOND,
                    queue,
                    stream: number,
                }));
            }
        }
        crowd.sort_by_key(|workload| (workload.comes, workload.queue, workload.stream));
        Cohort {
            planner,
            queues,
            crowd,
            now: 0,
            next: 0,
            ends: BTreeSet::new(),
            runs: BTreeMap::new(),
            given_back: 0,
            waited: [0; 3],
        }
    }

    fn run(mut self) -> Outcome {
        loop {
            self.plan();
            let comes = self.crowd.get(self.next).map(|workload| workload.comes);
            let ends = self.ends.first().map(|(at, _)| *at);
            let looks = self.planner.next_look(self.now);
            let Some(next) = [comes, ends, looks].into_iter().flatten().min() else {
                break;
            };
            self.now = self.now.max(next);
            while let Some((at, key)) = self.ends.first().copied()
                && at <= self.now
            {
                self.end((at, key));
            }
            while let Some(workload) = self.crowd.get(self.next)
                && workload.comes <= self.now
            {
                self.submit(Key(self.next as u64));
                self.next += 1;
            }
        }
        let count = |stream: usize| (QUEUES * STREAMS[stream].count) as f64;
        let seconds = |micros: Micros| micros as f64 / 1e6;
        Outcome {
            workloads: self.crowd.len(),
            took_s: seconds(self.now),
            bound_s: seconds(self.bound()),
            given_back: self.given_back,
            waited_s: [0, 1, 2].map(|stream| seconds(self.waited[stream]) / count(stream)),
        }
    }

    /// After any moment, the remaining workloads need at least their total work divided by all units.
    fn bound(&self) -> Micros {
        let all = (OWNS * QUEUES as u64) as i64;
        let mut work = 0;
        let mut bound = 0;
        for workload in self.crowd.iter().rev() {
            let stream = STREAMS[workload.stream];
            work += stream.units as i64 * stream.runs_ms * MILLISECOND;
            bound = bound.max(workload.comes + work / all);
        }
        bound
    }

    fn plan(&mut self) {
        // A preempted workload stops at once, so its units are free in the next round.
        loop {
            let decided = self.planner.plan(self.now);
            let mut has_given_back = false;
            for decision in decided {
                match decision {
                    Decision::Start(start) => self.begin(&start),
                    Decision::Stop(stop) => {
                        has_given_back = true;
                        self.give_back(stop.key);
                    }
                    Decision::TooLate(_) => {}
                }
            }
            if !has_given_back {
                return;
            }
        }
    }

    fn begin(&mut self, start: &Start) {
        let workload = self.crowd[start.key.0 as usize];
        let end = self.now + STREAMS[workload.stream].runs_ms * MILLISECOND;
        self.waited[workload.stream] += self.now - workload.comes;
        self.ends.insert((end, start.key));
        self.runs.insert(start.key, end);
    }

    fn end(&mut self, (at, key): (Micros, Key)) {
        self.ends.remove(&(at, key));
        self.runs.remove(&key);
        self.planner.end(key, self.now);
    }

    fn give_back(&mut self, key: Key) {
        if let Some(at) = self.runs.get(&key).copied() {
            self.end((at, key));
            self.given_back += 1;
            let workload = self.crowd[key.0 as usize];
            // Its wait counts once: until its final start.
            let began = at - STREAMS[workload.stream].runs_ms * MILLISECOND;
            self.waited[workload.stream] -= began - workload.comes;
            self.submit(key);
        }
    }

    fn submit(&mut self, key: Key) {
        let workload = self.crowd[key.0 as usize];
        let stream = STREAMS[workload.stream];
        let task = Task {
            cpu_milli: stream.units * 1000,
            memory_bytes: 0,
            gpus: Gpus::None,
            models: Models::ANY,
            gpu_memory_bytes: 0,
        };
        let wish = Wish {
            need: Need {
                until_us: 0,
                ..Need::one(task)
            },
            limit: stream.runs_ms * MILLISECOND,
            expected: stream.runs_ms * MILLISECOND,
            amounts: Amounts::of([(UNITS, stream.units)]),
            rate: stream.units as f64,
        };
        let ask = Ask {
            level: stream.level,
            ..Ask::new(self.queues[workload.queue], wish, workload.comes)
        };
        self.planner.submit(key, ask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crowd_is_done_in_little_more_time_than_perfect_packing_takes() {
        let outcome = run(1);
        assert_eq!(outcome.workloads, 15_000);
        assert!(outcome.bound_s > 65.0, "{outcome:?}");
        let over = outcome.over_bound();
        assert!((1.0..1.25).contains(&over), "{over}: {outcome:?}");
        assert!(outcome.given_back > 0, "nobody had to give anything back");
    }
}
