use berth_model::claim::Amount;
use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::fixture::{But, claim, resource, tree};
use crate::tree::Tree;

/// Here a small number is a microsecond, so that trying every moment shows exactness.
fn us(start: i64, end: i64) -> Span {
    let at = |us| Timestamp::from_microsecond(1_800_000_000_000_000 + us).unwrap();
    Span::new(at(start), at(end)).unwrap()
}

fn number(of: ResourceId) -> u64 {
    (0..20).find(|n| resource(*n) == of).unwrap()
}

/// Racks 0 and 1; 2, 3, 4 in rack 0 and 5, 6 in rack 1. The leaves are divisible.
fn lab() -> Tree {
    let below = [0, 0, 0, 1, 1].map(Some);
    let parents: Vec<_> = [None, None].into_iter().chain(below).collect();
    tree(&parents)
}

fn capacity(of: ResourceId) -> Option<Amount> {
    Amount::new(4).ok().filter(|_| number(of) >= 2)
}

fn candidates(numbers: &[u64]) -> Vec<Candidate> {
    let candidate = |n: &u64| Candidate {
        resource: resource(*n),
        cost: 0,
    };
    numbers.iter().map(candidate).collect()
}

const LEAVES: [u64; 5] = [2, 3, 4, 5, 6];

#[test]
fn four_for_two_hours_or_two_for_four() {
    let claims = [
        claim(1, 0, us(0, 10)),
        claim(2, 5, us(0, 20)),
        claim(3, 4, us(14, 40)),
    ];
    let busy = Busy::new(lab(), capacity, &claims);
    let leaves = candidates(&LEAVES);
    let way = |count, length| Way {
        busy: &busy,
        candidates: &leaves,
        take: Take::Exclusive,
        count,
        length: SignedDuration::from_micros(length),
        starts: &[],
    };
    let any = [us(0, 1000)];
    let ways = [way(4, 4), way(2, 8), way(6, 1)].map(|way| Way {
        starts: &any,
        ..way
    });
    let said = |ways: &[Way], limit| {
        let choices = earliest(ways, us(0, 60), limit).into_iter();
        let told = |choice: Choice| {
            let numbers: Vec<u64> = choice.resources.into_iter().map(number).collect();
            (choice.way, choice.span, numbers)
        };
        choices.map(told).collect::<Vec<_>>()
    };
    let expected = [
        (0, us(10, 14), vec![2, 3, 4, 6]),
        (1, us(10, 18), vec![2, 3]),
        (0, us(20, 24), vec![2, 3, 5, 6]),
    ];
    assert_eq!(said(&ways, 9), expected, "never six, and each run once");
    assert_eq!(said(&ways, 2), expected[..2]);
    let from_the_fifteenth = [us(15, 16), us(22, 1000)];
    let late = ways.map(|way| Way {
        starts: &from_the_fifteenth,
        ..way
    });
    let expected = [
        (1, us(15, 23), vec![2, 3]),
        (0, us(22, 26), vec![2, 3, 5, 6]),
    ];
    assert_eq!(said(&late, 9), expected);
    assert_eq!(said(&[way(1, 1)], 9), [], "nothing is permitted");
    assert_eq!(said(&[], 9), []);
}

prop_compose! {
    fn any_claim()(on in 0u64..7, start in 0i64..70, length in 1i64..14, taken in 0u64..4) -> berth_model::Claim {
        let drawn = claim(0, on, us(start, start + length));
        if on >= 2 && taken > 0 { drawn.amount(taken) } else { drawn }
    }
}

#[derive(Debug)]
struct Drawn {
    count: usize,
    length: i64,
    wanted: Option<u64>,
    starts: Vec<Span>,
    candidates: Vec<Candidate>,
}

prop_compose! {
    fn any_way()(
        count in 1usize..4, length in 1i64..9, wanted in prop::option::of(1u64..5),
        starts in prop::collection::vec((0i64..60, 1i64..30), 1..4),
        rack in any::<bool>(),
    ) -> Drawn {
        let starts = starts.into_iter().map(|(from, length)| us(from, from + length)).collect();
        let numbers: &[u64] = if rack { &[1, 2, 3, 4, 5, 6] } else { &LEAVES };
        Drawn { count, length, wanted, starts, candidates: candidates(numbers) }
    }
}

impl Drawn {
    fn way<'a>(&'a self, busy: &'a Busy) -> Way<'a> {
        let amount = |wanted| Take::Amount(Amount::new(wanted).unwrap());
        Way {
            busy,
            candidates: &self.candidates,
            take: self.wanted.map_or(Take::Exclusive, amount),
            count: self.count,
            length: SignedDuration::from_micros(self.length),
            starts: &self.starts,
        }
    }

    /// Whether enough of the leaves are free from this moment on; a rack is never needed.
    fn could_start(&self, busy: &Busy, within: Span, start: i64) -> bool {
        let during = us(start, start + self.length);
        let take = self.way(busy).take;
        let free = |leaf: &&u64| busy.is_free(resource(**leaf), take, during);
        within.contains(during) && LEAVES.iter().filter(free).count() >= self.count
    }

    fn may_start(&self, start: i64) -> bool {
        self.starts
            .iter()
            .any(|span| span.contains(us(start, start + 1)))
    }

    /// The first permitted start of each run, by trying every moment.
    fn by_trial(&self, busy: &Busy, within: Span) -> Vec<i64> {
        let mut found = Vec::new();
        let mut told = false;
        for start in 0..100 {
            let could = self.could_start(busy, within, start);
            told &= could;
            if could && !told && self.may_start(start) {
                found.push(start);
                told = true;
            }
        }
        found
    }
}

proptest! {
    #[test]
    fn every_first_moment_is_found_and_no_other(
        claims in prop::collection::vec(any_claim(), 0..25),
        drawn in prop::collection::vec(any_way(), 1..4),
        from in 0i64..20, length in 1i64..70, limit in 1usize..5,
    ) {
        let busy = Busy::new(lab(), capacity, &claims);
        let within = us(from, from + length);
        let mut expected: Vec<(bool, Span, usize)> = Vec::new();
        for (number, way) in drawn.iter().enumerate() {
            let starts = way.by_trial(&busy, within);
            let spans = starts.iter().map(|start| us(*start, start + way.length));
            expected.extend(spans.enumerate().map(|(rank, span)| (rank > 0, span, number)));
        }
        expected.sort();
        expected.truncate(limit);
        expected.sort_by_key(|(_, span, way)| (*span, *way));
        let ways: Vec<Way> = drawn.iter().map(|way| way.way(&busy)).collect();
        let choices = earliest(&ways, within, limit);
        let told: Vec<(Span, usize)> = choices.iter().map(|choice| (choice.span, choice.way)).collect();
        let expected: Vec<(Span, usize)> = expected.iter().map(|(_, span, way)| (*span, *way)).collect();
        prop_assert_eq!(told, expected);
        for choice in choices {
            let way = ways[choice.way];
            let mut resources = choice.resources;
            prop_assert!(resources.iter().all(|id| busy.is_free(*id, way.take, choice.span)));
            resources.dedup();
            prop_assert_eq!(resources.len(), way.count);
        }
    }

    #[test]
    fn the_last_moment_is_found_too(
        claims in prop::collection::vec(any_claim(), 0..25), drawn in any_way(),
        from in 0i64..20, length in 1i64..70,
    ) {
        let busy = Busy::new(lab(), capacity, &claims);
        let within = us(from, from + length);
        let could = |start: &i64| drawn.could_start(&busy, within, *start) && drawn.may_start(*start);
        let expected = (0..100).rev().find(could).map(|start| stretch(us(start, start + 1)).0);
        let search = Search::new(&drawn.way(&busy));
        prop_assert_eq!(search.last_start(stretch(within)), expected);
    }
}
