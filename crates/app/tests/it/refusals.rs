//! Searches and refusals at the booking desk, on both databases: the policies of the types that are taken, amounts, the
//! present moment, outages and extensions.

use std::sync::Arc;

use crate::any::{any, fates, stock, take, wish};
use crate::support::policy::{must_set, of_type};
use crate::support::told::set_status;
use crate::support::{Lab, name, on_both, site};
use berth_app::Error;
use berth_app::calendar::FreeRequest;
use berth_app::desk::{AlternativeKind, WaitFor};
use berth_app::inventory::ResourceFilter;
use berth_app::reservations::{Extension, ReservationChange};
use berth_drivers::simulated::{Simulated, World};
use berth_model::attribute::AttributeValue;
use berth_model::policy::Rule;
use berth_model::{Reference, Status};
use jiff::SignedDuration;
use serde_json::json;

on_both!(
    policies_bind_the_types_that_are_taken_and_no_others,
    a_rule_that_permits_no_time_is_named_and_not_waited_for,
    a_wish_from_now_on_is_for_now,
    one_seat_of_many_is_found_and_named_with_what_is_left,
    owners_are_notified_of_an_outage_once_whatever_restarts,
    a_refused_extension_says_how_far_it_can_go,
);

/// Two types of which a wish for `model = A100` may take either.
async fn stock_two_types(lab: &Lab) {
    for kind in ["small", "large"] {
        stock(lab, kind, 0).await;
        let new = berth_app::inventory::NewResource {
            name: name(&format!("{kind}-01")),
            kind: Reference::Name(name(kind)),
            parent: None,
            title: None,
            attributes: [(name("model"), AttributeValue::Text("A100".into()))].into(),
            facts: Default::default(),
            capacity: None,
        };
        let made = lab.app.create_resource(&lab.admin, &site(), new).await;
        made.expect("a resource");
    }
}

async fn policies_bind_the_types_that_are_taken_and_no_others(lab: Lab) {
    stock_two_types(&lab).await;
    must_set(&lab, &of_type("small"), json!({ "length_max": "1h" })).await;
    must_set(&lab, &of_type("large"), json!({ "buffer_after": "1h" })).await;
    let found = lab
        .app
        .when(&lab.ada, &[site()], &wish(&lab, "A100", 24, 26), 5)
        .await;
    assert_eq!(found.expect("an answer").choices.len(), 1);
    let booked = take(&lab, &lab.ada, any(wish(&lab, "A100", 24, 26))).await;
    let booked = booked.expect("the large one may be had for two hours");
    assert_eq!(
        booked.terms.clean_up.duration(),
        SignedDuration::from_hours(1)
    );
    // The small one for an hour, without the other's buffer.
    let booked = take(&lab, &lab.bob, any(wish(&lab, "A100", 24, 25))).await;
    assert!(booked.expect("the small one").terms.clean_up.is_zero());
}

async fn a_rule_that_permits_no_time_is_named_and_not_waited_for(lab: Lab) {
    stock(&lab, "node", 2).await;
    must_set(&lab, &of_type("node"), json!({ "length_max": "1h" })).await;
    for wait in [None, Some(WaitFor::Booking)] {
        let mut new = any(wish(&lab, "node", 24, 26));
        new.wait = wait;
        let refused = take(&lab, &lab.ada, new).await;
        assert_eq!(
            refused.map(|_| ()).map_err(|error| match error {
                Error::Policy(refusal) => refusal.breaches[0].rule,
                other => panic!("{other:?}"),
            }),
            Err(Rule::LengthMax)
        );
    }
}

async fn a_wish_from_now_on_is_for_now(lab: Lab) {
    stock(&lab, "node", 1).await;
    lab.set_clock(lab.at(1) + SignedDuration::from_secs(17));
    let booked = take(&lab, &lab.ada, any(wish(&lab, "node", 1, 3))).await;
    assert_eq!(booked.expect("it is free").span, lab.span(1, 3));
}

async fn one_seat_of_many_is_found_and_named_with_what_is_left(lab: Lab) {
    stock(&lab, "licence", 0).await;
    lab.add("matlab", "licence", None, Some(12)).await;
    lab.book(&lab.ada, &["matlab:1"], 24, 30).await;
    let request = FreeRequest {
        filter: ResourceFilter {
            kind: Some(Reference::Name(name("licence"))),
            ..ResourceFilter::default()
        },
        window: lab.span(24, 36),
        at_least: SignedDuration::from_hours(8),
    };
    let free = lab.app.free(&lab.bob, &site(), &request, "", 10).await;
    let (_, free, _) = free.expect("an answer");
    let seats = |amount| berth_model::Amount::new(amount).ok();
    assert_eq!(
        free[0].spans,
        [(lab.span(24, 30), seats(11)), (lab.span(30, 36), seats(12))]
    );
    assert!(free[0].free_at_start && free[0].until.is_none());
    let found = lab
        .app
        .when(&lab.bob, &[site()], &wish(&lab, "licence", 24, 26), 1)
        .await;
    assert_eq!(found.expect("an answer").choices[0].span, lab.span(24, 26));
    let booked = take(&lab, &lab.bob, any(wish(&lab, "licence", 24, 26))).await;
    let booked = booked.expect("there are seats");
    assert_eq!(booked.items[0].take.amount(), seats(1));
    lab.book(&lab.ada, &["matlab:10"], 24, 26).await;
    let refused = take(&lab, &lab.bob, any(wish(&lab, "licence", 24, 26))).await;
    assert!(matches!(refused, Err(Error::NoRoom { .. })), "{refused:?}");
}

async fn owners_are_notified_of_an_outage_once_whatever_restarts(lab: Lab) {
    stock(&lab, "node", 1).await;
    let mut pinned = any(wish(&lab, "1 x node", 24, 26));
    pinned.pinned = true;
    take(&lab, &lab.ada, pinned).await.expect("it is free");
    set_status(&lab, "node-01", Status::Unavailable).await;
    lab.wait_until(1).await;
    assert_eq!(fates(&lab, &lab.ada).await, ["cannot_be_held"]);
    let world = Arc::new(Simulated::new(World::calm(1)));
    let lab = lab.succeeded_by(world).await;
    lab.wait_until(2).await;
    assert_eq!(fates(&lab, &lab.ada).await, ["cannot_be_held"]);
    // Another outage is news.
    set_status(&lab, "node-01", Status::Active).await;
    lab.wait_until(3).await;
    set_status(&lab, "node-01", Status::Unavailable).await;
    lab.wait_until(4).await;
    assert_eq!(
        fates(&lab, &lab.ada).await,
        ["cannot_be_held", "cannot_be_held"]
    );
}

async fn a_refused_extension_says_how_far_it_can_go(lab: Lab) {
    stock(&lab, "node", 1).await;
    let booked = lab.book(&lab.ada, &["node-01"], 24, 26).await;
    lab.book(&lab.bob, &["node-01"], 29, 30).await;
    let until = Extension::Until(lab.at(32));
    let refused = lab
        .app
        .extend_reservation(&lab.ada, &site(), booked.id, until)
        .await;
    let Err(Error::Conflict { alternatives, .. }) = refused else {
        panic!("it is taken: {refused:?}");
    };
    let shorter = &alternatives[0];
    assert_eq!(shorter.kind, AlternativeKind::Shorter);
    assert_eq!(shorter.parts[0].span, lab.span(24, 29));
    let until = Extension::Until(lab.at(29));
    let extended = lab
        .app
        .extend_reservation(&lab.ada, &site(), booked.id, until)
        .await;
    assert_eq!(
        extended.expect("as it said").reservation.span,
        lab.span(24, 29)
    );
    // Moved, its own time is not in its way.
    let later = ReservationChange {
        start: Some(lab.at(26)),
        end: Some(lab.at(31)),
        ..ReservationChange::default()
    };
    let refused = lab
        .app
        .change_reservation(&lab.ada, &site(), booked.id, None, &later)
        .await;
    let Err(Error::Conflict { alternatives, .. }) = refused else {
        panic!("it is taken: {refused:?}");
    };
    let times = alternatives
        .iter()
        .filter(|one| one.kind == AlternativeKind::Time);
    let times: Vec<_> = times.map(|one| one.parts[0].span).collect();
    assert!(times.contains(&lab.span(24, 29)), "{times:?}");
}
