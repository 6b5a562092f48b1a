//! Alternative variants, times, seats, and tasks that must run near each other.

use super::*;
use crate::fleet::Near;

/// A workload that accepts half the GPUs for twice the time.
fn or_half(site: Account, gpus: u16, limit: Micros) -> Ask {
    let half = ask(site, need(1, gpus / 2), 2 * limit, 0);
    Ask {
        or: vec![half.wish],
        ..ask(site, need(1, gpus), limit, 0)
    }
}

#[test]
fn what_ends_first_of_what_can_begin_is_taken() {
    let mut queue = planner(Order::Shares, &[node(4), node(4)]);
    let site = queue.shares.site();
    queue.submit(Key(1), or_half(site, 4, 2 * HOUR));
    let begun = starts(queue.plan(0));
    assert_eq!((begun[0].wish, begun[0].until), (0, 2 * HOUR));
    assert_eq!(begun[0].placement.pieces[0].gpus.len(), 4);
    queue.submit(Key(2), ask(site, need(1, 2), HOUR, 0));
    queue.submit(Key(3), or_half(site, 4, 2 * HOUR));
    let begun = starts(queue.plan(0));
    assert_eq!(
        (begun[1].key, begun[1].wish),
        (Key(3), 1),
        "four are not to be had"
    );
    assert_eq!(begun[1].until, 4 * HOUR);
    let charged: Vec<f64> = [1, 3]
        .map(|key| queue.running[&Key(key)].wish().rate)
        .to_vec();
    assert_eq!(charged, [4.0, 2.0]);
    queue.end(Key(3), HOUR);
    queue.abandon(Key(1));
    assert_eq!(queue.running().count(), 1);
}

#[test]
fn who_is_promised_one_wish_begins_with_another_if_that_is_over_sooner() {
    let mut queue = planner(Order::Shortest, &[node(4)]);
    let site = queue.shares.site();
    queue.submit(Key(1), ask(site, need(1, 1), 20 * HOUR, 0));
    queue.submit(Key(2), ask(site, need(1, 2), 3 * HOUR, 0));
    assert_eq!(queue.plan(0).len(), 2);
    queue.submit(Key(3), or_half(site, 4, 2 * HOUR));
    assert!(queue.plan(0).is_empty());
    assert!(queue.plan(HOUR).is_empty());
    assert_eq!(
        queue.why(Key(3)),
        Some(Why::Promised(3 * HOUR)),
        "two of four, as soon as they are free"
    );
    queue.end(Key(2), 2 * HOUR);
    let begun = starts(queue.plan(2 * HOUR));
    assert_eq!((begun[0].key, begun[0].wish), (Key(3), 1));
}

#[test]
fn an_alternative_that_quotas_refuse_is_nobody_elses_loss() {
    let mut queue = planner(Order::Shares, &[node(4)]);
    let projects = [queue.shares.add_project(1.0), queue.shares.add_project(1.0)];
    let gpus = Counted(0);
    let allowance = Allowance {
        guaranteed: 2,
        limit: Some(2),
    };
    queue.quotas.allow(projects[0], gpus, Some(allowance));
    queue.submit(Key(9), ask(projects[1], need(1, 1), HOUR, 0));
    assert_eq!(started(&queue.plan(0)), [9]);
    for (key, project) in (0..).zip(projects) {
        let small = counted(ask(project, need(1, 4), HOUR, 0), [(gpus, 1)]);
        let large = counted(ask(project, need(1, 3), 2 * HOUR, 0), [(gpus, 3)]);
        let or = vec![large.wish];
        queue.submit(Key(key), Ask { or, ..small });
    }
    let begun = starts(queue.plan(0));
    assert_eq!((begun[0].key, begun[0].wish), (Key(1), 1));
}

#[test]
fn nobody_begins_before_they_asked_to() {
    let mut queue = planner(Order::Shares, &[node(1)]);
    let site = queue.shares.site();
    let not_before = Some(3 * HOUR);
    queue.submit(
        Key(1),
        Ask {
            not_before,
            ..ask(site, need(1, 1), HOUR, 0)
        },
    );
    queue.submit(Key(2), ask(site, need(1, 1), HOUR, 0));
    assert_eq!(started(&queue.plan(0)), [2]);
    assert_eq!(queue.why(Key(1)), Some(Why::NotBefore(3 * HOUR)));
    assert_eq!(queue.forecast(0).get(Key(1)), Some(Forecast::At(3 * HOUR)));
    queue.end(Key(2), HOUR);
    assert!(queue.plan(2 * HOUR).is_empty());
    assert_eq!(queue.next_look(2 * HOUR), Some(3 * HOUR));
    assert_eq!(started(&queue.plan(3 * HOUR)), [1]);
    queue.submit(
        Key(3),
        Ask {
            not_before: Some(9 * HOUR),
            ..ask(site, need(1, 1), HOUR, 0)
        },
    );
    assert!(queue.withdraw(Key(3)).is_some());
    assert_eq!((queue.waiting(), queue.next_look(3 * HOUR)), (0, None));
}

#[test]
fn what_cannot_be_over_by_its_deadline_is_told_so_and_what_still_can_is_promised() {
    let mut queue = planner(Order::Shares, &[node(2)]);
    let site = queue.shares.site();
    for key in 1..=2 {
        queue.submit(Key(key), ask(site, need(1, 1), 4 * HOUR, 0));
    }
    assert_eq!(queue.plan(0).len(), 2);
    let by = |deadline: Micros, gpus: u16| Ask {
        deadline: Some(deadline),
        ..ask(site, need(1, gpus), 2 * HOUR, 0)
    };
    queue.submit(Key(3), by(3 * HOUR, 1));
    queue.submit(Key(4), by(7 * HOUR, 2));
    assert!(queue.plan(0).is_empty());
    assert_eq!(
        queue.next_look(0),
        Some(HOUR),
        "the last moment at which either is overdue"
    );
    assert!(queue.plan(HOUR).is_empty());
    assert_ne!(
        queue.why(Key(3)),
        Some(Why::Promised(4 * HOUR)),
        "that would be too late"
    );
    assert_eq!(queue.plan(HOUR + 1), [Decision::TooLate(Key(3))]);
    assert_eq!(queue.why(Key(3)), None);
    // It gets a promise before its turn: others of its shape are in front of it.
    queue.submit(Key(5), ask(site, need(1, 1), HOUR, 0));
    assert_eq!(queue.why(Key(4)), Some(Why::Promised(4 * HOUR)));
    queue.end(Key(1), 4 * HOUR);
    queue.end(Key(2), 4 * HOUR);
    assert_eq!(started(&queue.plan(4 * HOUR)), [4]);
}

#[test]
fn tasks_that_have_to_stand_in_one_node_are_promised_one_node() {
    let mut queue = planner(Order::Shortest, &[node(2), node(2)]);
    let site = queue.shares.site();
    queue.submit(Key(1), ask(site, need(1, 1), 5 * HOUR, 0));
    queue.submit(Key(2), ask(site, need(1, 2), 4 * HOUR, 0));
    assert_eq!(queue.plan(0).len(), 2);
    queue.end(Key(2), 0);
    queue.submit(Key(3), ask(site, need(1, 1), 3 * HOUR, 0));
    assert_eq!(started(&queue.plan(0)), [3]);
    // Three GPUs stay free, at most one on each node, except on the empty node.
    let together = Need {
        at_least: Near::Node,
        ..need(2, 1)
    };
    queue.submit(Key(4), ask(site, together, 2 * HOUR, 0));
    let begun = starts(queue.plan(0));
    let nodes = begun[0].placement.pieces.iter().map(|piece| piece.node.0);
    let nodes: Vec<u32> = nodes.collect();
    assert_eq!(nodes[0], nodes[1]);
    queue.submit(Key(5), ask(site, together, 2 * HOUR, 0));
    queue.plan(HOUR);
    assert_eq!(queue.why(Key(5)), Some(Why::Promised(2 * HOUR)));
}

const SEATS: Pool = Pool(1);

fn seated(ask: Ask, count: u64) -> Ask {
    Ask {
        seats: vec![(SEATS, count)],
        ..ask
    }
}

#[test]
fn seats_are_given_out_once_and_reserved_ones_are_walls() {
    let mut queue = planner(Order::Shares, &[node(8)]);
    let site = queue.shares.site();
    queue.submit(Key(1), seated(ask(site, need(1, 1), 2 * HOUR, 0), 2));
    assert!(queue.plan(0).is_empty());
    assert_eq!(queue.why(Key(1)), Some(Why::NoSeats(SEATS)));
    queue.provide_seats(SEATS, 3);
    queue.reserve_seats(7, 3 * HOUR, 4 * HOUR, &[(SEATS, 2)]);
    queue.submit(Key(2), seated(ask(site, need(1, 1), 2 * HOUR, 0), 2));
    queue.submit(Key(3), seated(ask(site, need(1, 1), 4 * HOUR, 0), 1));
    queue.submit(Key(4), seated(ask(site, need(1, 1), 4 * HOUR, 0), 2));
    assert_eq!(started(&queue.plan(0)), [1, 3]);
    queue.end(Key(1), HOUR);
    assert_eq!(started(&queue.plan(HOUR)), [2]);
    queue.end(Key(2), 2 * HOUR);
    assert!(
        queue.plan(2 * HOUR).is_empty(),
        "the last would meet the wall"
    );
    assert_eq!(queue.why(Key(4)), Some(Why::Promised(4 * HOUR)));
    queue.unreserve(7);
    assert_eq!(started(&queue.plan(2 * HOUR)), [4], "sooner than promised");
}

#[test]
fn what_is_opportunistic_gives_its_seats_back_to_a_reservation() {
    let mut queue = planner(Order::Shares, &[node(8)]);
    let site = queue.shares.site();
    queue.provide_seats(SEATS, 2);
    queue.reserve_seats(7, 3 * HOUR, 4 * HOUR, &[(SEATS, 1)]);
    for key in 1..=2 {
        queue.submit(
            Key(key),
            seated(soft(ask(site, need(1, 1), 9 * HOUR, 0)), 1),
        );
    }
    let begun = starts(queue.plan(0));
    assert_eq!((begun[0].until, begun[1].until), (9 * HOUR, 3 * HOUR));
    queue.reserve_seats(8, 2 * HOUR, 3 * HOUR, &[(SEATS, 2)]);
    let mut told = stopped(&queue.plan(MINUTE));
    told.sort_unstable();
    assert_eq!(told, [(1, 2 * HOUR), (2, 2 * HOUR)]);
}
