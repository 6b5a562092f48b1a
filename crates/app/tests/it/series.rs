//! Booking series, on both databases: whole, or with what is left out; beside policies, and many at once.

use crate::support::series::{
    WEEKLY, all_series, at, change, series, starts, try_series, week, wish,
};
use crate::support::{Lab, on_both, site};
use berth_app::desk::AlternativeKind;
use berth_app::policies::PolicyAt;
use berth_app::reservations::{Item, NewSeries, OnConflict, Part, SeriesView};
use berth_app::settlement::Mode;
use berth_app::{Error, Once};
use berth_model::Span;
use berth_model::reservation::State;
use jiff::civil::date;
use jiff::{SignedDuration, Timestamp};

on_both!(
    every_instance_is_a_booking_of_its_own,
    all_or_nothing_leaves_nothing_behind,
    what_is_taken_is_left_out_and_listed,
    amounts_that_do_not_fit_are_left_out,
    hours_stay_what_they_are_when_the_clocks_change,
    a_preview_says_it_all_and_books_nothing,
    a_key_makes_one_series,
    what_cannot_be_a_series_is_refused_by_field,
    policies_count_the_instances_together,
    buffers_are_held_around_every_instance,
    of_many_at_once_one_gets_it,
    many_at_once_share_what_there_is,
    a_refused_series_comes_with_others_that_all_of_it_could_have,
);

async fn a_refused_series_comes_with_others_that_all_of_it_could_have(lab: Lab) {
    let third = week(2);
    lab.book(&lab.bob, &["gpu-01.gpu0"], third, third + 1).await;
    let wanted = wish(&lab, &["gpu-01.gpu0"], 24, 26, WEEKLY);
    let refused = try_series(&lab, &lab.ada, &wanted).await;
    let Err(Error::Conflict { alternatives, .. }) = refused else {
        panic!("the third is taken: {refused:?}");
    };
    let kinds: Vec<_> = alternatives.iter().map(|one| one.kind).collect();
    assert!(kinds.contains(&AlternativeKind::Elsewhere), "{kinds:?}");
    assert!(kinds.contains(&AlternativeKind::Time), "{kinds:?}");
    // Each is booked as it was offered.
    for offered in alternatives {
        let [part] = &offered.parts[..] else {
            panic!("a series is not split: {offered:?}");
        };
        let mut other = wanted.clone();
        other.first.span = part.span;
        other.first.items = part
            .resources
            .iter()
            .map(|resource| Item {
                resource: (*resource).into(),
                amount: offered.take.amount(),
            })
            .collect();
        let view = series(&lab, &lab.ada, &other).await;
        assert_eq!(view.instances.len(), 4);
        let version = view.series.version;
        lab.app
            .cancel_series(
                &lab.ada,
                &site(),
                view.series.id,
                Some(version),
                Part::All,
                None,
            )
            .await
            .expect("it is theirs");
    }
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
    ada.once = Some(Once::create("k".into(), [7; 32]));
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
    ada.once = Some(Once::create("k".into(), [8; 32]));
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
