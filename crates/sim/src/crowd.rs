//! A synthetic large site for measuring the planner: everything that fits is running, ten thousand reservations lie
//! ahead, and the queue is long.

use berth_engine::fleet::{
    Gpu, Gpus, Mix, Mode, Model, Models, Need, Node, NodeIndex, Part, Piece, Placement, Task,
};
use berth_engine::queue::Micros;
use berth_engine::queue::planner::{Ask, Decision, Key, Order, Planner, Policy, Wish};
use berth_engine::queue::quota::Amounts;
use berth_engine::queue::share::{Account, Shares};

use crate::random::Random;

const HOUR: Micros = 3_600_000_000;
const DAY: Micros = 24 * HOUR;
const NODES: usize = 1250;
const GPUS: usize = 8;
const RESERVATIONS: usize = 10_000;
const PROJECTS: usize = 20;
const PEOPLE: usize = 10;
/// The running workloads end before this, and the reservations begin after it.
const RUNS_MAX: Micros = 2 * DAY;
const GIB: u64 = 1 << 30;

/// The time limits of the waiting workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// One of a few lengths, as people choose from a form.
    Few,
    /// All different, as programs compute them.
    Varied,
}

/// A planner in the middle of a busy day.
#[derive(Debug)]
pub struct Crowd {
    pub planner: Planner,
    pub now: Micros,
    /// The running workloads.
    pub running: Vec<Key>,
    random: Random,
    people: Vec<Account>,
    limits: Limits,
    next: u64,
}

impl Crowd {
    /// A site with `queued` waiting workloads.
    pub fn new(queued: usize, limits: Limits, seed: u64) -> Crowd {
        let mut random = Random::new(seed);
        let gpu = Gpu {
            model: Model::new(0).unwrap_or_else(|| unreachable!("there are 64 models")),
            memory_bytes: 80 * GIB,
            link: Some(0),
            mode: Mode::Shared,
        };
        let node = |number: usize| Node {
            cpu_milli: 128_000,
            memory_bytes: 1024 * GIB,
            gpus: vec![gpu; GPUS],
            rack: number as u32 / 10,
            until_us: i64::MAX,
        };
        let nodes: Vec<Node> = (0..NODES).map(node).collect();
        let mut shares = Shares::new(7 * DAY, 0);
        let mut people = Vec::new();
        for project in 0..PROJECTS {
            let project = shares.add_project(1.0 + (project % 4) as f64);
            people.extend((0..PEOPLE).map(|person| shares.person(project, person as u64)));
        }
        let mix = Mix::of((0..64).map(|_| (task(&mut random), 1)));
        let whole = (NODES * GPUS) as f64;
        let planner = Planner::new(Policy::new(Order::Shares), &nodes, mix, whole, shares, 0);
        let mut crowd = Crowd {
            planner,
            now: 0,
            running: Vec::new(),
            random,
            people,
            limits,
            next: 0,
        };
        crowd.fill();
        crowd.reserve();
        for _ in 0..queued {
            crowd.arrive();
        }
        crowd
    }

    /// Submits one workload.
    pub fn arrive(&mut self) -> Key {
        let ask = self.ask();
        let key = Key(self.next);
        self.next += 1;
        self.planner.submit(key, ask);
        key
    }

    /// Ends one running workload.
    pub fn end_one(&mut self) {
        let place = self.random.below(self.running.len());
        if place < self.running.len() {
            let key = self.running.swap_remove(place);
            self.planner.end(key, self.now);
        }
    }

    /// Advances the time, and ends the workloads that have reached their limits.
    pub fn advance(&mut self, by: Micros) {
        self.now += by;
        let over = self
            .planner
            .running()
            .filter(|(_, one)| one.until <= self.now);
        let mut over: Vec<Key> = over.map(|(key, _)| key).collect();
        over.sort_unstable();
        for key in &over {
            self.planner.end(*key, self.now);
        }
        self.running.retain(|key| over.binary_search(key).is_err());
    }

    /// One scheduling round. Returns the number of started workloads.
    pub fn plan(&mut self) -> usize {
        let begun = self
            .planner
            .plan(self.now)
            .into_iter()
            .filter_map(|one| match one {
                Decision::Start(start) => Some(start.key),
                Decision::Stop(_) | Decision::TooLate(_) => None,
            });
        let before = self.running.len();
        self.running.extend(begun);
        self.running.len() - before
    }

    fn ask(&mut self) -> Ask {
        let task = task(&mut self.random);
        let tasks = if self.random.below(50) == 0 { 4 } else { 1 };
        let limit = match self.limits {
            Limits::Few => (RUNS_MAX >> self.random.below(7)) - HOUR / 8,
            Limits::Varied => HOUR / 4 + self.random.below((RUNS_MAX - HOUR) as usize) as Micros,
        };
        let gpus = f64::from(task.gpus.thousandths()) / 1000.0;
        let wish = Wish {
            need: Need {
                tasks,
                until_us: 0,
                ..Need::one(task)
            },
            limit,
            expected: limit,
            amounts: Amounts::default(),
            rate: gpus * f64::from(tasks),
        };
        let account = self.people[self.random.below(self.people.len())];
        Ask::new(account, wish, self.now)
    }

    /// Submits and starts workloads until nothing more fits.
    fn fill(&mut self) {
        loop {
            for _ in 0..2000 {
                self.arrive();
            }
            if self.plan() < 20 {
                break;
            }
        }
        for key in 0..self.next {
            self.planner.withdraw(Key(key));
        }
    }

    /// One GPU or a whole node, for one to twelve hours, in the four weeks after the running workloads have ended.
    fn reserve(&mut self) {
        let mut taken = vec![0_u64; NODES * GPUS];
        for number in 0..RESERVATIONS as u64 {
            let node = self.random.below(NODES);
            let is_whole = self.random.below(10) == 0;
            let slot = self.random.below(56);
            let first = self.random.below(GPUS);
            let gpus = if is_whole { 0..GPUS } else { first..first + 1 };
            let is_free = |gpu: usize| taken[node * GPUS + gpu] & (1 << slot) == 0;
            if !gpus.clone().all(is_free) {
                continue;
            }
            for gpu in gpus.clone() {
                taken[node * GPUS + gpu] |= 1 << slot;
            }
            let from = RUNS_MAX + slot as Micros * 12 * HOUR;
            let to = from + (1 + self.random.below(12)) as Micros * HOUR;
            let part = |gpu: usize| Part {
                gpu: gpu as u16,
                thousandths: 1000,
            };
            let piece = Piece {
                node: NodeIndex(node as u32),
                cpu_milli: 8000 * gpus.len() as u64,
                memory_bytes: 64 * GIB * gpus.len() as u64,
                gpus: gpus.map(part).collect(),
            };
            let pieces = vec![piece];
            self.planner
                .reserve(number, from, to, &Placement { pieces });
        }
    }
}

/// Mostly one GPU; sometimes two, four or eight, or a share of one.
fn task(random: &mut Random) -> Task {
    let gpus = match random.below(20) {
        0 => Gpus::Whole(8),
        1..3 => Gpus::Whole(4),
        3..6 => Gpus::Whole(2),
        6..8 => Gpus::Share(500),
        _ => Gpus::Whole(1),
    };
    let per_gpu = [4, 8, 12][random.below(3)];
    let gpu_parts = u64::from(gpus.thousandths());
    Task {
        cpu_milli: per_gpu * gpu_parts,
        memory_bytes: 8 * per_gpu * GIB * gpu_parts / 1000,
        gpus,
        models: Models::ANY,
        gpu_memory_bytes: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_is_full_and_what_ends_is_taken_by_somebody_who_waits() {
        let mut crowd = Crowd::new(200, Limits::Varied, 1);
        assert!(crowd.running.len() > 2000, "{}", crowd.running.len());
        crowd.plan();
        let before = crowd.planner.waiting();
        let begun: usize = (0..20)
            .map(|_| {
                crowd.end_one();
                crowd.plan()
            })
            .sum();
        assert!(begun > 0);
        assert_eq!(crowd.planner.waiting() + begun, before);
    }
}
