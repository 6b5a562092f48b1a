use proptest::prelude::*;

use super::*;
use crate::fixture::{But, at, claim, claim_id, resource, span, tree};

/// rack 0 > server 1 > GPUs 2, 3 and CPU 4; rack 5.
fn lab() -> Tree {
    tree(&[None, Some(0), Some(1), Some(1), Some(1), None])
}

#[test]
fn the_tree_is_covered_both_ways() {
    let lab = lab();
    let conflict = |a, b| conflicts(&lab, &claim(1, a, span(0, 2)), &claim(2, b, span(1, 3)));
    for (a, b, expected) in [
        (1, 1, true),
        (1, 0, true),
        (0, 3, true),
        (2, 3, false),
        (2, 1, true),
        (0, 5, false),
    ] {
        assert_eq!(conflict(a, b), expected, "{a} {b}");
        assert_eq!(conflict(b, a), expected, "{b} {a}");
    }
}

#[test]
fn what_does_not_meet_does_not_conflict() {
    let lab = lab();
    let standing = claim(1, 1, span(0, 2));
    let conflict = |other: Claim| conflicts(&lab, &standing, &other);
    assert!(conflict(claim(2, 1, span(1, 3))));
    assert!(!conflict(claim(2, 1, span(2, 3))), "spans that touch");
    assert!(!conflict(claim(2, 1, span(1, 3)).over()), "over");
    assert!(!conflict(claim(2, 1, span(1, 3)).inside(1)), "inside it");
    assert!(!conflict(claim(1, 1, span(1, 3))), "itself, extended");
    assert!(
        conflict(claim(2, 4, span(1, 3)).amount(1)),
        "a part of what is taken whole"
    );
    assert!(
        conflict(claim(2, 1, span(1, 3)).yielding()),
        "yielding is no excuse for standing"
    );
}

#[test]
fn two_amounts_never_conflict_but_sum() {
    let lab = lab();
    let (a, b) = (
        claim(1, 4, span(0, 2)).amount(3),
        claim(2, 4, span(1, 3)).amount(4),
    );
    assert!(!conflicts(&lab, &a, &b));
    let inside = claim(3, 4, span(0, 3)).amount(100).inside(9);
    let elsewhere = claim(4, 3, span(0, 3)).amount(100);
    let over = claim(5, 4, span(0, 3)).amount(100).over();
    let whole = claim(6, 4, span(0, 3));
    let claims = [a, b, inside, elsewhere, over, whole];
    let peak = |from, to| peak_amount(&claims, resource(4), None, span(from, to));
    assert_eq!(peak(0, 3), 7);
    assert_eq!(peak(0, 1), 3);
    assert_eq!(peak(2, 3), 4);
    assert_eq!(peak(3, 9), 0);
    assert_eq!(
        peak_amount(&claims, resource(4), Some(claim_id(9)), span(0, 9)),
        100
    );
}

#[test]
fn conflicts_are_listed_in_order() {
    let lab = lab();
    let claims = [
        claim(9, 2, span(0, 1)),
        claim(3, 0, span(1, 2)),
        claim(5, 3, span(0, 2)),
        claim(1, 5, span(0, 2)),
    ];
    let new = claim(7, 1, span(0, 2));
    assert_eq!(conflicting(&lab, &new, &claims), [3, 5, 9].map(claim_id));
}

#[test]
fn refusals_say_what_to_do() {
    let sentence = Refusal::NotDivisible {
        resource: resource(1),
    };
    assert!(sentence.to_string().contains("give it a capacity"));
}

prop_compose! {
    fn shares()(drawn in prop::collection::vec((0i64..40, 1i64..20, 1u64..9), 0..12)) -> Vec<Claim> {
        let share = |(id, (start, length, amount))| claim(id, 0, span(start, start + length)).amount(amount);
        (0..).zip(drawn).map(share).collect()
    }
}

proptest! {
    #[test]
    fn the_sweep_finds_what_looking_at_every_minute_finds(
        shares in shares(), start in 0i64..40, length in 1i64..30,
    ) {
        let window = span(start, start + length);
        let taken_at = |minute| -> u64 {
            let there = shares.iter().filter(|share| share.span.contains_moment(at(minute)));
            there.filter_map(amount_of).sum()
        };
        let minutes = start..start + length;
        let expected = minutes.clone().map(taken_at).max().unwrap_or(0);
        prop_assert_eq!(peak_amount(&shares, resource(0), None, window), expected);

        let steps = usage(shares.iter().filter_map(|share| Some((share.span, amount_of(share)?))));
        for minute in minutes {
            let step = steps.iter().rev().find(|(from, _)| *from <= at(minute));
            prop_assert_eq!(step.map_or(0, |(_, taken)| *taken), taken_at(minute));
        }
    }
}
