//! Any of a kind, when it can be had, and what else there is, on both databases.

use std::collections::BTreeSet;

use crate::support::{Lab, name, on_both, site};
use berth_app::desk::{AlternativeKind, NewAny, Variant, WaitFor, Wish};
use berth_app::policies::PolicyAt;
use berth_app::settlement::Mode;
use berth_app::{Caller, Error, Once};
use berth_model::event::EventKind;
use berth_model::reservation::{Privacy, Reservation, State};
use berth_model::{Reference, ResourceId, Selection, Status};
use jiff::SignedDuration;

on_both!(
    any_of_a_kind_is_found_until_there_are_no_more,
    whoever_asked_for_any_makes_room,
    what_is_pinned_or_frozen_stays,
    what_was_refused_comes_with_alternatives_that_can_be_held,
    the_earliest_times_stand_side_by_side,
    the_board_follows_what_happens,
    many_at_once_get_no_more_than_there_is,
    a_request_that_comes_twice_books_once,
    whoever_waits_is_served_in_turn,
    an_offer_is_taken_or_goes_on_to_the_next,
    what_stands_on_a_failed_resource_moves_or_its_owner_is_told,
    answers_keep_the_policies,
    a_failed_rack_takes_nothing_from_those_in_it,
    maintenance_moves_whom_it_may_and_asks_the_others,
    an_alternative_taken_by_two_at_once_is_had_by_one,
);

/// Adds so many resources of the type `kind` to the lab.
pub async fn stock(lab: &Lab, kind: &str, count: usize) {
    let new = berth_app::inventory::NewType {
        name: name(kind),
        title: kind.parse().expect("text"),
        colour: "#1f77b4".parse().expect("a colour"),
        form: Default::default(),
        needs_approval: false,
    };
    let made = lab.app.create_type(&lab.admin, &site(), new).await;
    made.expect("a type");
    for number in 1..=count {
        let resource = format!("{kind}-{number:02}");
        lab.add(&resource, kind, None, None).await;
    }
}

pub fn wish(lab: &Lab, what: &str, from: i64, to: i64) -> Wish {
    let what: Selection = what.parse().expect("a selection");
    let window = lab.span(from, to);
    let variant = Variant {
        count: what.count,
        length: window.duration(),
    };
    Wish::new(what, vec![variant], window).expect("a wish")
}

pub fn any(wish: Wish) -> NewAny {
    NewAny {
        wish,
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
    }
}

pub async fn take(lab: &Lab, who: &Caller, new: NewAny) -> Result<Reservation, Error> {
    let made = lab.app.book_any(who, &site(), &new).await?;
    Ok(made.value.reservation)
}

fn resources(of: &Reservation) -> BTreeSet<ResourceId> {
    of.items.iter().map(|item| item.resource).collect()
}

async fn any_of_a_kind_is_found_until_there_are_no_more(lab: Lab) {
    stock(&lab, "node", 4).await;
    let first = take(&lab, &lab.ada, any(wish(&lab, "2 x node", 24, 26))).await;
    let first = first.expect("two of four");
    assert_eq!(first.items.len(), 2);
    assert_eq!(first.state, State::Confirmed);
    assert!(first.movable_until().is_some());
    let second = take(&lab, &lab.bob, any(wish(&lab, "2 x node", 25, 27))).await;
    let second = second.expect("the other two");
    assert!(resources(&first).is_disjoint(&resources(&second)));
    let third = take(&lab, &lab.bob, any(wish(&lab, "1 x node", 25, 26))).await;
    let Err(Error::NoRoom { alternatives, .. }) = third else {
        panic!("there is no room: {third:?}");
    };
    assert!(
        alternatives
            .iter()
            .any(|one| one.kind == AlternativeKind::Time),
        "{alternatives:?}"
    );
    // What nothing here is called was perhaps misspelt.
    let none = take(&lab, &lab.bob, any(wish(&lab, "1 x H100", 25, 26))).await;
    assert!(matches!(none, Err(Error::Invalid(_))), "{none:?}");
}

async fn whoever_asked_for_any_makes_room(lab: Lab) {
    stock(&lab, "node", 2).await;
    let flexible = take(&lab, &lab.ada, any(wish(&lab, "1 x node", 24, 26))).await;
    let flexible = flexible.expect("one of two");
    let other = the_other(&lab, &flexible).await;
    // The other one is free until 26 and taken by name then, so that nobody has four hours in one piece.
    lab.book(&lab.bob, &[other], 26, 28).await;
    let long = take(&lab, &lab.bob, any(wish(&lab, "1 x node", 24, 28))).await;
    let long = long.expect("there is room once the first one moves");
    let moved = lab.read(flexible.id).await;
    assert_eq!(resources(&long), resources(&flexible));
    assert_ne!(resources(&moved), resources(&flexible));
    assert_eq!((moved.span, moved.state), (flexible.span, flexible.state));
    assert_eq!(moved.items.len(), flexible.items.len());
    assert_eq!(moved.owner, flexible.owner);
    let at = site();
    let history = lab.app.reservation_history(&lab.ada, &at, flexible.id);
    let (history, _) = history.await.expect("its owner reads it");
    let last = history.last().expect("a line").reason.clone();
    assert!(last.is_some_and(|why| why.as_str().contains("moved")));
}

/// Of the two nodes, the one that this booking does not have.
async fn the_other(lab: &Lab, of: &Reservation) -> &'static str {
    let node = Reference::Name(name("node-01"));
    let first = lab.app.get_resource(&lab.ada, &site(), &node).await;
    let (_, first, _) = first.expect("it is there");
    if resources(of).contains(&first.resource.id) {
        "node-02"
    } else {
        "node-01"
    }
}

async fn what_is_pinned_or_frozen_stays(lab: Lab) {
    stock(&lab, "node", 2).await;
    let mut pinned = any(wish(&lab, "1 x node", 24, 26));
    pinned.pinned = true;
    let stays = take(&lab, &lab.ada, pinned).await.expect("one of two");
    assert_eq!(stays.movable_until(), None);
    let other = the_other(&lab, &stays).await;
    lab.book(&lab.bob, &[other], 26, 28).await;
    let refused = take(&lab, &lab.bob, any(wish(&lab, "1 x node", 24, 28))).await;
    assert!(matches!(refused, Err(Error::NoRoom { .. })));
    assert_eq!(resources(&lab.read(stays.id).await), resources(&stays));

    // The same with one that could have been moved until a little while ago.
    let frozen = take(&lab, &lab.ada, any(wish(&lab, "1 x node", 48, 50))).await;
    let frozen = frozen.expect("one of two");
    let until = frozen.movable_until().expect("not pinned");
    let other = the_other(&lab, &frozen).await;
    lab.book(&lab.bob, &[other], 50, 52).await;
    lab.wait_until_moment(until).await;
    let refused = take(&lab, &lab.bob, any(wish(&lab, "1 x node", 48, 52))).await;
    assert!(matches!(refused, Err(Error::NoRoom { .. })));
    assert_eq!(resources(&lab.read(frozen.id).await), resources(&frozen));
}

async fn what_was_refused_comes_with_alternatives_that_can_be_held(lab: Lab) {
    stock(&lab, "node", 2).await;
    lab.book(&lab.ada, &["node-01"], 24, 26).await;
    let mut wish = lab.wish(&["node-01"], 24, 26);
    wish.hold = true;
    let refused = lab.app.book(&lab.bob, &site(), &wish).await;
    let Err(Error::Conflict {
        conflicts,
        alternatives,
        ..
    }) = refused
    else {
        panic!("it is taken: {refused:?}");
    };
    assert_eq!(conflicts.len(), 1);
    let nearest = &alternatives[0];
    assert_eq!(nearest.kind, AlternativeKind::Elsewhere, "{alternatives:?}");
    let held: usize = alternatives.iter().map(|one| one.holds.len()).sum();
    assert_eq!(held, 3, "as many as a person may hold: {alternatives:?}");
    // It is kept free for whoever was told, and taking it cannot fail.
    let others = lab.try_book(&lab.ada, &["node-02"], 24, 26).await;
    assert!(matches!(others, Err(Error::Conflict { .. })));
    let taken = lab
        .app
        .take_reservation(&lab.bob, &site(), nearest.holds[0], None)
        .await
        .expect("it was held");
    assert_eq!(taken.reservation.state, State::Confirmed);
    assert_eq!(taken.reservation.span, wish.span);
}

async fn the_earliest_times_stand_side_by_side(lab: Lab) {
    stock(&lab, "node", 2).await;
    lab.book(&lab.ada, &["node-01"], 0, 10).await;
    let variants = [(2, 2), (1, 4)].map(|(count, hours)| Variant {
        count: count.try_into().expect("a count"),
        length: SignedDuration::from_hours(hours),
    });
    let what: Selection = "2 x node".parse().expect("a selection");
    let wish = Wish::new(what, variants.to_vec(), lab.span(0, 200)).expect("a wish");
    let answer = lab
        .app
        .when(&lab.bob, &[], &wish, 4)
        .await
        .expect("an answer");
    assert_eq!((answer.sites, answer.candidates), (1, 2));
    let found: Vec<_> = answer
        .choices
        .iter()
        .map(|choice| (choice.variant.count.get(), choice.span))
        .collect();
    assert_eq!(found[0], (1, lab.span(0, 4)), "one of them at once");
    assert!(
        found.contains(&(2, lab.span(10, 12))),
        "both from ten: {found:?}"
    );
    // Somebody outside has no site to search.
    let outside = lab.app.when(&lab.outsider, &[], &wish, 4).await;
    assert_eq!(outside.expect("an answer").sites, 0);
    let named = lab.app.when(&lab.outsider, &[site()], &wish, 4).await;
    assert!(matches!(named, Err(Error::NotFound(_))));
    // Booked with a deadline instead of a time, it is what was said.
    let booked = take(&lab, &lab.bob, any(wish))
        .await
        .expect("there is room");
    assert_eq!(booked.span, lab.span(0, 4));
}

async fn the_board_follows_what_happens(lab: Lab) {
    stock(&lab, "node", 1).await;
    let free = async |from: i64, to: i64| {
        let wish = wish(&lab, "1 x node", from, to);
        let answer = lab.app.when(&lab.bob, &[], &wish, 1).await;
        !answer.expect("an answer").choices.is_empty()
    };
    assert!(free(24, 26).await);
    let booked = lab.book(&lab.ada, &["node-01"], 24, 26).await;
    assert!(
        !free(24, 26).await,
        "a booking is seen before it is numbered"
    );
    lab.wait_until(1).await;
    assert!(!free(25, 27).await);
    lab.app
        .cancel_reservation(&lab.ada, &site(), booked.id, None, None)
        .await
        .expect("it is ada's");
    assert!(free(24, 26).await, "and so is its end");
    let set = async |status| {
        let node = Reference::Name(name("node-01"));
        lab.app
            .set_status(&lab.admin, &site(), &node, None, status, None)
            .await
            .expect("an admin may");
    };
    set(Status::Unavailable).await;
    assert!(!free(24, 26).await);
    set(Status::Active).await;
    assert!(free(24, 26).await);
    lab.add("node-02", "node", None, None).await;
    let two = wish(&lab, "2 x node", 24, 26);
    let answer = lab
        .app
        .when(&lab.bob, &[], &two, 1)
        .await
        .expect("an answer");
    assert_eq!(answer.choices.len(), 1, "a new resource is found");
}

async fn many_at_once_get_no_more_than_there_is(lab: Lab) {
    stock(&lab, "node", 4).await;
    let asking = (0..12).map(|number| {
        let app = lab.app.clone();
        let who = if number % 2 == 0 { &lab.ada } else { &lab.bob }.clone();
        let new = any(wish(&lab, "1 x node", 24, 26));
        tokio::spawn(async move { app.book_any(&who, &site(), &new).await })
    });
    let asking: Vec<_> = asking.collect();
    let mut taken = Vec::new();
    for one in asking {
        match one.await.expect("nobody panics") {
            Ok(made) => taken.extend(resources(&made.value.reservation)),
            Err(Error::NoRoom { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let different: BTreeSet<_> = taken.iter().copied().collect();
    assert_eq!((taken.len(), different.len()), (4, 4));
}

async fn a_request_that_comes_twice_books_once(lab: Lab) {
    stock(&lab, "node", 1).await;
    let who = Caller {
        once: Some(Once::create("a key".into(), [7; 32])),
        ..lab.ada.clone()
    };
    let new = any(wish(&lab, "1 x node", 24, 26));
    let first = lab.app.book_any(&who, &site(), &new).await.expect("free");
    let second = lab
        .app
        .book_any(&who, &site(), &new)
        .await
        .expect("the same");
    assert!(!first.replayed && second.replayed);
    assert_eq!(first.value.reservation.id, second.value.reservation.id);
}

fn waiting_for(
    lab: &Lab,
    resource: &str,
    wait: WaitFor,
) -> berth_app::reservations::NewReservation {
    let mut wish = lab.wish(&[resource], 24, 26);
    wish.wait = Some(wait);
    wish
}

async fn whoever_waits_is_served_in_turn(lab: Lab) {
    stock(&lab, "node", 1).await;
    let first = lab.book(&lab.ada, &["node-01"], 24, 26).await;
    let book = async |who: &Caller, wish| {
        let made = lab.app.book(who, &site(), &wish).await;
        made.expect("it waits").value.reservation
    };
    let bob = book(&lab.bob, waiting_for(&lab, "node-01", WaitFor::Booking)).await;
    lab.set_clock(lab.at(0) + SignedDuration::from_secs(1));
    let admin = book(&lab.admin, waiting_for(&lab, "node-01", WaitFor::Booking)).await;
    assert_eq!((bob.state, bob.items.len()), (State::Waiting, 0));
    lab.wait_until(1).await;
    assert_eq!(lab.read(bob.id).await.state, State::Waiting);
    let cancel = async |who: &Caller, id| {
        let at = site();
        let gone = lab.app.cancel_reservation(who, &at, id, None, None);
        gone.await.expect("it is theirs");
    };
    cancel(&lab.ada, first.id).await;
    lab.wait_until(2).await;
    let served = lab.read(bob.id).await;
    assert_eq!((served.state, served.items.len()), (State::Confirmed, 1));
    assert_eq!(served.span, first.span);
    assert_eq!(
        lab.read(admin.id).await.state,
        State::Waiting,
        "one at a time"
    );
    // Whoever no longer wants it lets the next one have it; whoever is not served in time is told.
    cancel(&lab.admin, admin.id).await;
    let late = book(&lab.ada, waiting_for(&lab, "node-01", WaitFor::Booking)).await;
    lab.wait_until(25).await;
    let late = lab.read(late.id).await;
    assert_eq!(late.state, State::Cancelled);
    assert!(
        late.state_reason
            .is_some_and(|why| why.as_str().contains("no room"))
    );
}

async fn an_offer_is_taken_or_goes_on_to_the_next(lab: Lab) {
    stock(&lab, "node", 1).await;
    let first = lab.book(&lab.ada, &["node-01"], 24, 26).await;
    let mut any_node = any(wish(&lab, "1 x node", 24, 26));
    any_node.wait = Some(WaitFor::Offer);
    let bob = take(&lab, &lab.bob, any_node.clone())
        .await
        .expect("it waits");
    lab.set_clock(lab.at(0) + SignedDuration::from_secs(1));
    let admin = take(&lab, &lab.admin, any_node).await.expect("it waits");
    assert_eq!(bob.state, State::Waiting);
    lab.app
        .cancel_reservation(&lab.ada, &site(), first.id, None, None)
        .await
        .expect("it is ada's");
    lab.wait_until(1).await;
    let offered = lab.read(bob.id).await;
    assert_eq!(offered.state, State::Held);
    // Bob does not look, so that it is the next one's after a while.
    lab.wait_until(2).await;
    assert_eq!(lab.read(bob.id).await.state, State::Cancelled);
    let offered = lab.read(admin.id).await;
    assert_eq!(offered.state, State::Held);
    let taken = lab
        .app
        .take_reservation(&lab.admin, &site(), admin.id, None)
        .await
        .expect("it is offered");
    assert_eq!(taken.reservation.state, State::Confirmed);
    // What there is none of is not waited for.
    let mut never = any(wish(&lab, "2 x node", 30, 31));
    never.wait = Some(WaitFor::Booking);
    let refused = take(&lab, &lab.bob, never).await;
    assert!(matches!(refused, Err(Error::NoRoom { .. })));
}

async fn what_stands_on_a_failed_resource_moves_or_its_owner_is_told(lab: Lab) {
    stock(&lab, "node", 3).await;
    let movable = take(&lab, &lab.ada, any(wish(&lab, "1 x node", 24, 26))).await;
    let movable = movable.expect("one of three");
    let mut pinned = any(wish(&lab, "1 x node", 24, 26));
    pinned.pinned = true;
    let pinned = take(&lab, &lab.bob, pinned).await.expect("one of three");
    let set = async |of: &Reservation, status| {
        let node = Reference::Id(*resources(of).first().expect("a resource"));
        let at = site();
        let set = lab
            .app
            .set_status(&lab.admin, &at, &node, None, status, None);
        set.await.expect("an admin may");
    };
    set(&movable, Status::Maintenance).await;
    lab.wait_until(1).await;
    let stays = lab.read(movable.id).await;
    assert_eq!(
        resources(&stays),
        resources(&movable),
        "maintenance moves nobody"
    );

    set(&movable, Status::Unavailable).await;
    lab.wait_until(2).await;
    let moved = lab.read(movable.id).await;
    assert!(resources(&moved).is_disjoint(&resources(&movable)));
    assert!(resources(&moved).is_disjoint(&resources(&pinned)));
    assert_eq!((moved.span, moved.state), (movable.span, movable.state));

    // The second failure leaves no other place; neither booking is given up, and both owners hear of it.
    set(&pinned, Status::Unavailable).await;
    lab.wait_until(3).await;
    assert_eq!(resources(&lab.read(pinned.id).await), resources(&pinned));
    assert_eq!(fates(&lab, &lab.bob).await, ["cannot_be_held"]);
    set(&moved, Status::Unavailable).await;
    lab.wait_until(4).await;
    assert_eq!(resources(&lab.read(moved.id).await), resources(&moved));
    assert_eq!(fates(&lab, &lab.ada).await, ["cannot_be_held"]);
    // When one is back there is a place to offer, and a place to go.
    lab.add("node-04", "node", None, None).await;
    lab.wait_until(5).await;
    let back = lab.read(moved.id).await;
    assert!(resources(&back).is_disjoint(&resources(&moved)));
    lab.add("node-05", "node", None, None).await;
    lab.wait_until(6).await;
    assert_eq!(fates(&lab, &lab.bob).await, ["cannot_be_held", "offered"]);
}

/// What a person was told of their troubles, in order.
pub async fn fates(lab: &Lab, who: &Caller) -> Vec<String> {
    let page = lab.app.events_after(who, None, 0, 1000).await;
    let events = page.expect("one's own events").events;
    let troubles = events
        .iter()
        .filter(|one| one.event.kind == EventKind::ReservationTroubled);
    let fate = |one: &std::sync::Arc<berth_model::event::NumberedEvent>| {
        one.event.data["fate"].as_str().map(str::to_owned)
    };
    troubles.filter_map(fate).collect()
}

async fn answers_keep_the_policies(lab: Lab) {
    stock(&lab, "node", 2).await;
    // The lab opens at 9:00 in Torino, which is its hour zero, and closes at 18:00, which is its hour nine.
    let days: Vec<_> = ["mon", "tue", "wed", "thu", "fri"]
        .into_iter()
        .map(|day| (day.to_owned(), serde_json::json!(["09:00-18:00"])))
        .collect();
    let policy = serde_json::json!({
        "opening_hours": days.into_iter().collect::<serde_json::Map<_, _>>(),
        "start_step": "30m", "buffer_after": "1h",
        "approval": {"longer_than": "2h", "time_out": {"after": "1h", "outcome": "reject"}},
    });
    let policy = serde_json::from_value(policy).expect("a policy");
    let at = PolicyAt::Site(site(), Default::default());
    lab.app
        .set_policy(&lab.admin, &at, Some(&policy), None, None, Mode::Apply)
        .await
        .expect("an admin may");
    let when = async |what: &str, hours: i64, from: i64| {
        let what: Selection = what.parse().expect("a selection");
        let variant = Variant {
            count: what.count,
            length: SignedDuration::from_hours(hours),
        };
        let wish = Wish::new(what, vec![variant], lab.span(from, 200)).expect("a wish");
        let answer = lab
            .app
            .when(&lab.bob, &[], &wish, 1)
            .await
            .expect("an answer");
        let choice = answer.choices.into_iter().next().expect("a choice");
        (choice.span, choice.decide_by)
    };
    lab.book(&lab.ada, &["node-01"], 0, 3).await;
    lab.book(&lab.ada, &["node-02"], 0, 5).await;
    // Cleaned up until four, and only two hours before closing are too short for six.
    assert_eq!(when("1 x node", 2, 0).await, (lab.span(4, 6), None));
    let (span, decide_by) = when("2 x node", 4, 0).await;
    assert_eq!(span, lab.span(24, 28), "both of them tomorrow");
    assert_eq!(
        decide_by,
        Some(lab.at(1)),
        "and somebody is asked until one"
    );
    // What is offered instead could be booked.
    let refused = lab
        .app
        .book(&lab.bob, &site(), &lab.wish(&["node-01"], 1, 3))
        .await;
    let Err(Error::Conflict { alternatives, .. }) = refused else {
        panic!("it is taken: {refused:?}");
    };
    let instead = &alternatives[0];
    assert_eq!(instead.kind, AlternativeKind::Time, "{alternatives:?}");
    assert_eq!(instead.parts[0].span, lab.span(4, 6));
    let booked = take(&lab, &lab.bob, any(wish(&lab, "1 x node", 4, 6))).await;
    assert_eq!(booked.expect("as was said").span, lab.span(4, 6));
}

async fn a_failed_rack_takes_nothing_from_those_in_it(lab: Lab) {
    stock(&lab, "node", 0).await;
    for rack in ["rack-x", "rack-y"] {
        lab.add(rack, "server", None, None).await;
        let node = format!("{rack}.node");
        lab.add(&node, "node", Some(rack), None).await;
    }
    let booked = take(&lab, &lab.ada, any(wish(&lab, "1 x node", 24, 26))).await;
    let booked = booked.expect("one of two");
    let fail = async |of: &Reservation| {
        let node = *resources(of).first().expect("a resource");
        let at = site();
        let found = lab
            .app
            .get_resource(&lab.admin, &at, &Reference::Id(node))
            .await;
        let rack = found
            .expect("it is there")
            .1
            .resource
            .parent
            .expect("a rack");
        let rack = Reference::Id(rack);
        let set = lab
            .app
            .set_status(&lab.admin, &at, &rack, None, Status::Unavailable, None);
        set.await.expect("an admin may");
    };
    fail(&booked).await;
    lab.wait_until(1).await;
    let moved = lab.read(booked.id).await;
    assert!(resources(&moved).is_disjoint(&resources(&booked)));
    // With both racks gone it keeps what it has, since that may come back.
    fail(&moved).await;
    lab.wait_until(2).await;
    let stays = lab.read(booked.id).await;
    assert_eq!(resources(&stays), resources(&moved));
    assert_eq!(fates(&lab, &lab.ada).await, ["cannot_be_held"]);
}

async fn maintenance_moves_whom_it_may_and_asks_the_others(lab: Lab) {
    use berth_app::maintenance::{NewWindow, WindowChoice};
    stock(&lab, "node", 4).await;
    let movable = take(&lab, &lab.ada, any(wish(&lab, "1 x node", 24, 26))).await;
    let movable = movable.expect("one of four");
    let mut pinned = any(wish(&lab, "1 x node", 24, 26));
    pinned.pinned = true;
    let pinned = take(&lab, &lab.bob, pinned).await.expect("one of four");
    let on = |of: &Reservation| Reference::Id(*resources(of).first().expect("a resource"));
    let mut window = NewWindow {
        title: "new firmware".parse().expect("text"),
        span: lab.span(23, 30),
        resources: vec![on(&movable), on(&pinned)],
        decisions: Default::default(),
    };
    let told = lab.app.preview_window(&lab.admin, &site(), &window).await;
    let told = told.expect("told");
    assert!(!told.accepted, "nothing is decided");
    let could: Vec<bool> = told
        .in_the_way
        .iter()
        .map(|met| met.instead.as_ref().expect("two are free").owner_decides)
        .collect();
    assert_eq!(could.iter().filter(|asks| **asks).count(), 1, "{could:?}");
    let places: BTreeSet<ResourceId> = told
        .in_the_way
        .iter()
        .flat_map(|met| met.instead.iter().flat_map(|to| to.resources.clone()))
        .collect();
    assert_eq!(places.len(), 2, "no place is shown to two");
    assert!(places.is_disjoint(&resources(&movable)) && places.is_disjoint(&resources(&pinned)));

    window.decisions = [movable.id, pinned.id]
        .map(|id| (id, WindowChoice::Move))
        .into();
    let laid = lab.app.plan_window(&lab.admin, &site(), &window).await;
    let laid = laid.expect("laid").value;
    let moved = lab.read(movable.id).await;
    assert!(resources(&moved).is_subset(&places));
    assert_eq!((moved.span, moved.state), (movable.span, movable.state));
    assert_eq!(resources(&lab.read(pinned.id).await), resources(&pinned));
    lab.wait_until(1).await;
    assert_eq!(fates(&lab, &lab.bob).await, ["asked_to_move"]);
    let spans: Vec<_> = laid.parts.iter().map(|(_, span)| *span).collect();
    let expected = [lab.span(23, 24), lab.span(23, 30), lab.span(26, 30)];
    assert_eq!(
        spans, expected,
        "around what is pinned, over what has moved"
    );

    // With nowhere to go it is to be decided otherwise, and nothing has happened.
    let full = take(&lab, &lab.bob, any(wish(&lab, "1 x node", 24, 26))).await;
    full.expect("the last one");
    let mut second = window.clone();
    second.resources = vec![on(&moved)];
    second.decisions = [(moved.id, WindowChoice::Move)].into();
    let refused = lab.app.plan_window(&lab.admin, &site(), &second).await;
    let Err(Error::InTheWay { undecided, .. }) = refused else {
        panic!("there is no other place: {refused:?}");
    };
    assert_eq!(undecided, [moved.id]);
    assert_eq!(resources(&lab.read(moved.id).await), resources(&moved));
}

async fn an_alternative_taken_by_two_at_once_is_had_by_one(lab: Lab) {
    stock(&lab, "node", 2).await;
    lab.book(&lab.admin, &["node-01"], 24, 26).await;
    let asked = |hold| {
        let mut asked = lab.wish(&["node-01"], 24, 26);
        asked.hold = hold;
        asked
    };
    let refused = async |who: &Caller, hold| {
        let refused = lab.app.book(who, &site(), &asked(hold)).await;
        let Err(Error::Conflict { alternatives, .. }) = refused else {
            panic!("it is taken: {refused:?}");
        };
        alternatives
    };
    // Both are told the same, and both want it.
    let (for_ada, for_bob) = (
        refused(&lab.ada, false).await,
        refused(&lab.bob, false).await,
    );
    assert_eq!(for_ada[0].parts, for_bob[0].parts);
    let taking = [&lab.ada, &lab.bob].map(|who| {
        let (app, who) = (lab.app.clone(), who.clone());
        let mut new = asked(false);
        let part = &for_ada[0].parts[0];
        new.span = part.span;
        for (item, resource) in new.items.iter_mut().zip(&part.resources) {
            item.resource = Reference::Id(*resource);
        }
        tokio::spawn(async move { app.book(&who, &site(), &new).await })
    });
    let mut had = 0;
    for one in taking {
        match one.await.expect("nobody panics") {
            Ok(_) => had += 1,
            Err(Error::Conflict { alternatives, .. }) => {
                assert!(
                    !alternatives.is_empty(),
                    "the second one is told what is left"
                );
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(had, 1);

    // What is held for each cannot be lost to the other, however close they come.
    let (for_ada, for_bob) = tokio::join!(refused(&lab.ada, true), refused(&lab.bob, true));
    let first = |of: &[berth_app::desk::Alternative]| {
        let held = of.iter().flat_map(|one| one.holds.first());
        *held.clone().next().expect("something was held")
    };
    let (ada, bob) = (first(&for_ada), first(&for_bob));
    let at = site();
    let (ada, bob) = tokio::join!(
        lab.app.take_reservation(&lab.ada, &at, ada, None),
        lab.app.take_reservation(&lab.bob, &at, bob, None),
    );
    let (ada, bob) = (ada.expect("hers"), bob.expect("his"));
    assert_eq!(ada.reservation.state, State::Confirmed);
    assert_eq!(bob.reservation.state, State::Confirmed);
    let (ada, bob) = (&ada.reservation, &bob.reservation);
    let apart = resources(ada).is_disjoint(&resources(bob)) || !ada.span.overlaps(bob.span);
    assert!(apart, "{ada:?} {bob:?}");
}
