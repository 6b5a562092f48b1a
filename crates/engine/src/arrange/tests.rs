use std::cell::Cell;

use berth_model::Claim;
use berth_model::claim::Amount;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::fixture::{But, claim, reservation, resource, span, tree};
use crate::tree::Tree;

/// Racks 0 and 1; 2, 3, 4 in rack 0 and 5 to 13 in rack 1. The leaves are divisible, 4 of each.
fn lab() -> Tree {
    let racks = [None, None].into_iter();
    let below = (2..14).map(|leaf| Some(u64::from(leaf > 4)));
    tree(&racks.chain(below).collect::<Vec<_>>())
}

/// A case that owns its data. A booking's number is its index in the list.
#[derive(Debug, Clone, Default)]
struct Case {
    fixed: Vec<Claim>,
    movable: Vec<Piece>,
}

#[derive(Debug, Clone)]
struct Piece {
    span: Span,
    take: Take,
    candidates: Vec<ResourceId>,
    resources: Vec<ResourceId>,
}

fn ids(numbers: &[u64]) -> Vec<ResourceId> {
    numbers.iter().map(|number| resource(*number)).collect()
}

fn piece(span: Span, candidates: &[u64], resources: &[u64]) -> Piece {
    Piece {
        span,
        take: Take::Exclusive,
        candidates: ids(candidates),
        resources: ids(resources),
    }
}

fn part(amount: u64) -> Take {
    Take::Amount(Amount::new(amount).unwrap())
}

fn on(take: Take, resource: ResourceId, span: Span) -> Claim {
    Claim {
        take,
        resource,
        ..claim(0, 0, span)
    }
}

impl Case {
    fn claims(&self) -> Vec<Claim> {
        let held = |piece: &Piece| {
            let Piece { take, span, .. } = *piece;
            let places = piece.resources.clone().into_iter();
            places.map(move |id| on(take, id, span))
        };
        let movable = self.movable.iter().flat_map(held);
        self.fixed.iter().cloned().chain(movable).collect()
    }

    fn busy(&self) -> Busy {
        let capacity = |id| Amount::new(4).ok().filter(|_| id >= resource(2));
        Busy::new(lab(), capacity, self.claims())
    }

    fn bookings(&self) -> Vec<Booking<'_>> {
        let booking = |(id, piece)| {
            let Piece {
                span,
                take,
                candidates,
                resources,
            }: &Piece = piece;
            Booking {
                id: reservation(id),
                span: *span,
                take: *take,
                candidates,
                resources,
            }
        };
        (0..).zip(&self.movable).map(booking).collect()
    }

    fn accept(&self, wish: &Ask) -> Option<Plan> {
        accept(&self.busy(), &self.bookings(), &wish.wish())
    }

    /// The case after the plan, with the request as the last booking.
    fn after(&self, plan: &Plan, wish: &Ask) -> Case {
        let mut after = self.clone();
        for moved in &plan.moves {
            let at = (0..).position(|n| reservation(n) == moved.booking).unwrap();
            let piece = &mut after.movable[at];
            assert_eq!(moved.from.len(), moved.to.len(), "as many as before");
            assert!(moved.from.iter().all(|id| piece.resources.contains(id)));
            assert!(moved.to.iter().all(|id| piece.candidates.contains(id)));
            piece.resources.retain(|id| !moved.from.contains(id));
            piece.resources.extend(&moved.to);
        }
        after.movable.push(Piece {
            span: wish.span,
            take: wish.take,
            candidates: wish.candidates.iter().map(|one| one.resource).collect(),
            resources: plan.resources.clone(),
        });
        after
    }

    /// Whether every claim, one after the other, finds its place free.
    fn holds(&self) -> bool {
        let mut busy = Case::default().busy();
        let mut stands = |claim: Claim| {
            let free = busy.is_free(claim.resource, claim.take, claim.span);
            busy.add(&claim);
            free
        };
        self.claims().into_iter().all(&mut stands)
    }

    /// Whether all fit, by trying every place for every booking.
    fn fits_by_trial(&self, wish: &Ask) -> bool {
        let mut all: Vec<(Span, Take, usize, Vec<ResourceId>)> = self
            .movable
            .iter()
            .map(|piece| {
                (
                    piece.span,
                    piece.take,
                    piece.resources.len(),
                    piece.candidates.clone(),
                )
            })
            .collect();
        let wanted = wish.candidates.iter().map(|one| one.resource).collect();
        all.push((wish.span, wish.take, wish.count, wanted));
        let fixed = Case {
            fixed: self.fixed.clone(),
            movable: Vec::new(),
        };
        try_all(&mut fixed.busy(), &all, 0)
    }
}

fn try_all(busy: &mut Busy, all: &[(Span, Take, usize, Vec<ResourceId>)], from: usize) -> bool {
    let Some(((span, take, count, candidates), rest)) = all.split_first() else {
        return true;
    };
    if *count == 0 {
        return try_all(busy, rest, 0);
    }
    let mut less = all.to_vec();
    less[0].2 -= 1;
    (from..candidates.len()).any(|at| {
        let claim = on(*take, candidates[at], *span);
        if !busy.is_free(claim.resource, claim.take, claim.span) {
            return false;
        }
        busy.add(&claim);
        let fits = try_all(busy, &less, at + 1);
        busy.remove(&claim);
        fits
    })
}

#[derive(Debug, Clone)]
struct Ask {
    span: Span,
    take: Take,
    count: usize,
    candidates: Vec<Candidate>,
}

fn ask(count: usize, span: Span, candidates: &[u64]) -> Ask {
    let candidate = |id| Candidate {
        resource: id,
        cost: 0,
    };
    Ask {
        span,
        take: Take::Exclusive,
        count,
        candidates: ids(candidates).into_iter().map(candidate).collect(),
    }
}

impl Ask {
    fn wish(&self) -> Wish<'_> {
        let Ask {
            span,
            take,
            count,
            ref candidates,
        } = *self;
        Wish {
            span,
            take,
            count,
            candidates,
        }
    }
}

fn moved(id: u64, from: &[u64], to: &[u64]) -> Move {
    Move {
        booking: reservation(id),
        from: ids(from),
        to: ids(to),
    }
}

#[test]
fn one_steps_aside_for_who_has_no_other_place() {
    let case = Case {
        fixed: vec![],
        movable: vec![
            piece(span(0, 10), &[2, 3], &[2]),
            piece(span(0, 10), &[3, 4], &[3]),
        ],
    };
    let plan = case.accept(&ask(1, span(5, 9), &[2])).unwrap();
    assert_eq!(plan.resources, ids(&[2]));
    assert_eq!(plan.moves, [moved(0, &[2], &[3]), moved(1, &[3], &[4])]);
    let plan = case.accept(&ask(1, span(5, 9), &[2, 5])).unwrap();
    assert_eq!(
        (plan.resources, plan.moves),
        (ids(&[5]), vec![]),
        "no move where none is needed"
    );
}

#[test]
fn what_is_fixed_is_not_moved_for_anyone() {
    let mut case = Case {
        fixed: vec![claim(9, 4, span(8, 12))],
        movable: vec![
            piece(span(0, 10), &[2, 3], &[2]),
            piece(span(0, 10), &[3, 4], &[3]),
        ],
    };
    let wish = ask(1, span(5, 9), &[2]);
    assert_eq!(case.accept(&wish), None);
    case.fixed[0] = claim(9, 4, span(10, 12));
    assert!(case.accept(&wish).is_some());
    case.fixed[0] = claim(9, 4, span(0, 1)).yielding();
    assert!(
        case.accept(&wish).is_some(),
        "what yields is not in the way"
    );
}

#[test]
fn buffers_go_with_their_booking() {
    let case = Case {
        fixed: vec![],
        movable: vec![piece(span(0, 10), &[2, 3], &[2])],
    };
    // In the database the booking is three claims: it, and a buffer before and after.
    let pieces = [span(0, 2), span(2, 8), span(8, 10)];
    let claims = pieces.map(|part| claim(0, 2, part));
    let busy = Busy::new(lab(), |_| None, claims);
    let plan = accept(&busy, &case.bookings(), &ask(1, span(9, 12), &[2]).wish()).unwrap();
    assert_eq!(plan.moves, [moved(0, &[2], &[3])]);
}

#[test]
fn amounts_are_moved_until_enough_is_left() {
    let shared = |amount, resources: &[u64]| Piece {
        take: part(amount),
        ..piece(span(0, 10), &[2, 3], resources)
    };
    let case = Case {
        fixed: vec![on(part(1), resource(2), span(0, 20))],
        movable: vec![shared(1, &[2]), shared(2, &[2]), shared(2, &[3])],
    };
    let mut wish = ask(1, span(5, 9), &[2]);
    wish.take = part(2);
    let plan = case.accept(&wish).unwrap();
    assert_eq!(plan.moves, [moved(1, &[2], &[3])]);
    wish.take = part(4);
    assert_eq!(case.accept(&wish), None, "one of four is fixed");
    wish.take = Take::Exclusive;
    assert_eq!(case.accept(&wish), None);
}

#[test]
fn a_failing_server_moves_reduces_or_ends_what_stands_on_it() {
    let case = Case {
        fixed: vec![claim(9, 3, span(0, 10))],
        movable: vec![
            piece(span(0, 10), &[2, 3, 4], &[2, 4]),
            piece(span(0, 10), &[5, 6], &[5]),
            piece(span(20, 30), &[2], &[2]),
            piece(span(40, 50), &[2], &[2]),
            piece(span(20, 30), &[2, 3, 4], &[3, 4]),
        ],
    };
    let outage = |resources: &[u64]| {
        let resources = ids(resources);
        let outage = Outage {
            resources: &resources,
            span: span(5, 35),
        };
        replace(&case.busy(), &case.bookings(), &outage)
    };
    let gone = Fate::CannotBeHeld(moved(2, &[2], &[]));
    assert_eq!(
        outage(&[2]),
        [Fate::Reduced(moved(0, &[2], &[])), gone.clone()]
    );
    assert_eq!(outage(&[5]), [Fate::Moved(moved(1, &[5], &[6]))]);
    let all_gone = [(0, &[2, 4][..]), (2, &[2]), (4, &[3, 4])]
        .map(|(id, from)| Fate::CannotBeHeld(moved(id, from, &[])));
    assert_eq!(outage(&[0]), all_gone, "with all that stands below");
    assert_eq!(outage(&[]), []);
}

const LEAVES: [u64; 5] = [2, 3, 4, 5, 6];

prop_compose! {
    fn any_ask(times: i64)(
        start in 0..times, length in 1i64..9, count in 1usize..3, eligible in 1u32..32, sharing in 0u64..9,
        shared in any::<bool>(),
    ) -> Ask {
        let open: Vec<u64> = (0..5).filter(|n| eligible >> n & 1 == 1).map(|n| LEAVES[n]).collect();
        let mut drawn = ask(count.min(open.len()), span(start, start + length), &open);
        if shared && (1..4).contains(&sharing) {
            drawn.take = part(sharing);
        }
        drawn
    }
}

/// Bookings made one after the other, each at its first fit from a given candidate on; some of them fixed.
fn booked(asks: Vec<(Ask, bool, u8)>) -> Case {
    let mut case = Case::default();
    for (ask, is_fixed, turn) in asks {
        let busy = case.busy();
        let mut candidates: Vec<ResourceId> =
            ask.candidates.iter().map(|one| one.resource).collect();
        let len = candidates.len();
        candidates.rotate_left(usize::from(turn) % len);
        let free = candidates
            .iter()
            .filter(|id| busy.is_free(**id, ask.take, ask.span));
        let resources: Vec<ResourceId> = free.take(ask.count).copied().collect();
        if resources.len() < ask.count {
            continue;
        }
        if is_fixed {
            case.fixed
                .extend(resources.iter().map(|id| on(ask.take, *id, ask.span)));
        } else {
            let Ask { span, take, .. } = ask;
            case.movable.push(Piece {
                span,
                take,
                candidates,
                resources,
            });
        }
    }
    case
}

prop_compose! {
    fn any_case(times: i64, bookings: usize)(
        asks in prop::collection::vec((any_ask(times), prop::bool::weighted(0.2), any::<u8>()), 1..bookings),
    ) -> Case {
        booked(asks)
    }
}

proptest! {
    #![proptest_config(Config::with_cases(300))]

    /// A plan keeps every booking whole and overlaps no fixed claim. A plan without moves is found whenever one
    /// exists.
    #[test]
    fn a_plan_keeps_every_promise(case in any_case(20, 14), wish in any_ask(20)) {
        let busy = case.busy();
        let free = wish.candidates.iter().filter(|one| busy.is_free(one.resource, wish.take, wish.span));
        let first_fit = free.count() >= wish.count;
        match case.accept(&wish) {
            None => prop_assert!(!first_fit),
            Some(plan) => {
                prop_assert!(!first_fit || plan.moves.is_empty());
                let after = case.after(&plan, &wish);
                prop_assert_eq!(after.movable.last().unwrap().resources.len(), wish.count);
                prop_assert!(after.holds(), "{:?}", plan);
            }
        }
    }

    /// In an outage no booking uses an affected resource and no two overlap. A booking that the outage does not hit
    /// keeps its number of resources.
    #[test]
    fn an_outage_takes_no_more_than_it_must(
        case in any_case(20, 14), out in prop::sample::select(vec![0u64, 2, 3, 4, 5, 6]), from in 0i64..20,
    ) {
        let (resources, during) = (ids(&[out]), span(from, from + 6));
        let outage = Outage { resources: &resources, span: during };
        let mut after = case.clone();
        let meets = |piece: &Piece| {
            let mut places = piece.resources.iter();
            piece.span.overlaps(during) && places.any(|id| lab().related(*id, resource(out)))
        };
        for fate in replace(&case.busy(), &case.bookings(), &outage) {
            let (moved, is_whole) = match &fate {
                Fate::Moved(moved) => (moved, true),
                Fate::Reduced(moved) | Fate::CannotBeHeld(moved) => (moved, false),
            };
            let at = (0..).position(|n| reservation(n) == moved.booking).unwrap();
            let piece = &mut after.movable[at];
            prop_assert!(is_whole || meets(piece), "only who is met may lose");
            prop_assert_eq!(is_whole, moved.from.len() == moved.to.len());
            piece.resources.retain(|id| !moved.from.contains(id));
            prop_assert!(moved.to.iter().all(|id| piece.candidates.contains(id)));
            piece.resources.extend(&moved.to);
            prop_assert_eq!(matches!(fate, Fate::CannotBeHeld(_)), piece.resources.is_empty());
        }
        prop_assert!(!after.movable.iter().any(meets));
        prop_assert!(after.holds());
    }
}

/// The same cases at every run, so that the asserted share is the measured share.
fn fixed_runner(cases: u32) -> TestRunner {
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(cases)
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[4; 32]))
}

prop_compose! {
    /// A request for any of the twelve, all alike.
    fn alike()(start in 0i64..50, length in 3i64..20, count in 1usize..3) -> Ask {
        ask(count, span(start, start + length), &(2..14).collect::<Vec<_>>())
    }
}

/// If all resources are alike and all bookings may move, counting decides: every request fits for which there are
/// enough resources at each moment. A crowded board of this kind needs more moves than the search can try one by one.
#[test]
fn a_crowded_board_is_arranged_as_far_as_counting_allows() {
    let (arranged, possible, most_moves) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let crowd = prop::collection::vec((alike(), Just(false), any::<u8>()), 70);
    let counted = fixed_runner(120).run(
        &(crowd, prop::collection::vec(alike(), 5)),
        |(crowd, wishes)| {
            let case = booked(crowd);
            for wish in wishes {
                let load = |minute: i64| {
                    let meets = |piece: &&Piece| piece.span.overlaps(span(minute, minute + 1));
                    case.movable
                        .iter()
                        .filter(meets)
                        .map(|piece| piece.resources.len())
                        .sum::<usize>()
                };
                let minutes =
                    (0..70).filter(|minute| wish.span.overlaps(span(*minute, minute + 1)));
                let has_room = minutes
                    .into_iter()
                    .all(|minute| load(minute) + wish.count <= 12);
                let plan = case.accept(&wish);
                prop_assert!(has_room || plan.is_none());
                let Some(plan) = plan else {
                    possible.set(possible.get() + i32::from(has_room));
                    continue;
                };
                prop_assert!(case.after(&plan, &wish).holds());
                if !plan.moves.is_empty() {
                    possible.set(possible.get() + 1);
                    arranged.set(arranged.get() + 1);
                    most_moves.set(most_moves.get().max(plan.moves.len()));
                }
            }
            Ok(())
        },
    );
    counted.unwrap();
    let share = f64::from(arranged.get()) / f64::from(possible.get());
    println!(
        "crowded: arranged {} of {}: {share:.3}, by up to {} moves",
        arranged.get(),
        possible.get(),
        most_moves.get()
    );
    assert!(
        possible.get() > 50 && most_moves.get() > 8,
        "too easy to say anything"
    );
    assert!(share >= 0.95, "{share}");
}

/// How many of the requests that an unlimited search accepts the bounded search accepts, where first fit fails.
#[test]
fn nearly_all_that_can_be_arranged_is() {
    let mut runner = fixed_runner(1500);
    let (arranged, possible) = (Cell::new(0), Cell::new(0));
    let drawn = (any_case(12, 12), any_ask(12));
    let counted = runner.run(&drawn, |(case, wish)| {
        let plan = case.accept(&wish);
        if plan.as_ref().is_some_and(|plan| plan.moves.is_empty()) {
            return Ok(());
        }
        if case.fits_by_trial(&wish) {
            possible.set(possible.get() + 1);
            arranged.set(arranged.get() + i32::from(plan.is_some()));
        } else {
            prop_assert!(plan.is_none(), "what cannot be, is not planned");
        }
        Ok(())
    });
    counted.unwrap();
    let share = f64::from(arranged.get()) / f64::from(possible.get());
    println!(
        "arranged {} of {}: {share:.3}",
        arranged.get(),
        possible.get()
    );
    assert!(possible.get() > 50, "too few cases say anything");
    assert!(share >= 0.95, "{share}");
}
