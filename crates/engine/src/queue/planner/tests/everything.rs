//! Long random runs with all kinds of requests at once.

use super::*;
use crate::fleet::Near;

const SEATS: Pool = Pool(0);
const LICENCES: u64 = 3;

#[derive(Debug, Clone)]
struct Wanted {
    job: Job,
    has_half: bool,
    seats: u64,
    /// In minutes after it was submitted.
    not_before: Option<i64>,
    deadline: Option<i64>,
    is_near: bool,
}

fn wanted() -> impl Strategy<Value = Vec<Wanted>> {
    let some = |range: std::ops::Range<i64>| prop::option::weighted(0.3, range);
    let more = (
        any::<bool>(),
        0..=2_u64,
        some(1..300),
        some(100..2000),
        any::<bool>(),
    );
    let more = prop::collection::vec(more, 40);
    (jobs(), more).prop_map(|(jobs, more)| {
        let all = jobs.into_iter().zip(more);
        let wanted = |(job, (has_half, seats, not_before, deadline, is_near))| Wanted {
            job,
            has_half,
            seats,
            not_before,
            deadline,
            is_near,
        };
        all.map(wanted).collect()
    })
}

impl Wanted {
    fn ask(&self, account: Account, now: Micros) -> Ask {
        let Job {
            tasks, gpus, limit, ..
        } = self.job;
        let fits_a_node = tasks * u32::from(gpus) <= 4;
        let at_least = match self.is_near && fits_a_node {
            true => Near::Node,
            false => Near::Anywhere,
        };
        let need = Need {
            at_least,
            ..need(tasks, gpus)
        };
        let half = ask(
            account,
            self::need(tasks, gpus.div_ceil(2)),
            2 * limit * MINUTE,
            now,
        );
        Ask {
            class: self.job.class,
            or: Vec::from_iter(self.has_half.then_some(half.wish)),
            seats: Vec::from_iter((self.seats > 0).then_some((SEATS, self.seats))),
            not_before: self.not_before.map(|minutes| now + minutes * MINUTE),
            deadline: self.deadline.map(|minutes| now + minutes * MINUTE),
            ..ask(account, need, limit * MINUTE, now)
        }
    }
}

/// Number of seats held at a moment by running workloads, promises and reservations.
fn seats_held(queue: &Planner, walls: &[(Micros, Micros)], at: Micros) -> u64 {
    let count = |ask: &Ask| ask.seats.iter().map(|(_, count)| count).sum::<u64>();
    let running = queue.running.values();
    let running = running.filter(|one| one.began <= at && at < one.until);
    let running: u64 = running.map(|one| count(&one.ask)).sum();
    let promised = queue.promises.iter().filter(|((_, key), promise)| {
        let limit = queue.asks[key].nth(promise.wish).limit;
        promise.at <= at && at < promise.at + limit
    });
    let promised: u64 = promised.map(|((_, key), _)| count(&queue.asks[key])).sum();
    let reserved = walls.iter().filter(|(from, to)| *from <= at && at < *to);
    running + promised + reserved.count() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// No workload starts before its `not_before` or ends after its deadline. Seats are never held twice, and each
    /// start is a variant of the request. Every workload finishes or gets [`Decision::TooLate`].
    #[test]
    fn whatever_is_asked_for_is_kept(wanted in wanted(), by_shares in any::<bool>(), walls in prop::collection::vec((0..900_i64, 10..200_i64), 0..3)) {
        let order = if by_shares { Order::Shares } else { Order::Shortest };
        let mut queue = planner(order, &[node(4), node(4), node(4)]);
        let accounts = [queue.shares.add_project(2.0), queue.shares.add_project(1.0)];
        queue.provide_seats(SEATS, LICENCES);
        let walls: Vec<(Micros, Micros)> = walls.iter().map(|(from, length)| (from * MINUTE, (from + length) * MINUTE)).collect();
        for (number, (from, to)) in (0..).zip(&walls) {
            queue.reserve_seats(number, *from, *to, &[(SEATS, 1)]);
        }
        let mut world = World::new(queue);
        let mut coming: Vec<(u64, &Wanted)> = (0..).zip(&wanted).collect();
        coming.sort_by_key(|(_, one)| one.job.at);
        let mut coming = coming.into_iter().peekable();
        let mut done = 0;
        let mut asked: Map<Key, Ask> = Map::new();
        loop {
            while let Some((key, one)) = coming.next_if(|(_, one)| one.job.at * MINUTE <= world.now) {
                let ask = one.ask(accounts[key as usize % 2], world.now);
                asked.insert(Key(key), ask.clone());
                let lasts = (one.job.limit as f64 * one.job.part * MINUTE as f64) as Micros;
                world.submit(key, ask, lasts.max(1));
            }
            let waited = world.asks.len();
            for start in world.plan_checked() {
                let ask = &asked[&start.key];
                let wish = ask.nth(start.wish);
                prop_assert!(start.wish <= ask.or.len());
                prop_assert_eq!(start.placement.pieces.len() as u32, wish.need.tasks);
                let each = wish.need.task.gpus.thousandths() as usize / 1000;
                prop_assert!(start.placement.pieces.iter().all(|piece| piece.gpus.len() == each));
                prop_assert!(ask.not_before.is_none_or(|at| at <= world.now));
                prop_assert!(ask.deadline.is_none_or(|at| start.until <= at));
                prop_assert!(start.until <= world.now + wish.limit);
            }
            // `World` has already removed workloads that were too late.
            done += waited - world.asks.len();
            let begins = walls.iter().map(|(from, _)| *from).chain(world.queue.promises.values().map(|promise| promise.at));
            for at in begins.chain([world.now]).filter(|at| *at >= world.now) {
                prop_assert!(seats_held(&world.queue, &walls, at) <= LICENCES, "at {at} of {}", world.now);
            }
            let next = coming.peek().map(|(_, one)| one.job.at * MINUTE);
            if next.is_none() && world.ends.is_empty() && world.queue.waiting() == 0 {
                break;
            }
            let wall_ends = walls.iter().map(|(_, to)| *to).filter(|to| *to > world.now).min();
            let until = next.into_iter().chain(wall_ends).min().unwrap_or(Micros::MAX);
            prop_assert!(until < Micros::MAX || !world.ends.is_empty() || world.queue.next_look(world.now).is_some(), "stuck at {}: {:?}", world.now, world.queue.asks);
            done += world.go_on(until).len();
        }
        prop_assert_eq!(done, wanted.len());
        prop_assert!(world.queue.later.is_empty() && world.queue.by_deadline.is_empty() && world.queue.by_due.is_empty());
        prop_assert!(world.queue.lines.is_empty() && world.queue.ripens.is_empty());
    }
}
