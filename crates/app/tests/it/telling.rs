//! Telling, on both databases: nobody is told twice, nothing is lost, reminders come in time, and what is read later is
//! what may be seen then.

use crate::support::policy::person;
use crate::support::told::{cancel, heard, read, set_status, told, told_of};
use crate::support::{Lab, on_both, site};
use berth_app::Caller;
use berth_app::notifications::{NotificationFilter, SeenNotification, Which};
use berth_app::reservations::Extension;
use berth_app::settlement::Mode;
use berth_model::Status;
use berth_model::event::EventKind;
use berth_model::reservation::State;
use berth_store::{events, leases, readers};
use jiff::SignedDuration;
use serde_json::json;

on_both!(
    nobody_is_told_twice,
    whoever_lost_the_lease_tells_nobody,
    what_came_before_is_no_news,
    reminders_come_once_each,
    a_reminder_that_comes_too_late_does_not_come,
    what_was_told_is_read_marked_and_filtered,
    what_may_not_be_seen_any_more_is_not_shown,
    whoever_is_gone_is_told_nothing,
);

/// How many events say that this person was told something.
async fn counts_told(lab: &Lab, who: &Caller) -> Vec<u64> {
    let mut reader = lab.app.store.read().await.expect("a reader");
    let all = events::after(&mut reader, 0, 100_000).await;
    let all = all.expect("all events").into_iter();
    all.filter(|one| one.event.kind == EventKind::NotificationCreated)
        .filter(|one| one.event.subject == who.id().to_string())
        .filter_map(|one| one.event.data["unread"].as_u64())
        .collect()
}

async fn nobody_is_told_twice(lab: Lab) {
    lab.notify().await;
    lab.book(&lab.ada, &["vault-01"], 1, 3).await;
    lab.notify().await;
    lab.notify().await;
    assert_eq!(heard(&lab, &lab.admin).await.len(), 1);
    assert_eq!(counts_told(&lab, &lab.admin).await, [1]);
    // Even one who begins again from the first event.
    let mut tx = lab.app.store.begin().await.expect("a transaction");
    let at = readers::position(&mut tx, "notifications").await;
    let at = at.expect("a place").expect("it has begun");
    let moved = readers::advance(&mut tx, "notifications", at, at - 3).await;
    assert!(moved.expect("it is moved"));
    tx.commit().await.expect("it is kept");
    assert_eq!(heard(&lab, &lab.admin).await.len(), 1);
    assert_eq!(counts_told(&lab, &lab.admin).await, [1]);
    lab.book(&lab.ada, &["vault-01"], 4, 5).await;
    lab.notify().await;
    assert_eq!(counts_told(&lab, &lab.admin).await, [1, 2]);
}

async fn whoever_lost_the_lease_tells_nobody(lab: Lab) {
    lab.notify().await;
    lab.book(&lab.ada, &["vault-01"], 1, 3).await;
    let lease = lab.usurp("notifier").await;
    // At first it still believes in its lease, and then it cannot have it; either way it writes nothing.
    assert!(lab.try_notify().await.is_err());
    assert!(lab.try_notify().await.is_err());
    assert!(read(&lab, &lab.admin).await.is_empty());
    assert!(counts_told(&lab, &lab.admin).await.is_empty());
    let mut tx = lab.app.store.begin().await.expect("a transaction");
    let free = leases::give_back(&mut tx, &lease).await;
    free.expect("the other stops");
    tx.commit().await.expect("it is kept");
    // Nothing was lost meanwhile.
    assert_eq!(heard(&lab, &lab.admin).await, ["created as approver"]);
}

async fn what_came_before_is_no_news(lab: Lab) {
    lab.book(&lab.ada, &["vault-01"], 1, 3).await;
    assert!(heard(&lab, &lab.admin).await.is_empty());
    lab.book(&lab.ada, &["vault-01"], 4, 5).await;
    assert_eq!(heard(&lab, &lab.admin).await.len(), 1);
}

fn minutes(lab: &Lab, minutes: i64) -> jiff::Timestamp {
    lab.at(0) + SignedDuration::from_mins(minutes)
}

/// What somebody was reminded of: a start or an end.
async fn reminded(lab: &Lab, who: &Caller) -> Vec<String> {
    let told = told_of(lab, who, EventKind::ReservationReminder).await;
    let about = |one: &SeenNotification| one.told.data["about"].as_str().map(str::to_owned);
    told.iter().filter_map(about).collect()
}

async fn reminders_come_once_each(lab: Lab) {
    lab.notify().await;
    let booked = lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    // So short that its end would be told of before its start.
    let mut short = lab.wish(&["gpu-02"], 1, 2);
    short.span = crate::support::policy::minutes(&lab, 60, 70);
    let made = lab.app.book(&lab.bob, &site(), &short).await;
    made.expect("it is free");
    let none: [&str; 0] = [];
    for (minute, expected) in [
        (44, &none[..]),
        (45, &["start"]),
        (46, &["start"]),
        (60, &["start"]),
        (164, &["start"]),
        (165, &["start", "end"]),
        (166, &["start", "end"]),
    ] {
        lab.wait_until_moment(minutes(&lab, minute)).await;
        assert_eq!(reminded(&lab, &lab.ada).await, expected, "{minute}");
    }
    assert_eq!(reminded(&lab, &lab.bob).await, ["start"]);
    // What is made longer has another end to be reminded of.
    let longer = Extension::By(SignedDuration::from_hours(1));
    let at = site();
    let extended = lab.app.extend_reservation(&lab.ada, &at, booked.id, longer);
    extended.await.expect("nobody is in the way");
    lab.wait_until_moment(minutes(&lab, 225)).await;
    assert_eq!(reminded(&lab, &lab.ada).await, ["start", "end", "end"]);
    let told = told_of(&lab, &lab.ada, EventKind::ReservationReminder).await;
    let texts: Vec<&str> = told.iter().map(|one| one.text.as_str()).collect();
    let expected = [
        "“a test” of gpu-01 starts at 2026-11-16T09:00:00Z.",
        "“a test” of gpu-01 ends at 2026-11-16T11:00:00Z.",
        "“a test” of gpu-01 ends at 2026-11-16T12:00:00Z.",
    ];
    assert_eq!(texts, expected);
}

async fn a_reminder_that_comes_too_late_does_not_come(lab: Lab) {
    lab.notify().await;
    lab.book(&lab.ada, &["gpu-01"], 1, 2).await;
    lab.book(&lab.bob, &["gpu-02"], 1, 4).await;
    // What is not promised is not reminded of.
    lab.book(&lab.ada, &["vault-01"], 1, 2).await;
    lab.wait_until_moment(minutes(&lab, 30)).await;
    lab.notify().await;
    // Nobody runs for a while. An hour is nearly over, of which only the end is worth a word; three hours are not.
    lab.set_clock(minutes(&lab, 107));
    assert_eq!(reminded(&lab, &lab.bob).await, ["start"]);
    assert_eq!(reminded(&lab, &lab.ada).await, ["end"]);
    // What is over by the time somebody looks is past reminding.
    lab.book(&lab.ada, &["rack-b"], 3, 4).await;
    lab.set_clock(lab.at(5));
    assert_eq!(reminded(&lab, &lab.ada).await, ["end"]);
}

async fn what_was_told_is_read_marked_and_filtered(lab: Lab) {
    lab.notify().await;
    let kept = lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    let gone = lab.book(&lab.ada, &["gpu-02"], 1, 3).await;
    set_status(&lab, "rack-a", Status::Maintenance).await;
    cancel(&lab, &lab.admin, &gone).await;
    let all = told(&lab, &lab.ada).await;
    let numbers: Vec<u64> = all.iter().map(|one| one.told.number).collect();
    assert_eq!(numbers.len(), 2, "{all:?}");
    assert!(numbers.is_sorted());
    let filter = |limit| NotificationFilter {
        before: u64::MAX,
        limit,
        ..Default::default()
    };
    let ask = async |filter: NotificationFilter| {
        let found = lab.app.notifications(&lab.ada, &filter).await;
        let found = found.expect("one's own");
        let numbers: Vec<u64> = found.items.iter().map(|one| one.told.number).collect();
        (numbers, found.unread)
    };
    assert_eq!(ask(filter(1)).await, (vec![numbers[1]], 2), "newest first");
    let earlier = NotificationFilter {
        before: numbers[1],
        ..filter(9)
    };
    assert_eq!(ask(earlier).await, (vec![numbers[0]], 2));
    let of_kind = NotificationFilter {
        kinds: vec![EventKind::ResourceStatus],
        ..filter(9)
    };
    assert_eq!(ask(of_kind).await, (vec![numbers[0]], 2));
    let of_site = NotificationFilter {
        site: Some(site()),
        ..filter(9)
    };
    assert_eq!(ask(of_site).await.0.len(), 2);

    let unread = || NotificationFilter {
        unread: true,
        ..filter(9)
    };
    let first = Which::These(vec![numbers[0], 999_999]);
    let left = lab.app.mark_read(&lab.ada, &first).await;
    assert_eq!(left.expect("one's own"), 1);
    assert_eq!(ask(unread()).await, (vec![numbers[1]], 1));
    // Nobody else's are touched, and nobody else's numbers mean anything.
    let left = lab.app.mark_read(&lab.bob, &Which::UpTo(u64::MAX)).await;
    assert_eq!(left.expect("one's own"), 0);
    assert_eq!(ask(unread()).await.1, 1);
    let left = lab.app.mark_read(&lab.ada, &Which::UpTo(numbers[1])).await;
    assert_eq!(left.expect("one's own"), 0);
    let left = lab.app.mark_unread(&lab.ada, &numbers).await;
    assert_eq!(left.expect("one's own"), 2);
    lab.notify().await;
    // Other pages of hers hear how much is left; nobody else does.
    let marks = async |who: &Caller| {
        let heard = lab.app.events_after(who, None, 0, 1000).await;
        let heard = heard.expect("the stream").events;
        let marks = heard
            .iter()
            .filter(|one| one.event.kind == EventKind::NotificationRead);
        let unread = marks.map(|one| one.event.data["unread"].clone());
        unread.collect::<Vec<_>>()
    };
    assert_eq!(marks(&lab.ada).await, [json!(1), json!(0), json!(2)]);
    assert!(marks(&lab.bob).await.is_empty());
    assert_eq!(counts_told(&lab, &lab.ada).await.last(), Some(&2));
    assert_eq!(lab.read(kept.id).await.state, State::Confirmed);
}

async fn what_may_not_be_seen_any_more_is_not_shown(lab: Lab) {
    lab.notify().await;
    lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    set_status(&lab, "gpu-01", Status::Maintenance).await;
    let before = told(&lab, &lab.ada).await;
    assert_eq!(before[0].site.is_some(), before[0].resource.is_some());
    let at = site();
    let out = lab
        .app
        .remove_member(&lab.admin, &at, &person(&lab.ada), Mode::Apply)
        .await;
    out.expect("an admin may");
    let after = told(&lab, &lab.ada).await;
    assert_eq!(after.len(), 2, "the status, and that her booking ended");
    for one in &after {
        assert_eq!(
            (one.site, one.resource, one.by, one.told.data == json!({})),
            (None, None, None, true)
        );
        assert!(one.reservation.is_none());
        let said = one.text.to_lowercase();
        assert!(!said.contains("gpu") && !said.contains("torino"), "{said}");
    }
    let hidden = NotificationFilter {
        site: Some(site()),
        before: u64::MAX,
        limit: 9,
        ..Default::default()
    };
    assert!(lab.app.notifications(&lab.ada, &hidden).await.is_err());
}

async fn whoever_is_gone_is_told_nothing(lab: Lab) {
    lab.notify().await;
    lab.book(&lab.bob, &["gpu-01"], 1, 3).await;
    set_status(&lab, "gpu-01", Status::Maintenance).await;
    assert_eq!(told(&lab, &lab.bob).await.len(), 1);
    let removed = lab
        .app
        .remove_person(&lab.root, &person(&lab.bob), Mode::Apply)
        .await;
    removed.expect("root may");
    assert!(told(&lab, &lab.bob).await.is_empty());
}
