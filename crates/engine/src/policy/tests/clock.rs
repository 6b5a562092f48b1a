//! The days on which the clocks change: 2026-03-29 has 23 hours in Rome, 2026-10-25 has 25.

use berth_model::policy::{OpeningHours, Step};

use super::*;

fn hours(week: Json) -> OpeningHours {
    serde_json::from_value(week).unwrap()
}

fn utc(text: &str) -> Timestamp {
    format!("{}Z", text.replace(' ', "T")).parse().unwrap()
}

fn minutes(from: Timestamp, to: Timestamp) -> impl Iterator<Item = Timestamp> {
    let minute = SignedDuration::from_mins(1);
    std::iter::successors(Some(from), move |at| Some(*at + minute)).take_while(move |at| *at < to)
}

#[test]
fn open_exactly_while_the_clock_on_the_wall_says_so() {
    let week = hours(json!({
        "sat": ["22:00-24:00"], "sun": ["00:00-02:30", "02:45-05:00", "23:00-24:00"], "mon": ["00:00-01:00"],
    }));
    // Lord Howe's clocks change by half an hour; Apia skipped Friday 2011-12-30; Tehran changes at midnight.
    for (zone, around) in [
        ("Europe/Rome", "2026-03-29 00:00"),
        ("Europe/Rome", "2026-10-25 00:00"),
        ("Australia/Lord_Howe", "2026-04-04 15:00"),
        ("Australia/Lord_Howe", "2026-10-03 15:30"),
        ("Pacific/Apia", "2011-12-30 10:00"),
        ("Asia/Tehran", "2021-03-21 20:30"),
        ("UTC", "2026-11-15 00:00"),
    ] {
        let zone = TimeZone::get(zone).unwrap();
        let calendar = Calendar::new(zone.clone(), []);
        let days = SignedDuration::from_hours(3 * 24);
        let (from, to) = (utc(around) - days, utc(around) + days);
        let open = calendar.open(&week, from, to);
        assert!(
            open.windows(2).all(|pair| pair[0].1 < pair[1].0),
            "{open:?}"
        );
        for at in minutes(from, to) {
            let clock = zone.to_datetime(at);
            let of_day =
                u16::try_from(clock.hour()).unwrap() * 60 + u16::try_from(clock.minute()).unwrap();
            let parts = week.on(clock.weekday());
            let expected = parts
                .iter()
                .any(|part| (part.from_min()..part.to_min()).contains(&of_day));
            let said = open.iter().any(|(begin, end)| *begin <= at && at < *end);
            assert_eq!(said, expected, "{clock} in {zone:?}");
        }
    }
}

#[test]
fn steps_are_counted_on_the_wall() {
    for (zone, around) in [
        ("Europe/Rome", "2026-03-29 00:00"),
        ("Europe/Rome", "2026-10-25 00:00"),
        ("Australia/Lord_Howe", "2026-10-03 15:30"),
        ("Asia/Kathmandu", "2026-10-03 15:30"),
    ] {
        let zone = TimeZone::get(zone).unwrap();
        let calendar = Calendar::new(zone.clone(), []);
        let day = SignedDuration::from_hours(24);
        let (from, to) = (utc(around) - day, utc(around) + day);
        for step_min in [20u32, 45, 60, 420] {
            let length = berth_model::policy::Length::from_minutes(step_min);
            let step = Step::try_from(length).unwrap();
            let in_step = |at: &Timestamp| {
                let clock = zone.to_datetime(*at);
                let of_day = u32::try_from(clock.hour()).unwrap() * 60
                    + u32::try_from(clock.minute()).unwrap();
                of_day.is_multiple_of(step_min)
            };
            let all: Vec<Timestamp> = minutes(from - day, to + day).filter(in_step).collect();
            for at in minutes(from, to).map(|at| at + SignedDuration::from_secs(30)) {
                let next = all.partition_point(|each| *each < at);
                assert_eq!(
                    calendar.in_step_from(at, step),
                    all[next],
                    "{at} {step} in {zone:?}"
                );
                assert_eq!(
                    calendar.in_step_until(at, step),
                    all[next - 1],
                    "{at} {step} in {zone:?}"
                );
                assert_eq!(calendar.in_step_from(all[next], step), all[next]);
                assert_eq!(calendar.in_step_until(all[next], step), all[next]);
            }
        }
    }
}

#[test]
fn a_day_of_25_hours_is_open_for_25() {
    let policies = policies([(
        json!({"site": {}}),
        json!({"opening_hours": {"sun": ["00:00-24:00"]}, "start_step": "1h"}),
    )]);
    let before = at("2026-10-20 00:00");
    let long = |hours: i64| booking("2026-10-25 00:00", 60 * hours);
    assert!(judge_at(&policies, &[], &long(25), before).is_ok());
    let refusal = judge_at(&policies, &[], &long(26), before).unwrap_err();
    assert_eq!(
        refusal.instead.map(|span| span.duration().as_hours()),
        Some(25),
        "the longest in one piece"
    );
    let short = booking("2026-03-29 00:00", 60 * 24);
    let refusal = judge_at(&policies, &[], &short, at("2026-03-20 00:00")).unwrap_err();
    assert!(
        refusal
            .to_string()
            .contains("closed from Mon 2026-03-30 00:00 CEST"),
        "{refusal}"
    );
}

#[test]
fn a_week_of_169_hours_holds_169() {
    let policies = policies([(
        json!({"site": {}}),
        json!({"person_hours_per_week": "169h"}),
    )]);
    let before = at("2026-10-01 00:00");
    let whole = booking("2026-10-19 00:00", 60 * 169);
    assert!(
        judge_at(&policies, &[], &whole, before).is_ok(),
        "up to Monday 00:00 CET"
    );
    let calendar = calendar();
    let weeks: Vec<_> = calendar
        .weeks(whole.span.start(), whole.span.end())
        .collect();
    assert_eq!(weeks.len(), 1);
    assert_eq!(weeks[0].2.duration_since(weeks[0].1).as_hours(), 169);
    // Sunday 23:30 in Rome is a Sunday, although UTC differs.
    let edge: Vec<_> = calendar
        .weeks(at("2026-07-05 23:30"), at("2026-07-06 00:30"))
        .collect();
    let mondays: Vec<String> = edge
        .iter()
        .map(|(monday, _, _)| monday.to_string())
        .collect();
    assert_eq!(mondays, ["2026-06-29", "2026-07-06"]);
}

#[test]
fn a_limit_above_a_whole_week_forbids_no_start_to_a_longer_booking() {
    let policies = policies([(
        json!({"site": {}}),
        json!({"person_hours_per_week": "168h"}),
    )]);
    let fortnight = booking("2026-10-05 00:00", 60 * 24 * 14);
    let desk = Desk {
        rules: &fortnight.rules(&policies),
        calendar: &calendar(),
        ledger: &Ledger::default(),
        now: at("2026-09-01 00:00"),
    };
    let window = Span::new(at("2026-09-14 00:00"), at("2026-11-30 00:00")).unwrap();
    let starts = desk.starts(&fortnight, window);
    assert!(starts.contains(at("2026-09-30 12:00")));
    // The week in which the clocks go back has an hour too many, unless the booking leaves out one of them.
    assert!(!starts.contains(at("2026-10-12 12:00")));
    assert!(starts.contains(at("2026-10-19 01:00")));
    assert!(!starts.contains(at("2026-10-19 00:00")));
}
