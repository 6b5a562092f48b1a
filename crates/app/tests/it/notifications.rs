//! Who is told of what, on both databases.

use crate::support::policy::{must_set, of_site, person, project};
use crate::support::series::{WEEKLY, series, wish};
use crate::support::told::{cancel, heard, read, set_status, told, told_of};
use crate::support::{Lab, on_both, site};
use berth_app::desk::{NewAny, Variant, WaitFor, Wish};
use berth_app::reservations::{Extension, ReservationChange};
use berth_app::settlement::Mode;
use berth_app::{Caller, SiteChange};
use berth_model::event::EventKind;
use berth_model::reservation::{CheckIn, Privacy, State};
use berth_model::site::{OutsiderView, Role};
use berth_model::{Selection, Status};
use berth_store::reservations;
use jiff::SignedDuration;
use serde_json::json;

on_both!(
    owners_hear_what_others_do_to_what_is_theirs,
    whoever_is_asked_hears_of_it,
    a_deputy_and_a_group_hear_of_a_private_one,
    both_owners_hear_of_a_hand_over,
    whoever_booked_near_a_resource_hears_of_its_status,
    those_who_wait_hear_when_there_is_room,
    a_move_a_failure_and_a_no_show_are_told,
    the_way_into_a_site_is_told_at_both_ends,
    a_series_is_told_once,
);

async fn owners_hear_what_others_do_to_what_is_theirs(lab: Lab) {
    lab.notify().await;
    let nothing: [&str; 0] = [];
    // What they do themselves is no news.
    let own = lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    let longer = Extension::By(SignedDuration::from_hours(1));
    let at = site();
    let extended = lab.app.extend_reservation(&lab.ada, &at, own.id, longer);
    extended.await.expect("nobody is in the way");
    assert_eq!(heard(&lab, &lab.ada).await, nothing);
    let change = ReservationChange {
        title: Some("tidied".parse().expect("text")),
        ..Default::default()
    };
    let changed = lab
        .app
        .change_reservation(&lab.admin, &at, own.id, None, &change);
    changed.await.expect("an admin may");
    cancel(&lab, &lab.admin, &own).await;
    let other = lab.book(&lab.ada, &["gpu-02"], 1, 3).await;
    cancel(&lab, &lab.ada, &other).await;
    let mut for_ada = lab.wish(&["rack-b"], 1, 3);
    for_ada.owner = Some(person(&lab.ada));
    let made = lab.app.book(&lab.admin, &at, &for_ada).await;
    made.expect("an admin may book for others");
    let expected = ["changed as owner", "cancelled as owner", "created as owner"];
    assert_eq!(heard(&lab, &lab.ada).await, expected);
    let told = read(&lab, &lab.ada).await;
    let texts: Vec<&str> = told.iter().map(|one| one.text.as_str()).collect();
    assert!(texts[0].contains("“tidied” of gpu-01"), "{texts:?}");
    assert!(texts[0].contains("was changed by adele"), "{texts:?}");
    assert!(
        texts[1].ends_with("was cancelled by adele: needed elsewhere."),
        "{texts:?}"
    );
    assert!(texts[2].starts_with("adele booked for you:"), "{texts:?}");
    assert_eq!(told[1].by, Some(lab.admin.id()));
    assert_eq!(heard(&lab, &lab.bob).await, nothing);
    assert_eq!(heard(&lab, &lab.admin).await, nothing);
    // One that runs is ended, and that is told like any change.
    let running = lab.book(&lab.bob, &["gpu-02"], 4, 6).await;
    lab.wait_until(5).await;
    cancel(&lab, &lab.admin, &running).await;
    let told = told_of(&lab, &lab.bob, EventKind::ReservationChanged).await;
    assert!(
        told[0].text.contains("was ended by adele"),
        "{}",
        told[0].text
    );
}

async fn whoever_is_asked_hears_of_it(lab: Lab) {
    lab.notify().await;
    let asked = lab.book(&lab.ada, &["vault-01"], 1, 3).await;
    assert_eq!(heard(&lab, &lab.admin).await, ["created as approver"]);
    let text = &read(&lab, &lab.admin).await[0].text;
    assert!(text.starts_with("ada asks for your approval of"), "{text}");
    assert!(heard(&lab, &lab.ada).await.is_empty());
    assert!(heard(&lab, &lab.bob).await.is_empty());
    assert!(heard(&lab, &lab.root).await.is_empty(), "not by name");
    let at = site();
    let approved = lab
        .app
        .approve_reservation(&lab.admin, &at, asked.id, None)
        .await;
    approved.expect("she is asked");
    let second = lab.book(&lab.ada, &["vault-01"], 4, 5).await;
    let why = "not trained".parse().expect("text");
    let rejected = lab
        .app
        .reject_reservation(&lab.admin, &at, second.id, None, why)
        .await;
    rejected.expect("she is asked");
    // Nobody decides about the third before it is to start.
    lab.book(&lab.ada, &["vault-01"], 6, 7).await;
    for hour in [2, 6] {
        lab.wait_until(hour).await;
    }
    let expected = ["approved as owner", "rejected as owner", "failed as owner"];
    let heard_by_ada = heard(&lab, &lab.ada).await;
    let reminders = |one: &String| !one.starts_with("reminder");
    let heard_by_ada: Vec<String> = heard_by_ada.into_iter().filter(reminders).collect();
    assert_eq!(heard_by_ada, expected);
    // A hold asks when it is taken.
    let before = heard(&lab, &lab.admin).await.len();
    let mut wish = lab.wish(&["vault-01"], 8, 9);
    wish.hold = true;
    let held = lab.app.book(&lab.ada, &at, &wish).await;
    let held = held.expect("it is free").value.reservation;
    assert_eq!(heard(&lab, &lab.admin).await.len(), before);
    let taken = lab.app.take_reservation(&lab.ada, &at, held.id, None).await;
    taken.expect("it is hers");
    let last = heard(&lab, &lab.admin).await.pop();
    assert_eq!(last.as_deref(), Some("changed as approver"));
}

async fn a_deputy_and_a_group_hear_of_a_private_one(lab: Lab) {
    project(&lab, "leads", &[&lab.bob]).await;
    let (at, root) = (site(), person(&lab.root));
    let joined = lab.app.set_member(&lab.root, &at, &root, Role::Member);
    joined.await.expect("policies of a site name its members");
    let rule = json!({"approval": {"approvers": [{"project": "leads"}], "deputies": [{"person": "root"}]}});
    must_set(&lab, &of_site(), rule).await;
    lab.notify().await;
    let mut wish = lab.wish(&["vault-01"], 1, 3);
    wish.privacy = Privacy::Private;
    let made = lab.app.book(&lab.ada, &site(), &wish).await;
    let asked = made.expect("it waits").value.reservation;
    for who in [&lab.bob, &lab.root, &lab.admin] {
        assert_eq!(heard(&lab, who).await, ["created as approver"]);
        let seen = &read(&lab, who).await[0];
        let about = seen.reservation.as_ref();
        assert_eq!(about.map(|one| one.id), Some(asked.id), "they are asked");
    }
    // One yes of several is not yet an answer, and is not told as a change.
    let at = site();
    for who in [&lab.bob, &lab.admin] {
        let later = lab.app.now() + SignedDuration::from_secs(1);
        lab.set_clock(later);
        let said = lab.app.approve_reservation(who, &at, asked.id, None).await;
        said.expect("they are asked");
    }
    assert_eq!(heard(&lab, &lab.ada).await, ["approved as owner"]);
}

async fn both_owners_hear_of_a_hand_over(lab: Lab) {
    lab.notify().await;
    let at = site();
    let public = lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    let mut wish = lab.wish(&["gpu-02"], 1, 3);
    wish.privacy = Privacy::Private;
    let made = lab.app.book(&lab.ada, &at, &wish).await;
    let private = made.expect("it is free").value.reservation;
    let to = person(&lab.bob);
    for (who, id) in [(&lab.ada, public.id), (&lab.admin, private.id)] {
        let given = lab.app.hand_over(who, &at, id, None, &to, None).await;
        given.expect("they may");
    }
    let twice = |what: &str| vec![what.to_owned(); 2];
    assert_eq!(heard(&lab, &lab.bob).await, twice("handed_over as owner"));
    let bob = read(&lab, &lab.bob).await;
    assert!(bob[0].text.starts_with("ada gave you"), "{}", bob[0].text);
    assert!(bob[1].text.starts_with("adele gave you"), "{}", bob[1].text);
    // What was handed over in private is not ada's to see any more.
    let ada = told(&lab, &lab.ada).await;
    assert_eq!(ada.len(), 2);
    assert_eq!(ada[0].told.data["as"], "former_owner");
    assert!(ada[0].text.contains("is bob's now"), "{}", ada[0].text);
    assert_eq!((&ada[1].reservation, ada[1].by), (&None, None));
    assert_eq!(ada[1].told.data, json!({}));
    assert_eq!(
        ada[1].text,
        "A reservation that you cannot see any more was handed over."
    );
    // The other members do not hear whose the private one is.
    let stream = lab.app.events_after(&lab.ada, None, 0, 1000).await;
    let handed = stream.expect("the stream").events;
    let handed = handed
        .iter()
        .filter(|one| one.event.kind == EventKind::ReservationHandedOver);
    assert_eq!(handed.count(), 1);
}

async fn whoever_booked_near_a_resource_hears_of_its_status(lab: Lab) {
    lab.notify().await;
    let below = lab.book(&lab.ada, &["gpu-01.gpu0"], 1, 3).await;
    let above = lab.book(&lab.bob, &["rack-a"], 5, 7).await;
    lab.book(&lab.admin, &["gpu-02"], 1, 3).await;
    let over = lab.book(&lab.root, &["gpu-01.gpu1"], 1, 2).await;
    lab.wait_until(1).await;
    lab.wait_until(2).await;
    assert_eq!(lab.read(over.id).await.state, State::Done);
    set_status(&lab, "gpu-01", Status::Maintenance).await;
    // The same again is no change.
    set_status(&lab, "gpu-01", Status::Maintenance).await;
    set_status(&lab, "gpu-01", Status::Active).await;
    let kind = EventKind::ResourceStatus;
    for (who, of) in [(&lab.ada, &below), (&lab.bob, &above)] {
        let told = told_of(&lab, who, kind).await;
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[0].told.data["reservations"], json!([of.id]));
        assert_eq!(
            told[0].text,
            "gpu-01 is MAINTENANCE; a booking of yours stands on it: a fan."
        );
        assert!(told[1].text.contains("back in service"), "{}", told[1].text);
    }
    assert!(
        told_of(&lab, &lab.admin, kind).await.is_empty(),
        "beside it"
    );
    assert!(
        told_of(&lab, &lab.root, kind).await.is_empty(),
        "it is over"
    );
}

async fn those_who_wait_hear_when_there_is_room(lab: Lab) {
    lab.notify().await;
    let waits = async |who: &Caller, resource: &str, wait| {
        let mut wish = lab.wish(&[resource], 24, 26);
        wish.wait = Some(wait);
        let made = lab.app.book(who, &site(), &wish).await;
        made.expect("it waits").value.reservation
    };
    let first = lab.book(&lab.ada, &["gpu-01"], 24, 26).await;
    let second = lab.book(&lab.ada, &["gpu-02"], 24, 26).await;
    lab.book(&lab.ada, &["rack-b"], 24, 26).await;
    waits(&lab.bob, "gpu-01", WaitFor::Booking).await;
    let offered = waits(&lab.bob, "gpu-02", WaitFor::Offer).await;
    waits(&lab.bob, "rack-b", WaitFor::Booking).await;
    cancel(&lab, &lab.ada, &first).await;
    lab.wait_until(1).await;
    assert_eq!(heard(&lab, &lab.bob).await, ["created as owner"]);
    cancel(&lab, &lab.ada, &second).await;
    lab.wait_until(2).await;
    assert_eq!(lab.read(offered.id).await.state, State::Held);
    let told_now = told(&lab, &lab.bob).await;
    let texts: Vec<&str> = told_now.iter().map(|one| one.text.as_str()).collect();
    assert!(
        texts[0].starts_with("There is room now: you have"),
        "{texts:?}"
    );
    assert!(
        texts[1].contains("Take it before 2026-11-16T10:30"),
        "{texts:?}"
    );
    // Nobody takes the offer, and the last never has room.
    lab.wait_until(3).await;
    lab.wait_until(25).await;
    let heard = heard(&lab, &lab.bob).await;
    let cancelled = heard.iter().filter(|one| *one == "cancelled as owner");
    assert_eq!(cancelled.count(), 2, "{heard:?}");
    // A hold of one's own that runs out is no news.
    let mut hold = lab.wish(&["gpu-02"], 30, 31);
    hold.hold = true;
    let held = lab.app.book(&lab.ada, &site(), &hold).await;
    held.expect("it is free");
    lab.wait_until(26).await;
    let ada = told_of(&lab, &lab.ada, EventKind::ReservationCancelled).await;
    assert!(ada.is_empty(), "{ada:?}");
}

fn any_server(lab: &Lab, pinned: bool) -> NewAny {
    let what: Selection = "1 x strict".parse().expect("a selection");
    let window = lab.span(24, 26);
    let variant = Variant {
        count: what.count,
        length: window.duration(),
    };
    NewAny {
        wish: Wish::new(what, vec![variant], window).expect("a wish"),
        pinned,
        title: "any".parse().expect("text"),
        project: None,
        privacy: Privacy::Site,
        parameters: Default::default(),
        owner: None,
        hold: false,
        wait: None,
        at_end: Default::default(),
        lends: None,
    }
}

async fn a_move_a_failure_and_a_no_show_are_told(lab: Lab) {
    lab.add("vault-02", "strict", None, None).await;
    lab.notify().await;
    // The admin gives herself leave, so that it is confirmed and can move.
    let moves = lab
        .app
        .book_any(&lab.admin, &site(), &any_server(&lab, false))
        .await;
    let moves = moves.expect("one of two").value.reservation;
    assert_eq!(moves.state, State::Confirmed);
    let stands = lab
        .app
        .get_resource(&lab.admin, &site(), &moves.items[0].resource.into())
        .await;
    let (_, stands, _) = stands.expect("it is there");
    let (first, other) = match stands.resource.name.as_str() {
        "vault-01" => ("vault-01", "vault-02"),
        _ => ("vault-02", "vault-01"),
    };
    set_status(&lab, first, Status::Unavailable).await;
    lab.wait_until(1).await;
    set_status(&lab, other, Status::Unavailable).await;
    lab.wait_until(2).await;
    let heard = heard(&lab, &lab.admin).await;
    for expected in [
        "resource.status as owner",
        "moved as owner",
        "troubled as owner",
    ] {
        assert!(heard.iter().any(|one| one == expected), "{heard:?}");
    }
    let told = told_of(&lab, &lab.admin, EventKind::ReservationTroubled).await;
    assert!(
        told[0].text.contains("stands on what has failed"),
        "{}",
        told[0].text
    );

    let mut booked = lab.book(&lab.ada, &["gpu-01"], 3, 5).await;
    booked.terms.check_in = CheckIn::Until(lab.at(4));
    let mut tx = lab.app.store.begin().await.expect("a transaction");
    let version = booked.version;
    let written = reservations::update(&mut tx, &booked, version).await;
    assert!(written.expect("it is written"));
    // Each version has its line.
    let line = berth_model::reservation::HistoryEntry {
        reservation: booked.id,
        at: lab.app.now(),
        from: Some(booked.state),
        to: booked.state,
        span: booked.span,
        by: Some(lab.ada.id()),
        reason: None,
    };
    let noted = reservations::insert_history(&mut tx, &line).await;
    noted.expect("it is noted");
    tx.commit().await.expect("it is kept");
    lab.wait_until(3).await;
    lab.wait_until(4).await;
    let told = told_of(&lab, &lab.ada, EventKind::ReservationNoShow).await;
    assert_eq!(told.len(), 1);
    assert!(
        told[0].text.contains("nobody checked in"),
        "{}",
        told[0].text
    );
}

async fn the_way_into_a_site_is_told_at_both_ends(lab: Lab) {
    let show = SiteChange {
        outsiders_see: Some(OutsiderView::Name),
        ..Default::default()
    };
    let at = site();
    let shown = lab.app.update_site(&lab.root, &at, None, show).await;
    shown.expect("root may");
    lab.notify().await;
    let ask = async || {
        let asked = lab.app.ask_to_join(&lab.outsider, &at, None).await;
        asked.expect("the site shows its name").value.1
    };
    let first = ask().await;
    assert_eq!(heard(&lab, &lab.admin).await, ["join.requested as admin"]);
    assert!(heard(&lab, &lab.bob).await.is_empty());
    let request = &read(&lab, &lab.admin).await[0];
    assert_eq!(request.text, "otto asks to join Torino.");
    let full = "full".parse().ok();
    let decided = lab.app.decide_join(&lab.admin, &at, first.id, None, full);
    decided.await.expect("an admin may");
    let second = ask().await;
    let member = Some(Role::Member);
    let decided = lab
        .app
        .decide_join(&lab.admin, &at, second.id, member, None);
    decided.await.expect("an admin may");
    let otto = told(&lab, &lab.outsider).await;
    let texts: Vec<&str> = otto.iter().map(|one| one.text.as_str()).collect();
    let expected = [
        "Your request to join Torino was declined: full.",
        "You are now a member of Torino.",
    ];
    assert_eq!(texts, expected);
    // Where nobody administers the site, somebody hears of it all the same.
    let gone = lab
        .app
        .set_member(&lab.root, &at, &person(&lab.admin), Role::Member)
        .await;
    gone.expect("root may");
    let alone = lab
        .app
        .remove_member(&lab.outsider, &at, &person(&lab.outsider), Mode::Apply)
        .await;
    alone.expect("one may leave");
    ask().await;
    assert_eq!(heard(&lab, &lab.root).await, ["join.requested as admin"]);
}

async fn a_series_is_told_once(lab: Lab) {
    lab.notify().await;
    let weekly = wish(&lab, &["vault-01"], 24, 26, WEEKLY);
    let series = series(&lab, &lab.ada, &weekly).await;
    assert_eq!(series.instances.len(), 4);
    assert_eq!(heard(&lab, &lab.admin).await, ["created as approver"]);
    let text = &read(&lab, &lab.admin).await[0].text;
    assert!(text.ends_with("one of a series."), "{text}");
    let at = site();
    let all = berth_app::reservations::Part::All;
    let gone = lab
        .app
        .cancel_series(&lab.admin, &at, series.series.id, None, all, None)
        .await;
    gone.expect("an admin may");
    assert_eq!(heard(&lab, &lab.ada).await, ["cancelled as owner"]);
}
