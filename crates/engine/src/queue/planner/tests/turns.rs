//! No workload starves: large ones behind small ones, long ones behind short ones, owners behind borrowers.

use super::*;
use crate::queue::share::Mode;

/// Every workload is overdue twelve hours after it was submitted.
const OVERDUE: Micros = 12 * HOUR;

#[test]
fn what_is_long_is_promised_something_behind_a_stream_of_what_is_short() {
    let mut queue = planner(Order::Shares, &[node(1)]);
    let site = queue.shares.site();
    queue.submit(Key(1), ask(site, need(1, 1), 48 * HOUR, 0));
    queue.plan(0);
    queue.submit(Key(2), ask(site, need(1, 1), 24 * HOUR, 0));
    queue.submit(Key(3), ask(site, need(1, 1), HOUR, OVERDUE));
    assert!(queue.plan(OVERDUE).is_empty());
    let promised = Why::Promised(48 * HOUR);
    assert_eq!(
        queue.why(Key(2)),
        Some(promised),
        "though the short one is looked at first, and asks for the same"
    );
    assert_eq!(queue.why(Key(3)), Some(Why::NoRoom));
}

#[test]
fn what_is_much_has_its_turn_kept_until_enough_is_left_to_promise() {
    let mut queue = planner(Order::Shares, &[node(8)]);
    let (many, few) = (queue.shares.add_project(1.0), queue.shares.add_project(1.0));
    for key in 1..=8 {
        queue.submit(Key(key), ask(many, need(1, 1), 13 * HOUR, 0));
    }
    assert_eq!(queue.plan(0).len(), 8);
    // Small workloads get promises up to the limit of promises; large ones come too late for one.
    for key in 11..=12 {
        queue.submit(Key(key), ask(few, need(1, 1), 2 * HOUR, 0));
    }
    for _ in 0..2 {
        queue.plan(2 * HOUR);
    }
    assert_eq!(queue.promises.len(), 2);
    queue.submit(Key(20), ask(few, need(1, 8), 2 * HOUR, 0));
    queue.plan(3 * HOUR);
    for key in 31..=38 {
        queue.submit(Key(key), ask(many, need(1, 1), 2 * HOUR, 0));
    }
    for at in [4, 8, 12] {
        queue.plan(at * HOUR);
        assert_eq!(queue.promises.len(), 2, "nobody else is promised anything");
    }
    for key in 1..=8 {
        queue.end(Key(key), 13 * HOUR);
    }
    queue.plan(13 * HOUR);
    assert!(matches!(queue.why(Key(20)), Some(Why::Promised(_))));
}

#[test]
fn a_promise_over_which_something_is_reserved_is_made_anew_at_once() {
    let mut queue = planner(Order::Shares, &[node(1), node(1)]);
    let site = queue.shares.site();
    for key in 1..=2 {
        queue.submit(
            Key(key),
            ask(site, need(1, 1), (12 + key as Micros) * HOUR, 0),
        );
    }
    queue.plan(0);
    queue.submit(Key(3), ask(site, need(1, 1), 2 * HOUR, 0));
    queue.plan(HOUR);
    assert_eq!(queue.why(Key(3)), Some(Why::Promised(13 * HOUR)));
    let Some(promise) = queue.promises.values().next() else {
        unreachable!("it is promised something");
    };
    let node = promise.placement.pieces[0].node.0;
    queue.reserve(7, 14 * HOUR, 20 * HOUR, &one_gpu(node, 0, 0));
    queue.plan(HOUR);
    assert_eq!(queue.why(Key(3)), Some(Why::Promised(14 * HOUR)));
    queue.reserve(8, 40 * HOUR, 50 * HOUR, &one_gpu(node, 0, 0));
    queue.plan(HOUR);
    let kept = queue.why(Key(3));
    assert_eq!(kept, Some(Why::Promised(14 * HOUR)), "it is not in the way");
}

#[test]
fn owners_get_back_what_is_theirs_though_a_borrower_asks_for_the_same_before_them() {
    let mut queue = planner(Order::Shares, &[node(2)]);
    // The account with the larger share goes first.
    let (borrower, owner) = (
        queue.shares.add_project(100.0),
        queue.shares.add_project(0.01),
    );
    let gpus = Counted(0);
    for project in [borrower, owner] {
        let one = Allowance {
            guaranteed: 1,
            limit: None,
        };
        queue.quotas.allow(project, gpus, Some(one));
    }
    let one = |project: Account| counted(ask(project, need(1, 1), 9 * HOUR, 0), [(gpus, 1)]);
    for key in 1..=3 {
        queue.submit(Key(key), one(borrower));
    }
    assert_eq!(queue.plan(0).len(), 2);
    let past = 30 * HOUR;
    queue.shares.charge(owner, Mode::Batch, 0, past, 1.0);
    queue.submit(Key(4), one(owner));
    assert_eq!(stopped(&queue.plan(HOUR)).len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// With any limits of workloads with one shape, no workload waits while there is room for it, in either order.
    #[test]
    fn the_longest_that_still_fits_before_a_wall_begins(
        limits in prop::collection::vec((1..300_i64, 1..300_i64), 1..60), wall in 1..300_i64, by_shares in any::<bool>(),
    ) {
        let order = if by_shares { Order::Shares } else { Order::Shortest };
        let mut queue = planner(order, &[node(2)]);
        let site = queue.shares.site();
        for gpu in 0..2 {
            queue.reserve(u64::from(gpu), wall * MINUTE, (wall + 1) * MINUTE, &one_gpu(0, 0, gpu));
        }
        for (key, (limit, likely)) in (0..).zip(&limits) {
            let one = ask(site, need(1, 1), limit * MINUTE, 0);
            queue.submit(Key(key), expected(one, (*limit).min(*likely) * MINUTE));
        }
        let begun = started(&queue.plan(0));
        let fits = limits.iter().filter(|(limit, _)| *limit <= wall).count();
        prop_assert_eq!(begun.len(), fits.min(2));
        let mut by_length: Vec<(i64, u64)> = (0..).zip(&limits).filter(|(_, (limit, _))| *limit <= wall)
            .map(|(key, (limit, likely))| ((*limit).min(*likely), key)).collect();
        by_length.sort_unstable();
        let first: Vec<u64> = by_length.iter().take(2).map(|(_, key)| *key).collect();
        prop_assert_eq!(begun, first);
    }
}
