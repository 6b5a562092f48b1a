//! Jobs that come, wait, run and end on a machine of equal processors, around reservations.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use berth_engine::fleet::{Gpus, Mix, Models, Need, Node, NodeIndex, Piece, Placement, Task};
use berth_engine::queue::Micros;
use berth_engine::queue::history::{History, Kind};
use berth_engine::queue::planner::{Ask, Decision, Key, Order, Planner, Policy, Why, Wish};
use berth_engine::queue::quota::Amounts;
use berth_engine::queue::share::{Account, Shares};

use crate::random::Random;
use crate::swf::{Job, SECOND};

const HOUR: Micros = 3600 * SECOND;
const DAY: Micros = 24 * HOUR;
/// A job shorter than this counts as long as this: what takes no time at all cannot be slowed down.
const TAU_S: f64 = 10.0;

/// What is reserved of a machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wall {
    pub from: Micros,
    pub to: Micros,
    /// When it was reserved.
    pub known: Micros,
    pub processors: Vec<u32>,
}

/// How it is played.
#[derive(Debug, Clone)]
pub struct Play {
    pub processors: u32,
    pub times: Times,
    pub walls: Vec<Wall>,
}

/// By what the short are told from the long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// By what they asked for.
    Asked,
    /// By what their owners' last ones took.
    Predicted,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    pub slowdown_mean: f64,
    pub slowdown_max: f64,
    pub wait_mean_s: f64,
    /// For how long reservations had to wait for jobs, together.
    pub late_s: f64,
    pub promises: usize,
    /// Promises that came to be later than they were made for.
    pub broken: usize,
}

/// Reservations of a tenth of the machine over the time of the jobs, each known seven days ahead: one to 32 processors for one to eight
/// hours, never more than half of the machine at once.
pub fn a_tenth_reserved(jobs: &[Job], processors: u32, seed: u64) -> Vec<Wall> {
    const AHEAD: Micros = 7 * DAY;
    const STEP: Micros = 900 * SECOND;
    let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else {
        return Vec::new();
    };
    let (from, to) = (first.submit + AHEAD, last.submit);
    let steps = usize::try_from((to - from) / STEP).unwrap_or(0);
    let wanted = (to - from) as f64 * f64::from(processors) / 10.0;
    let mut random = Random::new(seed);
    let mut taken: Vec<BTreeMap<Micros, Micros>> = vec![BTreeMap::new(); processors as usize / 2];
    let widest = taken.len().min(32);
    let mut walls = Vec::new();
    let mut area = 0.0;
    while area < wanted && steps > 0 && widest > 0 {
        let length = (1 + random.below(8)) as Micros * HOUR;
        let start = from + random.below(steps) as Micros * STEP;
        let end = start + length;
        let count = 1 + random.below(widest);
        let is_free = |(_, taken): &(u32, &BTreeMap<Micros, Micros>)| {
            let before = taken.range(..end).next_back();
            before.is_none_or(|(_, end)| *end <= start)
        };
        let free = (0..).zip(&taken).filter(is_free).map(|(one, _)| one);
        let chosen: Vec<u32> = free.take(count).collect();
        if chosen.len() < count {
            continue;
        }
        for one in &chosen {
            taken[*one as usize].insert(start, end);
        }
        area += count as f64 * length as f64;
        walls.push(Wall {
            from: start,
            to: end,
            known: start - AHEAD,
            processors: chosen,
        });
    }
    walls.sort();
    walls
}

/// Plays all of it.
pub fn replay(jobs: &[Job], play: &Play) -> Outcome {
    let mut world = World::new(jobs, play);
    while world.go_on() {
        world.plan();
    }
    world.outcome()
}

struct World<'a> {
    jobs: &'a [Job],
    play: &'a Play,
    queue: Planner,
    account: Account,
    history: History,
    now: Micros,
    next_job: usize,
    next_known: usize,
    next_wall: usize,
    wall_ends: BTreeSet<Micros>,
    ends: BTreeSet<(Micros, usize)>,
    waiting: BTreeSet<usize>,
    /// Who is on each processor, and where each job is.
    on: Vec<Option<usize>>,
    of: HashMap<usize, Placement>,
    promised: HashMap<usize, Micros>,
    slowdowns: Vec<f64>,
    waited_s: f64,
    late_s: f64,
    promises: usize,
    broken: usize,
}

impl<'a> World<'a> {
    fn new(jobs: &'a [Job], play: &'a Play) -> World<'a> {
        let now = jobs.first().map_or(0, |job| job.submit);
        let processor = Node {
            cpu_milli: 1000,
            memory_bytes: 0,
            gpus: Vec::new(),
            rack: 0,
            until_us: i64::MAX,
        };
        let nodes = vec![processor; play.processors as usize];
        let shares = Shares::new(7 * DAY, now);
        let whole = f64::from(play.processors);
        // The published runs know no shares.
        let queue = Planner::new(
            Policy::new(Order::Shortest),
            &nodes,
            Mix::default(),
            whole,
            shares,
            now,
        );
        World {
            jobs,
            play,
            account: queue.shares.site(),
            queue,
            history: History::default(),
            now,
            next_job: 0,
            next_known: 0,
            next_wall: 0,
            wall_ends: BTreeSet::new(),
            ends: BTreeSet::new(),
            waiting: BTreeSet::new(),
            on: vec![None; play.processors as usize],
            of: HashMap::new(),
            promised: HashMap::new(),
            slowdowns: Vec::new(),
            waited_s: 0.0,
            late_s: 0.0,
            promises: 0,
            broken: 0,
        }
    }

    /// Goes on to the next moment at which anything happens, and lets it happen; ends come first. Not so when all is over.
    fn go_on(&mut self) -> bool {
        if self.next_job == self.jobs.len() && self.ends.is_empty() && self.waiting.is_empty() {
            return false;
        }
        let walls = &self.play.walls;
        let moments = [
            self.jobs.get(self.next_job).map(|job| job.submit),
            self.ends.first().map(|(at, _)| *at),
            walls.get(self.next_known).map(|wall| wall.known),
            walls.get(self.next_wall).map(|wall| wall.from),
            self.wall_ends.first().copied(),
            self.queue.next_look(self.now),
        ];
        let Some(next) = moments.into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        self.end_what_ends();
        self.learn_of_walls();
        self.begin_walls();
        self.submit_what_comes();
        true
    }

    fn end_what_ends(&mut self) {
        while let Some((at, number)) = self.ends.first().copied().filter(|(at, _)| *at <= self.now)
        {
            self.ends.remove(&(at, number));
            self.queue.end(Key(number as u64), self.now);
            for piece in self
                .of
                .remove(&number)
                .into_iter()
                .flat_map(|placement| placement.pieces)
            {
                self.on[piece.node.0 as usize] = None;
            }
            let job = &self.jobs[number];
            self.history.learn(&kind(job), job.runs);
            if self.play.times == Times::Predicted {
                let same = |other: &&usize| self.jobs[**other].person == job.person;
                for other in self.waiting.iter().filter(same) {
                    let expected = self.history.expected(&kind(&self.jobs[*other]));
                    self.queue.expect(Key(*other as u64), expected);
                }
            }
        }
    }

    fn learn_of_walls(&mut self) {
        let known = |wall: &&Wall| wall.known <= self.now;
        while let Some(wall) = self.play.walls.get(self.next_known).filter(known) {
            let pieces = wall.processors.iter().map(|one| piece(*one)).collect();
            self.queue.reserve(
                self.next_known as u64,
                wall.from,
                wall.to,
                &Placement { pieces },
            );
            self.next_known += 1;
        }
    }

    /// A reservation is late for as long as a job is still there.
    fn begin_walls(&mut self) {
        while let Some(wall) = self
            .play
            .walls
            .get(self.next_wall)
            .filter(|wall| wall.from <= self.now)
        {
            let still = wall
                .processors
                .iter()
                .filter_map(|one| self.on[*one as usize]);
            let end = |number: usize| self.ends.iter().find(|(_, one)| *one == number);
            let late = still.filter_map(end).map(|(at, _)| at - wall.from).max();
            self.late_s += late.unwrap_or(0).max(0) as f64 / SECOND as f64;
            self.wall_ends.insert(wall.to);
            self.next_wall += 1;
        }
        self.wall_ends = self.wall_ends.split_off(&(self.now + 1));
    }

    fn submit_what_comes(&mut self) {
        while let Some(job) = self
            .jobs
            .get(self.next_job)
            .filter(|job| job.submit <= self.now)
        {
            let expected = match self.play.times {
                Times::Asked => job.limit,
                Times::Predicted => self.history.expected(&kind(job)),
            };
            let wish = Wish {
                need: Need {
                    tasks: job.processors,
                    until_us: 0,
                    ..Need::one(TASK)
                },
                limit: job.limit,
                expected,
                amounts: Amounts::default(),
                rate: f64::from(job.processors),
            };
            let ask = Ask::new(self.account, wish, job.submit);
            self.queue.submit(Key(self.next_job as u64), ask);
            self.waiting.insert(self.next_job);
            self.next_job += 1;
        }
    }

    fn plan(&mut self) {
        for decision in self.queue.plan(self.now) {
            // Nothing here is softer than anything else.
            let Decision::Start(begun) = decision else {
                continue;
            };
            let number = begun.key.0 as usize;
            let job = &self.jobs[number];
            self.waiting.remove(&number);
            let promise = self.promised.remove(&number);
            self.broken += usize::from(promise.is_some_and(|at| at < self.now));
            for piece in &begun.placement.pieces {
                self.on[piece.node.0 as usize] = Some(number);
            }
            self.of.insert(number, begun.placement);
            self.ends.insert((self.now + job.runs, number));
            let (waited_s, ran_s) = (seconds(self.now - job.submit), seconds(job.runs));
            self.waited_s += waited_s;
            self.slowdowns
                .push(((waited_s + ran_s) / ran_s.max(TAU_S)).max(1.0));
        }
        for number in &self.waiting {
            if let Some(Why::Promised(at)) = self.queue.why(Key(*number as u64)) {
                let before = self.promised.insert(*number, at);
                self.promises += usize::from(before.is_none());
            }
        }
    }

    fn outcome(self) -> Outcome {
        let count = self.slowdowns.len().max(1) as f64;
        Outcome {
            slowdown_mean: self.slowdowns.iter().sum::<f64>() / count,
            slowdown_max: self.slowdowns.iter().copied().fold(0.0, f64::max),
            wait_mean_s: self.waited_s / count,
            late_s: self.late_s,
            promises: self.promises,
            broken: self.broken,
        }
    }
}

const TASK: Task = Task {
    cpu_milli: 1000,
    memory_bytes: 0,
    gpus: Gpus::None,
    models: Models::ANY,
    gpu_memory_bytes: 0,
};

fn piece(processor: u32) -> Piece {
    Piece {
        node: NodeIndex(processor),
        cpu_milli: 1000,
        memory_bytes: 0,
        gpus: Vec::new(),
    }
}

fn kind(job: &Job) -> Kind {
    Kind {
        person: job.person.unsigned_abs(),
        limit: job.limit,
        size: u64::from(job.processors),
    }
}

fn seconds(micros: Micros) -> f64 {
    micros as f64 / SECOND as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(count: usize, seed: u64) -> Vec<Job> {
        let mut random = Random::new(seed);
        let mut at = 0;
        let mut job = || {
            at += random.below(5400) as Micros * SECOND;
            let limit = (1 + random.below(600)) as Micros * 60 * SECOND;
            Job {
                submit: at,
                runs: (limit / (1 + random.below(5) as Micros)).max(SECOND),
                limit,
                processors: 1 + random.below(16) as u32,
                person: random.below(5) as i64,
            }
        };
        (0..count).map(|_| job()).collect()
    }

    fn play(times: Times, walls: Vec<Wall>) -> Play {
        Play {
            processors: 16,
            times,
            walls,
        }
    }

    #[test]
    fn every_job_is_done_and_no_reservation_waits() {
        let jobs = jobs(250, 3);
        let walls = a_tenth_reserved(&jobs, 16, 1);
        assert!(!walls.is_empty());
        for walls in [Vec::new(), walls] {
            for times in [Times::Asked, Times::Predicted] {
                let outcome = replay(&jobs, &play(times, walls.clone()));
                assert_eq!(outcome.late_s, 0.0);
                assert!(
                    outcome.slowdown_mean >= 1.0 && outcome.slowdown_max >= outcome.slowdown_mean
                );
                let again = replay(&jobs, &play(times, walls.clone()));
                assert_eq!(outcome.slowdown_mean, again.slowdown_mean);
            }
        }
    }

    #[test]
    fn promises_are_kept_where_nobody_reserves() {
        let outcome = replay(&jobs(250, 9), &play(Times::Asked, Vec::new()));
        assert!(outcome.promises > 0, "the machine was never full");
        assert_eq!(outcome.broken, 0);
    }
}
