use berth_model::Claim;
use berth_model::claim::Amount;
use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::fixture::{But, claim, resource, tree};

/// Here a small number is a microsecond, so that trying every moment shows exactness.
fn us(start: i64, end: i64) -> Span {
    let at = |us| Timestamp::from_microsecond(1_800_000_000_000_000 + us).unwrap();
    Span::new(at(start), at(end)).unwrap()
}

fn ids(numbers: &[u64]) -> Vec<ResourceId> {
    numbers.iter().map(|number| resource(*number)).collect()
}

fn candidates(numbers: &[u64]) -> Vec<Candidate> {
    let candidate = |resource| Candidate { resource, cost: 0 };
    ids(numbers).into_iter().map(candidate).collect()
}

/// A rack 0 of 1, 2 and 3, and a rack 4 of 5 and 6; 4 of each to share.
fn busy(claims: &[Claim]) -> Busy {
    let below = [Some(0), Some(0), Some(0), None, Some(4), Some(4)];
    let parents: Vec<_> = [None].into_iter().chain(below).collect();
    let capacity = |id| {
        Amount::new(4)
            .ok()
            .filter(|_| ![resource(0), resource(4)].contains(&id))
    };
    Busy::new(tree(&parents), capacity, claims)
}

const BOUNDS: fn(limit: usize) -> Bounds = |limit| Bounds {
    within: us(0, 100),
    apart: SignedDuration::from_micros(1),
    part_min: SignedDuration::from_micros(2),
    step: SignedDuration::from_micros(1),
    limit,
};

const TROUBLE: SignedDuration = SignedDuration::from_secs(SPLIT_S);

#[test]
fn the_nearest_of_each_kind_is_offered() {
    let busy = busy(&[
        claim(1, 1, us(24, 26)),
        claim(2, 2, us(10, 20)),
        claim(3, 2, us(28, 29)),
        claim(4, 0, us(60, 70)),
    ]);
    let (named, others) = (candidates(&[1, 2]), candidates(&[5, 6]));
    let starts = [us(0, 100)];
    let pool = |candidates| Pool {
        busy: &busy,
        candidates,
        starts: &starts,
    };
    let wish = Refused {
        pool: pool(&named),
        take: Take::Exclusive,
        count: 2,
        span: us(20, 28),
    };
    let far = SignedDuration::from_micros(15);
    let said = |limit| alternatives(&wish, &[(pool(&others), far)], &BOUNDS(limit));
    let near = SignedDuration::from_micros;
    let time = |span, away| Alternative {
        distance: near(away),
        offer: Offer::Time {
            span,
            resources: ids(&[1, 2]),
        },
    };
    let expected = [
        Alternative {
            distance: near(4),
            offer: Offer::Fewer {
                resources: ids(&[2]),
            },
        },
        time(us(29, 37), 9),
        Alternative {
            distance: far,
            offer: Offer::Elsewhere {
                pool: 0,
                resources: ids(&[5, 6]),
            },
        },
        time(us(2, 10), 18),
        time(us(70, 78), 50),
        Alternative {
            distance: near(5) + TROUBLE,
            offer: Offer::Split {
                parts: [(us(20, 24), ids(&[1, 2])), (us(29, 33), ids(&[1, 2]))],
            },
        },
    ];
    assert_eq!(said(9), expected);
    assert_eq!(said(2), expected[..2]);
}

prop_compose! {
    fn any_claim()(on in 0u64..7, start in 0i64..60, length in 1i64..14, taken in 0u64..4) -> Claim {
        let drawn = claim(0, on, us(start, start + length));
        if taken > 0 && on != 0 && on != 4 { drawn.amount(taken) } else { drawn }
    }
}

proptest! {
    /// Every offer is available and has the amount that it states, and no time between it and the request would do.
    #[test]
    fn every_offer_can_be_taken_and_none_is_nearer(
        claims in prop::collection::vec(any_claim(), 0..20),
        count in 1usize..4, start in 10i64..40, length in 4i64..12, wanted in prop::option::of(1u64..4),
        closed in prop::option::of((10i64..40, 1i64..9)),
    ) {
        let busy = busy(&claims);
        let here = candidates(&[1, 2, 3]);
        let there = candidates(&[5, 6]);
        let starts = closed.map_or(vec![us(0, 100)], |(from, to)| vec![us(0, from), us(from + to, 100)]);
        let permitted = |at: i64| starts.iter().any(|open| open.contains(us(at, at + 1)));
        let pool = |candidates| Pool { busy: &busy, candidates, starts: &starts };
        let take = wanted.map_or(Take::Exclusive, |wanted| Take::Amount(Amount::new(wanted).unwrap()));
        let wish = Refused { pool: pool(&here), take, count, span: us(start, start + length) };
        let is_free = |id: &ResourceId, span| busy.is_free(*id, take, span);
        let free = |span| here.iter().filter(|one| is_free(&one.resource, span)).count();
        let could = |at: &i64| permitted(*at) && free(us(*at, at + length)) >= count;
        prop_assume!(!could(&start));

        let told = alternatives(&wish, &[(pool(&there), SignedDuration::ZERO)], &BOUNDS(9));
        prop_assert!(told.is_sorted_by_key(|one| one.distance));
        let mut times: Vec<Span> = Vec::new();
        let mut fewer = 0;
        for one in told {
            let parts = match one.offer {
                Offer::Time { span, resources } => {
                    times.push(span);
                    prop_assert_eq!(resources.len(), count);
                    vec![(span, resources)]
                }
                Offer::Elsewhere { resources, .. } => {
                    prop_assert_eq!(resources.len(), count);
                    vec![(wish.span, resources)]
                }
                Offer::Fewer { resources } => {
                    fewer = resources.len();
                    vec![(wish.span, resources)]
                }
                Offer::Split { parts } => {
                    let sum = parts[0].0.duration() + parts[1].0.duration();
                    prop_assert_eq!(sum, wish.span.duration());
                    prop_assert!(parts[0].0.end() <= parts[1].0.start());
                    prop_assert!(parts.iter().all(|(_, resources)| resources.len() == count));
                    parts.to_vec()
                }
            };
            for (span, mut resources) in parts {
                let from = stretch(span).0 - stretch(us(0, 1)).0;
                prop_assert!(permitted(from) && us(0, 100).contains(span));
                prop_assert!(resources.iter().all(|id| is_free(id, span)));
                let len = resources.len();
                resources.dedup();
                prop_assert_eq!(resources.len(), len);
            }
        }
        let room = if permitted(start) { free(wish.span) } else { 0 };
        prop_assert_eq!(fewer, room);
        let earlier = (0..start).rev().find(could);
        let later = (start..=100 - length).find(could);
        for nearest in [earlier, later].into_iter().flatten() {
            prop_assert!(times.contains(&us(nearest, nearest + length)));
        }
        prop_assert_eq!(times.is_empty(), earlier.is_none() && later.is_none());
    }
}
