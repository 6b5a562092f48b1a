//! At the desk, on both databases: holds, arrivals, hand-overs.

use crate::support::{Lab, on_both, site};
use berth_app::Error;
use berth_model::reservation::{CheckIn, Reservation, State};
use berth_model::{Reference, Span};
use berth_store::reservations;
use jiff::SignedDuration;

on_both!(
    a_hold_keeps_others_out_and_becomes_a_booking,
    a_hold_that_nobody_takes_ends_by_itself,
    one_person_holds_a_few_things_only,
    a_hold_asks_for_leave_when_it_is_taken,
    a_hand_over_changes_the_owner_and_nothing_else,
    whoever_does_not_come_is_released,
    whoever_comes_keeps_it,
);

async fn hold(lab: &Lab, who: &berth_app::Caller, resource: &str) -> Result<Reservation, Error> {
    let mut wish = lab.wish(&[resource], 1, 3);
    wish.hold = true;
    Ok(lab.app.book(who, &site(), &wish).await?.value.reservation)
}

async fn a_hold_keeps_others_out_and_becomes_a_booking(lab: Lab) {
    let held = hold(&lab, &lab.ada, "gpu-01").await.expect("it is free");
    assert_eq!(held.state, State::Held);
    let refused = lab.try_book(&lab.bob, &["gpu-01"], 2, 4).await;
    assert!(matches!(refused, Err(Error::Conflict { .. })));
    let others = lab
        .app
        .take_reservation(&lab.bob, &site(), held.id, None)
        .await;
    assert!(matches!(others, Err(Error::NotAllowed { .. })));
    let taken = lab
        .app
        .take_reservation(&lab.ada, &site(), held.id, Some(held.version))
        .await
        .expect("nobody came in between");
    assert_eq!(taken.reservation.state, State::Confirmed);
    assert_eq!(taken.reservation.span, held.span);
    let again = lab
        .app
        .take_reservation(&lab.ada, &site(), held.id, None)
        .await;
    assert!(matches!(again, Err(Error::State(_))));
    lab.wait_until(1).await;
    assert_eq!(lab.read(held.id).await.state, State::Active);
}

async fn a_hold_that_nobody_takes_ends_by_itself(lab: Lab) {
    let held = hold(&lab, &lab.ada, "gpu-01").await.expect("it is free");
    let soon = lab.at(0) + SignedDuration::from_secs(119);
    lab.wait_until_moment(soon).await;
    assert_eq!(lab.read(held.id).await.state, State::Held);
    // The clock alone ends it, even before the controller has looked.
    lab.set_clock(soon + SignedDuration::from_secs(1));
    let late = lab
        .app
        .take_reservation(&lab.ada, &site(), held.id, None)
        .await;
    assert!(matches!(late, Err(Error::HoldOver)));
    lab.wait_until_moment(soon + SignedDuration::from_secs(1))
        .await;
    let over = lab.read(held.id).await;
    assert_eq!(over.state, State::Cancelled);
    assert!(
        over.state_reason
            .is_some_and(|why| why.as_str().contains("ran out"))
    );
    lab.book(&lab.bob, &["gpu-01"], 1, 3).await;
}

async fn one_person_holds_a_few_things_only(lab: Lab) {
    let first = hold(&lab, &lab.ada, "gpu-01.gpu0").await.expect("one");
    hold(&lab, &lab.ada, "gpu-01.gpu1").await.expect("two");
    hold(&lab, &lab.ada, "gpu-02").await.expect("three");
    let fourth = hold(&lab, &lab.ada, "rack-b").await;
    assert!(matches!(fourth, Err(Error::TooManyHolds)));
    hold(&lab, &lab.bob, "rack-b").await.expect("another's");
    lab.app
        .cancel_reservation(&lab.ada, &site(), first.id, None, None)
        .await
        .expect("a hold is given up like a booking");
    hold(&lab, &lab.ada, "gpu-01.gpu0").await.expect("again");
}

async fn a_hold_asks_for_leave_when_it_is_taken(lab: Lab) {
    let held = hold(&lab, &lab.ada, "vault-01").await.expect("it is free");
    assert_eq!(held.state, State::Held);
    let taken = lab
        .app
        .take_reservation(&lab.ada, &site(), held.id, None)
        .await
        .expect("it waits now");
    assert_eq!(taken.reservation.state, State::PendingApproval);
    // Longer than a hold: its two minutes do not count any more.
    lab.wait_until_moment(lab.at(0) + SignedDuration::from_mins(30))
        .await;
    assert_eq!(lab.read(held.id).await.state, State::PendingApproval);
}

async fn a_hand_over_changes_the_owner_and_nothing_else(lab: Lab) {
    let booked = lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    let to = |login: &str| Reference::Name(login.parse().expect("a login"));
    let give = async |who, to: Reference<_, _>| {
        lab.app
            .hand_over(who, &site(), booked.id, None, &to, None)
            .await
    };
    assert!(matches!(
        give(&lab.bob, to("bob")).await,
        Err(Error::NotAllowed { .. })
    ));
    assert!(matches!(
        give(&lab.ada, to("otto")).await,
        Err(Error::Invalid(_))
    ));
    let given = give(&lab.ada, to("bob")).await.expect("bob is a member");
    let after = given.reservation;
    assert_eq!(after.owner, lab.bob.person.id);
    assert_eq!(
        (after.state, after.span, &after.items),
        (booked.state, booked.span, &booked.items)
    );
    let cancel = lab
        .app
        .cancel_reservation(&lab.ada, &site(), booked.id, None, None)
        .await;
    assert!(
        matches!(cancel, Err(Error::NotAllowed { .. })),
        "not hers any more"
    );
    let (history, _) = lab
        .app
        .reservation_history(&lab.bob, &site(), booked.id)
        .await
        .expect("its history");
    assert_eq!(
        history.last().and_then(|entry| entry.by),
        Some(lab.ada.person.id)
    );
}

/// A booking whose owner has to check in by half an hour after its start.
async fn checked(lab: &Lab) -> Reservation {
    let mut booked = lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    booked.terms.check_in = CheckIn::Until(lab.at(1) + SignedDuration::from_mins(30));
    let mut tx = lab.app.store.begin().await.expect("a transaction");
    let version = booked.version;
    assert!(
        reservations::update(&mut tx, &booked, version)
            .await
            .expect("it is written")
    );
    tx.commit().await.expect("it is kept");
    lab.read(booked.id).await
}

async fn whoever_does_not_come_is_released(lab: Lab) {
    let booked = checked(&lab).await;
    let early = lab.app.check_in(&lab.ada, &site(), booked.id).await;
    assert!(matches!(early, Err(Error::CheckInEarly(_))));
    lab.wait_until(1).await;
    assert_eq!(lab.read(booked.id).await.state, State::Active);
    let deadline = lab.at(1) + SignedDuration::from_mins(30);
    lab.wait_until_moment(deadline).await;
    let released = lab.read(booked.id).await;
    assert_eq!(released.state, State::Done);
    assert_eq!(
        released.span,
        Span::new(lab.at(1), deadline).expect("a span")
    );
    lab.book(&lab.bob, &["gpu-01"], 2, 3).await;
    let (history, _) = lab
        .app
        .reservation_history(&lab.ada, &site(), booked.id)
        .await
        .expect("its history");
    assert!(
        history
            .iter()
            .filter_map(|entry| entry.reason.as_ref())
            .any(|reason| reason.as_str().contains("nobody checked in"))
    );
}

async fn whoever_comes_keeps_it(lab: Lab) {
    let booked = checked(&lab).await;
    lab.wait_until_moment(lab.at(1) - SignedDuration::from_mins(10))
        .await;
    let there = lab
        .app
        .check_in(&lab.ada, &site(), booked.id)
        .await
        .expect("it is about to start");
    assert!(matches!(there.reservation.terms.check_in, CheckIn::Done(_)));
    let twice = lab
        .app
        .check_in(&lab.ada, &site(), booked.id)
        .await
        .expect("twice is once");
    assert_eq!(twice.reservation.version, there.reservation.version);
    lab.wait_until(2).await;
    assert_eq!(lab.read(booked.id).await.state, State::Active);
}
