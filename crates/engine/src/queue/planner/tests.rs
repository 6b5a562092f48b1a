//! Small scenarios, long random runs, and the fairness of whole months.

mod counting;
mod everything;
mod forecast;
mod oracle;
mod restart;
mod turns;
mod wishes;

use std::collections::BTreeMap as Map;

use proptest::prelude::*;

use super::*;
use crate::fleet::{Need, NodeIndex};
use crate::queue::fixture::{self, one_gpu};
use crate::queue::quota::{Allowance, Amounts, Counted};

const MINUTE: Micros = 60_000_000;
const HOUR: Micros = 60 * MINUTE;

fn node(gpus: usize) -> Node {
    fixture::node(64, gpus)
}

fn need(tasks: u32, gpus: u16) -> Need {
    fixture::need(tasks, 1000, gpus)
}

fn ask(account: Account, need: Need, limit: Micros, since: Micros) -> Ask {
    let gpus = need.tasks * need.task.gpus.thousandths() / 1000;
    let wish = Wish {
        need,
        limit,
        expected: limit,
        amounts: Amounts::default(),
        rate: f64::from(gpus),
    };
    Ask::new(account, wish, since)
}

/// The same workload with another expected run time.
fn expected(mut ask: Ask, expected: Micros) -> Ask {
    ask.wish.expected = expected;
    ask
}

/// The same workload with amounts that count against quotas.
fn counted(mut ask: Ask, amounts: impl IntoIterator<Item = (Counted, u64)>) -> Ask {
    ask.wish.amounts = Amounts::of(amounts);
    ask
}

fn planner(order: Order, nodes: &[Node]) -> Planner {
    let gpus: usize = nodes.iter().map(|node| node.gpus.len()).sum();
    let shares = Shares::new(7 * 24 * HOUR, 0);
    Planner::new(
        Policy::new(order),
        nodes,
        Mix::default(),
        gpus as f64,
        shares,
        0,
    )
}

fn starts(decisions: Vec<Decision>) -> Vec<Start> {
    let start = |decision| match decision {
        Decision::Start(start) => Some(start),
        Decision::Stop(_) | Decision::TooLate(_) => None,
    };
    decisions.into_iter().filter_map(start).collect()
}

fn started(decisions: &[Decision]) -> Vec<u64> {
    let starts = starts(decisions.to_vec());
    starts.iter().map(|start| start.key.0).collect()
}

fn stopped(decisions: &[Decision]) -> Vec<(u64, Micros)> {
    let stop = |decision: &Decision| match decision {
        Decision::Start(_) | Decision::TooLate(_) => None,
        Decision::Stop(stop) => Some((stop.key.0, stop.by)),
    };
    decisions.iter().filter_map(stop).collect()
}

#[test]
fn what_is_short_goes_first_until_what_is_long_has_waited_too_long() {
    let mut queue = planner(Order::Shortest, &[node(2)]);
    let site = queue.shares.site();
    queue.submit(Key(1), ask(site, need(1, 1), 2 * HOUR, 0));
    queue.submit(Key(2), ask(site, need(1, 2), 2 * HOUR, 0));
    queue.submit(Key(3), ask(site, need(1, 1), HOUR, 0));
    assert_eq!(started(&queue.plan(0)), [3, 1]);
    assert_eq!(queue.why(Key(2)), Some(Why::NoRoom));
    queue.submit(Key(4), ask(site, need(1, 1), 90 * MINUTE, HOUR));
    queue.end(Key(3), HOUR);
    // An hour is half of its limit: the long workload gets a promise of the GPUs that become free after two hours. The
    // short one would block it.
    assert_eq!(started(&queue.plan(HOUR)), [0; 0]);
    assert_eq!(queue.why(Key(2)), Some(Why::Promised(2 * HOUR)));
    queue.submit(Key(5), ask(site, need(1, 1), 60 * MINUTE, HOUR));
    assert_eq!(started(&queue.plan(HOUR)), [5], "this one is gone by then");
    queue.end(Key(1), 100 * MINUTE);
    assert_eq!(started(&queue.plan(100 * MINUTE)), [0; 0]);
    queue.end(Key(5), 110 * MINUTE);
    assert_eq!(
        started(&queue.plan(110 * MINUTE)),
        [2],
        "sooner than promised"
    );
}

#[test]
fn a_reservation_is_a_wall_to_the_gpu_it_holds() {
    let mut queue = planner(Order::Shortest, &[node(2)]);
    let site = queue.shares.site();
    let reserved = one_gpu(0, 0, 0);
    queue.reserve(7, HOUR, 2 * HOUR, &reserved);
    queue.submit(Key(1), ask(site, need(1, 1), 3 * HOUR, 0));
    queue.submit(Key(2), ask(site, need(1, 1), 3 * HOUR, 0));
    let decided = queue.plan(0);
    assert_eq!(started(&decided), [1]);
    assert_eq!(starts(decided)[0].placement.pieces[0].gpus[0].gpu, 1);
    queue.submit(Key(3), ask(site, need(1, 1), HOUR, 0));
    assert_eq!(started(&queue.plan(0)), [3], "gone before the wall");
}

#[test]
fn a_quota_holds_one_back_and_nobody_else() {
    let mut queue = planner(Order::Shares, &[node(4)]);
    let projects = [queue.shares.add_project(1.0), queue.shares.add_project(1.0)];
    let gpus = Counted(0);
    let one = Allowance {
        guaranteed: 1,
        limit: Some(1),
    };
    queue.quotas.allow(projects[0], gpus, Some(one));
    for key in 0..4 {
        let ask = ask(projects[key as usize % 2], need(1, 1), HOUR, 0);
        queue.submit(Key(key), counted(ask, [(gpus, 1)]));
    }
    let mut begun = started(&queue.plan(0));
    begun.sort_unstable();
    assert_eq!(begun, [0, 1, 3]);
    assert!(matches!(
        queue.why(Key(2)),
        Some(Why::Quota(Verdict::OverLimit { .. }))
    ));
    queue.end(Key(0), MINUTE);
    assert_eq!(started(&queue.plan(MINUTE)), [2]);
}

fn soft(ask: Ask) -> Ask {
    Ask {
        class: Class::Opportunistic,
        ..ask
    }
}

#[test]
fn what_is_opportunistic_fills_up_and_makes_room_when_told() {
    let grace = Policy::new(Order::Shares).grace;
    let mut queue = planner(Order::Shares, &[node(2)]);
    let site = queue.shares.site();
    queue.submit(Key(1), soft(ask(site, need(1, 1), 9 * HOUR, 0)));
    queue.submit(Key(2), soft(ask(site, need(1, 1), 9 * HOUR, 0)));
    assert_eq!(started(&queue.plan(0)), [1, 2]);
    queue.submit(Key(3), ask(site, need(1, 1), HOUR, MINUTE));
    assert!(
        queue.plan(MINUTE).is_empty(),
        "nobody is sent away that soon"
    );
    let decided = queue.plan(HOUR);
    assert_eq!(stopped(&decided), [(1, HOUR + grace)]);
    assert_eq!(queue.why(Key(3)), Some(Why::MakingRoom(HOUR + grace)));
    assert!(queue.plan(HOUR + 1).is_empty(), "it is told once");
    queue.end(Key(1), HOUR + 2);
    queue.submit(Key(1), soft(ask(site, need(1, 1), 9 * HOUR, 0)));
    assert_eq!(
        started(&queue.plan(HOUR + 2)),
        [3],
        "sooner than its grace was over"
    );
    assert_eq!(queue.why(Key(1)), Some(Why::NoRoom));
}

#[test]
fn what_is_urgent_takes_from_what_is_guaranteed_and_loses_least() {
    let mut queue = planner(Order::Shares, &[node(1), node(1)]);
    let site = queue.shares.site();
    queue.submit(Key(1), ask(site, need(1, 1), 9 * HOUR, 0));
    assert_eq!(started(&queue.plan(0)), [1]);
    queue.submit(Key(2), ask(site, need(1, 1), 9 * HOUR, HOUR));
    assert_eq!(started(&queue.plan(HOUR)), [2]);
    let urgent = Ask {
        class: Class::Urgent,
        ..ask(site, need(1, 1), HOUR, 2 * HOUR)
    };
    queue.submit(Key(3), urgent);
    let told: Vec<u64> = stopped(&queue.plan(2 * HOUR))
        .iter()
        .map(|(key, _)| *key)
        .collect();
    assert_eq!(told, [2], "it has done less than the other");
}

#[test]
fn what_was_borrowed_is_given_back_to_whom_it_belongs() {
    let mut queue = planner(Order::Shares, &[node(2)]);
    let projects = [queue.shares.add_project(1.0), queue.shares.add_project(1.0)];
    let gpus = Counted(0);
    for project in projects {
        let one = Allowance {
            guaranteed: 1,
            limit: None,
        };
        queue.quotas.allow(project, gpus, Some(one));
    }
    let one =
        |project: Account, since| counted(ask(project, need(1, 1), 9 * HOUR, since), [(gpus, 1)]);
    queue.submit(Key(1), one(projects[0], 0));
    queue.submit(Key(2), one(projects[0], 0));
    assert_eq!(
        started(&queue.plan(0)),
        [1, 2],
        "nobody else wants the second"
    );
    queue.submit(Key(3), one(projects[1], HOUR));
    assert_eq!(stopped(&queue.plan(HOUR)).len(), 1);
    queue.submit(Key(4), one(projects[1], HOUR));
    assert!(
        queue.plan(HOUR).is_empty(),
        "the other one is the first project's own"
    );
}

#[test]
fn what_is_opportunistic_may_begin_before_a_wall_and_ends_at_it() {
    let mut queue = planner(Order::Shares, &[node(1)]);
    let site = queue.shares.site();
    let reserved = one_gpu(0, 0, 0);
    queue.reserve(7, 2 * HOUR, 3 * HOUR, &reserved);
    queue.submit(Key(1), ask(site, need(1, 1), 4 * HOUR, 0));
    queue.submit(Key(2), soft(ask(site, need(1, 1), 4 * HOUR, 0)));
    let begun = starts(queue.plan(0));
    assert_eq!(
        (begun.len(), begun[0].key, begun[0].until),
        (1, Key(2), 2 * HOUR)
    );
    // A later reservation is a wall to running workloads, too.
    queue.reserve(8, HOUR, 2 * HOUR, &reserved);
    assert_eq!(stopped(&queue.plan(MINUTE)), [(2, HOUR)]);
}

#[test]
fn what_overruns_its_limit_still_has_what_it_has() {
    let mut queue = planner(Order::Shares, &[node(1)]);
    let site = queue.shares.site();
    queue.submit(Key(1), ask(site, need(1, 1), HOUR, 0));
    queue.submit(Key(2), ask(site, need(1, 1), HOUR, 0));
    assert_eq!(started(&queue.plan(0)), [1]);
    assert!(started(&queue.plan(HOUR + 1)).is_empty());
    queue.end(Key(1), HOUR + 2);
    assert_eq!(started(&queue.plan(HOUR + 2)), [2]);
}

/// A simulated site. A workload ends when it has finished, at its limit, or when it is preempted; then it waits
/// again.
struct World {
    queue: Planner,
    now: Micros,
    ends: BTreeSet<(Micros, Key)>,
    lasts: Map<Key, Micros>,
    asks: Map<Key, Ask>,
    began: Map<Key, (Micros, Start)>,
}

impl World {
    fn new(queue: Planner) -> World {
        World {
            queue,
            now: 0,
            ends: BTreeSet::new(),
            lasts: Map::new(),
            asks: Map::new(),
            began: Map::new(),
        }
    }

    /// When it must end, by its limit or by a preemption.
    fn end_of(&self, key: Key) -> Micros {
        self.queue.running[&key].until
    }

    fn submit(&mut self, key: u64, ask: Ask, lasts: Micros) {
        self.lasts.insert(Key(key), lasts.min(ask.wish.limit));
        self.asks.insert(Key(key), ask.clone());
        self.queue.submit(Key(key), ask);
    }

    /// Plans, and checks that a planner without caches decides the same.
    fn plan_checked(&mut self) -> Vec<Start> {
        let mut forgetful = self.queue.clone();
        forgetful.forget();
        let anew = forgetful.plan(self.now);
        let decided = self.queue.plan(self.now);
        assert_eq!(decided, anew, "at {}", self.now);
        let promises = |queue: &Planner| -> Vec<(Key, Micros, Placement)> {
            let all = queue.promises.iter();
            all.map(|((_, key), one)| (*key, one.at, one.placement.clone()))
                .collect()
        };
        assert_eq!(promises(&self.queue), promises(&forgetful));
        self.carry_out(decided)
    }

    fn plan(&mut self) -> Vec<Start> {
        let decided = self.queue.plan(self.now);
        self.carry_out(decided)
    }

    fn carry_out(&mut self, decided: Vec<Decision>) -> Vec<Start> {
        let mut starts = Vec::new();
        for decision in decided {
            match decision {
                Decision::Stop(Stop { key, by, .. }) => {
                    let end = self.ends.iter().find(|(_, one)| *one == key).copied();
                    let end = end.expect("what is told to stop runs");
                    self.ends.remove(&end);
                    self.ends.insert((end.0.min(by), key));
                }
                Decision::TooLate(key) => {
                    self.asks.remove(&key);
                }
                Decision::Start(start) => {
                    let end = self.now + self.lasts[&start.key];
                    self.ends.insert((end.min(start.until), start.key));
                    self.began.insert(start.key, (self.now, start.clone()));
                    starts.push(start);
                }
            }
        }
        starts
    }

    /// Advances to the next event, but not beyond `until`. Returns the workloads that have finished.
    fn go_on(&mut self, until: Micros) -> Vec<Key> {
        let next_end = self.ends.first().map(|(at, _)| *at);
        let next_look = self.queue.next_look(self.now);
        let next = next_end.into_iter().chain(next_look).min();
        self.now = next.unwrap_or(until).min(until);
        let mut done = Vec::new();
        while let Some((at, key)) = self.ends.first().copied().filter(|(at, _)| *at <= self.now) {
            self.ends.remove(&(at, key));
            self.queue.end(key, at);
            let (began, _) = self.began.remove(&key).unwrap();
            if at - began < self.lasts[&key] {
                self.queue.submit(key, self.asks[&key].clone());
            } else {
                done.push(key);
            }
        }
        done
    }
}

#[derive(Debug, Clone)]
struct Job {
    at: i64,
    tasks: u32,
    gpus: u16,
    limit: i64,
    part: f64,
    class: Class,
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let classes = [
        Class::Opportunistic,
        Class::Guaranteed,
        Class::Guaranteed,
        Class::Urgent,
    ];
    let class = prop::sample::select(classes.to_vec());
    let job = (
        0..600_i64,
        1..4_u32,
        1..4_u16,
        10..400_i64,
        0.05..1.0_f64,
        class,
    );
    let job = job.prop_map(|(at, tasks, gpus, limit, part, class)| Job {
        at,
        tasks,
        gpus,
        limit,
        part,
        class,
    });
    prop::collection::vec(job, 1..40)
}

/// Reservations of GPUs: node, GPU, start and length, in minutes.
type Walls = Vec<(u32, u16, i64, i64)>;

fn walls() -> impl Strategy<Value = Walls> {
    prop::collection::vec((0..3_u32, 0..4_u16, 0..900_i64, 10..200_i64), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// After every step: nothing is held twice, no wall is crossed, gangs are whole, and promises are kept. In the
    /// end, all workloads have finished.
    #[test]
    fn long_random_runs_keep_every_promise(jobs in jobs(), walls in walls(), by_shares in any::<bool>()) {
        let order = if by_shares { Order::Shares } else { Order::Shortest };
        let mut queue = planner(order, &[node(4), node(4), node(4)]);
        let accounts = [queue.shares.add_project(2.0), queue.shares.add_project(1.0)];
        let mut laid: Vec<(NodeIndex, u16, Micros, Micros)> = Vec::new();
        for (number, (node, gpu, from, length)) in (0..).zip(&walls) {
            let (node, from, to) = (NodeIndex(*node), from * MINUTE, (from + length) * MINUTE);
            let is_free = laid.iter().all(|(n, g, f, t)| (*n, *g) != (node, *gpu) || to <= *f || *t <= from);
            if !is_free {
                continue;
            }
            laid.push((node, *gpu, from, to));
            queue.reserve(number, from, to, &one_gpu(node.0, 0, *gpu));
        }
        let mut world = World::new(queue);
        let mut coming: Vec<(u64, &Job)> = (0..).zip(&jobs).collect();
        coming.sort_by_key(|(_, job)| job.at);
        let mut coming = coming.into_iter().peekable();
        let mut promised: Map<Key, Micros> = Map::new();
        let mut done = 0;
        loop {
            while let Some((key, job)) = coming.next_if(|(_, job)| job.at * MINUTE <= world.now) {
                let account = accounts[key as usize % 2];
                let ask = Ask {
                    class: job.class,
                    ..ask(account, need(job.tasks, job.gpus), job.limit * MINUTE, world.now)
                };
                let lasts = (job.limit as f64 * job.part * MINUTE as f64) as Micros;
                world.submit(key, ask, lasts.max(1));
            }
            for start in world.plan_checked() {
                prop_assert_eq!(start.placement.pieces.len() as u32, jobs[start.key.0 as usize].tasks);
                if let Some(at) = promised.remove(&start.key) {
                    prop_assert!(world.now <= at, "{:?} was promised", start.key);
                }
            }
            // Each GPU has one holder at a time, now and until the limits of running workloads.
            let mut held: Map<(NodeIndex, u16), Vec<(Micros, Micros)>> = Map::new();
            for (node, gpu, from, to) in &laid {
                held.entry((*node, *gpu)).or_default().push((*from, *to));
            }
            for (_, start) in world.began.values() {
                for piece in &start.placement.pieces {
                    for part in &piece.gpus {
                        held.entry((piece.node, part.gpu)).or_default().push((world.now, world.end_of(start.key)));
                    }
                }
            }
            for (gpu, mut spans) in held {
                spans.sort_unstable();
                let apart = spans.windows(2).all(|pair| pair[0].1 <= pair[1].0 || pair[1].1 <= world.now || pair[0].1 <= world.now);
                prop_assert!(apart, "{:?} {:?} at {}", gpu, spans, world.now);
            }
            for key in 0..jobs.len() as u64 {
                if let Some(Why::Promised(at)) = world.queue.why(Key(key)) {
                    let before = promised.insert(Key(key), at);
                    prop_assert!(before.is_none_or(|before| at <= before), "{key} was promised {before:?}, at {} it is {at}", world.now);
                }
            }
            let next = coming.peek().map(|(_, job)| job.at * MINUTE);
            if next.is_none() && world.ends.is_empty() && world.queue.waiting() == 0 {
                break;
            }
            let walls_end = laid.iter().map(|(.., to)| *to).filter(|to| *to > world.now).min();
            let until = next.into_iter().chain(walls_end).min().unwrap_or(Micros::MAX);
            prop_assert!(until < Micros::MAX || !world.ends.is_empty() || world.queue.next_look(world.now).is_some(), "stuck");
            done += world.go_on(until).len();
        }
        prop_assert_eq!(done, jobs.len());
    }
}

/// The part of a month that each project used. Each keeps `wants` workloads in the queue or running.
fn month(weights: [f64; 3], wants: [usize; 3]) -> [f64; 3] {
    let nodes: Vec<Node> = (0..4).map(|_| node(8)).collect();
    let mut queue = planner(Order::Shares, &nodes);
    let projects = weights.map(|weight| queue.shares.add_project(weight));
    let mut world = World::new(queue);
    let end = 30 * 24 * HOUR;
    let mut used = [0.0; 3];
    let mut number = 0_u64;
    let mut whose: Map<Key, (usize, f64)> = Map::new();
    let mut live = [0_usize; 3];
    while world.now < end {
        for project in 0..3 {
            while live[project] < wants[project] {
                // One, two or four GPUs, for one to six hours: consecutive workloads differ.
                let gpus = [1, 2, 4][number as usize % 3];
                let hours = 1 + (number * 7 % 6) as i64;
                let ask = ask(projects[project], need(1, gpus), hours * HOUR, world.now);
                whose.insert(Key(number), (project, f64::from(gpus) * hours as f64));
                world.submit(number, ask, hours * HOUR);
                number += 1;
                live[project] += 1;
            }
        }
        world.plan();
        for key in world.go_on(end) {
            let (project, cost) = whose[&key];
            used[project] += cost;
            live[project] -= 1;
        }
    }
    let all: f64 = used.iter().sum();
    used.map(|used| used / all)
}

#[test]
fn full_queues_get_their_shares_over_a_month() {
    let got = month([5.0, 3.0, 2.0], [60, 60, 60]);
    for (got, due) in got.iter().zip([0.5, 0.3, 0.2]) {
        assert!((got - due).abs() < 0.02, "{got} of {due}");
    }
}

#[test]
fn what_one_leaves_goes_to_the_others_in_proportion() {
    // The first wants about half of its share: eight GPUs of thirty-two, by four jobs of two and a third each.
    let got = month([5.0, 3.0, 2.0], [3, 60, 60]);
    let rest = got[1] + got[2];
    assert!(got[0] < 0.35, "it asked for little: {got:?}");
    assert!((got[1] / rest - 0.6).abs() < 0.02, "{got:?}");
}
