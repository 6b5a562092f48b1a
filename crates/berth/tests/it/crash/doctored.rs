//! A sweep that finds nothing must be one that could have: a small true world, doctored in every way that matters.

use berth_engine::sweep::broken;
use berth_engine::tree::Tree;
use berth_model::reservation::State;
use berth_model::{Claim, ResourceId, Standing, Take};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::truth::{at, book, booking, claim_id, resource, series, share, span, truth};
use crate::proof::by_definition;
use crate::proof::ledger::Ledger;
use crate::proof::stored::{Booking, Event, Step, Stored};
use crate::proof::sweep::{Sin, faults};

/// What the sweep finds once `doctor` has been at the truth.
fn sins(doctor: impl FnOnce(&mut Stored, &mut Ledger)) -> Vec<Sin> {
    let (mut stored, mut ledger) = truth();
    doctor(&mut stored, &mut ledger);
    let mut sins: Vec<Sin> = faults(&stored, &ledger)
        .iter()
        .map(|fault| fault.sin)
        .collect();
    sins.sort();
    sins.dedup();
    sins
}

fn known(stored: &mut Stored, number: u128) -> &mut Booking {
    stored
        .bookings
        .get_mut(&booking(number))
        .expect("a booking of the truth")
}

#[test]
fn the_truth_has_no_faults() {
    let (stored, ledger) = truth();
    assert_eq!(faults(&stored, &ledger), []);
}

#[test]
fn an_overlap_along_the_tree_is_found() {
    let found = sins(|stored, ledger| {
        book(
            stored,
            ledger,
            9,
            2,
            Take::Exclusive,
            span(19, 21),
            State::Confirmed,
        );
    });
    assert_eq!(found, [Sin::Overlap]);
}

#[test]
fn an_overlap_in_the_past_of_one_resource_is_found() {
    let found = sins(|stored, ledger| {
        book(
            stored,
            ledger,
            9,
            2,
            Take::Exclusive,
            span(4, 6),
            State::Done,
        );
    });
    assert_eq!(found, [Sin::Overlap]);
}

#[test]
fn more_than_there_is_is_found() {
    let found = sins(|stored, ledger| {
        book(
            stored,
            ledger,
            9,
            3,
            share(1),
            span(28, 29),
            State::Confirmed,
        );
    });
    assert_eq!(found, [Sin::Overlap]);
}

#[test]
fn a_missing_booking_is_found() {
    let found = sins(|stored, _| {
        stored.bookings.remove(&booking(2));
        stored.claims.retain(|claim| claim.id != claim_id(2));
    });
    assert!(found.contains(&Sin::Lost), "{found:?}");
}

#[test]
fn a_series_that_is_half_made_is_found() {
    let found = sins(|stored, _| {
        let instances = stored.series.get_mut(&series(1)).expect("a series");
        instances.remove(&booking(4));
    });
    assert_eq!(found, [Sin::HalfMade]);
    let found = sins(|stored, _| {
        stored.series.remove(&series(1));
    });
    assert_eq!(found, [Sin::Lost]);
    let found = sins(|_, ledger| {
        ledger.series.remove(&series(1));
    });
    assert_eq!(found, [Sin::Unasked]);
}

#[test]
fn a_booking_that_is_not_as_acknowledged_is_found() {
    let found = sins(|stored, ledger| {
        let account = ledger.bookings.get_mut(&booking(2)).expect("a booking");
        account.last.content.span = span(10, 19);
        account.told[0].content.span = span(10, 19);
        assert_eq!(known(stored, 2).now.content.span, span(10, 20));
    });
    assert_eq!(found, [Sin::Lost]);
}

#[test]
fn a_booking_cancelled_behind_its_owners_back_is_found() {
    let found = sins(|stored, _| {
        let booking = known(stored, 2);
        booking.now.state = State::Cancelled;
        booking.now.version = 2;
        let before = booking.trail[0].after.clone();
        booking.history.push((
            Some(State::Confirmed),
            State::Cancelled,
            before.content.span,
        ));
        booking.trail.push(Step {
            action: "reservation.cancel".to_owned(),
            at: at(0),
            by_a_person: true,
            before: Some(before),
            after: booking.now.clone(),
        });
        stored.claims[1].standing = Standing::Void;
    });
    assert!(
        found.contains(&Sin::Lost) && found.contains(&Sin::Unasked),
        "{found:?}"
    );
}

#[test]
fn a_booking_made_twice_is_found() {
    let found = sins(|stored, _| {
        book(
            stored,
            &mut Ledger::default(),
            9,
            2,
            Take::Exclusive,
            span(50, 51),
            State::Confirmed,
        );
    });
    assert_eq!(found, [Sin::Unasked]);
}

#[test]
fn a_booking_without_its_claim_is_found() {
    let found = sins(|stored, _| stored.claims.retain(|claim| claim.id != claim_id(3)));
    assert_eq!(found, [Sin::HalfMade]);
}

#[test]
fn a_claim_without_its_booking_is_found() {
    let found = sins(|stored, _| {
        let mut stray = stored.claims[1].clone();
        (stray.id, stray.span) = (claim_id(9), span(60, 61));
        stored.claims.push(stray);
    });
    assert_eq!(found, [Sin::HalfMade]);
}

#[test]
fn a_claim_that_outlives_its_booking_is_found() {
    let found = sins(|stored, _| stored.claims[0].standing = Standing::Holding);
    assert_eq!(found, [Sin::HalfMade]);
}

#[test]
fn a_claim_of_another_time_than_its_booking_is_found() {
    let found = sins(|stored, _| stored.claims[1].span = span(10, 19));
    assert_eq!(found, [Sin::HalfMade]);
}

#[test]
fn a_missing_line_of_history_is_found() {
    let found = sins(|stored, _| {
        known(stored, 1).history.remove(2);
    });
    assert_eq!(found, [Sin::BrokenHistory]);
}

#[test]
fn a_way_without_an_arrow_is_found() {
    let found = sins(|stored, _| known(stored, 1).history[2].1 = State::Done);
    assert_eq!(found, [Sin::BrokenHistory]);
}

#[test]
fn a_missing_audit_entry_is_found() {
    let found = sins(|stored, _| {
        known(stored, 1).trail.remove(3);
    });
    assert_eq!(found, [Sin::BrokenHistory]);
}

#[test]
fn a_start_before_its_time_is_found() {
    let found = sins(|stored, _| known(stored, 1).trail[1].at = at(-1));
    assert_eq!(found, [Sin::BrokenHistory]);
}

#[test]
fn a_gap_among_the_events_is_found() {
    let found = sins(|stored, _| {
        stored.events.remove(2);
    });
    assert_eq!(found, [Sin::Gap]);
}

#[test]
fn an_event_told_twice_or_never_is_found() {
    let twice = sins(|stored, _| stored.events[1].subject = booking(2).to_string());
    assert_eq!(twice, [Sin::Gap]);
    let unnumbered = sins(|stored, _| {
        if let Some(event) = stored.events.last_mut() {
            event.number = None;
        }
    });
    assert_eq!(unnumbered, [Sin::Gap]);
}

#[test]
fn a_move_that_was_acknowledged_and_not_made_is_found() {
    let found = sins(|_, ledger| {
        ledger
            .moves
            .acknowledged
            .push((resource(3), Some(resource(1))));
    });
    assert_eq!(found, [Sin::Lost]);
    let found = sins(|stored, _| stored.moves.push((resource(3), Some(resource(1)))));
    assert_eq!(found, [Sin::Lost, Sin::Unasked]);
}

#[test]
fn a_decision_that_was_acknowledged_and_not_made_is_found() {
    let decision = (booking(2), State::Rejected);
    let found = sins(|_, ledger| ledger.decisions.acknowledged.push(decision));
    assert_eq!(found, [Sin::Lost]);
    let found = sins(|stored, _| stored.decisions.push(decision));
    assert_eq!(found, [Sin::Unasked]);
}

#[test]
fn what_waited_and_got_something_else_is_found() {
    let found = sins(|stored, ledger| {
        let one = stored.bookings.get_mut(&booking(2)).expect("it is there");
        one.history[0].1 = State::Waiting;
        one.trail[0].after.state = State::Waiting;
        let mut given = one.trail[0].clone();
        given.action = "reservation.give".to_owned();
        given.by_a_person = false;
        given.before = Some(given.after.clone());
        given.after.state = State::Confirmed;
        given.after.version = 2;
        one.history.push((
            Some(State::Waiting),
            State::Confirmed,
            given.after.content.span,
        ));
        one.now = given.after.clone();
        one.trail.push(given);
        stored.events.push(Event {
            number: Some(stored.events.len() as u64 + 1),
            kind: "reservation.changed".to_owned(),
            subject: booking(2).to_string(),
        });
        stored.events_head += 1;
        let account = ledger.bookings.get_mut(&booking(2)).expect("it is known");
        account.told[0].state = None;
        account.last = one.now.clone();
        account.waits_for = Some([(resource(3), share(1))].into());
    });
    assert_eq!(found, [Sin::Lost]);
}

#[test]
fn the_sweep_and_the_definition_come_to_the_same_verdict() {
    let (stored, _) = truth();
    let capacity = |id: ResourceId| stored.resources.get(&id).and_then(|place| place.capacity);
    let parents = stored
        .resources
        .iter()
        .map(|(id, place)| (*id, place.parent));
    let tree = Tree::new(parents).expect("the lab's tree");
    let mut random = StdRng::seed_from_u64(7);
    let (mut kept, mut breached) = (0, 0);
    for _ in 0..3000 {
        let claims: Vec<Claim> = (0..random.random_range(2..6))
            .map(|number| {
                let start = random.random_range(0..20);
                let on = random.random_range(1..=3);
                let take = match on {
                    3 if random.random_ratio(3, 4) => share(random.random_range(1..6)),
                    _ => Take::Exclusive,
                };
                Claim {
                    id: claim_id(number),
                    resource: resource(on),
                    span: span(start, start + random.random_range(1..4)),
                    take,
                    ..stored.claims[0].clone()
                }
            })
            .collect();
        let claims: Vec<&Claim> = claims.iter().collect();
        let found = broken(&tree, capacity, claims.iter().copied());
        let by_hand = by_definition::breaches(&tree, capacity, &claims).expect("few claims");
        assert_eq!(
            found.is_empty(),
            by_hand.is_empty(),
            "{found:?} {by_hand:?}"
        );
        if found.is_empty() {
            kept += 1;
        } else {
            breached += 1;
        }
    }
    assert!(
        kept > 100 && breached > 100,
        "{kept} kept, {breached} breached"
    );
}
