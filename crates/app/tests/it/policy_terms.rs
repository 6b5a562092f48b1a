//! What follows from policies, on both databases: approvals, buffers, no-shows.

use crate::support::policy::{minutes, must_set, of_site, of_type, project};
use crate::support::{Lab, name, on_both, site};
use berth_app::desk::{NewAny, Variant, Wish};
use berth_app::inventory::NewType;
use berth_app::reservations::{Extension, ReservationChange};
use berth_app::{Caller, Error};
use berth_model::reservation::{CheckIn, Privacy, State};
use berth_model::{Reference, ReservationId, Selection, Span};
use jiff::SignedDuration;
use serde_json::json;

on_both!(
    several_approvals_are_all_needed,
    a_resource_that_comes_later_brings_its_approval,
    silence_means_what_the_policy_says,
    buffers_are_held_and_follow_the_booking,
    an_early_end_brings_the_cleaning_forward,
    no_shows_are_released_as_the_policy_says,
    buffers_go_along_with_a_booking_that_makes_room,
);

async fn waiting_for(lab: &Lab, who: &Caller) -> Vec<ReservationId> {
    let view = lab.app.my_approvals(who).await.expect("what waits");
    view.reservations.iter().map(|one| one.id).collect()
}

async fn several_approvals_are_all_needed(lab: Lab) {
    project(&lab, "leads", &[&lab.bob]).await;
    let rule = json!({"approval": {"approvers": [{"project": "leads"}]}});
    must_set(&lab, &of_site(), rule).await;
    let mut wish = lab.wish(&["vault-01"], 5, 7);
    wish.privacy = Privacy::Private;
    let book = async || lab.app.book(&lab.ada, &site(), &wish).await;
    let asked = book().await.expect("it waits").value.reservation;
    assert_eq!(asked.state, State::PendingApproval);
    assert_eq!(
        asked.terms.approvals.len(),
        2,
        "by the type, and by the policy"
    );
    assert_eq!(waiting_for(&lab, &lab.ada).await, []);
    assert_eq!(waiting_for(&lab, &lab.bob).await, [asked.id]);
    assert_eq!(waiting_for(&lab, &lab.admin).await, [asked.id]);
    // Private, but bob is asked about it.
    lab.app
        .get_reservation(&lab.bob, &site(), asked.id)
        .await
        .expect("bob sees what he decides about");
    let approve = async |who: &Caller, id| {
        let approved = lab.app.approve_reservation(who, &site(), id, None).await?;
        Ok::<State, Error>(approved.reservation.state)
    };
    let own = approve(&lab.ada, asked.id).await;
    assert!(matches!(own, Err(Error::NotAllowed { .. })), "{own:?}");
    let first = approve(&lab.bob, asked.id).await.expect("he is asked");
    assert_eq!(first, State::PendingApproval);
    assert_eq!(waiting_for(&lab, &lab.bob).await, []);
    let again = approve(&lab.bob, asked.id).await;
    assert!(matches!(again, Err(Error::NotAllowed { .. })), "{again:?}");
    let second = approve(&lab.admin, asked.id).await.expect("so is she");
    assert_eq!(second, State::Confirmed);

    // Where the policy alone asks, an admin who is not asked does not decide.
    let other = lab.book(&lab.ada, &["gpu-02"], 5, 7).await;
    assert_eq!(other.state, State::PendingApproval);
    let admin = approve(&lab.admin, other.id).await;
    let Err(Error::NotAllowed { needs }) = admin else {
        panic!("{admin:?}");
    };
    assert_eq!(needs, "this is for project leads to decide");
    // One no is a no.
    let third = lab.book(&lab.ada, &["vault-01"], 8, 9).await;
    let why = "not trained".parse().expect("text");
    let rejected = lab
        .app
        .reject_reservation(&lab.admin, &site(), third.id, None, why)
        .await
        .expect("she is asked");
    assert_eq!(rejected.reservation.state, State::Rejected);
    lab.book(&lab.bob, &["rack-b"], 8, 9).await;
    let bobs = lab.book(&lab.bob, &["gpu-01.gpu0"], 8, 9).await;
    assert_eq!(bobs.state, State::Confirmed, "he could give leave himself");
}

async fn a_resource_that_comes_later_brings_its_approval(lab: Lab) {
    project(&lab, "leads", &[&lab.bob]).await;
    let rule = json!({"approval": {"approvers": [{"project": "leads"}]}});
    must_set(&lab, &of_site(), rule).await;
    let asked = lab.book(&lab.ada, &["gpu-02"], 5, 7).await;
    assert_eq!(asked.terms.approvals.len(), 1, "by the policy");
    let more = ReservationChange {
        items: Some(lab.wish(&["gpu-02", "vault-01"], 5, 7).items),
        ..Default::default()
    };
    let change = async |what: &ReservationChange| {
        let place = site();
        let changed = lab
            .app
            .change_reservation(&lab.ada, &place, asked.id, None, what);
        changed.await.expect("it only waits").reservation
    };
    let changed = change(&more).await;
    assert_eq!(
        changed.terms.approvals.len(),
        2,
        "and by the type that came"
    );
    // Another change asks nobody twice.
    let longer = ReservationChange {
        end: Some(lab.at(8)),
        ..Default::default()
    };
    assert_eq!(change(&longer).await.terms.approvals.len(), 2);
    let approve = async |who: &Caller| {
        let approved = lab
            .app
            .approve_reservation(who, &site(), asked.id, None)
            .await;
        approved.expect("they are asked").reservation.state
    };
    assert_eq!(approve(&lab.bob).await, State::PendingApproval);
    assert_eq!(approve(&lab.admin).await, State::Confirmed);
}

async fn silence_means_what_the_policy_says(lab: Lab) {
    for (outcome, state, resource) in [
        ("approve", State::Confirmed, "gpu-02"),
        ("reject", State::Rejected, "gpu-01"),
    ] {
        let rule = json!({"approval": {"time_out": {"after": "30m", "outcome": outcome}}});
        must_set(&lab, &of_site(), rule).await;
        let now = lab.app.now();
        let hour = now.duration_since(lab.at(0)).as_hours() + 2;
        let asked = lab.book(&lab.ada, &[resource], hour, hour + 1).await;
        assert_eq!(asked.state, State::PendingApproval);
        let soon = now + SignedDuration::from_mins(29);
        lab.wait_until_moment(soon).await;
        assert_eq!(lab.read(asked.id).await.state, State::PendingApproval);
        lab.wait_until_moment(soon + SignedDuration::from_mins(1))
            .await;
        assert_eq!(lab.read(asked.id).await.state, state);
    }
    // Without a time-out it stands until the start, and nobody's word is a no.
    must_set(&lab, &of_site(), json!({"approval": {}})).await;
    let held = {
        let mut wish = lab.wish(&["rack-b"], 10, 12);
        wish.hold = true;
        let held = lab.app.book(&lab.ada, &site(), &wish).await;
        held.expect("it is free").value.reservation
    };
    let taken = lab
        .app
        .take_reservation(&lab.ada, &site(), held.id, None)
        .await
        .expect("it waits now");
    assert_eq!(taken.reservation.state, State::PendingApproval);
    lab.wait_until(9).await;
    assert_eq!(lab.read(held.id).await.state, State::PendingApproval);
    lab.wait_until(10).await;
    assert_eq!(lab.read(held.id).await.state, State::Failed);
}

/// The buffers that the calendar shows on a resource, in minutes after the lab was opened.
async fn shown_buffers(lab: &Lab, resource: &str) -> Vec<Span> {
    let request = berth_app::calendar::CalendarRequest {
        span: lab.span(0, 48),
        resources: vec![Reference::Name(name(resource))],
        under: None,
        kind: None,
        entries_max: 100,
    };
    let view = lab
        .app
        .calendar(&lab.admin, &site(), &request)
        .await
        .expect("the calendar");
    let is_buffer = |details: &berth_app::SeenDetails| details.is_buffer;
    view.entries
        .iter()
        .filter(|entry| entry.details.as_ref().is_some_and(is_buffer))
        .map(|entry| entry.claim.span)
        .collect()
}

async fn buffers_are_held_and_follow_the_booking(lab: Lab) {
    let rule = json!({"buffer_before": "30m", "buffer_after": "1h"});
    must_set(&lab, &of_type("server"), rule).await;
    let booked = lab.book(&lab.ada, &["gpu-02"], 3, 5).await;
    assert_eq!(
        shown_buffers(&lab, "gpu-02").await,
        [minutes(&lab, 150, 180), minutes(&lab, 300, 360)]
    );
    for (from, to) in [(1, 3), (5, 6), (6, 7)] {
        let met = lab.try_book(&lab.bob, &["gpu-02"], from, to).await;
        assert!(
            matches!(met, Err(Error::Conflict { .. })),
            "{from}: {met:?}"
        );
    }
    let bobs = lab.book(&lab.bob, &["gpu-02"], 7, 8).await;
    let longer = Extension::By(SignedDuration::from_mins(30));
    lab.app
        .extend_reservation(&lab.ada, &site(), booked.id, longer)
        .await
        .expect("its cleaning up ends when bob's setting up begins");
    let met = lab
        .app
        .extend_reservation(&lab.ada, &site(), booked.id, longer)
        .await;
    assert!(matches!(met, Err(Error::Conflict { .. })), "{met:?}");
    assert_eq!(
        shown_buffers(&lab, "gpu-02").await[..2],
        [minutes(&lab, 150, 180), minutes(&lab, 330, 390)]
    );
    // What is given up before it begins leaves nothing behind.
    lab.app
        .cancel_reservation(&lab.bob, &site(), bobs.id, None, None)
        .await
        .expect("it is given up");
    assert_eq!(shown_buffers(&lab, "gpu-02").await.len(), 2);
    // After its end it is cleaned up, and only then done.
    lab.wait_until(4).await;
    assert_eq!(lab.read(booked.id).await.state, State::Active);
    lab.wait_until(6).await;
    assert_eq!(lab.read(booked.id).await.state, State::Ending);
    let early = lab.try_book(&lab.bob, &["gpu-02"], 6, 7).await;
    assert!(matches!(early, Err(Error::Conflict { .. })), "{early:?}");
    lab.wait_until(7).await;
    let done = lab.read(booked.id).await;
    assert_eq!(
        (done.state, done.span),
        (State::Done, minutes(&lab, 180, 330))
    );
    lab.book(&lab.bob, &["gpu-02"], 7, 8).await;
}

async fn an_early_end_brings_the_cleaning_forward(lab: Lab) {
    must_set(&lab, &of_type("server"), json!({"buffer_after": "1h"})).await;
    let booked = lab.book(&lab.ada, &["gpu-02"], 1, 6).await;
    lab.wait_until(2).await;
    lab.app
        .cancel_reservation(&lab.ada, &site(), booked.id, None, None)
        .await
        .expect("it ends");
    lab.wait_until(2).await;
    let ending = lab.read(booked.id).await;
    assert_eq!((ending.state, ending.span), (State::Ending, lab.span(1, 2)));
    assert_eq!(ending.terms.clean_until, Some(lab.at(3)));
    assert_eq!(shown_buffers(&lab, "gpu-02").await, [lab.span(2, 3)]);
    let early = lab.try_book(&lab.bob, &["gpu-02"], 2, 4).await;
    assert!(matches!(early, Err(Error::Conflict { .. })), "{early:?}");
    lab.book(&lab.bob, &["gpu-02"], 3, 5).await;
    lab.wait_until(3).await;
    assert_eq!(lab.read(booked.id).await.state, State::Done);
}

async fn no_shows_are_released_as_the_policy_says(lab: Lab) {
    must_set(&lab, &of_site(), json!({"check_in": "30m"})).await;
    let booked = lab.book(&lab.ada, &["gpu-02"], 1, 3).await;
    let by = lab.at(1) + SignedDuration::from_mins(30);
    assert_eq!(booked.terms.check_in, CheckIn::Until(by));
    // Moved, it still gives its owner half an hour.
    let later = ReservationChange {
        start: Some(lab.at(2)),
        end: Some(lab.at(4)),
        ..Default::default()
    };
    let moved = lab
        .app
        .change_reservation(&lab.ada, &site(), booked.id, None, &later)
        .await
        .expect("it moves");
    let by = lab.at(2) + SignedDuration::from_mins(30);
    assert_eq!(moved.reservation.terms.check_in, CheckIn::Until(by));
    lab.wait_until(2).await;
    lab.wait_until_moment(by).await;
    assert_eq!(lab.read(booked.id).await.state, State::Done);
    lab.book(&lab.bob, &["gpu-02"], 3, 4).await;
}

async fn buffers_go_along_with_a_booking_that_makes_room(lab: Lab) {
    let twins = NewType {
        name: name("twin"),
        title: "Twin".parse().expect("text"),
        colour: "#1f77b4".parse().expect("a colour"),
        form: Default::default(),
        needs_approval: false,
    };
    let made = lab.app.create_type(&lab.admin, &site(), twins).await;
    made.expect("a type");
    for twin in ["twin-a", "twin-b"] {
        lab.add(twin, "twin", None, None).await;
    }
    must_set(&lab, &of_type("twin"), json!({"buffer_after": "1h"})).await;
    let any = async |who: &Caller, from, to| {
        let what: Selection = "1 x twin".parse().expect("a selection");
        let window = lab.span(from, to);
        let variant = Variant {
            count: what.count,
            length: window.duration(),
        };
        let new = NewAny {
            wish: Wish::new(what, vec![variant], window).expect("a wish"),
            pinned: false,
            title: "any".parse().expect("text"),
            project: None,
            privacy: Privacy::Site,
            parameters: Default::default(),
            owner: None,
            hold: false,
            wait: None,
            at_end: Default::default(),
            lends: None,
        };
        let made = lab.app.book_any(who, &site(), &new).await;
        made.expect("there is room").value.reservation
    };
    let flexible = any(&lab.ada, 24, 26).await;
    let first = Reference::Name(name("twin-a"));
    let first = lab.app.get_resource(&lab.ada, &site(), &first).await;
    let (_, first, _) = first.expect("it is there");
    let other = match flexible.items[0].resource == first.resource.id {
        true => "twin-b",
        false => "twin-a",
    };
    // Taken by name until 23 and cleaned up until 24, so that only where the first one stands there is room from 22 on.
    lab.book(&lab.bob, &[other], 20, 23).await;
    let long = any(&lab.bob, 22, 26).await;
    let moved = lab.read(flexible.id).await;
    assert_eq!(long.items[0].resource, flexible.items[0].resource);
    assert_ne!(moved.items[0].resource, flexible.items[0].resource);
    let cleaned = shown_buffers(&lab, other).await;
    assert_eq!(cleaned, [lab.span(23, 24), lab.span(26, 27)]);
}
