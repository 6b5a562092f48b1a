use proptest::prelude::*;

use super::*;
use crate::fixture::{But, at, claim, claim_id, resource, span, tree};
use crate::rule::conflicts;

/// rack 0 > server 1 > GPU 2, CPU 3 (8 cores); rack 4 > CPU 5 (8 cores).
fn lab() -> Tree {
    tree(&[None, Some(0), Some(1), Some(1), None, Some(4)])
}

fn cores(id: ResourceId) -> Option<Amount> {
    [3, 5]
        .map(resource)
        .contains(&id)
        .then(|| Amount::new(8).unwrap())
}

#[test]
fn a_kept_promise_has_nothing_to_report() {
    let claims = [
        claim(1, 2, span(0, 5)).over(),
        claim(2, 0, span(5, 10)),
        claim(3, 3, span(5, 9)).amount(8).inside(2),
        claim(4, 3, span(9, 10)).inside(2),
        claim(5, 5, span(0, 9)).amount(4),
        claim(6, 5, span(3, 9)).amount(4),
    ];
    assert_eq!(broken(&lab(), cores, &claims), []);
}

#[test]
fn every_kind_of_breach_is_reported() {
    let claims = [
        claim(1, 2, span(0, 6)).over(),
        claim(2, 0, span(5, 10)),
        claim(3, 5, span(0, 9)).amount(5),
        claim(4, 5, span(3, 9)).amount(4),
        claim(5, 4, span(20, 30)).inside(2),
        claim(6, 4, span(40, 41)).inside(99),
        claim(7, 2, span(50, 51)).inside(1),
        claim(8, 77, span(50, 51)),
        Claim {
            standing: Standing::Void,
            ..claim(9, 0, span(5, 10))
        },
    ];
    assert_eq!(
        broken(&lab(), cores, &claims),
        [
            Broken::Pair(claim_id(1), claim_id(2)),
            Broken::Sum {
                resource: resource(5),
                container: None,
                from: at(3),
                taken: 9,
                limit: 8
            },
            Broken::Outside(claim_id(5)),
            Broken::Outside(claim_id(6)),
            Broken::Outside(claim_id(7)),
            Broken::Nowhere(claim_id(8)),
        ]
    );
}

prop_compose! {
    fn claims()(
        drawn in prop::collection::vec(
            (0u64..6, 0i64..30, 1i64..12, prop::option::of(1u64..6), any::<bool>()), 0..25),
    ) -> Vec<Claim> {
        let draw = |(id, (on, start, length, amount, inside))| {
            let drawn = claim(id, on, span(start, start + length));
            let drawn = match amount { Some(amount) => drawn.amount(amount), None => drawn };
            if inside && id > 0 { drawn.inside(0) } else { drawn }
        };
        (0..).zip(drawn).map(draw).collect()
    }
}

proptest! {
    #[test]
    fn the_sweep_finds_the_pairs_that_comparing_all_finds(claims in claims()) {
        let lab = lab();
        let mut expected = Vec::new();
        for (place, a) in claims.iter().enumerate() {
            let later = claims[place + 1..].iter().filter(|b| conflicts(&lab, a, b));
            expected.extend(later.map(|b| Broken::Pair(a.id, b.id)));
        }
        let found = broken(&lab, cores, &claims);
        let pairs: Vec<Broken> =
            found.into_iter().filter(|found| matches!(found, Broken::Pair(..))).collect();
        expected.sort();
        prop_assert_eq!(pairs, expected);
    }
}
