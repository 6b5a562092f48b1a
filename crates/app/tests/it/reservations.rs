//! The life of a reservation, from wish to history, on both databases.

use crate::support::{Lab, name, on_both, site};
use berth_app::reservations::{Extension, ReservationChange};
use berth_app::settlement::Mode;
use berth_app::{Caller, Error, Once, Repeated};
use berth_model::reservation::{Privacy, State};
use berth_model::{Holder, Reference, Span, Standing, Status};
use jiff::SignedDuration;

on_both!(
    a_parent_blocks_its_children_and_the_reverse,
    parts_fill_up_to_the_capacity_and_no_further,
    time_starts_and_ends_it_and_a_crash_only_delays,
    an_unapproved_one_never_starts,
    an_extension_never_hurts_and_never_shortens,
    shortening_and_cancelling_give_the_time_back,
    what_is_over_keeps_the_time_it_had,
    resources_can_be_exchanged_in_one_step,
    time_and_amount_change_together,
    what_is_out_of_service_takes_nothing_new,
    the_same_key_books_once,
    an_extension_that_comes_twice_extends_once,
    a_private_booking_shows_as_busy,
    whoever_leaves_holds_nothing,
    a_dry_run_changes_nothing,
);

fn in_the_way(error: Error) -> Vec<berth_app::Conflict> {
    match error {
        Error::Conflict { conflicts, .. } => conflicts,
        other => panic!("expected a conflict, got: {other}"),
    }
}

async fn a_parent_blocks_its_children_and_the_reverse(lab: Lab) {
    lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    for blocked in ["gpu-01", "rack-a", "gpu-01.gpu0"] {
        let refused = lab
            .try_book(&lab.bob, &[blocked], 2, 4)
            .await
            .expect_err(blocked);
        let conflicts = in_the_way(refused);
        assert_eq!(conflicts.len(), 1);
        let details = conflicts[0]
            .claim
            .details
            .as_ref()
            .expect("members see whose it is");
        assert_eq!(details.owner, Some(lab.ada.person.id));
    }
    lab.book(&lab.bob, &["gpu-02"], 2, 4).await;
    lab.book(&lab.bob, &["rack-a"], 4, 5).await;
    lab.book(&lab.bob, &["gpu-01.gpu0", "gpu-02"], 5, 6).await;
    lab.book(&lab.ada, &["gpu-01.gpu1"], 5, 6).await;
}

async fn parts_fill_up_to_the_capacity_and_no_further(lab: Lab) {
    lab.book(&lab.ada, &["gpu-01.cpu:40"], 1, 3).await;
    lab.book(&lab.bob, &["gpu-01.cpu:24"], 1, 3).await;
    in_the_way(
        lab.try_book(&lab.bob, &["gpu-01.cpu:1"], 2, 4)
            .await
            .expect_err("it is full"),
    );
    in_the_way(
        lab.try_book(&lab.bob, &["gpu-01"], 2, 4)
            .await
            .expect_err("its parts are taken"),
    );
    lab.book(&lab.bob, &["gpu-01.cpu:64"], 3, 4).await;
    assert!(matches!(
        lab.try_book(&lab.bob, &["gpu-01.cpu:65"], 8, 9).await,
        Err(Error::Invalid(_))
    ));
    assert!(matches!(
        lab.try_book(&lab.bob, &["gpu-02:1"], 8, 9).await,
        Err(Error::Invalid(_))
    ));
}

async fn time_starts_and_ends_it_and_a_crash_only_delays(lab: Lab) {
    let booked = lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    let missed = lab.book(&lab.ada, &["gpu-02"], 1, 2).await;
    assert_eq!(booked.state, State::Confirmed);
    lab.wait_until(0).await;
    assert_eq!(lab.read(booked.id).await.state, State::Confirmed);
    // Nobody looked for a while: one is late but runs, the other's whole time went by.
    lab.wait_until(2).await;
    assert_eq!(lab.read(booked.id).await.state, State::Active);
    assert_eq!(lab.read(missed.id).await.state, State::Failed);
    lab.wait_until(3).await;
    let done = lab.read(booked.id).await;
    assert_eq!((done.state, done.span), (State::Done, lab.span(1, 3)));
    let (history, _) = lab
        .app
        .reservation_history(&lab.ada, &site(), booked.id)
        .await
        .expect("its history");
    let states: Vec<State> = history.iter().map(|entry| entry.to).collect();
    assert_eq!(
        states,
        [
            State::Confirmed,
            State::Starting,
            State::Active,
            State::Ending,
            State::Done
        ]
    );
    let mut reader = lab.app.store.read().await.expect("a reader");
    let claims = berth_store::claims::all_of(&mut reader, Holder::Reservation(booked.id))
        .await
        .expect("its claims");
    assert!(
        claims
            .iter()
            .all(|claim| claim.standing == Standing::Past && claim.span == lab.span(1, 3))
    );
}

async fn an_unapproved_one_never_starts(lab: Lab) {
    let waiting = lab.book(&lab.ada, &["vault-01"], 1, 3).await;
    assert_eq!(waiting.state, State::PendingApproval);
    in_the_way(
        lab.try_book(&lab.bob, &["vault-01"], 2, 3)
            .await
            .expect_err("a pending booking holds its claim"),
    );
    assert!(matches!(
        lab.app
            .approve_reservation(&lab.ada, &site(), waiting.id, None)
            .await,
        Err(Error::NotAllowed { .. })
    ));
    lab.wait_until(1).await;
    assert_eq!(lab.read(waiting.id).await.state, State::Failed);
    let second = lab.book(&lab.ada, &["vault-01"], 4, 6).await;
    lab.app
        .approve_reservation(&lab.admin, &site(), second.id, None)
        .await
        .expect("approved");
    let third = lab.book(&lab.ada, &["vault-01"], 7, 8).await;
    let no = "not this week".parse().expect("text");
    lab.app
        .reject_reservation(&lab.admin, &site(), third.id, None, no)
        .await
        .expect("rejected");
    lab.wait_until(4).await;
    assert_eq!(lab.read(second.id).await.state, State::Active);
    assert_eq!(lab.read(third.id).await.state, State::Rejected);
    lab.book(&lab.admin, &["vault-01"], 7, 8).await;
}

async fn an_extension_never_hurts_and_never_shortens(lab: Lab) {
    let mine = lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    lab.book(&lab.bob, &["gpu-01.gpu0"], 5, 6).await;
    let by = |hours| Extension::By(SignedDuration::from_hours(hours));
    let longer = lab
        .app
        .extend_reservation(&lab.ada, &site(), mine.id, by(2))
        .await
        .expect("there is room");
    assert_eq!(longer.reservation.span, lab.span(1, 5));
    let refused = lab
        .app
        .extend_reservation(&lab.ada, &site(), mine.id, by(1))
        .await
        .expect_err("there is none");
    assert_eq!(in_the_way(refused).len(), 1);
    assert_eq!(
        lab.read(mine.id).await.span,
        lab.span(1, 5),
        "and nothing changed"
    );
    let shorter = Extension::Until(lab.at(2));
    assert!(matches!(
        lab.app
            .extend_reservation(&lab.ada, &site(), mine.id, shorter)
            .await,
        Err(Error::Invalid(_))
    ));
    assert!(matches!(
        lab.app
            .extend_reservation(&lab.bob, &site(), mine.id, by(1))
            .await,
        Err(Error::NotAllowed { .. })
    ));
}

async fn shortening_and_cancelling_give_the_time_back(lab: Lab) {
    let mine = lab.book(&lab.ada, &["gpu-01"], 1, 9).await;
    let change = ReservationChange {
        end: Some(lab.at(5)),
        ..Default::default()
    };
    lab.app
        .change_reservation(&lab.ada, &site(), mine.id, Some(1), &change)
        .await
        .expect("shortened");
    assert!(matches!(
        lab.app
            .change_reservation(&lab.ada, &site(), mine.id, Some(1), &change)
            .await,
        Err(Error::Version { current: 2 })
    ));
    lab.book(&lab.bob, &["gpu-01"], 5, 9).await;
    lab.wait_until(2).await;
    let ending = lab
        .app
        .cancel_reservation(&lab.ada, &site(), mine.id, None, None)
        .await
        .expect("given back");
    assert_eq!(ending.reservation.state, State::Ending);
    lab.wait_until(2).await;
    let done = lab.read(mine.id).await;
    assert_eq!((done.state, done.span), (State::Done, lab.span(1, 2)));
    lab.book(&lab.bob, &["gpu-01"], 2, 5).await;
    assert!(matches!(
        lab.app
            .cancel_reservation(&lab.ada, &site(), mine.id, None, None)
            .await,
        Err(Error::State(_))
    ));
}

async fn what_is_over_keeps_the_time_it_had(lab: Lab) {
    let over = [
        lab.book(&lab.ada, &["gpu-01.gpu0"], 1, 9).await,
        lab.book(&lab.ada, &["gpu-01.cpu:40"], 1, 9).await,
    ];
    lab.wait_until(2).await;
    for mine in over {
        lab.app
            .cancel_reservation(&lab.ada, &site(), mine.id, None, None)
            .await
            .expect("given back");
    }
    lab.wait_until(2).await;

    // A booking may begin a few minutes ago, but not while somebody else was there.
    let a_moment_ago = lab.at(2) - SignedDuration::from_mins(3);
    let book = async |resource: &str| {
        let mut wish = lab.wish(&[resource], 2, 3);
        wish.span = Span::new(a_moment_ago, lab.at(3)).expect("a span");
        lab.app.book(&lab.bob, &site(), &wish).await
    };
    for taken in ["gpu-01.gpu0", "gpu-01", "gpu-01.cpu:25"] {
        let refused = book(taken).await.expect_err(taken);
        assert!(!in_the_way(refused).is_empty(), "{taken}");
    }
    for free in ["gpu-02", "gpu-01.cpu:24", "gpu-01.gpu1"] {
        book(free).await.expect(free);
    }
    let next = lab.book(&lab.bob, &["gpu-01.gpu0"], 2, 3).await;
    let earlier = ReservationChange {
        start: Some(a_moment_ago),
        ..Default::default()
    };
    let refused = lab
        .app
        .change_reservation(&lab.bob, &site(), next.id, None, &earlier)
        .await;
    assert_eq!(in_the_way(refused.expect_err("it was taken")).len(), 1);

    // Nor does it take more of what was shared than there was.
    let sharing = lab.book(&lab.bob, &["gpu-01.cpu:10"], 2, 3).await;
    let more = ReservationChange {
        items: Some(lab.wish(&["gpu-01.cpu:40"], 2, 3).items),
        ..Default::default()
    };
    lab.app
        .change_reservation(&lab.bob, &site(), sharing.id, None, &more)
        .await
        .expect("it begins when the others were gone");
}

async fn time_and_amount_change_together(lab: Lab) {
    let mine = lab.book(&lab.ada, &["gpu-01.cpu:4"], 1, 3).await;
    lab.book(&lab.bob, &["gpu-01.cpu:60"], 1, 3).await;
    // Neither the amount at the old time nor the old amount at the new one is asked about.
    lab.book(&lab.bob, &["gpu-01.cpu:30"], 5, 7).await;
    let wanted = |amount: &str, from: i64, to: i64| ReservationChange {
        items: Some(lab.wish(&[amount], from, to).items),
        start: Some(lab.at(from)),
        end: Some(lab.at(to)),
        ..Default::default()
    };
    let more = wanted("gpu-01.cpu:34", 5, 7);
    let moved = lab
        .app
        .change_reservation(&lab.ada, &site(), mine.id, None, &more)
        .await
        .expect("there is room then");
    assert_eq!(moved.reservation.span, lab.span(5, 7));
    let less = wanted("gpu-01.cpu:4", 1, 3);
    lab.app
        .change_reservation(&lab.ada, &site(), mine.id, None, &less)
        .await
        .expect("there is room for as little");
}

async fn resources_can_be_exchanged_in_one_step(lab: Lab) {
    let mine = lab.book(&lab.ada, &["gpu-01.gpu0"], 1, 3).await;
    lab.book(&lab.bob, &["gpu-02"], 2, 4).await;
    let swap = |resources: &[&str], from: i64, to: i64| ReservationChange {
        items: Some(lab.wish(resources, 1, 2).items),
        start: Some(lab.at(from)),
        end: Some(lab.at(to)),
        ..Default::default()
    };
    let refused = lab
        .app
        .change_reservation(&lab.ada, &site(), mine.id, None, &swap(&["gpu-02"], 1, 3))
        .await;
    assert_eq!(in_the_way(refused.expect_err("taken")).len(), 1);
    assert_eq!(
        lab.read(mine.id).await,
        mine,
        "a refused change leaves everything as it was"
    );
    let moved = lab
        .app
        .change_reservation(
            &lab.ada,
            &site(),
            mine.id,
            None,
            &swap(&["gpu-02", "gpu-01.gpu1"], 4, 6),
        )
        .await;
    assert_eq!(moved.expect("room later").reservation.items.len(), 2);
    lab.book(&lab.bob, &["gpu-01.gpu0"], 1, 3).await;
    in_the_way(
        lab.try_book(&lab.bob, &["gpu-01.gpu1"], 5, 6)
            .await
            .expect_err("taken"),
    );
}

async fn what_is_out_of_service_takes_nothing_new(lab: Lab) {
    let mine = lab.book(&lab.ada, &["gpu-01"], 1, 5).await;
    let reason = Some("a fan is loud".parse().expect("text"));
    let rack = Reference::Name(name("rack-a"));
    lab.app
        .set_status(
            &lab.admin,
            &site(),
            &rack,
            None,
            Status::Maintenance,
            reason,
        )
        .await
        .expect("out of service");
    let refused = lab
        .try_book(&lab.bob, &["gpu-02"], 1, 2)
        .await
        .expect_err("inherited");
    assert!(
        matches!(&refused, Error::NotActive { from, .. } if from.as_str() == "rack-a"),
        "{refused}"
    );
    let longer = Extension::By(SignedDuration::from_hours(1));
    assert!(matches!(
        lab.app
            .extend_reservation(&lab.ada, &site(), mine.id, longer)
            .await,
        Err(Error::NotActive { .. })
    ));
    let shorter = ReservationChange {
        end: Some(lab.at(4)),
        ..Default::default()
    };
    lab.app
        .change_reservation(&lab.ada, &site(), mine.id, None, &shorter)
        .await
        .expect("shortening stays possible");
    lab.wait_until(1).await;
    assert_eq!(
        lab.read(mine.id).await.state,
        State::Active,
        "a standing booking stays valid"
    );
    lab.app
        .set_status(&lab.admin, &site(), &rack, None, Status::Active, None)
        .await
        .expect("back");
    lab.book(&lab.bob, &["gpu-02"], 1, 2).await;
    let (history, _) = lab
        .app
        .status_history(&lab.ada, &site(), &rack, u64::MAX >> 1, 10)
        .await
        .expect("history");
    assert_eq!(history.len(), 2);
}

async fn the_same_key_books_once(lab: Lab) {
    let mut caller = lab.ada.clone();
    caller.once = Some(Once::create("k1".into(), [1; 32]));
    let wish = lab.wish(&["gpu-01"], 1, 2);
    let first = lab.app.book(&caller, &site(), &wish).await.expect("booked");
    let second = lab
        .app
        .book(&caller, &site(), &wish)
        .await
        .expect("answered again");
    assert_eq!(first.value.reservation.id, second.value.reservation.id);
    assert_eq!((first.replayed, second.replayed), (false, true));
    caller.once = Some(Once::create("k1".into(), [2; 32]));
    assert!(matches!(
        lab.app.book(&caller, &site(), &wish).await,
        Err(Error::IdempotencyMismatch)
    ));
    // A refused request leaves its key free: it made nothing.
    caller.once = Some(Once::create("k2".into(), [3; 32]));
    in_the_way(
        lab.app
            .book(&caller, &site(), &wish)
            .await
            .expect_err("taken"),
    );
    let free = lab.wish(&["gpu-01"], 2, 3);
    assert!(
        !lab.app
            .book(&caller, &site(), &free)
            .await
            .expect("booked")
            .replayed
    );
}

async fn a_private_booking_shows_as_busy(lab: Lab) {
    let mut wish = lab.wish(&["gpu-01"], 1, 3);
    wish.privacy = Privacy::Private;
    let mine = lab
        .app
        .book(&lab.ada, &site(), &wish)
        .await
        .expect("booked")
        .value
        .reservation;
    let conflicts = in_the_way(
        lab.try_book(&lab.bob, &["gpu-01"], 1, 2)
            .await
            .expect_err("taken"),
    );
    assert!(
        conflicts[0].claim.details.is_none(),
        "bob sees that it is busy and no more"
    );
    assert!(matches!(
        lab.app.get_reservation(&lab.bob, &site(), mine.id).await,
        Err(Error::NotFound(_))
    ));
    assert!(
        lab.app
            .get_reservation(&lab.admin, &site(), mine.id)
            .await
            .is_ok()
    );
    assert!(matches!(
        lab.try_book(&lab.outsider, &["gpu-02"], 1, 2).await,
        Err(Error::NotFound("site"))
    ));
}

async fn whoever_leaves_holds_nothing(lab: Lab) {
    let booked = lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    let ada = Reference::Id(lab.ada.person.id);
    let told = lab
        .app
        .remove_member(&lab.admin, &site(), &ada, Mode::DryRun)
        .await
        .expect("told");
    assert_eq!(told.reservations.len(), 1);
    assert_eq!(
        lab.read(booked.id).await.state,
        State::Confirmed,
        "a dry run settles nothing"
    );
    lab.app
        .remove_member(&lab.admin, &site(), &ada, Mode::Apply)
        .await
        .expect("settled");
    assert_eq!(lab.read(booked.id).await.state, State::Cancelled);
    lab.book(&lab.bob, &["gpu-01"], 1, 3).await;
    assert!(matches!(
        lab.try_book(&lab.ada, &["gpu-02"], 1, 2).await,
        Err(Error::NotFound("site"))
    ));
}

async fn a_dry_run_changes_nothing(lab: Lab) {
    let wish = lab.wish(&["gpu-01"], 1, 3);
    let told = lab
        .app
        .preview_booking(&lab.ada, &site(), &wish)
        .await
        .expect("answered");
    assert_eq!(told.expect("it would be accepted"), State::Confirmed);
    lab.book(&lab.bob, &["gpu-01"], 1, 3).await;
    let told = lab
        .app
        .preview_booking(&lab.ada, &site(), &wish)
        .await
        .expect("answered");
    assert_eq!(in_the_way(told.expect_err("it would be refused")).len(), 1);
}

async fn an_extension_that_comes_twice_extends_once(lab: Lab) {
    let booked = lab.book(&lab.ada, &["gpu-01"], 1, 2).await;
    let by = |hours| Extension::By(SignedDuration::from_hours(hours));
    let ada = |key: &str, print: u8| {
        let mut ada = lab.ada.clone();
        ada.once = Some(Once::action(key.into(), [print; 32]));
        ada
    };
    let extend = async |caller: Caller, hours| {
        let place = site();
        let extended = lab
            .app
            .extend_reservation(&caller, &place, booked.id, by(hours));
        extended.await
    };
    let first = ada("k", 1);
    let longer = extend(first.clone(), 1)
        .await
        .expect("answered")
        .reservation;
    assert_eq!(longer.span, lab.span(1, 3));
    // The answer was lost: what came of it is known, and it does not happen again.
    assert!(matches!(
        extend(ada("k", 1), 1).await,
        Err(Error::DoneBefore)
    ));
    assert!(matches!(
        extend(ada("k", 2), 2).await,
        Err(Error::IdempotencyMismatch)
    ));
    let id = lab.ada.id();
    let again = ada("k", 1).once.expect("answered");
    assert_eq!(
        lab.app.repeated(id, &again).await.expect("answered"),
        Some(Repeated::Done)
    );
    lab.app
        .keep_answer(id, &again, "not its own")
        .await
        .expect("answered");
    assert_eq!(
        lab.app.repeated(id, &again).await.expect("answered"),
        Some(Repeated::Done)
    );
    lab.app
        .keep_answer(id, &first.once.expect("answered"), "longer")
        .await
        .expect("answered");
    let answered = Some(Repeated::Answered("longer".into()));
    assert_eq!(
        lab.app.repeated(id, &again).await.expect("answered"),
        answered
    );
    let mut old = lab.ada.clone();
    old.version = Some(booked.version);
    assert!(matches!(extend(old, 1).await, Err(Error::Version { .. })));
    assert_eq!(lab.read(booked.id).await.span, longer.span);
}
