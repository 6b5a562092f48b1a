//! Forecasts match the real starts if every workload runs for its expected time.

use super::*;
use crate::fleet::Near;
use crate::queue::quota::{Hours, LocalTime, Timetable};

fn at(hours: i64) -> Option<Forecast> {
    Some(Forecast::At(hours * HOUR))
}

#[test]
fn those_who_wait_are_told_when_their_turn_comes() {
    let mut queue = planner(Order::Shortest, &[node(2), node(2)]);
    let site = queue.shares.site();
    for key in 1..=4 {
        let runs = ask(site, need(1, 1), 9 * HOUR, 0);
        queue.submit(Key(key), expected(runs, key as Micros * HOUR));
    }
    assert_eq!(queue.plan(0).len(), 4);
    queue.reserve(7, 8 * HOUR, 20 * HOUR, &one_gpu(0, 0, 0));
    queue.submit(Key(5), ask(site, need(1, 1), 2 * HOUR, 0));
    queue.submit(Key(6), ask(site, need(2, 2), 5 * HOUR, 0));
    queue.submit(Key(7), ask(site, need(1, 2), 7 * HOUR, 0));
    queue.submit(Key(8), ask(site, need(5, 1), HOUR, 0));
    let forecasts = queue.forecast(0);
    assert_eq!(forecasts.get(Key(5)), at(1), "where the first ends");
    assert_eq!(
        forecasts.get(Key(6)),
        at(20),
        "all four, when the reservation is over"
    );
    assert_eq!(
        forecasts.get(Key(7)),
        at(3),
        "two that end by then, beside the reservation"
    );
    assert_eq!(forecasts.get(Key(8)), Some(Forecast::Never));
    assert_eq!(forecasts.get(Key(1)), None, "it runs");
    assert_eq!(forecasts.iter().count(), 4);
}

#[test]
fn what_outlives_its_expectation_goes_on_for_a_while_but_not_beyond_its_limit() {
    let mut queue = planner(Order::Shortest, &[node(1)]);
    let site = queue.shares.site();
    let first = ask(site, need(1, 1), 10 * HOUR, 0);
    queue.submit(Key(1), expected(first, HOUR));
    queue.plan(0);
    queue.submit(Key(2), ask(site, need(1, 1), HOUR, 0));
    assert_eq!(queue.forecast(0).get(Key(2)), at(1));
    assert_eq!(queue.forecast(4 * HOUR).get(Key(2)), at(6));
    assert_eq!(queue.forecast(9 * HOUR).get(Key(2)), at(10));
}

#[test]
fn nobody_is_told_of_a_time_that_nobody_would_believe() {
    let mut queue = planner(Order::Shortest, &[node(1)]);
    let site = queue.shares.site();
    for key in 0..100 {
        queue.submit(Key(key), ask(site, need(1, 1), 24 * HOUR, 0));
    }
    let forecasts = queue.forecast(0);
    assert_eq!(forecasts.get(Key(60)), at(60 * 24));
    assert_eq!(
        forecasts.get(Key(61)),
        Some(Forecast::Beyond(60 * 24 * HOUR))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// The first workload starts at its forecast, and the forecasts never use more GPUs at once than exist.
    #[test]
    fn what_is_foreseen_could_happen(jobs in prop::collection::vec((1..4_u16, 1..50_i64), 1..30)) {
        let mut queue = planner(Order::Shortest, &[node(4)]);
        let site = queue.shares.site();
        for (key, (gpus, minutes)) in (0..).zip(&jobs) {
            queue.submit(Key(key), ask(site, need(1, *gpus), minutes * MINUTE, 0));
        }
        let forecasts = queue.forecast(0);
        prop_assert_eq!(forecasts.iter().count(), jobs.len());
        let begun = starts(queue.plan(0));
        prop_assert_eq!(forecasts.get(begun[0].key), Some(Forecast::At(0)));
        let span = |(key, one): (Key, Forecast)| {
            let (gpus, minutes) = jobs[key.0 as usize];
            match one {
                Forecast::At(begin) => (begin, begin + minutes * MINUTE, gpus),
                other => unreachable!("{other:?}"),
            }
        };
        let spans: Vec<(Micros, Micros, u16)> = forecasts.iter().map(span).collect();
        for (begin, ..) in &spans {
            let there = spans.iter().filter(|(from, to, _)| from <= begin && begin < to);
            prop_assert!(there.map(|(.., gpus)| gpus).sum::<u16>() <= 4);
        }
    }
}

const GPUS: Counted = Counted(0);
const SEATS: Pool = Pool(0);

#[derive(Debug, Clone)]
struct Wanted {
    need: Need,
    minutes: i64,
    seats: u64,
    who: usize,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let near = prop::sample::select(vec![Near::Anywhere, Near::Rack, Near::Node]);
    let wanted = (1..4_u32, 1..5_u16, near, 1..200_i64, 0..3_u64, 0..2_usize);
    wanted.prop_map(|(tasks, gpus, at_least, minutes, seats, who)| {
        // Tasks in one rack may run on two nodes, and only tasks with one GPU can use every gap there.
        let gpus = if at_least == Near::Rack { 1 } else { gpus };
        Wanted {
            need: Need {
                at_least,
                ..need(tasks, gpus)
            },
            minutes,
            seats,
            who,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A workload that waits alone starts exactly at its forecast. It may wait for GPUs, GPUs together, seats or its
    /// quota. A workload that never starts has the forecast [`Forecast::Never`].
    #[test]
    fn the_first_in_line_begins_when_it_was_foreseen(
        running in prop::collection::vec(wanted(), 1..14), first in wanted(), by_shares in any::<bool>(),
    ) {
        let order = if by_shares { Order::Shares } else { Order::Shortest };
        let nodes: Vec<Node> = (0..4).map(|number| Node { rack: number / 2, ..node(4) }).collect();
        let mut queue = planner(order, &nodes);
        let projects = [queue.shares.add_project(1.0), queue.shares.add_project(1.0)];
        queue.quotas.allow(projects[0], GPUS, Some(Allowance { guaranteed: 0, limit: Some(6) }));
        queue.provide_seats(SEATS, 3);
        let asked = |one: &Wanted| {
            let ask = ask(projects[one.who], one.need, one.minutes * MINUTE, 0);
            let gpus = u64::from(one.need.tasks * one.need.task.gpus.thousandths() / 1000);
            let seats = Vec::from_iter((one.seats > 0).then_some((SEATS, one.seats)));
            Ask { seats, ..counted(ask, [(GPUS, gpus)]) }
        };
        for (key, one) in (1..).zip(&running) {
            queue.submit(Key(key), asked(one));
        }
        let mut ends = BTreeSet::new();
        for start in starts(queue.plan(0)) {
            ends.insert((start.until, start.key));
        }
        for key in 1..=running.len() as u64 {
            queue.withdraw(Key(key));
        }
        queue.submit(Key(0), asked(&first));
        let foreseen = queue.forecast(0).get(Key(0));
        let mut now = 0;
        let mut begun = None;
        loop {
            if !starts(queue.plan(now)).is_empty() {
                begun = Some(now);
                break;
            }
            let Some((end, key)) = ends.pop_first() else { break };
            now = end;
            queue.end(key, now);
            while let Some((_, key)) = ends.first().copied().filter(|(end, _)| *end == now) {
                ends.remove(&(now, key));
                queue.end(key, now);
            }
        }
        prop_assert_eq!(foreseen, Some(begun.map_or(Forecast::Never, Forecast::At)));
    }
}

#[test]
fn a_quota_that_is_larger_at_night_is_foreseen() {
    let mut queue = planner(Order::Shares, &[node(4)]);
    let project = queue.shares.add_project(1.0);
    let allowance = |limit| {
        Some(Allowance {
            guaranteed: 0,
            limit: Some(limit),
        })
    };
    let night = Hours {
        weekdays: 0b111_1111,
        from: 20 * 60,
        to: 0,
    };
    let timetable = Timetable {
        usual: allowance(1),
        hours: vec![(night, allowance(4))],
    };
    queue.quotas.schedule(project, GPUS, Some(timetable));
    queue.quotas.turn(0, |at| LocalTime {
        weekday: (at / (24 * HOUR)) as u8 % 7,
        minute: (at % (24 * HOUR) / MINUTE) as u16,
    });
    let two = |limit| counted(ask(project, need(1, 2), limit, 0), [(GPUS, 2)]);
    queue.submit(Key(1), two(2 * HOUR));
    assert_eq!(queue.forecast(0).get(Key(1)), at(20));
    queue.submit(Key(2), two(5 * HOUR));
    let never = queue.forecast(0).get(Key(2));
    assert_eq!(never, Some(Forecast::Never), "no night is so long");
}

#[test]
fn what_is_over_its_budget_is_not_told_a_time() {
    let mut queue = planner(Order::Shares, &[node(4)]);
    let project = queue.shares.add_project(1.0);
    let hours = |gpu_hours: u128| gpu_hours * HOUR as u128;
    queue
        .quotas
        .budget(project, GPUS, Some((hours(5), hours(1))));
    let one = |limit| counted(ask(project, need(1, 1), limit, 0), [(GPUS, 1)]);
    queue.submit(Key(1), one(3 * HOUR));
    queue.submit(Key(2), one(3 * HOUR));
    let forecasts = queue.forecast(0);
    assert_eq!(forecasts.get(Key(1)), at(0));
    let beyond = Forecast::Beyond(60 * 24 * HOUR);
    assert_eq!(forecasts.get(Key(2)), Some(beyond));
}
