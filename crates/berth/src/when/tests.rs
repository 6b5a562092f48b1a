use jiff::{Timestamp, ToSpan, Zoned};

use super::*;

/// A Sunday morning, so that every weekday is still to come.
const SUNDAY: &str = "2026-11-15T10:28:00[Europe/Rome]";

fn at(text: &str) -> Zoned {
    text.parse().expect("a zoned time")
}

#[track_caller]
fn reads(now: &str, text: &str, expected: &str) {
    let read = parse(text, &at(now)).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(read.strftime("%F %T%:z").to_string(), expected, "{text}");
}

#[track_caller]
fn refuses(now: &str, text: &str, expected: &str) {
    let error = parse(text, &at(now)).expect_err(text);
    assert_eq!(error.to_string(), expected);
}

#[test]
fn moments_are_read_as_people_mean_them() {
    for (text, expected) in [
        ("now", "2026-11-15 10:28:00+01:00"),
        ("+2h", "2026-11-15 12:28:00+01:00"),
        ("+1d 30m", "2026-11-16 10:58:00+01:00"),
        ("+ 1h30m", "2026-11-15 11:58:00+01:00"),
        ("+1w", "2026-11-22 10:28:00+01:00"),
        ("+PT2H", "2026-11-15 12:28:00+01:00"),
        ("-1h", "2026-11-15 09:28:00+01:00"),
        ("today", "2026-11-15 00:00:00+01:00"),
        ("today 14:00", "2026-11-15 14:00:00+01:00"),
        ("today 09:00", "2026-11-15 09:00:00+01:00"),
        ("tomorrow", "2026-11-16 00:00:00+01:00"),
        ("tomorrow 09:00", "2026-11-16 09:00:00+01:00"),
        ("Tomorrow at 9 AM", "2026-11-16 09:00:00+01:00"),
        ("yesterday 18:30:15", "2026-11-14 18:30:15+01:00"),
        ("monday 9:00", "2026-11-16 09:00:00+01:00"),
        ("mon 9am", "2026-11-16 09:00:00+01:00"),
        ("thurs 12pm", "2026-11-19 12:00:00+01:00"),
        ("sat 12:30am", "2026-11-21 00:30:00+01:00"),
        ("next friday 10:00", "2026-11-20 10:00:00+01:00"),
        ("next friday", "2026-11-20 00:00:00+01:00"),
        ("14:30", "2026-11-15 14:30:00+01:00"),
        ("9 pm", "2026-11-15 21:00:00+01:00"),
        ("2026-11-20", "2026-11-20 00:00:00+01:00"),
        ("2026-11-20 09:00", "2026-11-20 09:00:00+01:00"),
        ("2026-11-20 9am", "2026-11-20 09:00:00+01:00"),
        ("2026-11-20T09:00", "2026-11-20 09:00:00+01:00"),
        ("2026-11-20T09:00:00+01:00", "2026-11-20 09:00:00+01:00"),
        ("2026-11-20 09:00-05:00", "2026-11-20 15:00:00+01:00"),
        ("2026-11-20T09:00:00Z", "2026-11-20 10:00:00+01:00"),
        ("2026-11-20t09:00z", "2026-11-20 10:00:00+01:00"),
        ("2026-11-20T09:00[Europe/Rome]", "2026-11-20 09:00:00+01:00"),
        ("2026-11-20T09:00[Asia/Tokyo]", "2026-11-20 09:00:00+09:00"),
        ("2026-11-20[Asia/Tokyo]", "2026-11-20 00:00:00+09:00"),
        (
            "2026-11-20T09:00+09:00[Asia/Tokyo]",
            "2026-11-20 09:00:00+09:00",
        ),
        ("2026-11-20T09:00Z[Asia/Tokyo]", "2026-11-20 18:00:00+09:00"),
        ("  tomorrow   09:00  ", "2026-11-16 09:00:00+01:00"),
    ] {
        reads(SUNDAY, text, expected);
    }
}

#[test]
fn a_time_that_has_passed_means_its_next_occurrence() {
    // Today, Sunday 15 November, at half past ten.
    reads(SUNDAY, "10:29", "2026-11-15 10:29:00+01:00");
    reads(SUNDAY, "10:28", "2026-11-16 10:28:00+01:00");
    reads(SUNDAY, "9:00", "2026-11-16 09:00:00+01:00");
    reads(SUNDAY, "sunday 11:00", "2026-11-15 11:00:00+01:00");
    reads(SUNDAY, "sunday 10:00", "2026-11-22 10:00:00+01:00");
    reads(SUNDAY, "sunday", "2026-11-22 00:00:00+01:00");
    reads(SUNDAY, "next sunday 11:00", "2026-11-22 11:00:00+01:00");
}

#[test]
fn moments_are_cut_to_microseconds() {
    let now = at("2026-11-15T10:28:00.123456789[Europe/Rome]");
    let read = parse("now", &now).expect("now");
    assert_eq!(read.subsec_nanosecond(), 123_456_000);
}

#[test]
fn refusals_say_what_is_wrong_and_give_three_examples() {
    let examples = "Try `tomorrow 09:00`, `+2h` or `2026-11-20T09:00`.";
    for (text, why) in [
        ("", "it is empty"),
        ("soon", "it is neither a day, a clock time nor a date"),
        ("next week", "after `next` comes a weekday"),
        (
            "9",
            "its time of day is not one from 00:00 to 23:59, or such as 9am",
        ),
        (
            "9:5",
            "its time of day is not one from 00:00 to 23:59, or such as 9am",
        ),
        (
            "13pm",
            "its time of day is not one from 00:00 to 23:59, or such as 9am",
        ),
        (
            "tomorrow 24:00",
            "its time of day is not one from 00:00 to 23:59, or such as 9am",
        ),
        (
            "tomorrow at",
            "its time of day is not one from 00:00 to 23:59, or such as 9am",
        ),
        ("2026-02-30", "there is no such date (write year-month-day)"),
        (
            "2026-13-01 09:00",
            "there is no such date (write year-month-day)",
        ),
        (
            "2026-11-20T09:00 CET",
            "after the date comes a time such as 09:00, then an offset such as +01:00",
        ),
        (
            "2026-11-20T09:00[Europe/Atlantis]",
            "its time zone is unknown here",
        ),
        (
            "2026-11-20T09:00+05:00[Europe/Rome]",
            "its time zone does not have that offset at that time",
        ),
    ] {
        refuses(
            SUNDAY,
            text,
            &format!("`{text}` is not a time: {why}. {examples}"),
        );
    }
    refuses(
        SUNDAY,
        "\u{1b}[31m",
        &format!(
            "`\\u{{1b}}[31m` is not a time: it is neither a day, a clock time nor a date. {examples}"
        ),
    );
    refuses(
        SUNDAY,
        "+99999y",
        "`99999y` is not a duration: write numbers with the units w, d, h, m, s, largest first. \
         Try `2h`, `1h30m` or `1d`.",
    );
    refuses(
        SUNDAY,
        "+9999y",
        "`9999y` is not a duration: it leads out of the calendar. Try `2h`, `1h30m` or `1d`.",
    );
}

#[test]
fn a_clock_time_that_the_spring_change_skips_is_refused_with_both_readings() {
    let saturday = "2026-03-28T12:00[Europe/Rome]";
    let skipped = "02:30 on Sun 29 Mar 2026 does not exist in Europe/Rome: the clocks jump over \
                   it. Write the time you mean with its offset: `2026-03-29T01:30:00+01:00` or \
                   `2026-03-29T03:30:00+02:00`.";
    for text in [
        "tomorrow 02:30",
        "sunday 2:30am",
        "02:30",
        "2026-03-29 02:30",
        "2026-03-29T02:30[Europe/Rome]",
    ] {
        refuses(saturday, text, skipped);
    }
    reads(saturday, "tomorrow 01:59", "2026-03-29 01:59:00+01:00");
    reads(saturday, "tomorrow 03:00", "2026-03-29 03:00:00+02:00");
    // Both readings that were offered are understood.
    reads(
        saturday,
        "2026-03-29T01:30:00+01:00",
        "2026-03-29 01:30:00+01:00",
    );
    reads(
        saturday,
        "2026-03-29T03:30:00+02:00",
        "2026-03-29 03:30:00+02:00",
    );
}

#[test]
fn a_clock_time_that_the_autumn_change_repeats_is_refused_with_both_readings() {
    let saturday = "2026-10-24T12:00[Europe/Rome]";
    let repeated = "02:30 on Sun 25 Oct 2026 happens twice in Europe/Rome: the clocks go back over \
                    it. Write the time you mean with its offset: `2026-10-25T02:30:00+02:00` (the \
                    first) or `2026-10-25T02:30:00+01:00` (the second).";
    for text in ["tomorrow 02:30", "sun 02:30", "02:30", "2026-10-25T02:30"] {
        refuses(saturday, text, repeated);
    }
    // In between the two turns it still could be meant; after the second it cannot.
    refuses("2026-10-25T02:45+02:00[Europe/Rome]", "02:30", repeated);
    reads(
        "2026-10-25T02:45+01:00[Europe/Rome]",
        "02:30",
        "2026-10-26 02:30:00+01:00",
    );
    reads(
        saturday,
        "2026-10-25T02:30:00+02:00",
        "2026-10-25 02:30:00+02:00",
    );
    reads(
        saturday,
        "2026-10-25T02:30:00+01:00",
        "2026-10-25 02:30:00+01:00",
    );
}

#[test]
fn a_bare_date_is_the_first_instant_of_the_day_also_where_midnight_is_odd() {
    // Beirut jumps from 00:00 to 01:00; Havana falls from 01:00 back to 00:00.
    let now = at("2026-01-01T00:00[UTC]");
    for (text, expected) in [
        ("2026-03-29[Asia/Beirut]", "2026-03-29T01:00:00+03:00"),
        ("2026-11-01[America/Havana]", "2026-11-01T00:00:00-04:00"),
    ] {
        assert_eq!(with_offset(&parse(text, &now).expect(text)), expected);
    }
}

#[test]
fn days_are_calendar_days_and_hours_are_hours() {
    let before_spring = "2026-03-28T12:00[Europe/Rome]";
    reads(before_spring, "+1d", "2026-03-29 12:00:00+02:00");
    reads(before_spring, "+24h", "2026-03-29 13:00:00+02:00");
    let before_autumn = "2026-10-24T12:00[Europe/Rome]";
    reads(before_autumn, "+1w", "2026-10-31 12:00:00+01:00");
    reads(before_autumn, "+168h", "2026-10-31 11:00:00+01:00");
    // A day that leads into the skipped hour follows the clocks instead of asking.
    reads(
        "2026-03-28T02:30[Europe/Rome]",
        "+1d",
        "2026-03-29 03:30:00+02:00",
    );
}

#[test]
fn durations_are_read_with_their_units() {
    for (text, expected) in [
        ("2h", 2.hours()),
        ("90m", 90.minutes()),
        ("1d", 1.day()),
        ("1h30m", 1.hour().minutes(30)),
        ("1d 30m", 1.day().minutes(30)),
        ("1w", 1.week()),
        ("PT2H", 2.hours()),
        ("45 min", 45.minutes()),
        ("3 hours", 3.hours()),
    ] {
        let read = parse_duration(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read.fieldwise(), expected.fieldwise(), "{text}");
    }
    for (text, why) in [
        ("", "it is empty"),
        ("90", "a number needs a unit, one of w, d, h, m, s"),
        ("0h", "it lasts no time at all"),
        ("-2h", "a length of time does not point backwards"),
        ("2h ago", "a length of time does not point backwards"),
        (
            "30m 1d",
            "write numbers with the units w, d, h, m, s, largest first",
        ),
        (
            "a while",
            "write numbers with the units w, d, h, m, s, largest first",
        ),
    ] {
        assert_eq!(
            parse_duration(text).expect_err(text).to_string(),
            format!("`{text}` is not a duration: {why}. Try `2h`, `1h30m` or `1d`."),
        );
    }
}

/// Every sequence of up to three pieces of the language, glued and spaced, at awkward moments
/// and at both ends of the calendar: an answer or a refusal, but never a panic. Whatever is
/// answered is shown without a panic too.
#[test]
fn no_combination_of_the_language_panics() {
    // It starts with a space, and so with the empty piece.
    let language = " now + - 2h 1d PT P1Y 99999999999 today tomorrow mon sun next at am 12pm : \
                    02:30 24:00 9 2026-03-29 2026-10-25T 9999-12-31 0000-01-01 Z +02:00 \
                    [Europe/Rome] é \0 日";
    let pieces: Vec<&str> = language.split(' ').collect();
    let nows = [
        at(SUNDAY),
        at("2026-10-25T02:45+02:00[Europe/Rome]"),
        Timestamp::MIN.to_zoned(at(SUNDAY).time_zone().clone()),
        Timestamp::MAX.to_zoned(at(SUNDAY).time_zone().clone()),
    ];
    let mut understood = 0;
    for now in &nows {
        for (first, second, third) in triples(&pieces) {
            for text in [
                format!("{first}{second}{third}"),
                format!("{first} {second} {third}"),
            ] {
                let _ = parse_duration(&text);
                let Ok(read) = parse(&text, now) else {
                    continue;
                };
                understood += 1;
                let (zone, here) = (now.time_zone(), now.timestamp());
                assert!(!span(read.timestamp(), here, zone, here).is_empty());
                assert!(!relative(read.timestamp(), here).is_empty());
            }
        }
    }
    assert!(
        understood > 500,
        "the pieces hardly form moments any more: {understood}"
    );
}

fn triples<'a>(pieces: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
    pieces.iter().flat_map(move |first| {
        pieces
            .iter()
            .flat_map(move |second| pieces.iter().map(move |third| (*first, *second, *third)))
    })
}
