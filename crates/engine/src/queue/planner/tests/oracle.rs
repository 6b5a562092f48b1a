//! An oracle that only counts. It checks that no workload waits that could start, and that running workloads may
//! run.

use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::*;
use crate::fleet::Near;

const GPUS: Counted = Counted(0);
const NODES: u32 = 4;
const EACH: u16 = 4;

/// Held GPUs: node, GPU, start and end.
type Held = Vec<(u32, u16, Micros, Micros)>;

struct Oracle {
    held: Held,
    walls: Held,
}

impl Oracle {
    fn of(world: &World, walls: &Held) -> Oracle {
        let mut held = walls.clone();
        let mut ahead = walls.clone();
        let add = |to: &mut Held, placement: &Placement, from: Micros, until: Micros| {
            for piece in &placement.pieces {
                let gpus = piece.gpus.iter().map(|part| part.gpu);
                to.extend(gpus.map(|gpu| (piece.node.0, gpu, from, until)));
            }
        };
        for (_, one) in world.queue.running() {
            add(&mut held, &one.placement, one.began, one.until);
        }
        for ((_, key), promise) in &world.queue.promises {
            let limit = world.queue.asks[key].nth(promise.wish).limit;
            add(
                &mut held,
                &promise.placement,
                promise.at,
                promise.at + limit,
            );
            add(
                &mut ahead,
                &promise.placement,
                promise.at,
                promise.at + limit,
            );
        }
        Oracle { held, walls: ahead }
    }

    /// How many GPUs of a node are free during all of a time.
    fn free(&self, node: u32, from: Micros, to: Micros) -> u16 {
        let is_free = |gpu: &u16| {
            let mut theirs = self
                .held
                .iter()
                .filter(|one| (one.0, one.1) == (node, *gpu));
            theirs.all(|(_, _, begin, end)| *end <= from || to <= *begin)
        };
        (0..EACH).filter(is_free).count() as u16
    }

    /// Whether all tasks could start now and run until their limit.
    fn could_begin(&self, wish: &Wish, now: Micros) -> bool {
        let each = (wish.need.task.gpus.thousandths() / 1000) as u16;
        let room = |node: u32| u32::from(self.free(node, now, now + wish.limit) / each);
        let tasks = wish.need.tasks;
        match wish.need.at_least {
            Near::Anywhere => (0..NODES).map(room).sum::<u32>() >= tasks,
            Near::Rack => (0..2).any(|rack| room(2 * rack) + room(2 * rack + 1) >= tasks),
            Near::Node | Near::Link => (0..NODES).any(|node| room(node) >= tasks),
        }
    }

    /// Whether the planner guarantees to start everything that could start. It may ignore room between several walls of
    /// a node, and a gang that would run partly before a wall; its documentation says so.
    fn is_plain(&self, wish: &Wish, now: Micros) -> bool {
        let mut begins: Vec<(u32, Micros)> = self.walls.iter().map(|one| (one.0, one.2)).collect();
        begins.retain(|(_, at)| *at > now);
        begins.sort_unstable();
        begins.dedup();
        let nodes = begins.windows(2).any(|pair| pair[0].0 == pair[1].0);
        begins.is_empty() || (wish.need.tasks == 1 && !nodes)
    }

    /// Whether each GPU has one holder at a time.
    fn is_at_peace(&self, now: Micros) -> bool {
        let mut held = self.held.clone();
        held.retain(|(.., end)| *end > now);
        held.sort_unstable();
        let apart = |pair: &[(u32, u16, Micros, Micros)]| {
            (pair[0].0, pair[0].1) != (pair[1].0, pair[1].1) || pair[0].3 <= pair[1].2
        };
        held.windows(2).all(apart)
    }
}

#[derive(Debug, Clone)]
struct Wanted {
    job: Job,
    at_least: Near,
    who: usize,
}

fn wanted() -> impl Strategy<Value = Vec<Wanted>> {
    let near = prop::sample::select(vec![Near::Anywhere, Near::Anywhere, Near::Rack, Near::Node]);
    let more = prop::collection::vec((near, 0..4_usize), 40);
    (jobs(), more).prop_map(|(jobs, more)| {
        let wanted = |(job, (at_least, who)): (Job, (Near, usize))| Wanted {
            // Tasks that could never fit on one node would wait for ever.
            at_least: match u32::from(job.gpus) * job.tasks <= u32::from(EACH) {
                true => at_least,
                false => Near::Anywhere,
            },
            job,
            who,
        };
        jobs.into_iter().zip(more).map(wanted).collect()
    })
}

/// The worth of an account's use at the end: the decayed sum over its whole time.
fn decayed(rate: f64, from: Micros, to: Micros, end: Micros) -> f64 {
    let half_life = 7.0 * 24.0 * HOUR as f64;
    let unit = |at: Micros| ((at - end) as f64 / half_life).exp2();
    rate * (unit(to) - unit(from)) * half_life / std::f64::consts::LN_2
}

/// The workloads, the reservations, and three switches: with reservations, with fair share, with quotas.
type Case = (Vec<Wanted>, Walls, [bool; 3]);

fn case() -> impl Strategy<Value = Case> {
    (wanted(), walls(), any::<[bool; 3]>())
}

/// Number of events in a run of many cases. Submissions, ends and plans are events.
fn events_wanted() -> u64 {
    let told = std::env::var("BERTH_QUEUE_EVENTS").ok();
    told.and_then(|text| text.parse().ok()).unwrap_or(15_000)
}

/// Random runs, one after the other, until enough events have happened. A failing run reports its seed.
#[test]
fn nothing_waits_that_could_begin_in_however_many_events() {
    let first = std::env::var("BERTH_QUEUE_SEED").ok();
    let first: u64 = first.and_then(|text| text.parse().ok()).unwrap_or(1);
    let (mut events, mut seed) = (0, first);
    while events < events_wanted() {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), random);
        let tree = case().new_tree(&mut runner).expect("cases are drawn");
        match nothing_waits(tree.current()) {
            Ok(more) => events += more,
            Err(error) => panic!("seed {seed}: {error}"),
        }
        seed += 1;
    }
    eprintln!("{events} events, seeds {first} to {}", seed - 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn nothing_waits_that_could_begin(case in case()) {
        nothing_waits(case)?;
    }
}

/// After every plan of a long run: no workload waits that could start, nothing is held twice, no wall is crossed,
/// gangs are whole, and no quota is exceeded. In the end all workloads have finished and the ledger matches their
/// use. Returns the number of events.
fn nothing_waits(case: Case) -> Result<u64, TestCaseError> {
    let (wanted, walls, [has_walls, by_shares, has_quotas]) = case;
    let mut events = 0;
    let order = if by_shares {
        Order::Shares
    } else {
        Order::Shortest
    };
    let nodes: Vec<Node> = (0..NODES)
        .map(|number| Node {
            rack: number / 2,
            ..node(usize::from(EACH))
        })
        .collect();
    let mut queue = planner(order, &nodes);
    let projects = [queue.shares.add_project(2.0), queue.shares.add_project(1.0)];
    let people: Vec<Account> = (0..4)
        .map(|who| queue.shares.person(projects[who % 2], who as u64))
        .collect();
    if has_quotas {
        queue.quotas.allow(
            projects[0],
            GPUS,
            Some(Allowance {
                guaranteed: 8,
                limit: Some(12),
            }),
        );
        queue.quotas.allow(
            projects[1],
            GPUS,
            Some(Allowance {
                guaranteed: 8,
                limit: None,
            }),
        );
    }
    let mut laid = Held::new();
    for (number, (node, gpu, from, length)) in (0..).zip(&walls).filter(|_| has_walls) {
        let (from, to) = (from * MINUTE, (from + length) * MINUTE);
        if laid
            .iter()
            .all(|(n, g, f, t)| (n, g) != (node, gpu) || to <= *f || *t <= from)
        {
            laid.push((*node, *gpu, from, to));
            queue.reserve(number, from, to, &one_gpu(*node, 0, *gpu));
        }
    }
    let mut world = World::new(queue);
    let mut coming: Vec<(u64, &Wanted)> = (0..).zip(&wanted).collect();
    coming.sort_by_key(|(_, one)| one.job.at);
    let mut coming = coming.into_iter().peekable();
    let mut runs: Vec<(usize, f64, Micros, Micros)> = Vec::new();
    let mut done = 0;
    loop {
        while let Some((key, one)) = coming.next_if(|(_, one)| one.job.at * MINUTE <= world.now) {
            let Job {
                tasks,
                gpus,
                limit,
                part,
                class,
                ..
            } = one.job;
            let need = Need {
                at_least: one.at_least,
                ..need(tasks, gpus)
            };
            let ask = ask(people[one.who], need, limit * MINUTE, world.now);
            let ask = counted(ask, [(GPUS, u64::from(tasks) * u64::from(gpus))]);
            let lasts = (limit as f64 * part * MINUTE as f64) as Micros;
            world.submit(key, Ask { class, ..ask }, lasts.max(1));
            events += 1;
        }
        events += 1;
        for start in world.plan_checked() {
            let tasks = wanted[start.key.0 as usize].job.tasks;
            prop_assert_eq!(start.placement.pieces.len() as u32, tasks);
        }
        let oracle = Oracle::of(&world, &laid);
        prop_assert!(oracle.is_at_peace(world.now), "at {}", world.now);
        if has_quotas {
            prop_assert!(world.queue.quotas.used(projects[0], GPUS) <= 12);
        }
        for (key, ask) in &world.queue.asks {
            let is_promised = world.queue.promises.contains_key(&(ask.due(), *key));
            let is_allowed = world
                .queue
                .quotas
                .judge(&world.queue.shares, ask.account, &ask.wish.amounts)
                .is_allowed();
            if is_promised || !is_allowed || !oracle.is_plain(&ask.wish, world.now) {
                continue;
            }
            prop_assert!(
                !oracle.could_begin(&ask.wish, world.now),
                "{:?} at {}: {:?}",
                key,
                world.now,
                ask
            );
        }
        let next = coming.peek().map(|(_, one)| one.job.at * MINUTE);
        if next.is_none() && world.ends.is_empty() && world.queue.waiting() == 0 {
            break;
        }
        let wall_ends = laid
            .iter()
            .map(|(.., to)| *to)
            .filter(|to| *to > world.now)
            .min();
        let until = next
            .into_iter()
            .chain(wall_ends)
            .min()
            .unwrap_or(Micros::MAX);
        prop_assert!(
            until < Micros::MAX
                || !world.ends.is_empty()
                || world.queue.next_look(world.now).is_some(),
            "stuck"
        );
        let before: Map<Key, Micros> = world
            .began
            .iter()
            .map(|(key, (began, _))| (*key, *began))
            .collect();
        done += world.go_on(until).len();
        for (key, began) in before {
            if !world.queue.running.contains_key(&key) || world.queue.running[&key].began != began {
                let one = &wanted[key.0 as usize];
                let rate = f64::from(one.job.tasks) * f64::from(one.job.gpus);
                events += 1;
                runs.push((one.who % 2, rate, began, world.now));
            }
        }
    }
    prop_assert_eq!(done, wanted.len());
    let end = world.now;
    let mut used = [0.0; 2];
    for (project, rate, from, to) in runs {
        used[project] += decayed(rate, from, to, end);
    }
    let all = used[0] + used[1];
    for (project, used) in projects.iter().zip(used) {
        let standing = world.queue.shares.standing(*project, |_| true);
        prop_assert!(
            (standing.used - used / all).abs() < 1e-6,
            "{} of {}",
            standing.used,
            used / all
        );
    }
    prop_assert_eq!(world.queue.quotas.used(world.queue.shares.site(), GPUS), 0);
    prop_assert!(world.queue.promises.is_empty() && world.queue.promised == 0.0);
    Ok(events)
}

#[test]
fn two_gangs_that_each_need_most_of_the_fleet_never_wait_for_each_other() {
    for order in [Order::Shares, Order::Shortest] {
        let mut queue = planner(order, &[node(2), node(2)]);
        let projects = [queue.shares.add_project(1.0), queue.shares.add_project(1.0)];
        let mut world = World::new({
            for key in 0..4 {
                queue.submit(Key(key), ask(projects[0], need(1, 1), HOUR, 0));
            }
            queue
        });
        for key in 0..4 {
            world
                .asks
                .insert(Key(key), world.queue.asks[&Key(key)].clone());
            world
                .lasts
                .insert(Key(key), (key as Micros + 1) * 10 * MINUTE);
        }
        assert_eq!(world.plan_checked().len(), 4);
        // GPUs become free one by one, and each gang needs three of four.
        for (key, project) in (10..).zip(projects) {
            world.submit(key, ask(project, need(3, 1), HOUR, 0), HOUR);
        }
        let mut begun = Vec::new();
        while world.queue.waiting() > 0 || !world.ends.is_empty() {
            for start in world.plan_checked() {
                assert_eq!(start.placement.pieces.len(), 3);
                begun.push((start.key, world.now));
            }
            let gangs = world.queue.running().filter(|(key, _)| key.0 >= 10).count();
            assert!(gangs <= 1, "there is no room for both");
            world.go_on(9 * HOUR);
        }
        assert_eq!(begun.len(), 2);
        assert_eq!(begun[0].1, 30 * MINUTE, "as soon as three are free");
        assert_eq!(begun[1].1, 90 * MINUTE);
    }
}
