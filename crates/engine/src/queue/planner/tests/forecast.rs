//! What is foreseen is what happens, where everything runs as long as it is expected to.

use super::*;

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

    /// The first to begin begins when it was foreseen, and never is more foreseen at once than there is.
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
