//! Tests the rule first with examples, then with random sequences of operations against a checker that knows only
//! definitions.

use proptest::prelude::*;

use super::*;
use crate::fixture::{But, at, claim, claim_id, resource, span};
use crate::sweep;

#[path = "by_definition.rs"]
mod by_definition;

fn amount(value: u64) -> Amount {
    Amount::new(value).unwrap()
}

/// rack 0 > server 1 > GPUs 2, 3 and CPU 4 (64 cores); rack 5 > server 6.
fn lab() -> Timeline {
    let mut lab = Timeline::new();
    for (id, parent, capacity) in [
        (0, None, None),
        (1, Some(0), None),
        (2, Some(1), None),
        (3, Some(1), None),
        (4, Some(1), Some(64)),
        (5, None, None),
        (6, Some(5), None),
    ] {
        let (parent, capacity) = (parent.map(resource), capacity.map(amount));
        lab.add_resource(resource(id), parent, capacity).unwrap();
    }
    lab
}

fn conflict<T>(with: &[u64]) -> Result<T, Refusal> {
    let with = with.iter().copied().map(claim_id).collect();
    Err(Refusal::Conflict { with })
}

fn outside<T>(claims: &[u64]) -> Result<T, Refusal> {
    let claims = claims.iter().copied().map(claim_id).collect();
    Err(Refusal::OutsideContainer { claims })
}

fn too_much<T>(on: u64, capacity: u64, peak: u64) -> Result<T, Refusal> {
    let resource = resource(on);
    Err(Refusal::Amount {
        resource,
        capacity,
        peak,
    })
}

#[test]
fn a_parent_blocks_its_children_and_the_reverse() {
    let mut lab = lab();
    lab.insert(&[claim(1, 2, span(0, 10))]).unwrap();
    assert_eq!(lab.insert(&[claim(2, 1, span(5, 15))]), conflict(&[1]));
    assert_eq!(lab.insert(&[claim(2, 0, span(5, 15))]), conflict(&[1]));
    lab.insert(&[claim(3, 3, span(5, 15))]).unwrap();
    lab.insert(&[claim(4, 1, span(15, 20))]).unwrap();
    assert_eq!(lab.set_span(claim_id(1), span(0, 16)), conflict(&[4]));
    lab.set_span(claim_id(1), span(0, 15)).unwrap();
    assert_eq!(
        lab.rebind(claim_id(1), resource(3), Take::Exclusive),
        conflict(&[3])
    );
    lab.rebind(claim_id(1), resource(6), Take::Exclusive)
        .unwrap();
    assert_eq!(
        lab.insert(&[claim(1, 2, span(50, 51))]),
        Err(Refusal::Exists { claim: claim_id(1) })
    );
}

#[test]
fn claims_made_together_stand_together_or_not_at_all() {
    let mut lab = lab();
    let own_relatives = [claim(1, 2, span(0, 10)), claim(2, 1, span(0, 10))];
    assert_eq!(
        lab.insert(&own_relatives),
        conflict(&[1]),
        "each keeps its own rule"
    );
    assert_eq!(lab.claims().count(), 0);
    lab.insert(&[claim(1, 2, span(0, 10)), claim(2, 3, span(0, 10))])
        .unwrap();
    assert_eq!(lab.claims().count(), 2);
}

#[test]
fn a_released_claim_keeps_what_it_occupied() {
    let mut lab = lab();
    lab.insert(&[claim(1, 2, span(0, 10)), claim(2, 3, span(6, 10))])
        .unwrap();
    lab.release(claim_id(1), at(5)).unwrap();
    lab.release(claim_id(2), at(5)).unwrap();
    let past = lab.claim(claim_id(1)).unwrap();
    assert_eq!((past.standing, past.span), (Standing::Past, span(0, 5)));
    let void = lab.claim(claim_id(2)).unwrap();
    assert_eq!((void.standing, void.span), (Standing::Void, span(6, 10)));
    lab.insert(&[claim(3, 1, span(5, 10))]).unwrap();
    let gone = Err(Refusal::NotHolding { claim: claim_id(1) });
    assert_eq!(lab.release(claim_id(1), at(6)), gone);
    assert_eq!(lab.set_span(claim_id(1), span(0, 4)), gone);
}

#[test]
fn amounts_share_up_to_the_capacity() {
    let mut lab = lab();
    lab.insert(&[claim(1, 4, span(0, 10)).amount(40)]).unwrap();
    assert_eq!(
        lab.insert(&[claim(2, 4, span(5, 15)).amount(25)]),
        too_much(4, 64, 65)
    );
    lab.insert(&[claim(2, 4, span(5, 15)).amount(24)]).unwrap();
    lab.insert(&[claim(3, 4, span(10, 15)).amount(40)]).unwrap();
    assert_eq!(lab.set_span(claim_id(3), span(9, 15)), too_much(4, 64, 104));
    assert_eq!(
        lab.insert(&[claim(4, 1, span(14, 16))]),
        conflict(&[2, 3]),
        "the whole server"
    );
    assert_eq!(
        lab.insert(&[claim(4, 4, span(14, 16))]),
        conflict(&[2, 3]),
        "the whole CPU"
    );
    lab.insert(&[claim(4, 1, span(15, 16))]).unwrap();
    assert_eq!(
        lab.insert(&[claim(5, 4, span(15, 16)).amount(1)]),
        conflict(&[4])
    );
    assert_eq!(
        lab.insert(&[claim(5, 2, span(20, 21)).amount(1)]),
        Err(Refusal::NotDivisible {
            resource: resource(2)
        })
    );
}

#[test]
fn capacity_is_never_lowered_below_what_is_taken() {
    let mut lab = lab();
    lab.insert(&[
        claim(1, 4, span(0, 10)).amount(40),
        claim(2, 4, span(5, 15)).amount(20),
    ])
    .unwrap();
    assert_eq!(
        lab.set_capacity(resource(4), Some(amount(59))),
        too_much(4, 59, 60)
    );
    lab.set_capacity(resource(4), Some(amount(60))).unwrap();
    assert_eq!(lab.set_capacity(resource(4), None), too_much(4, 0, 60));
    lab.release(claim_id(1), at(0)).unwrap();
    lab.release(claim_id(2), at(0)).unwrap();
    lab.set_capacity(resource(4), None).unwrap();
    let both = |id| {
        Err(Refusal::HasChildrenAndCapacity {
            resource: resource(id),
        })
    };
    assert_eq!(lab.set_capacity(resource(1), Some(amount(1))), both(1));
    lab.set_capacity(resource(3), Some(amount(7))).unwrap();
    assert_eq!(
        lab.add_resource(resource(9), Some(resource(3)), None),
        both(3)
    );
    assert_eq!(lab.move_subtree(resource(2), Some(resource(3))), both(3));
}

#[test]
fn work_inside_a_reservation_is_compared_with_its_like() {
    let mut lab = lab();
    lab.insert(&[claim(1, 1, span(0, 10))]).unwrap();
    lab.insert(&[
        claim(2, 2, span(0, 10)).inside(1),
        claim(3, 3, span(0, 5)).inside(1),
    ])
    .unwrap();
    assert_eq!(
        lab.insert(&[claim(4, 1, span(4, 6)).inside(1)]),
        conflict(&[2, 3])
    );
    assert_eq!(
        lab.insert(&[claim(4, 3, span(4, 6))]),
        conflict(&[1]),
        "the site's timeline"
    );
    assert_eq!(
        lab.insert(&[claim(4, 3, span(5, 11)).inside(1)]),
        outside(&[4])
    );
    lab.insert(&[claim(4, 4, span(0, 10)).amount(64).inside(1)])
        .unwrap();
    assert_eq!(
        lab.insert(&[claim(5, 4, span(0, 1)).amount(1).inside(1)]),
        too_much(4, 64, 65)
    );
    lab.insert(&[claim(6, 2, span(2, 3)).inside(2)]).unwrap();

    let holds = |ids: &[u64]| {
        let claims = ids.iter().copied().map(claim_id).collect();
        Err(Refusal::HoldsOthers { claims })
    };
    assert_eq!(lab.release(claim_id(1), at(5)), holds(&[2, 3, 4]));
    assert_eq!(lab.set_span(claim_id(1), span(0, 5)), outside(&[2, 4]));
    assert_eq!(
        lab.rebind(claim_id(1), resource(6), Take::Exclusive),
        outside(&[2, 3, 4])
    );

    lab.set_span_with_inside(claim_id(1), span(0, 5)).unwrap();
    assert_eq!(lab.claim(claim_id(2)).unwrap().span, span(0, 5));
    lab.release_with_inside(claim_id(1), at(2)).unwrap();
    let standings = [1, 2, 3, 6].map(|id| lab.claim(claim_id(id)).unwrap().standing);
    use Standing::{Past, Void};
    assert_eq!(standings, [Past, Past, Past, Void]);
    let gone = Err(Refusal::ContainerGone {
        container: claim_id(1),
    });
    assert_eq!(lab.insert(&[claim(7, 2, span(0, 1)).inside(1)]), gone);
}

#[test]
fn a_part_of_a_resource_bounds_what_stands_inside_it() {
    let mut lab = lab();
    lab.insert(&[claim(1, 4, span(0, 10)).amount(8)]).unwrap();
    lab.insert(&[claim(2, 4, span(0, 10)).amount(5).inside(1)])
        .unwrap();
    assert_eq!(
        lab.insert(&[claim(3, 4, span(9, 10)).amount(4).inside(1)]),
        too_much(4, 8, 9)
    );
    assert_eq!(
        lab.insert(&[claim(3, 4, span(9, 10)).inside(1)]),
        outside(&[3])
    );
    let to = |value| Take::Amount(amount(value));
    assert_eq!(
        lab.rebind(claim_id(1), resource(4), to(4)),
        too_much(4, 4, 5)
    );
    lab.rebind(claim_id(1), resource(4), to(5)).unwrap();
    lab.rebind(claim_id(1), resource(4), Take::Exclusive)
        .unwrap();
    lab.insert(&[claim(3, 4, span(9, 10)).amount(59).inside(1)])
        .unwrap();
    assert_eq!(
        lab.set_capacity(resource(4), Some(amount(63))),
        too_much(4, 63, 64)
    );
}

#[test]
fn a_move_that_would_make_claims_meet_is_refused_with_the_list() {
    let mut lab = lab();
    lab.insert(&[
        claim(1, 2, span(0, 10)),
        claim(2, 5, span(5, 15)),
        claim(3, 6, span(20, 30)),
    ])
    .unwrap();
    let pairs = vec![(claim_id(1), claim_id(2))];
    assert_eq!(
        lab.move_subtree(resource(1), Some(resource(5))),
        Err(Refusal::MoveConflict { pairs })
    );
    lab.move_subtree(resource(1), Some(resource(6)))
        .unwrap_err();
    lab.set_span(claim_id(2), span(10, 15)).unwrap();
    lab.move_subtree(resource(1), Some(resource(6))).unwrap();
    assert_eq!(
        lab.insert(&[claim(4, 3, span(12, 13))]),
        conflict(&[2]),
        "now below rack 5"
    );
    assert!(matches!(
        lab.move_subtree(resource(5), Some(resource(2))),
        Err(Refusal::Tree(TreeError::Cycle { .. }))
    ));
}

#[test]
fn a_resource_is_not_moved_out_from_under_a_container() {
    let mut lab = lab();
    lab.insert(&[claim(1, 0, span(0, 10)), claim(2, 2, span(0, 10)).inside(1)])
        .unwrap();
    assert_eq!(
        lab.move_subtree(resource(2), Some(resource(6))),
        outside(&[2])
    );
    lab.move_subtree(resource(2), Some(resource(0))).unwrap();
}

#[test]
fn a_firm_claim_makes_yielding_ones_give_way_with_what_is_inside() {
    let mut lab = lab();
    lab.insert(&[
        claim(1, 2, span(0, 20)).yielding(),
        claim(2, 2, span(12, 20)).inside(1),
        claim(3, 3, span(15, 20)).yielding(),
        claim(4, 2, span(0, 11)).inside(1),
    ])
    .unwrap();
    assert_eq!(lab.insert(&[claim(5, 1, span(10, 30))]), conflict(&[1, 3]));
    let plan = lab
        .insert_firmly(&claim(5, 1, span(10, 30)), at(0))
        .unwrap();
    assert_eq!(plan.len(), 2);
    let span_of = |id| lab.claim(claim_id(id)).unwrap().span;
    assert_eq!((span_of(1), span_of(4)), (span(0, 10), span(0, 10)));
    let standing = |id| lab.claim(claim_id(id)).unwrap().standing;
    assert_eq!([2, 3].map(standing), [Standing::Void; 2]);
    assert_eq!([1, 4, 5].map(standing), [Standing::Holding; 3]);

    let before: Vec<Claim> = lab.claims().cloned().collect();
    assert_eq!(
        lab.insert_firmly(&claim(6, 0, span(5, 11)), at(0)),
        conflict(&[5])
    );
    assert_eq!(
        lab.claims().cloned().collect::<Vec<_>>(),
        before,
        "nothing was cut in vain"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// An operation is accepted exactly when the state after it obeys the rule, by definition.
    #[test]
    fn the_rule_is_kept_and_nothing_is_refused_without_reason(
        numbers in prop::collection::vec(any::<draw::Numbers>(), 1..80),
    ) {
        let ground = draw::Ground {
            site: claim(0, 0, span(0, 1)).site,
            start: at(0),
            minutes: by_definition::MINUTES,
            resources: 12,
        };
        let mut timeline = Timeline::new();
        for numbers in numbers {
            let before = timeline.clone();
            let operation = draw::operation(&ground, &before, &numbers);
            let answer = timeline.apply(&operation);
            prop_assert_eq!(by_definition::broken(&timeline), None, "after {:?}", operation);
            let expected = by_definition::expected(&before, &operation);
            prop_assert_eq!(answer.is_ok(), expected, "{:?}: {:?}", operation, answer);
            if answer.is_err() {
                prop_assert!(by_definition::same(&before, &timeline), "refused, but changed");
            }
            let swept = sweep::broken(
                timeline.tree(),
                |resource| timeline.capacity(resource),
                timeline.claims().filter(|claim| is_holding(claim)),
            );
            prop_assert_eq!(swept, []);
        }
    }
}
