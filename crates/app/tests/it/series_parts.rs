//! Parts of series, on both databases: one instance, from one on, or all; changed, cancelled and seen.

use crate::support::series::{WEEKLY, all_series, at, change, series, starts, week, wish};
use crate::support::{Lab, on_both, site};
use berth_app::Error;
use berth_app::reservations::{Part, SeriesChange, SeriesView};
use berth_model::Reference;
use berth_model::reservation::{Privacy, State};
use jiff::SignedDuration;
use jiff::civil::time;

on_both!(
    one_instance_may_differ,
    a_change_of_all_leaves_alone_what_differs_or_has_begun,
    what_moves_does_not_trip_over_its_neighbours,
    a_change_that_cannot_be_done_for_one_is_done_for_none,
    a_change_of_what_follows_makes_two_series,
    each_part_can_be_cancelled,
    what_was_handed_over_is_left_alone,
    others_see_and_do_what_they_may,
);

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
