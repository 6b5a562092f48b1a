//! Replays a log of the Parallel Workloads Archive (SWF) through the queue, and prints the mean bounded slowdown:
//! `cargo run --release -p berth-engine --example kth -- LOG [--predict] [--reserve SEED]`.
//!
//! Cleaning and figure are those of the published table: jobs without processors, run time or requested time and jobs larger than
//! the machine are left out, run times are cut to the requested ones, and a job shorter than ten seconds counts as ten.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process::ExitCode;

use berth_engine::fleet::{Gpus, Mix, Models, Near, Need, Node, NodeIndex, Piece, Placement, Task};
use berth_engine::queue::Micros;
use berth_engine::queue::planner::{Ask, Key, Order, Planner, Why};
use berth_engine::queue::quota::Amounts;
use berth_engine::queue::share::Shares;

const SECOND: Micros = 1_000_000;
const HOUR: Micros = 3600 * SECOND;
const DAY: Micros = 24 * HOUR;
/// A job shorter than this is taken to be as long.
const TAU_S: f64 = 10.0;
const PROCESSORS: u32 = 100;
const KNOWN_AHEAD: Micros = 7 * DAY;

#[derive(Debug, Clone, Copy)]
struct Job {
    submit: Micros,
    runs: Micros,
    limit: Micros,
    processors: u32,
    person: i64,
}

fn read(text: &str) -> Vec<Job> {
    let mut jobs: Vec<Job> = text.lines().filter_map(job).collect();
    jobs.sort_by_key(|job| job.submit);
    jobs
}

fn job(line: &str) -> Option<Job> {
    let fields: Vec<i64> = line
        .split_whitespace()
        .map_while(|field| field.parse::<f64>().ok())
        .map(|field| field as i64)
        .collect();
    let at = |place: usize| fields.get(place).copied();
    let allocated = at(4)?;
    let processors = if allocated > 0 { allocated } else { at(7)? };
    let (runs, limit) = (at(3)?, at(8)?);
    let fits = (1..=i64::from(PROCESSORS)).contains(&processors);
    (fits && runs > 0 && limit > 0).then_some(Job {
        submit: at(1)? * SECOND,
        runs: runs.min(limit) * SECOND,
        limit: limit * SECOND,
        processors: processors as u32,
        person: at(11)?,
    })
}

/// The mean of somebody's last two jobs of the same limit and size; else of the same limit; else of any.
#[derive(Debug, Default)]
struct History {
    last: HashMap<(i64, Option<Micros>, Option<u32>), [Option<Micros>; 2]>,
}

impl History {
    fn kinds(job: &Job) -> [(i64, Option<Micros>, Option<u32>); 3] {
        let limit = Some(job.limit);
        [
            (job.person, limit, Some(job.processors)),
            (job.person, limit, None),
            (job.person, None, None),
        ]
    }

    fn learn(&mut self, job: &Job) {
        for kind in History::kinds(job) {
            let last = self.last.entry(kind).or_default();
            *last = [Some(job.runs), last[0]];
        }
    }

    fn expected(&self, job: &Job) -> Micros {
        let known = History::kinds(job)
            .into_iter()
            .find_map(|kind| self.last.get(&kind));
        let lengths: Vec<Micros> = known.into_iter().flatten().flatten().copied().collect();
        match lengths.len() as i64 {
            0 => job.limit,
            count => (lengths.iter().sum::<Micros>() / count).clamp(1, job.limit),
        }
    }
}

/// What is reserved: from, to, and which processors.
type Wall = (Micros, Micros, Vec<u32>);

/// Reservations of a tenth of the machine over the time of the log, one to 32 processors for one to eight hours.
fn walls(jobs: &[Job], seed: u64) -> Vec<Wall> {
    let mut random = Random(seed);
    let (Some(first), Some(last)) = (jobs.first(), jobs.last()) else {
        return Vec::new();
    };
    let (from, to) = (first.submit + KNOWN_AHEAD, last.submit);
    let wanted = (to - from) as f64 * f64::from(PROCESSORS) / 10.0;
    let mut taken: Vec<BTreeMap<Micros, Micros>> = vec![BTreeMap::new(); PROCESSORS as usize];
    let mut walls = Vec::new();
    let mut area = 0.0;
    while area < wanted {
        let length = (1 + random.below(8)) as Micros * HOUR;
        let start = from + random.below((to - from) as u64 / 900_000_000) as Micros * 900 * SECOND;
        let count = 1 + random.below(32) as usize;
        let is_free = |taken: &BTreeMap<Micros, Micros>| {
            let before = taken.range(..start + length).next_back();
            before.is_none_or(|(_, end)| *end <= start)
        };
        let free = (0..PROCESSORS).filter(|one| is_free(&taken[*one as usize]));
        let chosen: Vec<u32> = free.take(count).collect();
        // At most half of the machine at once: those chosen first are the first of it.
        if chosen.len() < count || chosen.iter().any(|one| *one >= PROCESSORS / 2) {
            continue;
        }
        for one in &chosen {
            taken[*one as usize].insert(start, start + length);
        }
        area += count as f64 * length as f64;
        walls.push((start, start + length, chosen));
    }
    walls.sort();
    walls
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

fn machine(now: Micros) -> Planner {
    let processor = Node {
        cpu_milli: 1000,
        memory_bytes: 0,
        gpus: Vec::new(),
        rack: 0,
        until_us: i64::MAX,
    };
    let nodes = vec![processor; PROCESSORS as usize];
    let shares = Shares::new(7 * DAY, now);
    Planner::new(
        Order::Shortest,
        &nodes,
        Mix::default(),
        f64::from(PROCESSORS),
        shares,
        now,
    )
}

fn task() -> Task {
    Task {
        cpu_milli: 1000,
        memory_bytes: 0,
        gpus: Gpus::None,
        models: Models::ANY,
        gpu_memory_bytes: 0,
    }
}

#[derive(Debug, Default)]
struct Outcome {
    slowdowns: Vec<f64>,
    waits_s: f64,
    late_s: f64,
    broken_promises: usize,
    promises: usize,
}

fn replay(jobs: &[Job], predict: bool, walls: &[Wall]) -> Outcome {
    let start = jobs.first().map_or(0, |job| job.submit);
    let mut queue = machine(start);
    let account = queue.shares.site();
    let mut history = History::default();
    let mut outcome = Outcome::default();
    let mut ends: BTreeSet<(Micros, usize)> = BTreeSet::new();
    let mut promised: HashMap<usize, Micros> = HashMap::new();
    let mut waiting: BTreeSet<usize> = BTreeSet::new();
    let mut holds: Vec<Option<usize>> = vec![None; PROCESSORS as usize];
    let mut placed: HashMap<usize, Vec<u32>> = HashMap::new();
    let (mut next_job, mut next_known, mut next_wall) = (0, 0, 0);
    let mut wall_ends: BTreeSet<Micros> = BTreeSet::new();
    let mut now = start;
    loop {
        let times = [
            jobs.get(next_job).map(|job| job.submit),
            ends.first().map(|(at, _)| *at),
            walls
                .get(next_known)
                .map(|wall| (wall.0 - KNOWN_AHEAD).max(now)),
            walls.get(next_wall).map(|wall| wall.0),
            wall_ends.first().copied(),
            queue.next_look(now).filter(|_| queue.waiting() > 0),
        ];
        let Some(next) = times.into_iter().flatten().min() else {
            break;
        };
        if next_job == jobs.len() && ends.is_empty() && queue.waiting() == 0 {
            break;
        }
        now = next;
        while let Some((at, number)) = ends.first().copied().filter(|(at, _)| *at <= now) {
            ends.remove(&(at, number));
            queue.end(Key(number as u64), now);
            for processor in placed.remove(&number).unwrap_or_default() {
                holds[processor as usize] = None;
            }
            history.learn(&jobs[number]);
            if predict {
                let same = |other: &&usize| jobs[**other].person == jobs[number].person;
                for other in waiting.iter().filter(same) {
                    queue.expect(Key(*other as u64), history.expected(&jobs[*other]));
                }
            }
        }
        while let Some(wall) = walls
            .get(next_known)
            .filter(|wall| wall.0 - KNOWN_AHEAD <= now)
        {
            let piece = |processor: &u32| Piece {
                node: NodeIndex(*processor),
                cpu_milli: 1000,
                memory_bytes: 0,
                gpus: Vec::new(),
            };
            let pieces = wall.2.iter().map(piece).collect();
            queue.reserve(next_known as u64, wall.0, wall.1, &Placement { pieces });
            next_known += 1;
        }
        while let Some(wall) = walls.get(next_wall).filter(|wall| wall.0 <= now) {
            // Late for as long as somebody is still there.
            let still = wall
                .2
                .iter()
                .filter_map(|processor| holds[*processor as usize]);
            let until = still.filter_map(|number| ends.iter().find(|(_, one)| *one == number));
            let late = until.map(|(at, _)| at - wall.0).max().unwrap_or(0);
            outcome.late_s += (late.max(0) / SECOND) as f64;
            wall_ends.insert(wall.1);
            next_wall += 1;
        }
        wall_ends = wall_ends.split_off(&(now + 1));
        while let Some(job) = jobs.get(next_job).filter(|job| job.submit <= now) {
            let expected = if predict {
                history.expected(job)
            } else {
                job.limit
            };
            let ask = Ask {
                account,
                need: Need {
                    task: task(),
                    tasks: job.processors,
                    near: Near::Anywhere,
                    until_us: 0,
                },
                limit: job.limit,
                expected,
                since: job.submit,
                amounts: Amounts::default(),
                rate: f64::from(job.processors),
            };
            queue.submit(Key(next_job as u64), ask);
            waiting.insert(next_job);
            next_job += 1;
        }
        for begun in queue.plan(now) {
            let number = begun.key.0 as usize;
            let job = &jobs[number];
            waiting.remove(&number);
            if promised.remove(&number).is_some_and(|at| at < now) {
                outcome.broken_promises += 1;
            }
            let processors: Vec<u32> = begun
                .placement
                .pieces
                .iter()
                .map(|piece| piece.node.0)
                .collect();
            for processor in &processors {
                assert!(
                    holds[*processor as usize].replace(number).is_none(),
                    "held twice"
                );
            }
            placed.insert(number, processors);
            ends.insert((now + job.runs, number));
            let (waited, runs) = ((now - job.submit) as f64 / 1e6, job.runs as f64 / 1e6);
            outcome
                .slowdowns
                .push(((waited + runs) / runs.max(TAU_S)).max(1.0));
            outcome.waits_s += waited;
        }
        for number in &waiting {
            if let Some(Why::Promised(at)) = queue.why(Key(*number as u64))
                && promised.insert(*number, at).is_none()
            {
                outcome.promises += 1;
            }
        }
    }
    outcome
}

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the figures are what it is for"
)]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(Ok(text)) = arguments.first().map(std::fs::read_to_string) else {
        eprintln!("which log? `kth log.swf [--predict] [--reserve SEED]`");
        return ExitCode::FAILURE;
    };
    let jobs = read(&text);
    let predict = arguments.iter().any(|argument| argument == "--predict");
    let reserve = arguments
        .iter()
        .position(|argument| argument == "--reserve");
    let seed = reserve.and_then(|place| arguments.get(place + 1)?.parse().ok());
    let walls = seed.map_or_else(Vec::new, |seed| walls(&jobs, seed));
    let started = std::time::Instant::now();
    let outcome = replay(&jobs, predict, &walls);
    let count = outcome.slowdowns.len() as f64;
    println!(
        "{} jobs, {} reservations: mean bounded slowdown {:.2}, largest {:.0}, mean wait {:.0} s, late {:.0} s, {} promises, {} broken ({:.1} s)",
        count,
        walls.len(),
        outcome.slowdowns.iter().sum::<f64>() / count,
        outcome.slowdowns.iter().copied().fold(0.0, f64::max),
        outcome.waits_s / count,
        outcome.late_s,
        outcome.promises,
        outcome.broken_promises,
        started.elapsed().as_secs_f64(),
    );
    ExitCode::SUCCESS
}
