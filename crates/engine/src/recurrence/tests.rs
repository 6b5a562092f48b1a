use jiff::civil::{Time, date, datetime, time};
use proptest::prelude::*;

use super::oracle::a_series;
use super::*;

fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

fn minutes(minutes: i64) -> SignedDuration {
    SignedDuration::from_mins(minutes)
}

fn series(zone: &str, start: DateTime, length: SignedDuration, rule: &str) -> Pattern {
    Pattern::new(Terms {
        start,
        length,
        time_zone: zone.parse().unwrap(),
        recurrence: rule.parse().unwrap(),
        except: [].into(),
    })
    .unwrap()
}

/// The instances as a wall clock shows them, with its offset: `29T03:30+02 30T06:00+02`.
fn shown(pattern: &Pattern) -> Vec<String> {
    let zone = pattern.time_zone.rules();
    let show = |at: Timestamp| {
        let zoned = at.to_zoned(zone.clone());
        let shown = zoned.strftime("%dT%H:%M%:z").to_string();
        shown
            .strip_suffix(":00")
            .map(str::to_owned)
            .unwrap_or(shown)
    };
    let instances = expand(pattern).unwrap().into_iter();
    instances
        .map(|one| format!("{} {}", show(one.span.start()), show(one.span.end())))
        .collect()
}

/// One day's instance of a daily series that began the day before.
fn on(zone: &str, day: Date, from: Time, length: SignedDuration) -> String {
    let start = day.yesterday().unwrap().to_datetime(from);
    shown(&series(zone, start, length, "FREQ=DAILY;COUNT=3")).remove(1)
}

const ROME: &str = "Europe/Rome";
const FORWARD: Date = date(2026, 3, 29);
const BACK: Date = date(2026, 10, 25);

#[test]
fn working_hours_stay_working_hours() {
    let nine = time(9, 0, 0, 0);
    assert_eq!(on(ROME, FORWARD, nine, hours(8)), "29T09:00+02 29T17:00+02");
    assert_eq!(on(ROME, BACK, nine, hours(8)), "25T09:00+01 25T17:00+01");
    let whole_days = series(
        ROME,
        datetime(2026, 3, 28, 0, 0, 0, 0),
        hours(24),
        "FREQ=DAILY;COUNT=3",
    );
    let expected = [
        "28T00:00+01 29T00:00+01",
        "29T00:00+01 30T00:00+02",
        "30T00:00+02 31T00:00+02",
    ];
    assert_eq!(shown(&whole_days), expected);
}

#[test]
fn nights_hand_over_to_days_in_every_night() {
    for (change, lengths) in [(FORWARD, [12, 11, 12]), (BACK, [12, 13, 12])] {
        let eve = change.yesterday().unwrap();
        let rule = "FREQ=DAILY;COUNT=3";
        let nights = eve.yesterday().unwrap().at(20, 0, 0, 0);
        let nights = expand(&series(ROME, nights, hours(12), rule)).unwrap();
        let days = expand(&series(ROME, eve.at(8, 0, 0, 0), hours(12), rule)).unwrap();
        for (night, day) in nights.iter().zip(&days) {
            assert_eq!(night.span.end(), day.span.start());
        }
        for (day, night) in days.iter().zip(&nights[1..]) {
            assert_eq!(day.span.end(), night.span.start());
        }
        let found: Vec<i64> = nights
            .iter()
            .map(|one| one.span.duration().as_hours())
            .collect();
        assert_eq!(found, lengths, "the night of {change}");
    }
}

#[test]
fn rome_skips_an_hour_and_has_one_twice() {
    let skipped = |from, length| on(ROME, FORWARD, from, length);
    assert_eq!(
        skipped(time(2, 30, 0, 0), hours(4)),
        "29T03:30+02 29T06:30+02"
    );
    assert_eq!(
        skipped(time(2, 0, 0, 0), hours(4)),
        "29T03:00+02 29T06:00+02"
    );
    assert_eq!(
        skipped(time(1, 0, 0, 0), minutes(90)),
        "29T01:00+01 29T03:00+02"
    );
    assert_eq!(
        skipped(time(1, 0, 0, 0), minutes(60)),
        "29T01:00+01 29T03:00+02"
    );
    assert_eq!(
        skipped(time(1, 0, 0, 0), minutes(120)),
        "29T01:00+01 29T03:00+02"
    );
    // These would be empty, so they keep their length.
    assert_eq!(
        skipped(time(2, 0, 0, 0), minutes(60)),
        "29T03:00+02 29T04:00+02"
    );
    assert_eq!(
        skipped(time(2, 15, 0, 0), minutes(30)),
        "29T03:15+02 29T03:45+02"
    );
    assert_eq!(
        skipped(time(2, 30, 0, 0), minutes(60)),
        "29T03:30+02 29T04:30+02"
    );

    let twice = |from, length| on(ROME, BACK, from, length);
    assert_eq!(
        twice(time(2, 30, 0, 0), hours(1)),
        "25T02:30+02 25T03:30+01"
    );
    assert_eq!(
        twice(time(1, 0, 0, 0), minutes(90)),
        "25T01:00+02 25T02:30+02"
    );
    assert_eq!(
        twice(time(2, 15, 0, 0), minutes(30)),
        "25T02:15+02 25T02:45+02"
    );
    assert_eq!(twice(time(2, 0, 0, 0), hours(1)), "25T02:00+02 25T03:00+01");
}

/// The two examples of RFC 5545, 3.3.5, as instances of a series.
#[test]
fn new_york_as_the_rfc_has_it() {
    let on = |day, from| on("America/New_York", day, from, hours(6));
    assert_eq!(
        on(date(2007, 3, 11), time(2, 30, 0, 0)),
        "11T03:30-04 11T08:30-04"
    );
    assert_eq!(
        on(date(2007, 11, 4), time(1, 30, 0, 0)),
        "04T01:30-04 04T07:30-05"
    );
    let rule = "FREQ=MONTHLY;BYDAY=2SU;COUNT=3";
    let sundays = series(
        "America/New_York",
        datetime(2026, 2, 8, 2, 30, 0, 0),
        hours(6),
        rule,
    );
    let expected = [
        "08T02:30-05 08T08:30-05",
        "08T03:30-04 08T08:30-04",
        "12T02:30-04 12T08:30-04",
    ];
    assert_eq!(shown(&sundays), expected);
}

#[test]
fn lord_howe_changes_by_half_an_hour() {
    let on = |day, from, length| on("Australia/Lord_Howe", day, from, length);
    let (forward, back) = (date(2026, 10, 4), date(2026, 4, 5));
    assert_eq!(
        on(forward, time(2, 15, 0, 0), hours(2)),
        "04T02:45+11 04T04:15+11"
    );
    assert_eq!(
        on(forward, time(1, 0, 0, 0), minutes(75)),
        "04T01:00+10:30 04T02:30+11"
    );
    assert_eq!(
        on(forward, time(2, 0, 0, 0), minutes(30)),
        "04T02:30+11 04T03:00+11"
    );
    assert_eq!(
        on(back, time(1, 45, 0, 0), hours(2)),
        "05T01:45+11 05T03:45+10:30"
    );
    assert_eq!(
        on(back, time(1, 0, 0, 0), minutes(45)),
        "05T01:00+11 05T01:45+11"
    );
}

/// Santiago's clocks go on at midnight, so that a day begins at 01:00.
#[test]
fn a_day_without_a_midnight_touches_its_neighbours() {
    let start = datetime(2024, 9, 7, 0, 0, 0, 0);
    let days = series("America/Santiago", start, hours(24), "FREQ=DAILY;COUNT=3");
    let expected = [
        "07T00:00-04 08T01:00-03",
        "08T01:00-03 09T00:00-03",
        "09T00:00-03 10T00:00-03",
    ];
    assert_eq!(shown(&days), expected);
}

/// Samoa crossed the date line: after 29 December 2011 came the 31st.
#[test]
fn a_day_that_a_zone_skips_is_no_instance_and_does_not_count() {
    let apia = |start, length, rule: &str| series("Pacific/Apia", start, length, rule);
    let days = |pattern: &Pattern| {
        let ids = expand(pattern).unwrap().into_iter().map(|one| one.id);
        ids.map(|id| (id.month(), id.day())).collect::<Vec<_>>()
    };
    let daily = apia(
        datetime(2011, 12, 28, 10, 0, 0, 0),
        hours(2),
        "FREQ=DAILY;COUNT=4",
    );
    assert_eq!(days(&daily), [(12, 28), (12, 29), (12, 31), (1, 1)]);
    assert_eq!(
        shown(&daily)[1..3],
        ["29T10:00-10 29T12:00-10", "31T10:00+14 31T12:00+14"]
    );
    let fridays = apia(
        datetime(2011, 12, 23, 10, 0, 0, 0),
        hours(2),
        "FREQ=WEEKLY;COUNT=3",
    );
    assert_eq!(days(&fridays), [(12, 23), (1, 6), (1, 13)]);
    let until = apia(
        datetime(2011, 12, 29, 10, 0, 0, 0),
        hours(2),
        "FREQ=DAILY;UNTIL=20111230",
    );
    assert_eq!(days(&until), [(12, 29)]);
    let nights = apia(
        datetime(2011, 12, 28, 22, 0, 0, 0),
        hours(8),
        "FREQ=DAILY;COUNT=3",
    );
    let expected = [
        "28T22:00-10 29T06:00-10",
        "29T22:00-10 31T00:00+14",
        "31T22:00+14 01T06:00+14",
    ];
    assert_eq!(shown(&nights), expected);
}

fn ids(rule: &str, start: Date) -> Vec<String> {
    let pattern = series("UTC", start.at(9, 0, 0, 0), hours(1), rule);
    let instances = expand(&pattern).unwrap().into_iter();
    instances.map(|one| one.id.date().to_string()).collect()
}

#[test]
fn days_that_a_month_does_not_have_are_skipped() {
    let short = ids("FREQ=MONTHLY;COUNT=4", date(2026, 1, 31));
    assert_eq!(
        short,
        ["2026-01-31", "2026-03-31", "2026-05-31", "2026-07-31"]
    );
    let fifth = ids("FREQ=MONTHLY;BYDAY=-5MO;COUNT=3", date(2026, 3, 2));
    assert_eq!(fifth, ["2026-03-02", "2026-06-01", "2026-08-03"]);
}

/// The oracle reads this as the days that match both; the RFC means either.
#[test]
fn days_with_and_without_a_place_stand_side_by_side() {
    let found = ids("FREQ=MONTHLY;BYDAY=MO,-1FR;COUNT=6", date(2026, 3, 2));
    let expected = ["02", "09", "16", "23", "27", "30"].map(|day| format!("2026-03-{day}"));
    assert_eq!(found, expected);
}

#[test]
fn an_end_includes_itself() {
    let starts = |end: &str| ids(&format!("FREQ=DAILY;UNTIL={end}"), date(2026, 3, 1)).len();
    assert_eq!(starts("20260303"), 3);
    assert_eq!(starts("20260303T090000Z"), 3);
    assert_eq!(starts("20260303T085959Z"), 2);
    // In the pattern's own zone a last day is a local day: 08:00 in Auckland is the day before in UTC.
    let start = datetime(2026, 7, 1, 8, 0, 0, 0);
    for end in ["20260702", "20260701T200000Z"] {
        let rule = format!("FREQ=DAILY;UNTIL={end}");
        let pattern = series("Pacific/Auckland", start, hours(1), &rule);
        assert_eq!(expand(&pattern).unwrap().len(), 2, "{end}");
    }
}

#[test]
fn a_rule_that_reaches_too_far_is_refused_with_the_end_that_would_do() {
    let start = datetime(2026, 1, 1, 9, 0, 0, 0);
    let expanded = |rule: &str| expand(&series("UTC", start, hours(1), rule));
    let refused = |rule: &str| expanded(rule).unwrap_err().to_string();
    assert_eq!(
        refused("FREQ=DAILY;UNTIL=20301231"),
        "the rule makes more than 1000 instances: end it with `COUNT=1000` or `UNTIL=20280926`"
    );
    assert_eq!(expanded("FREQ=DAILY;UNTIL=20280926").unwrap().len(), 1000);
    assert_eq!(expanded("FREQ=DAILY;COUNT=1000").unwrap().len(), 1000);
    assert_eq!(
        refused("FREQ=MONTHLY;COUNT=62"),
        "only 61 of the 62 instances start within five years: end the rule with `COUNT=61`"
    );
    assert_eq!(expanded("FREQ=MONTHLY;COUNT=61").unwrap().len(), 61);
    let early = series(
        "Pacific/Auckland",
        datetime(2000, 1, 1, 9, 0, 0, 0),
        hours(1),
        "FREQ=DAILY;COUNT=2",
    );
    assert!(
        matches!(expand(&early), Err(ExpandError::Span(_))),
        "it starts in 1999"
    );
}

#[test]
fn an_exception_counts_and_keeps_the_others_names() {
    let start = datetime(2026, 3, 1, 9, 0, 0, 0);
    let whole = series(ROME, start, hours(1), "FREQ=DAILY;COUNT=4");
    let third = start + 2.days();
    let without = except(&whole, third).unwrap();
    let mut expected = expand(&whole).unwrap();
    expected.remove(2);
    assert_eq!(expand(&without).unwrap(), expected);
    let again = except(&without, third).unwrap_err();
    assert_eq!(again, EditError::NoInstance(third));
    assert_eq!(
        again.to_string(),
        "the series has no instance that starts at 2026-03-03T09:00:00: name one of those in its preview"
    );
    for stranger in [start + 4.days(), start + 1.hour(), start - 1.day()] {
        assert_eq!(
            except(&whole, stranger),
            Err(EditError::NoInstance(stranger))
        );
        assert_eq!(
            split(&whole, stranger),
            Err(EditError::NoInstance(stranger))
        );
    }
}

#[test]
fn a_series_is_cut_with_its_kind_of_end() {
    let start = datetime(2026, 10, 23, 2, 30, 0, 0);
    let cut = |end: &str, days: i64| {
        let whole = series(ROME, start, hours(1), &format!("FREQ=DAILY;{end}"));
        let halves = split(&whole, start + days.days()).unwrap();
        let rule = |pattern: Pattern| (pattern.start.day(), pattern.recurrence.to_string());
        (halves.before.map(rule), rule(halves.rest))
    };
    let daily = |day, end: &str| (day, format!("FREQ=DAILY;{end}"));
    let expected = (Some(daily(23, "COUNT=3")), daily(26, "COUNT=7"));
    assert_eq!(cut("COUNT=10", 3), expected);
    let expected = (
        Some(daily(23, "UNTIL=20261025")),
        daily(26, "UNTIL=20261101"),
    );
    assert_eq!(cut("UNTIL=20261101", 3), expected);
    let until = "UNTIL=20261101T120000Z";
    let expected = (Some(daily(23, "UNTIL=20261025T003000Z")), daily(26, until));
    assert_eq!(cut(until, 3), expected);
    assert_eq!(cut("COUNT=10", 0), (None, daily(23, "COUNT=10")));
    assert_eq!(
        cut("COUNT=10", 9),
        (Some(daily(23, "COUNT=9")), daily(1, "COUNT=1"))
    );

    let whole = series(ROME, start, hours(1), "FREQ=DAILY;COUNT=3");
    let without = except(&whole, start).unwrap();
    let halves = split(&without, start + 1.day()).unwrap();
    assert_eq!(halves.before, None, "what had only an exception is nothing");
}

#[test]
fn a_preview_says_what_is_unusual() {
    let start = datetime(2026, 3, 28, 2, 30, 0, 0);
    let skipping = series(ROME, start, hours(4), "FREQ=DAILY;COUNT=4");
    let skipping = except(&skipping, start + 2.days()).unwrap();
    let found = preview(&skipping).unwrap();
    assert_eq!(found.left_out, [start + 2.days()]);
    let remarks = |preview: &Preview| {
        let remarks = preview.lines.iter().map(|line| line.remark);
        let texts = remarks.map(|remark| remark.map_or(String::new(), |remark| remark.to_string()));
        texts.collect::<Vec<_>>()
    };
    let moved = "starts at 03:30:00, because the clocks go forward";
    assert_eq!(remarks(&found), ["", moved, ""]);
    let line = &found.lines[1];
    assert_eq!(line.instance.id, start + 1.day());
    assert_eq!(
        (line.from, line.to),
        (start + 25.hours(), start + 28.hours())
    );

    let nights = |start| series(ROME, start, hours(12), "FREQ=DAILY;COUNT=2");
    let forward = preview(&nights(datetime(2026, 3, 27, 20, 0, 0, 0))).unwrap();
    assert_eq!(
        remarks(&forward),
        ["", "1h shorter, because the clocks go forward"]
    );
    let back = preview(&nights(datetime(2026, 10, 24, 20, 0, 0, 0))).unwrap();
    assert_eq!(
        remarks(&back),
        ["1h longer, because the clocks go back", ""]
    );
}

/// The largest possible series, with every second instance removed, cut at typical places.
#[test]
fn a_thousand_instances_are_no_burden() {
    let start = datetime(2026, 1, 1, 2, 30, 0, 0);
    let whole = series(ROME, start, hours(3), "FREQ=DAILY;COUNT=1000");
    let all = expand(&whole).unwrap();
    let mut terms = Terms::clone(&whole);
    terms.except = all.iter().skip(1).step_by(2).map(|one| one.id).collect();
    let sparse = Pattern::new(terms).unwrap();
    let kept = expand(&sparse).unwrap();
    assert_eq!((all.len(), kept.len()), (1000, 500));
    for one in kept.iter().step_by(100) {
        let halves = split(&sparse, one.id).unwrap();
        let before = halves
            .before
            .map_or(0, |before| expand(&before).unwrap().len());
        assert_eq!(before + expand(&halves.rest).unwrap().len(), 500);
    }
}

const CHANGING: [&str; 7] = [
    ROME,
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Antarctica/Troll",
    "Africa/Casablanca",
    "Pacific/Apia",
];

/// Any hour in zones whose clocks change, the hours of the changes included.
fn anywhere() -> BoxedStrategy<(&'static str, Time)> {
    let time =
        (0i64..96).prop_map(|quarter| time(0, 0, 0, 0).saturating_add((15 * quarter).minutes()));
    (prop::sample::select(CHANGING.to_vec()), time).boxed()
}

/// A clock change, and three different times of day around it.
fn near_a_change() -> impl Strategy<Value = (TimeZone, Timestamp, [DateTime; 3])> {
    let zone = prop::sample::select(CHANGING.to_vec());
    let quarters = prop::array::uniform3(-20i64..20).prop_filter("all differ", |at| {
        at[0] != at[1] && at[1] != at[2] && at[0] != at[2]
    });
    let drawn = (zone, 0usize..20, quarters).prop_map(|(zone, nth, mut quarters)| {
        quarters.sort_unstable();
        let zone = TimeZone::get(zone).unwrap();
        let from = Timestamp::from_second(1_262_304_000).unwrap(); // 2010
        let changes: Vec<Timestamp> = zone
            .following(from)
            .take(20)
            .map(|it| it.timestamp())
            .collect();
        let change = *changes.get(nth).or(changes.last()).unwrap();
        let around = zone.to_datetime(change - minutes(1)) + minutes(1);
        (
            zone,
            change,
            quarters.map(|quarter| around + minutes(15 * quarter)),
        )
    });
    drawn.boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Checked by reading the clock every quarter of an hour. A time that the clock shows is the first moment at
    /// which it does. A skipped time starts as late as without the skip, and ends at the skip.
    #[test]
    fn a_time_is_when_the_clock_shows_it((zone, change, [civil, ..]) in near_a_change()) {
        let quarters = (-150..150).map(|quarter| change + minutes(15 * quarter));
        let first = quarters.into_iter().find(|at| zone.to_datetime(*at) == civil);
        let (start, end) = (start_of(&zone, civil), end_of(&zone, civil));
        match first {
            Some(first) => prop_assert_eq!((start, end), (first, first)),
            None => {
                let stopped = zone.to_datetime(change - minutes(1)) + minutes(1);
                let late = civil.duration_since(stopped);
                prop_assert_eq!((start, end), (change + late, change));
            }
        }
    }

    /// An instance that follows another on the wall clock follows it in time, except one that the clock change left
    /// empty.
    #[test]
    fn neighbours_do_not_overlap((zone, _, [a, b, c]) in near_a_change()) {
        let first = span_of(&zone, a, b.duration_since(a)).unwrap();
        let second = span_of(&zone, b, c.duration_since(b)).unwrap();
        let is_whole = start_of(&zone, a) < end_of(&zone, b);
        prop_assert!(!is_whole || first.end() <= second.start(), "{first:?} {second:?}");
    }

    #[test]
    fn a_series_cut_in_two_is_the_same_series(
        series in a_series(anywhere()), place in any::<prop::sample::Index>(),
    ) {
        let Some(whole) = series else { return Ok(()) };
        let Ok(instances) = expand(&whole) else { return Ok(()) };
        for pair in instances.windows(2) {
            prop_assert!(pair[0].id < pair[1].id && pair[0].span.start() < pair[1].span.start());
        }
        if instances.is_empty() {
            return Ok(());
        }
        let place = place.index(instances.len());
        let halves = split(&whole, instances[place].id).unwrap();
        let before = halves.before.map_or(vec![], |before| expand(&before).unwrap());
        prop_assert_eq!(&before[..], &instances[..place]);
        prop_assert_eq!(&expand(&halves.rest).unwrap()[..], &instances[place..]);
    }
}
