//! Series, on both databases: made whole or with what is left out, changed and cancelled in parts.

mod support;

use std::collections::BTreeSet;

use berth_app::policies::PolicyAt;
use berth_app::reservations::{
    NewSeries, OnConflict, Part, SeriesChange, SeriesFilter, SeriesView,
};
use berth_app::settlement::Mode;
use berth_app::{Caller, Error, Once};
use berth_model::reservation::{Privacy, Reservation, State};
use berth_model::{Reference, Span};
use jiff::civil::{date, time};
use jiff::{SignedDuration, Timestamp};
use support::{Lab, site};

on_both!(
    every_instance_is_a_booking_of_its_own,
    all_or_nothing_leaves_nothing_behind,
    what_is_taken_is_left_out_and_listed,
    amounts_that_do_not_fit_are_left_out,
    hours_stay_what_they_are_when_the_clocks_change,
    a_preview_says_it_all_and_books_nothing,
    a_key_makes_one_series,
    what_cannot_be_a_series_is_refused_by_field,
    one_instance_may_differ,
    a_change_of_all_leaves_alone_what_differs_or_has_begun,
    what_moves_does_not_trip_over_its_neighbours,
    a_change_that_cannot_be_done_for_one_is_done_for_none,
    a_change_of_what_follows_makes_two_series,
    each_part_can_be_cancelled,
    what_was_handed_over_is_left_alone,
    others_see_and_do_what_they_may,
    policies_count_the_instances_together,
    buffers_are_held_around_every_instance,
    of_many_at_once_one_gets_it,
    many_at_once_share_what_there_is,
);

/// A series on these resources whose first instance is at these hours.
fn wish(lab: &Lab, resources: &[&str], from: i64, to: i64, rule: &str) -> NewSeries {
    NewSeries {
        first: lab.wish(resources, from, to),
        rule: rule.parse().expect("a rule"),
        except: BTreeSet::new(),
        on_conflict: OnConflict::Refuse,
    }
}

async fn try_series(lab: &Lab, who: &Caller, new: &NewSeries) -> Result<SeriesView, Error> {
    Ok(lab.app.book_series(who, &site(), new).await?.value)
}

async fn series(lab: &Lab, who: &Caller, new: &NewSeries) -> SeriesView {
    try_series(lab, who, new).await.expect("it can be booked")
}

/// The hours, counted from the lab's opening, at which instances that still hold something start.
fn starts(lab: &Lab, view: &SeriesView) -> Vec<i64> {
    let holding = view.instances.iter().filter(|one| one.state.holds());
    let hour = |one: &Reservation| one.span.start().duration_since(lab.at(0)).as_hours();
    holding.map(hour).collect()
}

/// The hour of the same time of day, so many weeks later.
fn week(weeks: i64) -> i64 {
    24 + weeks * 7 * 24
}

const WEEKLY: &str = "FREQ=WEEKLY;COUNT=4";

async fn all_series(lab: &Lab, who: &Caller) -> usize {
    let filter = SeriesFilter {
        owner: None,
        from: None,
        after: None,
        limit: 100,
    };
    let (page, _, _) = lab
        .app
        .list_series(who, &site(), &filter)
        .await
        .expect("a list");
    page.len()
}

async fn every_instance_is_a_booking_of_its_own(lab: Lab) {
    let view = series(
        &lab,
        &lab.ada,
        &wish(&lab, &["gpu-01", "gpu-02"], 24, 26, WEEKLY),
    )
    .await;
    assert_eq!(starts(&lab, &view), [week(0), week(1), week(2), week(3)]);
    assert_eq!(view.series.ends, lab.at(week(3) + 2));
    lab.wait_until(0).await;
    for one in &view.instances {
        assert_eq!(one.state, State::Confirmed);
        assert_eq!(one.items.len(), 2);
        let (history, _) = lab
            .app
            .reservation_history(&lab.ada, &site(), one.id)
            .await
            .expect("its history");
        assert_eq!(history.len(), 1);
        assert_eq!(lab.read(one.id).await, *one);
    }
    let mut reader = lab.app.store.read().await.expect("a look");
    let events = berth_store::events::after(&mut reader, 0, 1000)
        .await
        .expect("events");
    let told = |kind: &str| {
        let of_kind = events
            .iter()
            .filter(|told| told.event.kind.as_str() == kind);
        of_kind.count()
    };
    assert_eq!(told("series.created"), 1);
    assert_eq!(told("reservation.created"), 4);
    drop(reader);
    let refused = lab
        .try_book(&lab.bob, &["gpu-02"], week(2), week(2) + 1)
        .await;
    assert!(matches!(refused, Err(Error::Conflict { .. })));
    // Time carries them like any other.
    lab.wait_until(25).await;
    assert_eq!(lab.read(view.instances[0].id).await.state, State::Active);
    lab.wait_until(27).await;
    assert_eq!(lab.read(view.instances[0].id).await.state, State::Done);
    let again = lab
        .app
        .get_series(&lab.bob, &site(), view.series.id)
        .await
        .expect("he may see it");
    assert_eq!(starts(&lab, &again), [week(1), week(2), week(3)]);
}

async fn all_or_nothing_leaves_nothing_behind(lab: Lab) {
    let his = lab
        .book(&lab.bob, &["gpu-01"], week(2) + 1, week(2) + 3)
        .await;
    let refused = try_series(&lab, &lab.ada, &wish(&lab, &["gpu-01"], 24, 26, WEEKLY)).await;
    let Err(Error::Conflict { conflicts, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0].claim.claim.span, his.span);
    assert_eq!(all_series(&lab, &lab.admin).await, 0);
    // Nothing of it holds anything, or was told.
    for weeks in [0, 1, 3] {
        lab.book(&lab.bob, &["gpu-01"], week(weeks), week(weeks) + 2)
            .await;
    }
    lab.wait_until(0).await;
    let mut reader = lab.app.store.read().await.expect("a look");
    let (claims, _) = berth_store::claims::counts(&mut reader)
        .await
        .expect("counts");
    assert_eq!(claims, 4);
    let events = berth_store::events::after(&mut reader, 0, 1000)
        .await
        .expect("events");
    let told = events
        .iter()
        .filter(|told| told.event.kind.as_str().starts_with("series."));
    assert_eq!(told.count(), 0);
}

async fn what_is_taken_is_left_out_and_listed(lab: Lab) {
    // Above and below what is wanted, and exactly beside it.
    let below = lab
        .book(&lab.bob, &["gpu-01.gpu0"], week(1), week(1) + 1)
        .await;
    let above = lab
        .book(&lab.bob, &["rack-a"], week(2) + 1, week(2) + 9)
        .await;
    lab.book(&lab.bob, &["gpu-01"], week(3) + 2, week(3) + 9)
        .await;
    let mut new = wish(&lab, &["gpu-01"], 24, 26, WEEKLY);
    new.on_conflict = OnConflict::Skip;
    let view = series(&lab, &lab.ada, &new).await;
    assert_eq!(starts(&lab, &view), [week(0), week(3)]);
    let skipped: Vec<_> = view.skipped.iter().map(|one| one.instance.span).collect();
    assert_eq!(
        skipped,
        [
            lab.span(week(1), week(1) + 2),
            lab.span(week(2), week(2) + 2)
        ]
    );
    for (skipped, taken) in view.skipped.iter().zip([&below, &above]) {
        let Some(Error::Conflict { conflicts, .. }) = &skipped.why else {
            panic!("{skipped:?}");
        };
        assert_eq!(conflicts[0].claim.claim.span, taken.span);
    }
    // Later it is still known what was left out, though no longer why.
    let again = lab
        .app
        .get_series(&lab.ada, &site(), view.series.id)
        .await
        .expect("hers");
    let still: Vec<_> = again.skipped.iter().map(|one| one.instance.span).collect();
    assert_eq!(still, skipped);
    // Where all of it is taken, nothing is made.
    let refused = try_series(&lab, &lab.bob, &new).await;
    assert_eq!(all_series(&lab, &lab.admin).await, 1);
    assert!(
        matches!(refused, Err(Error::Conflict { .. })),
        "{refused:?}"
    );
}

async fn amounts_that_do_not_fit_are_left_out(lab: Lab) {
    lab.book(&lab.bob, &["gpu-01.cpu:20"], week(1), week(1) + 1)
        .await;
    lab.book(&lab.bob, &["gpu-01.cpu:10"], week(1) + 1, week(1) + 2)
        .await;
    lab.book(&lab.bob, &["gpu-01.cpu:40"], week(2), week(2) + 4)
        .await;
    let mut new = wish(&lab, &["gpu-01.cpu:44"], 24, 26, WEEKLY);
    let refused = try_series(&lab, &lab.ada, &new).await;
    assert!(
        matches!(refused, Err(Error::Conflict { .. })),
        "{refused:?}"
    );
    new.on_conflict = OnConflict::Skip;
    let view = series(&lab, &lab.ada, &new).await;
    // 20 and 10 never add up, because one begins when the other ends.
    assert_eq!(starts(&lab, &view), [week(0), week(1), week(3)]);
}

async fn hours_stay_what_they_are_when_the_clocks_change(lab: Lab) {
    let at = |text: &str| text.parse::<Timestamp>().expect("a moment");
    let from = |start, end| Span::new(at(start), at(end)).expect("a span");
    // The clocks of Rome go forward in the night to Sunday, 28 March 2027.
    let mut days = wish(&lab, &["gpu-01"], 24, 32, "FREQ=DAILY;COUNT=3");
    days.first.span = from("2027-03-27T08:00:00Z", "2027-03-27T16:00:00Z");
    let mut nights = wish(&lab, &["gpu-01"], 24, 32, "FREQ=DAILY;COUNT=3");
    nights.first.span = from("2027-03-26T16:00:00Z", "2027-03-27T08:00:00Z");
    let days = series(&lab, &lab.ada, &days).await;
    let spans: Vec<Span> = days.instances.iter().map(|one| one.span).collect();
    assert_eq!(
        spans,
        [
            from("2027-03-27T08:00:00Z", "2027-03-27T16:00:00Z"),
            from("2027-03-28T07:00:00Z", "2027-03-28T15:00:00Z"),
            from("2027-03-29T07:00:00Z", "2027-03-29T15:00:00Z"),
        ]
    );
    // Who has the nights hands over to who has the days, in the short night too.
    let nights = series(&lab, &lab.bob, &nights).await;
    assert_eq!(
        nights.instances[1].span,
        from("2027-03-27T16:00:00Z", "2027-03-28T07:00:00Z")
    );
    let mut autumn = wish(&lab, &["gpu-02"], 24, 32, "FREQ=WEEKLY;COUNT=2");
    autumn.first.span = from("2027-10-30T23:30:00Z", "2027-10-31T03:30:00Z");
    let refused = try_series(&lab, &lab.ada, &autumn).await;
    assert!(
        refused.is_ok(),
        "01:30 is there once, and the end is 04:30: {refused:?}"
    );
    let longer = refused.expect("booked").instances[0].span.duration();
    assert_eq!(longer, SignedDuration::from_hours(4));
}

async fn a_preview_says_it_all_and_books_nothing(lab: Lab) {
    lab.book(&lab.bob, &["gpu-01"], week(1), week(1) + 1).await;
    let mut new = wish(&lab, &["gpu-01"], 24, 26, WEEKLY);
    new.except = [date(2026, 12, 1)].into();
    let preview = lab
        .app
        .preview_series(&lab.ada, &site(), &new)
        .await
        .expect("a preview");
    let outcomes: Vec<_> = preview
        .instances
        .iter()
        .map(|one| (one.instance.id.date(), one.outcome.is_ok()))
        .collect();
    assert_eq!(
        outcomes,
        [
            (date(2026, 11, 17), true),
            (date(2026, 11, 24), false),
            (date(2026, 12, 8), true)
        ]
    );
    assert_eq!(all_series(&lab, &lab.admin).await, 0);
    lab.book(&lab.bob, &["gpu-01"], week(0), week(0) + 1).await;
}

async fn a_key_makes_one_series(lab: Lab) {
    let mut ada = lab.ada.clone();
    ada.once = Some(Once {
        key: "k".into(),
        fingerprint: [7; 32],
    });
    let new = wish(&lab, &["gpu-01"], 24, 26, WEEKLY);
    let first = lab
        .app
        .book_series(&ada, &site(), &new)
        .await
        .expect("made");
    let again = lab
        .app
        .book_series(&ada, &site(), &new)
        .await
        .expect("told");
    assert!(!first.replayed && again.replayed);
    assert_eq!(first.value.series, again.value.series);
    assert_eq!(first.value.instances, again.value.instances);
    assert_eq!(all_series(&lab, &lab.ada).await, 1);
    ada.once = Some(Once {
        key: "k".into(),
        fingerprint: [8; 32],
    });
    let other = lab.app.book_series(&ada, &site(), &new).await;
    assert!(matches!(other, Err(Error::IdempotencyMismatch)));
}

async fn what_cannot_be_a_series_is_refused_by_field(lab: Lab) {
    let field = async |new: NewSeries| match try_series(&lab, &lab.ada, &new).await {
        Err(Error::Invalid(errors)) => errors.0[0].field.clone(),
        other => panic!("{other:?}"),
    };
    let wish = |from, to, rule| wish(&lab, &["gpu-01"], from, to, rule);
    // The first instance is on a Tuesday.
    assert_eq!(
        field(wish(24, 26, "FREQ=WEEKLY;BYDAY=MO;COUNT=3")).await,
        "rule"
    );
    assert_eq!(
        field(wish(24, 26, "FREQ=DAILY;UNTIL=20400101")).await,
        "rule"
    );
    // Longer than a day, every day.
    assert_eq!(field(wish(24, 54, "FREQ=DAILY;COUNT=3")).await, "rule");
    let mut strange = wish(24, 26, WEEKLY);
    strange.except = [date(2026, 11, 18)].into();
    assert_eq!(field(strange).await, "except");
    let mut nothing = wish(24, 26, "FREQ=WEEKLY;COUNT=1");
    nothing.except = [date(2026, 11, 17)].into();
    assert_eq!(field(nothing).await, "except");
    let mut crumbs = wish(24, 26, WEEKLY);
    let later = SignedDuration::from_millis(1);
    crumbs.first.span = Span::new(lab.at(24) + later, lab.at(26)).expect("a span");
    assert_eq!(field(crumbs).await, "start");
    let past = try_series(&lab, &lab.ada, &wish(-24, -22, WEEKLY)).await;
    assert!(matches!(past, Err(Error::InThePast(_))), "{past:?}");
    // With the past left out, the rest can be had.
    let mut rest = wish(-24, -22, WEEKLY);
    rest.on_conflict = OnConflict::Skip;
    let view = series(&lab, &lab.ada, &rest).await;
    assert_eq!((view.instances.len(), view.skipped.len()), (3, 1));
}

async fn change(
    lab: &Lab,
    who: &Caller,
    view: &SeriesView,
    part: Part,
    change: SeriesChange,
) -> Result<SeriesView, Error> {
    let id = view.series.id;
    lab.app
        .change_series(who, &site(), id, None, part, &change)
        .await
}

fn at(hour: i8) -> SeriesChange {
    SeriesChange {
        at: Some(time(hour, 0, 0, 0)),
        ..SeriesChange::default()
    }
}

async fn one_instance_may_differ(lab: Lab) {
    let view = series(&lab, &lab.ada, &wish(&lab, &["gpu-01"], 24, 26, WEEKLY)).await;
    let second = view.instances[1].clone();
    // By the series' own words: 14:00 on the site's clock is 13:00 UTC.
    let moved = change(&lab, &lab.ada, &view, Part::This(second.id), at(14))
        .await
        .expect("it is free");
    assert_eq!(
        starts(&lab, &moved),
        [week(0), week(1) + 5, week(2), week(3)]
    );
    let differing: Vec<bool> = moved
        .instances
        .iter()
        .map(|one| one.occurrence.expect("one of a series").differs)
        .collect();
    assert_eq!(differing, [false, true, false, false]);
    // It keeps its series and its name in it.
    let after = lab.read(second.id).await;
    let (had, has) = (second.occurrence, after.occurrence);
    assert_eq!(has, had.map(berth_model::Occurrence::differing));
    // And by changing the reservation itself.
    let third = &view.instances[2];
    let longer = berth_app::reservations::Extension::By(SignedDuration::from_hours(1));
    let extended = lab
        .app
        .extend_reservation(&lab.ada, &site(), third.id, longer)
        .await
        .expect("it is free");
    assert!(extended.reservation.occurrence.expect("still").differs);
    let other = series(&lab, &lab.ada, &wish(&lab, &["gpu-02"], 24, 26, WEEKLY)).await;
    let wrong = change(&lab, &lab.ada, &other, Part::This(second.id), at(14)).await;
    assert!(matches!(wrong, Err(Error::Invalid(_))), "{wrong:?}");
}

async fn a_change_of_all_leaves_alone_what_differs_or_has_begun(lab: Lab) {
    let view = series(&lab, &lab.ada, &wish(&lab, &["gpu-01"], 24, 26, WEEKLY)).await;
    let third = view.instances[2].id;
    change(&lab, &lab.ada, &view, Part::This(third), at(14))
        .await
        .expect("moved");
    lab.wait_until(25).await;
    let title: berth_model::Text = "other".parse().expect("a title");
    let all = SeriesChange {
        title: Some(title.clone()),
        length: Some(SignedDuration::from_hours(4)),
        items: Some(lab.wish(&["gpu-01", "gpu-02"], 1, 2).items),
        privacy: Some(Privacy::Private),
        ..at(11)
    };
    let after = change(&lab, &lab.ada, &view, Part::All, all)
        .await
        .expect("it is free");
    assert_eq!(after.series.id, view.series.id);
    assert_eq!(after.series.version, 2);
    assert_eq!(after.left_alone, [third]);
    assert_eq!(
        starts(&lab, &after),
        [week(0), week(1) + 2, week(2) + 5, week(3) + 2]
    );
    let changed = &after.instances[1];
    assert_eq!(changed.title, title);
    assert_eq!(changed.items.len(), 2);
    assert_eq!(changed.span.duration(), SignedDuration::from_hours(4));
    assert_eq!((changed.version, changed.privacy), (2, Privacy::Private));
    assert!(!changed.occurrence.expect("one of a series").differs);
    assert_eq!(after.instances[0].version, 3, "it started and runs");
    assert_eq!(after.instances[0].span, view.instances[0].span);
    assert_eq!(after.series.pattern.start.time(), time(11, 0, 0, 0));
    let stale = lab
        .app
        .change_series(
            &lab.ada,
            &site(),
            view.series.id,
            Some(1),
            Part::All,
            &at(9),
        )
        .await;
    assert!(matches!(stale, Err(Error::Version { current: 2 })));
    lab.wait_until(week(4)).await;
    let over = change(&lab, &lab.ada, &view, Part::All, at(9)).await;
    assert!(matches!(over, Err(Error::SeriesOver)), "{over:?}");
}

async fn what_moves_does_not_trip_over_its_neighbours(lab: Lab) {
    let daily = wish(&lab, &["gpu-01"], 24, 44, "FREQ=DAILY;COUNT=5");
    let view = series(&lab, &lab.ada, &daily).await;
    // Each would stand where the next one stands now, and then where the one before it does.
    for (hour, offset) in [(14, 5), (9, 0)] {
        let moved = change(&lab, &lab.ada, &view, Part::All, at(hour))
            .await
            .expect("only itself is in the way");
        let expected: Vec<i64> = (1..6).map(|day| day * 24 + offset).collect();
        assert_eq!(starts(&lab, &moved), expected);
    }
}

async fn a_change_that_cannot_be_done_for_one_is_done_for_none(lab: Lab) {
    let view = series(&lab, &lab.ada, &wish(&lab, &["gpu-01"], 24, 26, WEEKLY)).await;
    let his = lab
        .book(&lab.bob, &["gpu-01"], week(2) + 5, week(2) + 6)
        .await;
    for part in [Part::All, Part::Following(view.instances[1].id)] {
        let refused = change(&lab, &lab.ada, &view, part, at(14)).await;
        let Err(Error::Conflict { conflicts, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(conflicts[0].claim.claim.span, his.span);
    }
    let after = lab
        .app
        .get_series(&lab.ada, &site(), view.series.id)
        .await
        .expect("hers");
    assert_eq!(after.series, view.series);
    assert_eq!(after.instances, view.instances);
    assert_eq!(all_series(&lab, &lab.ada).await, 1);
}

async fn a_change_of_what_follows_makes_two_series(lab: Lab) {
    let view = series(&lab, &lab.ada, &wish(&lab, &["gpu-01"], 24, 26, WEEKLY)).await;
    let (third, fourth) = (view.instances[2].id, view.instances[3].id);
    change(&lab, &lab.ada, &view, Part::This(fourth), at(16))
        .await
        .expect("moved");
    let rest = change(&lab, &lab.ada, &view, Part::Following(third), at(12))
        .await
        .expect("it is free");
    assert_ne!(rest.series.id, view.series.id);
    assert_eq!(starts(&lab, &rest), [week(2) + 3, week(3) + 7]);
    assert_eq!(rest.left_alone, [fourth]);
    assert_eq!(
        rest.series.pattern.recurrence.to_string(),
        "FREQ=WEEKLY;COUNT=2"
    );
    let before = lab
        .app
        .get_series(&lab.ada, &site(), view.series.id)
        .await
        .expect("the rest of it");
    assert_eq!(starts(&lab, &before), [week(0), week(1)]);
    assert_eq!(
        before.series.pattern.recurrence.to_string(),
        "FREQ=WEEKLY;COUNT=2"
    );
    assert_eq!(before.series.ends, lab.at(week(1) + 2));
    assert!(before.skipped.is_empty() && rest.skipped.is_empty());
    // From its first instance on, it is all of it.
    let first = before.instances[0].id;
    let all = change(&lab, &lab.ada, &before, Part::Following(first), at(10))
        .await
        .expect("it is free");
    assert_eq!(all.series.id, view.series.id);
    assert_eq!(starts(&lab, &all), [week(0) + 1, week(1) + 1]);
}

async fn each_part_can_be_cancelled(lab: Lab) {
    let view = series(
        &lab,
        &lab.ada,
        &wish(&lab, &["gpu-01"], 24, 26, "FREQ=WEEKLY;COUNT=6"),
    )
    .await;
    let ids: Vec<_> = view.instances.iter().map(|one| one.id).collect();
    let cancel = async |part| {
        let reason = "no longer needed".parse().ok();
        lab.app
            .cancel_series(&lab.ada, &site(), view.series.id, None, part, reason)
            .await
    };
    let after = cancel(Part::This(ids[1])).await.expect("one");
    assert_eq!(starts(&lab, &after), [0, 2, 3, 4, 5].map(week));
    // One that differs is cancelled like the others.
    change(&lab, &lab.ada, &view, Part::This(ids[5]), at(14))
        .await
        .expect("moved");
    let after = cancel(Part::Following(ids[4])).await.expect("two");
    assert_eq!(starts(&lab, &after), [0, 2, 3].map(week));
    assert_eq!(after.series.ends, lab.at(week(3) + 2));
    lab.book(&lab.bob, &["gpu-01"], week(4), week(4) + 2).await;
    // What runs is left to run.
    lab.wait_until(25).await;
    let after = cancel(Part::All).await.expect("two more");
    assert_eq!(starts(&lab, &after), [week(0)]);
    assert_eq!(lab.read(ids[0]).await.state, State::Active);
    let last = lab.read(ids[3]).await;
    assert_eq!(last.state, State::Cancelled);
    assert!(last.state_reason.is_some());
    assert!(matches!(cancel(Part::All).await, Err(Error::SeriesOver)));
    // By its own name it ends, too.
    cancel(Part::This(ids[0])).await.expect("it runs");
    lab.wait_until(25).await;
    assert_eq!(lab.read(ids[0]).await.state, State::Done);
}

async fn what_was_handed_over_is_left_alone(lab: Lab) {
    let view = series(&lab, &lab.ada, &wish(&lab, &["gpu-01"], 24, 26, WEEKLY)).await;
    let second = view.instances[1].id;
    let bob = Reference::Name("bob".parse().expect("a login"));
    lab.app
        .hand_over(&lab.ada, &site(), second, None, &bob, None)
        .await
        .expect("he is a member");
    let moved = change(&lab, &lab.ada, &view, Part::All, at(12))
        .await
        .expect("it is free");
    assert_eq!(moved.left_alone, [second]);
    let gone = lab
        .app
        .cancel_series(&lab.ada, &site(), view.series.id, None, Part::All, None)
        .await
        .expect("three");
    assert_eq!(gone.left_alone, [second]);
    assert_eq!(lab.read(second).await.state, State::Confirmed);
}

async fn others_see_and_do_what_they_may(lab: Lab) {
    let mut private = wish(&lab, &["gpu-01"], 24, 26, WEEKLY);
    private.first.privacy = Privacy::Private;
    let hidden = series(&lab, &lab.ada, &private).await;
    let open = series(&lab, &lab.ada, &wish(&lab, &["gpu-02"], 24, 26, WEEKLY)).await;
    let see = async |who, view: &SeriesView| {
        let seen = lab.app.get_series(who, &site(), view.series.id).await;
        seen.map(|view| view.instances.len())
    };
    assert!(matches!(
        see(&lab.bob, &hidden).await,
        Err(Error::NotFound(_))
    ));
    assert_eq!(see(&lab.bob, &open).await.expect("open"), 4);
    assert_eq!(see(&lab.admin, &hidden).await.expect("an admin"), 4);
    assert!(matches!(
        see(&lab.outsider, &open).await,
        Err(Error::NotFound(_))
    ));
    assert_eq!(all_series(&lab, &lab.bob).await, 1);
    assert_eq!(all_series(&lab, &lab.ada).await, 2);
    let change = async |who, view| change(&lab, who, view, Part::All, at(12)).await;
    assert!(matches!(
        change(&lab.bob, &open).await,
        Err(Error::NotAllowed { .. })
    ));
    assert!(matches!(
        change(&lab.bob, &hidden).await,
        Err(Error::NotFound(_))
    ));
    change(&lab.admin, &hidden).await.expect("an admin may");
    let cancelled = lab
        .app
        .cancel_series(&lab.bob, &site(), open.series.id, None, Part::All, None)
        .await;
    assert!(matches!(cancelled, Err(Error::NotAllowed { .. })));
}

/// Sets the policy of the whole site.
async fn policy(lab: &Lab, written: serde_json::Value) {
    let at = PolicyAt::Site(site(), Default::default());
    let policy = serde_json::from_value(written).expect("a policy");
    lab.app
        .set_policy(&lab.admin, &at, Some(&policy), None, None, Mode::Apply)
        .await
        .expect("the policy is set");
}

async fn policies_count_the_instances_together(lab: Lab) {
    policy(&lab, serde_json::json!({"active_bookings": 3})).await;
    let mut new = wish(&lab, &["gpu-01"], 24, 26, WEEKLY);
    let refused = try_series(&lab, &lab.ada, &new).await;
    assert!(matches!(refused, Err(Error::Policy(_))), "{refused:?}");
    assert_eq!(all_series(&lab, &lab.ada).await, 0);
    new.on_conflict = OnConflict::Skip;
    let view = series(&lab, &lab.ada, &new).await;
    assert_eq!(starts(&lab, &view), [week(0), week(1), week(2)]);
    assert!(matches!(view.skipped[0].why, Some(Error::Policy(_))));
    let more = lab.try_book(&lab.ada, &["gpu-02"], 24, 26).await;
    assert!(matches!(more, Err(Error::Policy(_))), "{more:?}");
}

async fn buffers_are_held_around_every_instance(lab: Lab) {
    policy(
        &lab,
        serde_json::json!({"buffer_before": "1h", "buffer_after": "1h"}),
    )
    .await;
    lab.book(&lab.bob, &["gpu-01"], week(1) + 4, week(1) + 6)
        .await;
    let mut new = wish(&lab, &["gpu-01"], 24, 27, WEEKLY);
    new.on_conflict = OnConflict::Skip;
    let view = series(&lab, &lab.ada, &new).await;
    // His begins an hour after hers would end, and both are held for an hour more.
    assert_eq!(starts(&lab, &view), [week(0), week(2), week(3)]);
    let beside = lab
        .try_book(&lab.bob, &["gpu-01"], week(2) + 4, week(2) + 6)
        .await;
    assert!(matches!(beside, Err(Error::Conflict { .. })), "{beside:?}");
    // All day but an hour: the buffers of one reach into the next.
    let daily = wish(&lab, &["gpu-02"], 24, 47, "FREQ=DAILY;COUNT=3");
    let refused = try_series(&lab, &lab.ada, &daily).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let moved = change(&lab, &lab.ada, &view, Part::All, at(12))
        .await
        .expect("it is free");
    assert_eq!(
        starts(&lab, &moved),
        [week(0) + 3, week(2) + 3, week(3) + 3]
    );
    lab.app
        .cancel_series(&lab.ada, &site(), view.series.id, None, Part::All, None)
        .await
        .expect("all of it");
    lab.book(&lab.bob, &["gpu-01"], week(2) + 1, week(2) + 9)
        .await;
}

const AT_ONCE: usize = 16;

/// So many requests at once, half of them by each of two people.
async fn at_once(lab: &Lab, new: impl Fn(usize) -> NewSeries) -> Vec<Result<SeriesView, Error>> {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..AT_ONCE {
        let (app, new) = (lab.app.clone(), new(n));
        let who = if n % 2 == 0 { &lab.ada } else { &lab.bob }.clone();
        tasks.spawn(async move { Ok(app.book_series(&who, &site(), &new).await?.value) });
    }
    tasks.join_all().await
}

async fn of_many_at_once_one_gets_it(lab: Lab) {
    // In turns on one machine and on what contains it, and at times that only partly meet.
    let resources = ["gpu-01", "rack-a"];
    let outcomes = at_once(&lab, |n| {
        let from = 24 + (n as i64 % 3);
        wish(
            &lab,
            &[resources[n % 2]],
            from,
            from + 3,
            "FREQ=DAILY;COUNT=20",
        )
    })
    .await;
    let (made, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!(made.len(), 1);
    for refusal in refused {
        assert!(
            matches!(refusal, Err(Error::Conflict { .. })),
            "{refusal:?}"
        );
    }
    assert_eq!(all_series(&lab, &lab.admin).await, 1);
    let mut reader = lab.app.store.read().await.expect("a look");
    let (claims, holding) = berth_store::claims::counts(&mut reader)
        .await
        .expect("counts");
    assert_eq!((claims, holding), (20, 20));
}

async fn many_at_once_share_what_there_is(lab: Lab) {
    // Each wants ten days, beginning a day later than the one before: every day is wanted by several.
    let outcomes = at_once(&lab, |n| {
        let from = 24 * (1 + n as i64);
        let mut new = wish(&lab, &["gpu-01"], from, from + 20, "FREQ=DAILY;COUNT=10");
        new.on_conflict = OnConflict::Skip;
        new
    })
    .await;
    let mut days = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(view) => {
                assert_eq!(view.instances.len() + view.skipped.len(), 10);
                days.extend(starts(&lab, &view));
            }
            // Everything it wanted was gone.
            Err(Error::Conflict { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    days.sort_unstable();
    let every_day: Vec<i64> = (1..=AT_ONCE as i64 + 9).map(|day| day * 24).collect();
    assert_eq!(days, every_day, "each day once, and none is lost");
}
