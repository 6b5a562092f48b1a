use proptest::prelude::*;

use super::*;
use crate::fixture::{claim, resource, span, tree};
use crate::tree::Tree;

/// Two racks, 0 and 1; servers 2, 3 in rack 0 and 4 in rack 1; GPUs 5, 6 in server 2, 7, 8, 9 in server 3,
/// 10, 11 in server 4.
fn lab() -> Tree {
    let servers = [0, 0, 1].map(Some);
    let gpus = [2, 2, 3, 3, 3, 4, 4].map(Some);
    let parents: Vec<_> = [None, None]
        .into_iter()
        .chain(servers)
        .chain(gpus)
        .collect();
    tree(&parents)
}

const GPUS: std::ops::Range<u64> = 5..12;

fn busy(claims: &[(u64, Span)]) -> Busy {
    let claims = claims.iter().map(|(on, span)| claim(0, *on, *span));
    Busy::new(lab(), |_| None, claims)
}

fn alike(candidates: impl IntoIterator<Item = u64>) -> Vec<Candidate> {
    let candidate = |id| Candidate {
        resource: resource(id),
        cost: 0,
    };
    candidates.into_iter().map(candidate).collect()
}

fn chosen(busy: &Busy, candidates: &[Candidate], count: usize) -> Option<Vec<u64>> {
    let chosen = choose(busy, candidates, Take::Exclusive, count, span(10, 20))?;
    let number = |id: &ResourceId| (0..20).find(|n| resource(*n) == *id).unwrap();
    Some(chosen.iter().map(number).collect())
}

#[test]
fn a_set_stands_as_near_together_as_it_can() {
    let empty = busy(&[]);
    let gpus = alike(GPUS);
    assert_eq!(chosen(&empty, &gpus, 2), Some(vec![5, 6]), "one server");
    assert_eq!(chosen(&empty, &gpus, 3), Some(vec![7, 8, 9]), "one server");
    assert_eq!(chosen(&empty, &gpus, 4), Some(vec![5, 7, 8, 9]), "one rack");
    let server_taken = busy(&[(3, span(0, 90))]);
    assert_eq!(chosen(&server_taken, &gpus, 4), Some(vec![5, 6, 10, 11]));
    assert_eq!(chosen(&server_taken, &gpus, 5), None);
    assert_eq!(chosen(&empty, &gpus, 0), Some(vec![]));
}

#[test]
fn what_exceeds_the_wish_least_goes_first_however_far_apart() {
    let mut gpus = alike(GPUS);
    for dear in [0, 2, 3, 4] {
        gpus[dear].cost = 7;
    }
    assert_eq!(chosen(&busy(&[]), &gpus, 2), Some(vec![10, 11]));
    assert_eq!(chosen(&busy(&[]), &gpus, 3), Some(vec![6, 10, 11]));
    assert_eq!(chosen(&busy(&[]), &gpus, 4), Some(vec![5, 6, 10, 11]));
}

#[test]
fn of_equals_the_tightest_in_time() {
    let busy = busy(&[(8, span(0, 9)), (8, span(21, 30)), (7, span(0, 9))]);
    assert_eq!(chosen(&busy, &alike([7, 8, 9]), 1), Some(vec![8]));
    assert_eq!(chosen(&busy, &alike([7, 8, 9]), 2), Some(vec![7, 8]));
}

#[test]
fn nothing_is_chosen_with_what_stands_above_it() {
    let nested = alike([0, 2, 5, 6, 1]);
    assert_eq!(chosen(&busy(&[]), &nested, 2), Some(vec![5, 6]));
    assert_eq!(chosen(&busy(&[]), &nested, 3), Some(vec![5, 6, 1]));
    assert_eq!(chosen(&busy(&[]), &nested, 4), None);
}

/// Every set of `count` of these.
fn sets(of: &[Candidate], count: usize) -> Vec<Vec<Candidate>> {
    let all = (0..1u32 << of.len()).filter(|mask| mask.count_ones() as usize == count);
    let set = |mask: u32| (0..of.len()).filter(move |n| mask >> n & 1 == 1);
    all.map(|mask| set(mask).map(|n| of[n]).collect()).collect()
}

fn cost(set: &[Candidate]) -> u64 {
    set.iter().map(|candidate| candidate.cost).sum()
}

/// The size of the smallest subtree that contains all of these.
fn spread(tree: &Tree, set: &[Candidate]) -> usize {
    let covers = |top: &ResourceId| {
        let mut members = set.iter();
        members.all(|member| tree.is_at_or_below(member.resource, *top))
    };
    let tops = tree.resources().filter(covers);
    tops.map(|top| tree.reach(top).unwrap().len())
        .min()
        .unwrap_or(tree.len())
}

proptest! {
    /// No set of that many free candidates costs less, and none of equal cost is closer together.
    #[test]
    fn no_other_set_is_better(
        claims in prop::collection::vec((0u64..12, 0i64..30, 1i64..15), 0..6),
        costs in prop::collection::vec(0u64..3, 7), count in 1usize..6,
    ) {
        let claims: Vec<(u64, Span)> =
            claims.into_iter().map(|(on, start, length)| (on, span(start, start + length))).collect();
        let busy = busy(&claims);
        let gpus: Vec<Candidate> =
            GPUS.zip(costs).map(|(id, cost)| Candidate { resource: resource(id), cost }).collect();
        let is_free =
            |gpu: &&Candidate| busy.is_free(gpu.resource, Take::Exclusive, span(10, 20));
        let free: Vec<Candidate> = gpus.iter().filter(is_free).copied().collect();
        let best = sets(&free, count)
            .into_iter()
            .map(|set| (cost(&set), spread(busy.tree(), &set)))
            .min();
        let chosen = choose(&busy, &gpus, Take::Exclusive, count, span(10, 20)).map(|chosen| {
            let set: Vec<Candidate> =
                free.iter().filter(|free| chosen.contains(&free.resource)).copied().collect();
            assert_eq!(set.len(), count, "distinct, and free");
            (cost(&set), spread(busy.tree(), &set))
        });
        prop_assert_eq!(chosen, best);
    }
}
