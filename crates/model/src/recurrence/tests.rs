use jiff::SignedDuration;
use jiff::civil::{Date, date, datetime};
use proptest::prelude::*;

use super::*;

fn rule(text: &str) -> Recurrence {
    text.parse().unwrap()
}

fn refusal(text: &str) -> String {
    text.parse::<Recurrence>().unwrap_err().to_string()
}

/// The days of a month on which a rule falls that is counted from `start`.
fn days(text: &str, start: Date, month: Date) -> Vec<i8> {
    let rule = rule(text);
    let days = (1..=month.days_in_month()).filter(|day| {
        let day = month.with().day(*day).build().unwrap();
        rule.falls_on(start, day)
    });
    days.collect()
}

#[test]
fn a_rule_prints_in_one_form() {
    for (written, printed) in [
        ("FREQ=DAILY;COUNT=3", "FREQ=DAILY;COUNT=3"),
        ("RRULE:FREQ=DAILY;COUNT=3", "FREQ=DAILY;COUNT=3"),
        (
            " freq=weekly;byday=mo,we;count=10 ",
            "FREQ=WEEKLY;BYDAY=MO,WE;COUNT=10",
        ),
        (
            "COUNT=1;INTERVAL=1;FREQ=WEEKLY;WKST=MO",
            "FREQ=WEEKLY;COUNT=1",
        ),
        (
            "FREQ=WEEKLY;INTERVAL=2;WKST=SU;COUNT=4",
            "FREQ=WEEKLY;INTERVAL=2;COUNT=4;WKST=SU",
        ),
        (
            "FREQ=WEEKLY;BYDAY=SU,MO,SU;COUNT=4",
            "FREQ=WEEKLY;BYDAY=MO,SU;COUNT=4",
        ),
        (
            "FREQ=MONTHLY;BYDAY=+2TU,-1FR;COUNT=4",
            "FREQ=MONTHLY;BYDAY=-1FR,2TU;COUNT=4",
        ),
        (
            "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13,-1;UNTIL=20261231",
            "FREQ=MONTHLY;BYMONTHDAY=-1,13;BYDAY=FR;UNTIL=20261231",
        ),
        (
            "FREQ=DAILY;UNTIL=20261231t225959z",
            "FREQ=DAILY;UNTIL=20261231T225959Z",
        ),
    ] {
        assert_eq!(rule(written).to_string(), printed);
    }
    let json = serde_json::to_string(&rule("FREQ=DAILY;COUNT=3")).unwrap();
    assert_eq!(json, r#""FREQ=DAILY;COUNT=3""#);
    assert!(serde_json::from_str::<Recurrence>(r#""FREQ=DAILY""#).is_err());
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    for (text, expected) in [
        (
            "",
            "`` is not a part of a rule: write it like `FREQ=WEEKLY;BYDAY=MO,WE;COUNT=10`",
        ),
        ("every monday", "`EVERY MONDAY` is not a part of a rule"),
        ("FREQ=DAILY;COUNT=2;", "`` is not a part of a rule"),
        (
            "FREQ=DAILY;COUNT=2;BYSETPOS=1",
            "`BYSETPOS` is not supported: a rule has FREQ, INTERVAL",
        ),
        ("FREQ=DAILY;COUNT=2;BYHOUR=9", "`BYHOUR` is not supported"),
        (
            "FREQ=YEARLY;COUNT=2",
            "`FREQ=YEARLY` is not accepted: use DAILY, WEEKLY or MONTHLY",
        ),
        ("FREQ=HOURLY;COUNT=2", "`FREQ=HOURLY` is not accepted"),
        (
            "COUNT=2",
            "the rule does not say how often: begin it with FREQ=DAILY",
        ),
        (
            "FREQ=DAILY",
            "the rule has no end: add COUNT, as in `COUNT=10`, or UNTIL",
        ),
        (
            "FREQ=DAILY;COUNT=2;UNTIL=20261231",
            "the rule has both COUNT and UNTIL",
        ),
        ("FREQ=DAILY;COUNT=2;COUNT=3", "COUNT is given twice"),
        (
            "FREQ=DAILY;COUNT=0",
            "`COUNT=0` is not accepted: use a number from 1 to 1000",
        ),
        ("FREQ=DAILY;COUNT=1001", "`COUNT=1001` is not accepted"),
        ("FREQ=DAILY;COUNT=ten", "`COUNT=TEN` is not accepted"),
        (
            "FREQ=DAILY;COUNT=2;INTERVAL=0",
            "`INTERVAL=0` is not accepted: use a number from 1",
        ),
        (
            "FREQ=DAILY;COUNT=2;INTERVAL=1001",
            "`INTERVAL=1001` is not accepted",
        ),
        (
            "FREQ=WEEKLY;COUNT=2;BYDAY=XX",
            "`BYDAY=XX` is not accepted: use days such as MO,FR",
        ),
        ("FREQ=WEEKLY;COUNT=2;BYDAY=", "`BYDAY=` is not accepted"),
        (
            "FREQ=WEEKLY;COUNT=2;BYDAY=MO,",
            "`BYDAY=MO,` is not accepted",
        ),
        (
            "FREQ=WEEKLY;COUNT=2;BYDAY=\u{e9}",
            "`BYDAY=\u{e9}` is not accepted",
        ),
        (
            "FREQ=WEEKLY;COUNT=2;BYDAY=2TU",
            "`BYDAY=2TU` is not accepted",
        ),
        (
            "FREQ=DAILY;COUNT=2;BYDAY=-1FR",
            "`BYDAY=-1FR` is not accepted",
        ),
        (
            "FREQ=MONTHLY;COUNT=2;BYDAY=0TU",
            "`BYDAY=0TU` is not accepted",
        ),
        (
            "FREQ=MONTHLY;COUNT=2;BYDAY=6TU",
            "`BYDAY=6TU` is not accepted",
        ),
        (
            "FREQ=MONTHLY;COUNT=2;BYMONTHDAY=0",
            "`BYMONTHDAY=0` is not accepted: use days from 1",
        ),
        (
            "FREQ=MONTHLY;COUNT=2;BYMONTHDAY=32",
            "`BYMONTHDAY=32` is not accepted",
        ),
        (
            "FREQ=WEEKLY;COUNT=2;BYMONTHDAY=1",
            "`BYMONTHDAY=1` is not accepted",
        ),
        (
            "FREQ=DAILY;UNTIL=20260231",
            "`UNTIL=20260231` is not accepted: use the last day",
        ),
        (
            "FREQ=DAILY;UNTIL=20261231T235959",
            "`UNTIL=20261231T235959` is not accepted",
        ),
        (
            "FREQ=DAILY;UNTIL=19991231",
            "`UNTIL=19991231` is not accepted",
        ),
        (
            "FREQ=DAILY;UNTIL=2026-1-1",
            "`UNTIL=2026-1-1` is not accepted",
        ),
        (
            "FREQ=DAILY;COUNT=2;WKST=1",
            "`WKST=1` is not accepted: use MO, TU, WE",
        ),
    ] {
        let said = refusal(text);
        assert!(said.starts_with(expected), "{text:?}: {said}");
    }
    assert!(
        refusal(&"x".repeat(10_000)).len() < 200,
        "what was wrong is quoted, not all of it"
    );
}

#[test]
fn days_of_weeks_and_months() {
    let march = date(2026, 3, 1); // a Sunday
    let on = |text: &str, start| days(text, start, march);
    assert_eq!(
        on("FREQ=DAILY;INTERVAL=10;COUNT=9", date(2026, 2, 28)),
        [10, 20, 30]
    );
    assert_eq!(
        on(
            "FREQ=DAILY;BYDAY=SA;BYMONTHDAY=7,-1;COUNT=9",
            date(2026, 2, 1)
        ),
        [7]
    );
    assert_eq!(
        on("FREQ=WEEKLY;COUNT=9", date(2026, 3, 3)),
        [3, 10, 17, 24, 31]
    );
    assert_eq!(
        on("FREQ=WEEKLY;BYDAY=MO,SU;COUNT=9", date(2026, 3, 9)),
        [9, 15, 16, 22, 23, 29, 30]
    );
    assert_eq!(on("FREQ=MONTHLY;COUNT=9", date(2026, 1, 31)), [31]);
    assert_eq!(
        days("FREQ=MONTHLY;COUNT=9", date(2026, 1, 31), date(2026, 4, 1)),
        [0i8; 0]
    );
    assert_eq!(
        on("FREQ=MONTHLY;INTERVAL=2;COUNT=9", date(2025, 12, 5)),
        [0i8; 0]
    );
    assert_eq!(
        on("FREQ=MONTHLY;INTERVAL=3;COUNT=9", date(2025, 12, 5)),
        [5]
    );
    assert_eq!(
        on("FREQ=MONTHLY;BYDAY=1SU,2TU,5TU,-1FR,-5SU;COUNT=9", march),
        [1, 10, 27, 31]
    );
    assert_eq!(
        on("FREQ=MONTHLY;BYMONTHDAY=1,-1,-31,30;COUNT=9", march),
        [1, 30, 31]
    );
    assert_eq!(
        on("FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR;COUNT=9", march),
        [13]
    );
    assert_eq!(
        on("FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=1FR;COUNT=9", march),
        [0i8; 0]
    );
}

/// The RFC's own example of what WKST is for.
#[test]
fn the_week_begins_where_the_rule_says() {
    let fortnightly = "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;COUNT=4";
    let (start, august) = (date(1997, 8, 5), date(1997, 8, 1));
    assert_eq!(days(fortnightly, start, august), [5, 10, 19, 24]);
    let from_sunday = format!("{fortnightly};WKST=SU");
    assert_eq!(days(&from_sunday, start, august), [5, 17, 19, 31]);
}

fn terms(text: &str) -> Terms {
    Terms {
        start: datetime(2026, 3, 4, 9, 0, 0, 0), // a Wednesday
        length: SignedDuration::from_hours(8),
        time_zone: "Europe/Rome".parse().unwrap(),
        recurrence: rule(text),
        except: [].into(),
    }
}

#[test]
fn a_pattern_travels_as_its_terms() {
    let mut terms = terms("FREQ=WEEKLY;BYDAY=WE,FR;COUNT=6");
    terms.except.insert(datetime(2026, 3, 6, 9, 0, 0, 0));
    let pattern = Pattern::new(terms).unwrap();
    let json = serde_json::to_string(&pattern).unwrap();
    let expected = concat!(
        r#"{"start":"2026-03-04T09:00:00","length":"PT8H","time_zone":"Europe/Rome","#,
        r#""recurrence":"FREQ=WEEKLY;BYDAY=WE,FR;COUNT=6","except":["2026-03-06T09:00:00"]}"#
    );
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_str::<Pattern>(&json).unwrap(), pattern);
    let unknown = json.replace("except", "exdate");
    assert!(serde_json::from_str::<Pattern>(&unknown).is_err());
    let off_rule = json.replace("-04T", "-05T");
    assert!(serde_json::from_str::<Pattern>(&off_rule).is_err());
}

#[test]
fn terms_that_do_not_go_together_are_refused_with_what_would() {
    let refused = |terms: Terms| Pattern::new(terms).unwrap_err().to_string();
    let count = || terms("FREQ=DAILY;COUNT=5");
    for (terms, expected) in [
        (
            terms("FREQ=WEEKLY;INTERVAL=3;BYDAY=MO,TU;COUNT=5"),
            "`FREQ=WEEKLY;INTERVAL=3;BYDAY=MO,TU;COUNT=5` does not fall on 2026-03-04, the start: \
             start the series on 2026-03-09, or change the rule",
        ),
        (
            terms("FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=1FR;COUNT=5"),
            "`FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=1FR;COUNT=5` falls on no day in five years: \
             change its BYDAY or BYMONTHDAY",
        ),
        (
            terms("FREQ=DAILY;UNTIL=20260303"),
            "`FREQ=DAILY;UNTIL=20260303` ends before 2026-03-04T09:00:00, the start: \
             give it a later UNTIL",
        ),
        (
            terms("FREQ=DAILY;UNTIL=20260304T075959Z"),
            "`FREQ=DAILY;UNTIL=20260304T075959Z` ends before 2026-03-04T09:00:00, the start: \
             give it a later UNTIL",
        ),
        (
            terms("FREQ=MONTHLY;UNTIL=20310305"),
            "a series may run for five years: give it `UNTIL=20310304` or an earlier one",
        ),
        (
            terms("FREQ=MONTHLY;UNTIL=20310304T230000Z"),
            "a series may run for five years: give it `UNTIL=20310304` or an earlier one",
        ),
        (
            Terms {
                length: SignedDuration::ZERO,
                ..count()
            },
            "an instance must be longer than nothing and at most 366 days long",
        ),
        (
            Terms {
                length: SignedDuration::from_hours(366 * 24 + 1),
                ..count()
            },
            "an instance must be longer than nothing and at most 366 days long",
        ),
        (
            Terms {
                length: SignedDuration::from_millis(1500),
                ..count()
            },
            "a series is kept to the second: \
             write its start, length and exceptions without fractions",
        ),
        (
            Terms {
                start: datetime(2191, 1, 1, 0, 0, 0, 0),
                ..count()
            },
            "2191-01-01T00:00:00 is too far away: a series starts in the years 2000 to 2190",
        ),
        (
            Terms {
                start: datetime(2011, 12, 30, 9, 0, 0, 0),
                time_zone: "Pacific/Apia".parse().unwrap(),
                ..count()
            },
            "there is no 2011-12-30 in Pacific/Apia: the clocks there skip that day. \
             Start on another",
        ),
        (
            Terms {
                except: [datetime(2026, 3, 5, 10, 0, 0, 0)].into(),
                ..count()
            },
            "2026-03-05T10:00:00 is left out, but is no start of this series: \
             leave out starts that it has",
        ),
        (
            Terms {
                except: [datetime(2026, 3, 3, 9, 0, 0, 0)].into(),
                ..count()
            },
            "2026-03-03T09:00:00 is left out, but is no start of this series: \
             leave out starts that it has",
        ),
    ] {
        assert_eq!(refused(terms), expected);
    }
    for good in [
        "FREQ=DAILY;UNTIL=20260304",
        "FREQ=DAILY;UNTIL=20260304T080000Z",
        "FREQ=MONTHLY;UNTIL=20310304",
        "FREQ=MONTHLY;UNTIL=20310304T225959Z",
    ] {
        assert!(Pattern::new(terms(good)).is_ok(), "{good}");
    }
}

#[test]
fn another_time_of_day_leaves_the_same_days_out() {
    let mut terms = terms("FREQ=DAILY;COUNT=5");
    terms.except.insert(datetime(2026, 3, 6, 9, 0, 0, 0));
    let moved = Pattern::new(terms.at_time(jiff::civil::time(14, 30, 0, 0))).unwrap();
    assert_eq!(moved.start, datetime(2026, 3, 4, 14, 30, 0, 0));
    assert_eq!(moved.except, [datetime(2026, 3, 6, 14, 30, 0, 0)].into());
}

fn joined<T: ToString>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(T::to_string).collect();
    texts.join(",")
}

/// Rules as people and programs write them: parts in any order, values unsorted and given twice.
fn written() -> impl Strategy<Value = String> {
    let weekday = prop::sample::select(WEEKDAYS.map(|(name, _)| name).to_vec());
    let place = prop::sample::select(vec!["", "", "1", "+2", "5", "-1", "-5"]);
    let end = prop_oneof![
        (1u16..=1000).prop_map(|count| format!("COUNT={count}")),
        (2000i16..2200, 1i8..=12, 1i8..=28)
            .prop_map(|(year, month, day)| format!("UNTIL={year}{month:02}{day:02}")),
        (2000i16..2200, 0i8..24, 0i8..60)
            .prop_map(|(year, hour, minute)| format!("UNTIL={year}0301T{hour:02}{minute:02}07Z")),
    ];
    let parts = (
        prop::sample::select(FREQUENCIES.to_vec()),
        prop::option::of(1u16..=1000),
        prop::collection::vec((place, weekday.clone()), 0..5),
        prop::collection::vec((1i8..=31, any::<bool>()), 0..4),
        end,
        prop::option::of(weekday),
    );
    let text = parts.prop_map(
        |((name, frequency), interval, by_day, by_month_day, end, wkst)| {
            let mut parts = vec![format!("FREQ={name}"), end];
            parts.extend(interval.map(|interval| format!("INTERVAL={interval}")));
            parts.extend(wkst.map(|wkst| format!("WKST={wkst}")));
            let places = frequency == Frequency::Monthly;
            let day = |(place, day)| format!("{}{day}", if places { place } else { "" });
            let by_day: Vec<String> = by_day.into_iter().map(day).collect();
            parts.extend((!by_day.is_empty()).then(|| format!("BYDAY={}", joined(&by_day))));
            let day = |(day, from_end): (i8, bool)| if from_end { -day } else { day };
            let by_month_day: Vec<i8> = by_month_day.into_iter().map(day).collect();
            let is_given = !by_month_day.is_empty() && frequency != Frequency::Weekly;
            parts.extend(is_given.then(|| format!("BYMONTHDAY={}", joined(&by_month_day))));
            parts
        },
    );
    text.prop_shuffle().prop_map(|parts| parts.join(";"))
}

proptest! {
    #[test]
    fn a_rule_survives_its_text(text in written()) {
        let rule = text.parse::<Recurrence>().unwrap();
        let printed = rule.to_string();
        prop_assert_eq!(printed.parse::<Recurrence>().unwrap(), rule.clone());
        prop_assert_eq!(printed.parse::<Recurrence>().unwrap().to_string(), printed);
        let json = serde_json::to_string(&rule).unwrap();
        prop_assert_eq!(serde_json::from_str::<Recurrence>(&json).unwrap(), rule);
    }

    /// Nothing that comes in over the wire makes the reader panic.
    #[test]
    fn any_text_is_read_or_refused(text in "(FREQ|BYDAY|UNTIL|COUNT|[A-Z=;,0-9+é-]|\\PC){0,12}") {
        let _ = text.parse::<Recurrence>().map_err(|error| error.to_string());
        let _ = format!("FREQ=MONTHLY;BYDAY={text};UNTIL={text}").parse::<Recurrence>();
    }
}
