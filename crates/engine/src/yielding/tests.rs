use proptest::prelude::*;

use super::*;
use crate::fixture::{But, at, claim, claim_id, resource, span, tree};

/// server 0 > GPU 1, CPU 2.
fn lab() -> Tree {
    tree(&[None, Some(0), Some(0)])
}

fn cuts(plan: Result<Vec<Yield>, Refusal>) -> Vec<(ClaimId, Cut)> {
    let plan = plan.unwrap();
    plan.into_iter()
        .map(|given| (given.claim, given.cut))
        .collect()
}

#[test]
fn yielding_claims_end_where_the_firm_one_starts() {
    let existing = [
        claim(4, 1, span(0, 20)).yielding(),
        claim(3, 2, span(10, 20)).yielding(),
        claim(2, 0, span(0, 10)),
        claim(1, 1, span(40, 50)).yielding(),
        claim(5, 1, span(12, 13)).yielding().inside(4),
        claim(6, 1, span(0, 20)).yielding().over(),
    ];
    let plan = yield_plan(&lab(), None, &claim(9, 0, span(10, 30)), &existing, at(0));
    let expected = [
        (claim_id(3), Cut::Void),
        (claim_id(4), Cut::ShortenTo(at(10))),
    ];
    assert_eq!(cuts(plan), expected);
}

#[test]
fn whoever_runs_it_is_told_in_time() {
    let existing = [
        claim(1, 1, span(0, 20)).yielding(),
        claim(2, 1, span(21, 23)).yielding(),
    ];
    let told = |now| -> Vec<Timestamp> {
        let plan = yield_plan(&lab(), None, &claim(9, 0, span(10, 30)), &existing, now).unwrap();
        plan.into_iter().map(|given| given.tell_at).collect()
    };
    assert_eq!(
        told(at(0)),
        [at(5), at(0)],
        "the grace is five minutes; what is void, at once"
    );
    assert_eq!(told(at(8)), [at(8), at(8)], "too late for the whole grace");
}

#[test]
fn firm_claims_never_give_way_and_then_nobody_does() {
    let existing = [
        claim(1, 1, span(0, 20)).yielding(),
        claim(3, 1, span(20, 25)),
        claim(2, 2, span(20, 25)),
    ];
    let with = [2, 3].map(claim_id).to_vec();
    let new = claim(9, 0, span(10, 30));
    assert_eq!(
        yield_plan(&lab(), None, &new, &existing, at(0)),
        Err(Refusal::Conflict { with })
    );
}

#[test]
fn among_yielding_claims_the_first_come_stays() {
    let existing = [claim(1, 1, span(0, 20)).yielding()];
    let with = vec![claim_id(1)];
    let new = claim(9, 0, span(10, 30)).yielding();
    assert_eq!(
        yield_plan(&lab(), None, &new, &existing, at(0)),
        Err(Refusal::Conflict { with })
    );
    let shares = [claim(1, 2, span(0, 20)).amount(6).yielding()];
    let new = claim(9, 2, span(10, 30)).amount(5).yielding();
    let refused = yield_plan(&lab(), Some(10), &new, &shares, at(0));
    assert!(
        matches!(
            refused,
            Err(Refusal::Amount {
                capacity: 10,
                peak: 11,
                ..
            })
        ),
        "{refused:?}"
    );
}

#[test]
fn amounts_give_way_only_as_far_as_needed_and_the_last_to_begin_first() {
    let existing = [
        claim(1, 2, span(0, 20)).amount(2),
        claim(2, 2, span(0, 30)).amount(2).yielding(),
        claim(3, 2, span(1, 20)).amount(2).yielding(),
        claim(4, 2, span(1, 20)).amount(2).yielding(),
        claim(5, 2, span(19, 40)).amount(2).yielding(),
    ];
    let asked = |wanted| {
        let new = claim(9, 2, span(10, 30)).amount(wanted);
        let plan = yield_plan(&lab(), Some(10), &new, &existing, at(0));
        cuts(plan)
            .into_iter()
            .map(|(claim, _)| claim)
            .collect::<Vec<_>>()
    };
    assert_eq!(asked(1), [claim_id(5)]);
    assert_eq!(asked(2), [claim_id(5)]);
    assert_eq!(
        asked(3),
        [4, 5].map(claim_id),
        "of those that began together, the youngest"
    );
    assert_eq!(asked(8), [2, 3, 4, 5].map(claim_id));
    let new = claim(9, 2, span(10, 30)).amount(9);
    assert_eq!(
        yield_plan(&lab(), Some(10), &new, &existing, at(0)),
        Err(Refusal::Amount {
            resource: resource(2),
            capacity: 10,
            peak: 11
        })
    );
    assert_eq!(
        yield_plan(&lab(), None, &new, &[], at(0)),
        Err(Refusal::NotDivisible {
            resource: resource(2)
        })
    );
}

#[test]
fn an_amount_makes_a_yielding_whole_give_way() {
    let existing = [claim(1, 0, span(0, 20)).yielding()];
    let new = claim(9, 2, span(10, 30)).amount(1);
    let plan = yield_plan(&lab(), Some(10), &new, &existing, at(0));
    assert_eq!(cuts(plan), [(claim_id(1), Cut::ShortenTo(at(10)))]);
}

prop_compose! {
    fn shares()(
        drawn in prop::collection::vec((0i64..30, 1i64..20, 1u64..6, any::<bool>()), 0..10),
    ) -> Vec<Claim> {
        let share = |(id, (start, length, amount, soft))| {
            let share = claim(id, 2, span(start, start + length)).amount(amount);
            if soft { share.yielding() } else { share }
        };
        (0..).zip(drawn).map(share).collect()
    }
}

proptest! {
    /// With the plan the sum fits. Without any one of its cuts it would not fit. A refused sum cannot fit.
    #[test]
    fn a_plan_is_enough_and_no_more_than_enough(
        existing in shares(), start in 0i64..30, length in 1i64..20, wanted in 1u64..9,
    ) {
        let new = claim(99, 2, span(start, start + length)).amount(wanted);
        let limit = 12;
        let peak_without = |gone: &[ClaimId]| {
            let left = existing.iter().filter(|claim| !gone.contains(&claim.id));
            peak_amount(left, resource(2), None, new.span) + wanted
        };
        match yield_plan(&lab(), Some(limit), &new, &existing, at(0)) {
            Ok(plan) => {
                let gone: Vec<ClaimId> = plan.iter().map(|given| given.claim).collect();
                prop_assert!(peak_without(&gone) <= limit);
                for spared in 0..gone.len() {
                    let mut fewer = gone.clone();
                    fewer.remove(spared);
                    prop_assert!(peak_without(&fewer) > limit, "{:?} need not go", gone[spared]);
                }
                for given in &plan {
                    let claim = existing.iter().find(|claim| claim.id == given.claim).unwrap();
                    prop_assert!(!is_firm(claim));
                    let began = claim.span.start() < new.span.start();
                    prop_assert_eq!(given.cut == Cut::Void, !began);
                }
            }
            Err(_) => {
                let soft: Vec<ClaimId> =
                    existing.iter().filter(|claim| !is_firm(claim)).map(|claim| claim.id).collect();
                prop_assert!(peak_without(&soft) > limit);
            }
        }
    }
}
