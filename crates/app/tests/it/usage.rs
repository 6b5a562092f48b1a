//! How much of a site was used, on both databases: from real claims, bookings and refusals to figures.

use std::collections::BTreeMap;

use crate::support::policy::{book_for, must_set, of_site, project};
use crate::support::{Lab, name, on_both, site};
use berth_app::maintenance::NewWindow;
use berth_app::reservations::Extension;
use berth_app::usage::{Outcomes, Seconds, SiteUsage, UsageRequest};
use berth_app::{Caller, Error};
use berth_engine::usage::Step;
use berth_model::{Reference, Status};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

on_both!(
    use_is_worked_out_from_what_was_taken,
    what_is_out_of_service_is_not_to_be_had,
    a_resource_counts_from_its_making_to_its_removal,
    outcomes_and_lead_times_are_those_of_bookings,
    refusals_are_counted_by_reason_and_day,
    the_question_has_bounds,
);

fn request(lab: &Lab, from: i64, to: i64) -> UsageRequest {
    UsageRequest {
        from: Some(lab.at(from)),
        to: Some(lab.at(to)),
        step: Step::Day,
        kind: None,
        mine: false,
    }
}

async fn usage(lab: &Lab, request: &UsageRequest) -> SiteUsage {
    let found = lab.app.usage(&lab.admin, &site(), request).await;
    found.expect("the admin sees it")
}

/// Hours available and used.
fn hours(available: f64, used: f64) -> Seconds {
    let seconds = |hours: f64| (hours * 3600.0) as u64;
    Seconds {
        available: seconds(available),
        used: seconds(used),
    }
}

fn kind(found: &SiteUsage, wanted: &str) -> Seconds {
    let is_wanted = |id| found.directory.types[id].name == name(wanted);
    let found = found.kinds.iter().find(|(id, _)| is_wanted(id));
    found.expect("a type").1.total
}

async fn use_is_worked_out_from_what_was_taken(lab: Lab) {
    project(&lab, "vision", &[&lab.ada]).await;
    // Three leaves for two hours, a quarter of one for four, and one for two.
    lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    lab.book(&lab.bob, &["gpu-01.cpu:16"], 4, 8).await;
    book_for(&lab, &lab.ada, "vision", "gpu-02", (4, 6))
        .await
        .expect("it is free");
    // What was given up before it began was never used.
    let given_up = lab.book(&lab.bob, &["rack-b"], 5, 6).await;
    lab.app
        .cancel_reservation(&lab.bob, &site(), given_up.id, None, None)
        .await
        .expect("it is his");
    lab.wait_until(24).await;

    let all_day = request(&lab, 0, 24);
    let found = usage(&lab, &all_day).await;
    assert_eq!(found.all.resources, 6);
    assert_eq!(found.all.total, hours(6.0 * 24.0, 9.0));
    // It is nine in the morning in Torino when the lab opens.
    let days: Vec<i64> = found
        .buckets
        .iter()
        .map(|day| day.duration().as_hours())
        .collect();
    assert_eq!(days, [15, 9]);
    assert_eq!(
        found.all.buckets,
        [hours(6.0 * 15.0, 9.0), hours(6.0 * 9.0, 0.0)]
    );
    // A server with three parts, one of them by a quarter, in a rack of two.
    let servers = 2.0 * 4.5 + 4.0 * 0.25 * (1.0 + 1.0 / 3.0 + 1.0 / 6.0) + 2.0 * 1.5;
    assert_eq!(kind(&found, "server"), hours(7.0 * 24.0, servers));
    assert_eq!(kind(&found, "strict"), hours(24.0, 0.0));

    let people: Vec<_> = found
        .people
        .first
        .iter()
        .map(|(id, share)| (*id, share.total_s(), share.bookings))
        .collect();
    let hour = 3600.0;
    let expected = [(lab.ada.id(), 8.0 * hour, 2), (lab.bob.id(), hour, 1)];
    assert_eq!(people, expected);
    let projects: Vec<_> = found
        .projects
        .first
        .iter()
        .map(|(id, share)| (id.is_some(), share.total_s()))
        .collect();
    assert_eq!(projects, [(false, 7.0 * hour), (true, 2.0 * hour)]);

    // From ten on Monday, by the site's clock.
    assert_eq!(found.week[10], hours(6.0, 3.0));
    assert_eq!(found.week[9], hours(6.0, 0.0));
    assert_eq!(found.week[2 * 24], hours(0.0, 0.0));

    // Of one type.
    let strict = UsageRequest {
        kind: Some(Reference::Name(name("strict"))),
        ..all_day.clone()
    };
    assert_eq!(usage(&lab, &strict).await.all.total, hours(24.0, 0.0));

    // Members see what is theirs, and nothing of others.
    let mine = UsageRequest {
        mine: true,
        ..all_day.clone()
    };
    let own = lab.app.usage(&lab.bob, &site(), &mine).await;
    let own = own.expect("his own");
    assert_eq!(own.all.total, hours(6.0 * 24.0, 1.0));
    assert_eq!((own.people.first.len(), own.outcomes.bookings), (1, 1));
    assert_eq!(own.refusals, None);
    let others = lab.app.usage(&lab.bob, &site(), &all_day).await;
    assert!(
        matches!(others, Err(Error::NotAllowed { .. })),
        "{others:?}"
    );
    for request in [&mine, &all_day] {
        let outside = lab.app.usage(&lab.outsider, &site(), request).await;
        assert!(matches!(outside, Err(Error::NotFound(_))), "{outside:?}");
    }
    let (_, sites) = lab
        .app
        .usage_of_all(&lab.root, Some(lab.at(0)), Some(lab.at(24)))
        .await
        .expect("root sees all");
    assert_eq!(sites.len(), 1);
    assert_eq!(sites[0].all.total, found.all.total);
    let refused = lab.app.usage_of_all(&lab.admin, None, None).await;
    assert!(matches!(refused, Err(Error::NotAllowed { .. })));
}

async fn what_is_out_of_service_is_not_to_be_had(lab: Lab) {
    let set = async |resource: &str, status| {
        let resource = Reference::Name(name(resource));
        lab.app
            .set_status(&lab.admin, &site(), &resource, None, status, None)
            .await
            .expect("it is set");
    };
    lab.book(&lab.ada, &["gpu-01"], 1, 5).await;
    let window = NewWindow {
        title: "dusting".parse().expect("text"),
        span: lab.span(6, 8),
        resources: vec![Reference::Name(name("rack-a"))],
        decisions: BTreeMap::new(),
    };
    lab.app
        .plan_window(&lab.admin, &site(), &window)
        .await
        .expect("nobody is in the way");
    lab.wait_until(3).await;
    // Status moves nobody, so the booking goes on, but nobody has it to use.
    set("gpu-01.gpu0", Status::Unavailable).await;
    lab.wait_until(10).await;
    set("gpu-01.gpu0", Status::Active).await;
    set("rack-b", Status::Maintenance).await;
    lab.wait_until(24).await;
    let found = usage(&lab, &request(&lab, 0, 24)).await;
    // Four leaves under the rack lose two hours, one of them seven in all, and the other rack all from ten on.
    let lost = 3.0 * 2.0 + 7.0 + 14.0;
    let used = 2.0 * 4.0 + 2.0;
    assert_eq!(found.all.total, hours(6.0 * 24.0 - lost, used));
}

async fn a_resource_counts_from_its_making_to_its_removal(lab: Lab) {
    lab.wait_until(4).await;
    lab.add("late", "strict", None, None).await;
    lab.book(&lab.ada, &["late"], 5, 6).await;
    lab.wait_until(8).await;
    let late = Reference::Name(name("late"));
    lab.app
        .remove_resource(&lab.admin, &site(), &late)
        .await
        .expect("nothing is booked on it");
    lab.wait_until(12).await;
    let found = usage(&lab, &request(&lab, 0, 12)).await;
    assert_eq!(kind(&found, "strict"), hours(12.0 + 4.0, 1.0));
    // Looked at when it was gone, it never was.
    let found = usage(&lab, &request(&lab, 9, 12)).await;
    assert_eq!(kind(&found, "strict"), hours(3.0, 0.0));
}

async fn outcomes_and_lead_times_are_those_of_bookings(lab: Lab) {
    must_set(&lab, &of_site(), json!({"check_in": "30m"})).await;
    let cancel = async |who: &Caller, id| {
        let site = site();
        let cancelled = lab.app.cancel_reservation(who, &site, id, None, None);
        cancelled.await.expect("it is theirs");
    };
    let here = lab.book(&lab.ada, &["gpu-01"], 2, 4).await;
    lab.book(&lab.ada, &["gpu-02"], 2, 4).await;
    let early = lab.book(&lab.bob, &["rack-b"], 48, 50).await;
    let late = lab.book(&lab.bob, &["rack-b"], 5, 6).await;
    cancel(&lab.bob, early.id).await;
    cancel(&lab.bob, late.id).await;
    let asked = lab.book(&lab.bob, &["vault-01"], 8, 9).await;
    let why = "no".parse().expect("text");
    lab.app
        .reject_reservation(&lab.admin, &site(), asked.id, None, why)
        .await
        .expect("she decides");
    // A hold that runs out was never a booking.
    let mut hold = lab.wish(&["rack-b"], 10, 11);
    hold.hold = true;
    lab.app.book(&lab.ada, &site(), &hold).await.expect("held");
    lab.wait_until(2).await;
    lab.app
        .check_in(&lab.ada, &site(), here.id)
        .await
        .expect("she is there");
    lab.wait_until_moment(lab.at(2) + SignedDuration::from_mins(30))
        .await;
    lab.wait_until(4).await;
    // Given back before anybody had to be there: no no-show.
    let brief = lab.book(&lab.ada, &["gpu-02"], 4, 6).await;
    lab.wait_until_moment(lab.at(4) + SignedDuration::from_mins(1))
        .await;
    cancel(&lab.ada, brief.id).await;
    lab.wait_until_moment(lab.at(4) + SignedDuration::from_mins(2))
        .await;
    lab.wait_until(24).await;

    let found = usage(&lab, &request(&lab, 0, 72)).await;
    let expected = Outcomes {
        bookings: 3,
        no_shows: 1,
        cancelled: 2,
        cancelled_late: 1,
        rejected: 1,
        failed: 0,
    };
    assert_eq!(found.outcomes, expected);
    assert_eq!(found.leads.count, 3);
    let median = found.leads.quantiles.iter().find(|(p, _)| *p == 50);
    assert_eq!(median.map(|(_, lead)| lead.as_hours()), Some(2));
}

async fn refusals_are_counted_by_reason_and_day(lab: Lab) {
    must_set(
        &lab,
        &of_site(),
        json!({"length_max": "4h", "horizon": "7d"}),
    )
    .await;
    let booked = lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    let refused = async |who: &Caller, resource: &str, from, to| {
        let refused = lab.try_book(who, &[resource], from, to).await;
        refused.expect_err("it is refused");
    };
    refused(&lab.bob, "gpu-01", 2, 3).await;
    refused(&lab.bob, "rack-a", 2, 3).await;
    refused(&lab.bob, "gpu-02", 2, 12).await;
    // Breaks two rules at once.
    refused(&lab.bob, "gpu-02", 200, 220).await;
    // A mistake, and what one may not know of, are no refusals; neither is a preview.
    refused(&lab.bob, "gpu-99", 2, 3).await;
    refused(&lab.outsider, "gpu-01", 2, 3).await;
    let tried = lab.wish(&["gpu-01"], 2, 3);
    let preview = lab.app.preview_booking(&lab.bob, &site(), &tried).await;
    assert!(preview.expect("an answer").is_err());
    let longer = Extension::By(SignedDuration::from_hours(9));
    lab.app
        .extend_reservation(&lab.ada, &site(), booked.id, longer)
        .await
        .expect_err("too long");

    let counts = async |from, to| -> Vec<(String, Option<String>, u64)> {
        let found = usage(&lab, &request(&lab, from, to)).await;
        let reasons = found.refusals.expect("the admin asked").into_iter();
        reasons.map(|one| (one.code, one.rule, one.count)).collect()
    };
    assert_eq!(counts(0, 24).await, [], "nothing is written yet");
    lab.app.write_refusals().await.expect("written");
    lab.app.write_refusals().await.expect("nothing to write");
    let of =
        |code: &str, rule: Option<&str>, count| (code.to_owned(), rule.map(str::to_owned), count);
    let monday = [
        of("policy.refused", Some("length_max"), 3),
        of("reservation.conflict", None, 2),
        of("policy.refused", Some("horizon"), 1),
    ];
    assert_eq!(counts(0, 15).await, monday);

    // Half past eleven in UTC is the next day in Torino; another server adds its own.
    let at: Timestamp = "2026-11-16T23:30:00Z".parse().expect("a moment");
    lab.set_clock(at);
    let other = lab.another_server();
    for app in [&lab.app, &other] {
        let wish = lab.wish(&["gpu-02"], 20, 30);
        app.book(&lab.bob, &site(), &wish)
            .await
            .expect_err("too long");
        app.write_refusals().await.expect("written");
    }
    assert_eq!(counts(0, 15).await, monday);
    let tuesday = [of("policy.refused", Some("length_max"), 2)];
    assert_eq!(counts(15, 24).await, tuesday);
}

async fn the_question_has_bounds(lab: Lab) {
    let field = async |request: &UsageRequest| {
        let refused = lab.app.usage(&lab.admin, &site(), request).await;
        match refused {
            Err(Error::Invalid(errors)) => errors.0[0].field.clone(),
            other => panic!("{other:?}"),
        }
    };
    let hour = 1;
    let day = 24 * hour;
    assert_eq!(field(&request(&lab, 0, 401 * day)).await, "from");
    assert_eq!(field(&request(&lab, 5, 5)).await, "to");
    let by_hour = UsageRequest {
        step: Step::Hour,
        ..request(&lab, 0, 1001)
    };
    assert_eq!(field(&by_hour).await, "bucket");
    usage(&lab, &request(&lab, -400 * day, 0)).await;
    let usually = UsageRequest {
        from: None,
        to: None,
        ..request(&lab, 0, 1)
    };
    let found = usage(&lab, &usually).await;
    assert_eq!(found.span.end(), lab.at(0));
    assert_eq!(found.span.duration(), SignedDuration::from_hours(30 * 24));
}
