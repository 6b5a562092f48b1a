use berth_engine::fleet::Gpus;
use berth_engine::queue::planner::{Order, Policy};
use berth_engine::queue::quota::Allowance;

use super::*;
use crate::fixture::{HOUR, arrival, busy, nodes, trace};
use crate::policy::{Quota, Reserve};
use crate::swf::SECOND;
use crate::trace::Arrival;

fn played(trace: &Trace, candidate: &Candidate) -> Outcome {
    play(trace, candidate, &mut |_| ())
}

fn shortest() -> Candidate {
    Candidate {
        policy: Policy::new(Order::Shortest),
        ..Candidate::new("shortest")
    }
}

impl World<'_> {
    /// No node has more runs and reservations than it has room for.
    fn assert_nothing_is_had_twice(&self) {
        for (node, has) in self.trace.nodes.iter().enumerate() {
            let mut taken = Taken::default();
            for run in self.on[node].iter().filter_map(|one| self.runs.get(one)) {
                taken.add_on(node, &run.placement);
            }
            let walls = self.reserved_on[node]
                .iter()
                .map(|place| &self.walls[*place]);
            for wall in walls.filter(|wall| wall.from <= self.now && self.now < wall.to) {
                taken.add_on(node, &wall.placement);
            }
            assert!(taken.fits(has), "node {node} at {}: {taken:?}", self.now);
        }
    }
}

#[test]
fn nothing_is_ever_had_twice_and_no_reservation_is_late() {
    for seed in 1..=3 {
        let trace = busy(150, seed);
        for candidate in [Candidate::new("shares"), shortest()] {
            let mut world = World::new(&trace, &candidate);
            while world.go_on() {
                world.plan();
                world.assert_nothing_is_had_twice();
            }
            assert!(world.next_wall > 4, "reservations begin");
            let outcome = world.outcome();
            assert_eq!(outcome.late_s, 0.0);
            assert_eq!(outcome.done + outcome.never, trace.arrivals.len());
            assert_eq!(outcome.never, 0);
            assert_eq!(outcome.starts, outcome.done + outcome.preemptions);
            assert!(outcome.preemptions > 0, "what is softer makes room");
            let gpus = outcome.gpu_used.unwrap();
            assert!(gpus > 0.3 && gpus + outcome.reserved <= 1.0, "{gpus}");
        }
    }
}

#[test]
fn the_same_trace_and_policy_give_the_same_figures() {
    let trace = busy(120, 9);
    let candidate = Candidate::new("shares");
    assert_eq!(played(&trace, &candidate), played(&trace, &candidate));
}

#[test]
fn what_is_sent_away_begins_again_and_its_loss_is_counted() {
    let soft = Arrival {
        class: Class::Opportunistic,
        ..arrival(0, 0, 2 * HOUR, Gpus::Whole(4))
    };
    let firm = arrival(1, HOUR, HOUR, Gpus::Whole(4));
    let outcome = played(&trace(vec![soft, firm], nodes(1)), &Candidate::new("any"));
    assert_eq!(
        (outcome.preemptions, outcome.starts, outcome.done),
        (1, 3, 2)
    );
    // One hour and half a minute of grace on four GPUs.
    let lost = 4.0 * (3630.0 / 3600.0);
    assert!(
        (outcome.lost_hours - lost).abs() < 1e-9,
        "{}",
        outcome.lost_hours
    );
    // The firm one waits for the grace period. The opportunistic one waits for its lost first hour, that grace period,
    // and the firm one's hour.
    assert_eq!(outcome.waits_s, [30.0, 2.0 * 3600.0 + 30.0]);
}

#[test]
fn a_reservation_is_refused_where_something_runs_until_its_limit() {
    let mut trace = trace(vec![arrival(0, 0, 4 * HOUR, Gpus::Whole(4))], nodes(1));
    let on_short_notice = Wall {
        from: 2 * HOUR,
        to: 3 * HOUR,
        known: HOUR,
        placement: reserve::whole(&trace.nodes, &[0]),
        holder: None,
    };
    trace.walls = vec![on_short_notice.clone()];
    let outcome = played(&trace, &Candidate::new("any"));
    assert_eq!((outcome.reservations, outcome.refused), (1, 1));
    assert_eq!(outcome.late_s, 0.0);
    trace.walls = vec![Wall {
        known: 0,
        ..on_short_notice
    }];
    let outcome = played(&trace, &Candidate::new("any"));
    assert_eq!(outcome.refused, 0);
    assert_eq!(
        outcome.waits_s,
        [3.0 * 3600.0],
        "it goes round the reservation"
    );
    let without = Candidate {
        keeps_reservations: false,
        ..Candidate::new("none")
    };
    assert_eq!(played(&trace, &without).waits_s, [0.0]);
}

#[test]
fn what_can_never_begin_is_counted_and_keeps_nobody_waiting() {
    let large = arrival(0, 0, HOUR, Gpus::Whole(5));
    let small = arrival(1, 0, HOUR, Gpus::Whole(4));
    let outcome = played(&trace(vec![large, small], nodes(1)), &Candidate::new("any"));
    assert_eq!((outcome.never, outcome.done), (1, 1));
    assert_eq!(outcome.waits.max_s, 0.0);
}

/// Three projects that always want more than exists.
fn full() -> Trace {
    let mut arrivals = Vec::new();
    for number in 0..480 {
        let submit = number as Micros * SECOND;
        arrivals.push(arrival(number % 3, submit, HOUR, Gpus::Whole(1)));
    }
    // One workload arrives at the very end, so that all of the time counts.
    arrivals.push(arrival(0, 18 * HOUR, HOUR, Gpus::Whole(1)));
    trace(arrivals, nodes(6))
}

#[test]
fn weights_decide_who_gets_how_much_while_there_is_not_enough() {
    let weights = [("biology", 5.0), ("chemistry", 3.0), ("physics <&>", 2.0)];
    let weighted = Candidate {
        weights: weights
            .map(|(name, weight)| (name.to_owned(), weight))
            .into(),
        ..Candidate::new("weighted")
    };
    let outcome = played(&full(), &weighted);
    assert!(outcome.astray < 0.02, "{}", outcome.astray);
    let plain = played(&full(), &shortest());
    let due = played(&full(), &Candidate::new("even"));
    assert_eq!(plain.shares.len(), 3);
    assert!(
        due.shares
            .iter()
            .all(|share| (share.due - 1.0 / 3.0).abs() < 0.02)
    );
    // Projects with a larger weight wait less.
    let wait = |project: usize| outcome.by_project[project].1.mean_s;
    assert!(wait(0) < wait(1) && wait(1) < wait(2));
}

#[test]
fn a_limit_is_never_exceeded() {
    let limited = Candidate {
        quotas: vec![Quota {
            project: "biology".to_owned(),
            of: Thing::Gpus,
            allowance: Allowance {
                guaranteed: 0,
                limit: Some(2000),
            },
        }],
        ..Candidate::new("limited")
    };
    let trace = full();
    let mut world = World::new(&trace, &limited);
    let mut most = 0;
    while world.go_on() {
        world.plan();
        let own = world
            .runs
            .keys()
            .filter(|number| trace.arrivals[**number].owner.project == 0);
        most = most.max(own.count());
    }
    assert_eq!(most, 2);
}

#[test]
fn reservations_are_laid_over_a_trace_beside_its_own() {
    let trace = busy(400, 4);
    let laid = Candidate {
        reserve: Some(Reserve {
            part: 0.2,
            ahead: 12 * HOUR,
            seed: 3,
        }),
        ..Candidate::new("laid")
    };
    let walls = reserve::walls(&trace, &laid);
    assert!(walls.len() > trace.walls.len());
    assert_eq!(walls, reserve::walls(&trace, &laid));
    for (place, wall) in walls.iter().enumerate() {
        let beside = walls[place + 1..]
            .iter()
            .take_while(|other| other.from < wall.to);
        for other in beside {
            let nodes = nodes_of(&wall.placement);
            assert!(nodes.is_disjoint(&nodes_of(&other.placement)));
        }
    }
    assert_eq!(played(&trace, &laid).late_s, 0.0);
}

#[test]
fn reserved_time_counts_as_its_holders_own() {
    let mut trace = trace(Vec::new(), nodes(1));
    // The first project holds everything for a day; then both want the same.
    trace.walls = vec![Wall {
        from: 0,
        to: 24 * HOUR,
        known: 0,
        placement: reserve::whole(&trace.nodes, &[0]),
        holder: Some(Holder {
            project: 0,
            person: 0,
        }),
    }];
    for number in 0..8 {
        let project = usize::from(number >= 4);
        trace
            .arrivals
            .push(arrival(project, 0, HOUR, Gpus::Whole(4)));
    }
    let outcome = played(&trace, &Candidate::new("any"));
    let wait = |project: usize| outcome.by_project[project].1.max_s;
    assert!(wait(1) < wait(0), "who reserved comes after who did not");
}

#[test]
fn the_progress_goes_from_nothing_to_one() {
    let mut told = Vec::new();
    play(&busy(60, 2), &Candidate::new("any"), &mut |done| {
        told.push(done)
    });
    assert!(told.len() > 50, "{}", told.len());
    assert!(told.is_sorted());
    assert_eq!(told.last(), Some(&1.0));
}
