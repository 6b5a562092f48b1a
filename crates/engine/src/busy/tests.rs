use proptest::prelude::*;

use super::*;
use crate::fixture::{But, claim, resource, span, tree};
use crate::free::free_spans;

/// rack 0 > server 1 > GPU 2, CPU 3; rack 4.
fn lab() -> Tree {
    tree(&[None, Some(0), Some(1), Some(1), None])
}

fn capacity(of: ResourceId) -> Option<Amount> {
    Amount::new(6).ok().filter(|_| of == resource(3))
}

fn amount(value: u64) -> Take {
    Take::Amount(Amount::new(value).unwrap())
}

#[test]
fn what_yields_is_over_or_stands_inside_does_not_count() {
    let claims = [
        claim(1, 2, span(0, 10)).yielding(),
        claim(2, 2, span(10, 20)).over(),
        claim(3, 2, span(20, 30)).inside(9),
        claim(4, 99, span(0, 90)),
    ];
    let mut busy = Busy::new(lab(), capacity, &claims);
    assert!(busy.is_free(resource(2), Take::Exclusive, span(0, 90)));
    for claim in &claims {
        assert!(!busy.add(claim) && !busy.remove(claim));
    }
    assert!(
        !busy.is_free(resource(99), Take::Exclusive, span(0, 1)),
        "another site's"
    );
}

#[test]
fn a_claim_that_begins_to_count_is_added_by_its_change() {
    let mut busy = Busy::new(lab(), capacity, [] as [Claim; 0]);
    let firm = claim(1, 1, span(5, 9));
    busy.change(&firm.clone().yielding(), &firm);
    assert!(!busy.is_free(resource(2), Take::Exclusive, span(8, 12)));
    busy.change(&firm, &firm.clone().over());
    assert!(busy.is_free(resource(2), Take::Exclusive, span(8, 12)));
}

#[test]
fn only_stretches_long_enough_are_told() {
    let claims = [claim(1, 2, span(3, 5)), claim(2, 0, span(10, 12))];
    let busy = Busy::new(lab(), capacity, &claims);
    let at_least = |minutes| {
        let length = SignedDuration::from_mins(minutes);
        busy.stretches(resource(2), Take::Exclusive, span(0, 20), length)
    };
    assert_eq!(at_least(0), [span(0, 3), span(5, 10), span(12, 20)]);
    assert_eq!(at_least(5), [span(5, 10), span(12, 20)]);
    assert_eq!(at_least(6), [span(12, 20)]);
}

#[test]
fn a_moved_resource_keeps_what_stands_on_it() {
    let busy = Busy::new(lab(), capacity, [claim(1, 2, span(3, 5))]);
    // The GPU is moved from the server into the other rack, and the CPU is gone.
    let moved = tree(&[None, Some(0), Some(4), None, None]);
    let busy = busy.regrow(moved, |_| None);
    let taken = |on| !busy.is_free(resource(on), Take::Exclusive, span(0, 9));
    assert_eq!([0, 1, 2, 4].map(taken), [false, false, true, true]);
}

prop_compose! {
    fn any_claim()(
        on in 0u64..5, start in 0i64..50, length in 1i64..12, taken in 1u64..6, soft in prop::bool::weighted(0.1),
    ) -> Claim {
        // The claim rule allows amounts only on leaves.
        let drawn = claim(0, on, span(start, start + length));
        let drawn = if on == 3 && taken < 5 { drawn.amount(taken) } else { drawn };
        if soft { drawn.yielding() } else { drawn }
    }
}

proptest! {
    /// For every resource the lanes agree with the plain calculation over all claims.
    #[test]
    fn lanes_agree_with_the_plain_reckoning(
        claims in prop::collection::vec(any_claim(), 0..15),
        wanted in prop::option::of(1u64..8), start in 0i64..30, length in 1i64..40,
    ) {
        let busy = Busy::new(lab(), capacity, &claims);
        let (take, window) = (wanted.map_or(Take::Exclusive, amount), span(start, start + length));
        for on in (0..6).map(resource) {
            let free = busy.stretches(on, take, window, SignedDuration::ZERO);
            let plain = free_spans(busy.tree(), on, take, capacity(on), &claims, window);
            prop_assert_eq!(busy.is_free(on, take, window), plain == [window]);
            prop_assert_eq!(free, plain);
        }
    }

    #[test]
    fn the_guess_ends_where_bisection_does(
        starts in prop::collection::vec(prop_oneof![0i64..40, 0i64..4000], 0..60), at in -5i64..4005,
    ) {
        let one = |start: &i64| Held { start: *start, end: start + 1, amount: 1 };
        let mut held: Vec<Held> = starts.iter().map(one).collect();
        held.sort_unstable();
        let lane = Lane { held, longest: 1 };
        let bisected = lane.held.partition_point(|held| held.start <= at);
        prop_assert_eq!(lane.starting_by(at), bisected);
    }

    /// After each incremental change it equals a newly built index.
    #[test]
    fn changes_arrive_where_building_anew_does(
        changes in prop::collection::vec((any_claim(), any_claim(), 0usize..20), 1..25),
    ) {
        let mut standing: Vec<Claim> = Vec::new();
        let mut busy = Busy::new(lab(), capacity, &standing);
        for (claim, other, at) in changes {
            match standing.get(at).cloned() {
                None => {
                    busy.add(&claim);
                    standing.push(claim);
                }
                Some(before) if at % 2 == 0 => {
                    busy.change(&before, &other);
                    standing[at] = other;
                }
                Some(before) => {
                    prop_assert_eq!(busy.remove(&before), is_firm(&before));
                    standing.remove(at);
                }
            }
            let anew = Busy::new(lab(), capacity, &standing);
            for (lane, expected) in busy.lanes.iter().zip(&anew.lanes) {
                prop_assert_eq!(&lane.held, &expected.held);
                prop_assert!(lane.longest >= expected.longest);
            }
        }
    }
}
