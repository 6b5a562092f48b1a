//! Moments and durations in the words people use for them.
//!
//! Short enough for a table cell, and never ambiguous: where the clocks repeat an hour, the time
//! carries its offset.

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, Unit, Zoned};

/// `today 14:00`, `tomorrow 09:00`, `Fri 20 Nov 09:00`; with the year when it is not this one.
pub fn moment(at: Timestamp, zone: &TimeZone, now: Timestamp) -> String {
    let at = at.to_zoned(zone.clone());
    format!(
        "{} {}",
        day(at.date(), now.to_zoned(zone.clone()).date()),
        clock(&at)
    )
}

/// `Fri 20 Nov 09:00–12:00 (3 h)`, or both days when the end falls on another one.
///
/// The length counts calendar days, as [`super::parse_duration`] does: nine o'clock to nine
/// o'clock is `1 d` also when the clocks change in between.
pub fn span(start: Timestamp, end: Timestamp, zone: &TimeZone, now: Timestamp) -> String {
    let (from, to) = (start.to_zoned(zone.clone()), end.to_zoned(zone.clone()));
    let until = if from.date() == to.date() {
        format!("–{}", clock(&to))
    } else {
        format!(" – {}", moment(end, zone, now))
    };
    format!(
        "{}{until} ({})",
        moment(start, zone, now),
        calendar_length(&from, &to)
    )
}

/// `3 h`, `2 d 4 h`, `45 min`, `1 min 30 s`; a day is 24 hours here.
pub fn duration(length: SignedDuration) -> String {
    let seconds = length.as_secs();
    let days = seconds / (24 * 60 * 60);
    let [hours, minutes, rest] = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
    // From an hour up nobody counts seconds; `now` is never a full minute, so they would stand everywhere.
    let rest = if seconds.abs() < 3600 { rest } else { 0 };
    in_units([days, hours, minutes, rest])
}

/// `in 2 h`, `3 d ago`, `now`: to the minute, and coarser the further away.
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    let distance = at.duration_since(now);
    let minutes = distance.as_mins().abs();
    let coarse = match minutes {
        0 => return "now".to_owned(),
        1..1_440 => minutes,
        1_440..10_080 => minutes - minutes % 60,
        _ => minutes - minutes % 1_440,
    };
    let words = duration(SignedDuration::from_mins(coarse));
    if distance.is_positive() {
        format!("in {words}")
    } else {
        format!("{words} ago")
    }
}

fn day(date: Date, today: Date) -> String {
    match (date - today).get_days() {
        0 => "today".to_owned(),
        1 => "tomorrow".to_owned(),
        -1 => "yesterday".to_owned(),
        _ if date.year() == today.year() => date.strftime("%a %-d %b").to_string(),
        _ => date.strftime("%a %-d %b %Y").to_string(),
    }
}

fn clock(at: &Zoned) -> String {
    let meaning = at
        .time_zone()
        .to_ambiguous_timestamp(at.datetime())
        .offset();
    let pattern = if matches!(meaning, AmbiguousOffset::Fold { .. }) {
        "%H:%M%:z"
    } else {
        "%H:%M"
    };
    at.strftime(pattern).to_string()
}

fn calendar_length(from: &Zoned, to: &Zoned) -> String {
    from.until((Unit::Day, to)).map_or_else(
        |_| duration(to.duration_since(from)),
        |length| {
            let days = i64::from(length.get_days());
            in_units([
                days,
                length.get_hours().into(),
                length.get_minutes(),
                length.get_seconds(),
            ])
        },
    )
}

/// Days, hours, minutes and seconds, leaving out those of which there are none.
fn in_units(counts: [i64; 4]) -> String {
    let sign = if counts.iter().any(|count| *count < 0) {
        "-"
    } else {
        ""
    };
    let words: Vec<String> = counts
        .into_iter()
        .zip(["d", "h", "min", "s"])
        .filter(|(count, _)| *count != 0)
        .map(|(count, unit)| format!("{} {unit}", count.unsigned_abs()))
        .collect();
    if words.is_empty() {
        "0 min".to_owned()
    } else {
        format!("{sign}{}", words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sunday() -> Zoned {
        "2026-11-15T10:28:00[Europe/Rome]"
            .parse()
            .expect("a zoned time")
    }

    fn instant(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    #[test]
    fn moments_are_shown_by_their_distance_in_days() {
        let now = sunday();
        for (text, expected) in [
            ("2026-11-15T13:00Z", "today 14:00"),
            ("2026-11-14T23:00Z", "today 00:00"),
            ("2026-11-16T08:00Z", "tomorrow 09:00"),
            ("2026-11-14T08:00Z", "yesterday 09:00"),
            ("2026-11-20T08:00Z", "Fri 20 Nov 09:00"),
            ("2026-01-05T08:00Z", "Mon 5 Jan 09:00"),
            ("2027-01-01T08:00Z", "Fri 1 Jan 2027 09:00"),
            ("2026-10-25T00:30Z", "Sun 25 Oct 02:30+02:00"),
            ("2026-10-25T01:30Z", "Sun 25 Oct 02:30+01:00"),
        ] {
            assert_eq!(
                moment(instant(text), now.time_zone(), now.timestamp()),
                expected
            );
        }
    }

    #[test]
    fn spans_are_shown_with_their_length() {
        let now = sunday();
        for (start, end, expected) in [
            (
                "2026-11-20T08:00Z",
                "2026-11-20T11:00Z",
                "Fri 20 Nov 09:00–12:00 (3 h)",
            ),
            (
                "2026-11-15T13:00Z",
                "2026-11-15T13:45Z",
                "today 14:00–14:45 (45 min)",
            ),
            (
                "2026-11-15T21:00Z",
                "2026-11-16T01:30Z",
                "today 22:00 – tomorrow 02:30 (4 h 30 min)",
            ),
            (
                "2026-12-31T08:00Z",
                "2027-01-02T12:00Z",
                "Thu 31 Dec 09:00 – Sat 2 Jan 2027 13:00 (2 d 4 h)",
            ),
            // 23 hours by the stopwatch, a day on the calendar.
            (
                "2026-03-28T08:00Z",
                "2026-03-29T07:00Z",
                "Sat 28 Mar 09:00 – Sun 29 Mar 09:00 (1 d)",
            ),
            (
                "2026-10-24T23:30Z",
                "2026-10-25T01:30Z",
                "Sun 25 Oct 01:30–02:30+01:00 (2 h)",
            ),
        ] {
            let shown = span(
                instant(start),
                instant(end),
                now.time_zone(),
                now.timestamp(),
            );
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn durations_are_shown_in_units_people_say() {
        for (seconds, expected) in [
            (3 * 3600, "3 h"),
            (52 * 3600, "2 d 4 h"),
            (45 * 60, "45 min"),
            (90, "1 min 30 s"),
            (4 * 86400 + 3 * 3600 + 12, "4 d 3 h"),
            (0, "0 min"),
            (-5400, "-1 h 30 min"),
        ] {
            assert_eq!(duration(SignedDuration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn distances_are_shown_coarser_the_further_away() {
        let now = instant("2026-11-15T10:00Z");
        for (text, expected) in [
            ("2026-11-15T12:00Z", "in 2 h"),
            ("2026-11-15T12:59:59Z", "in 2 h 59 min"),
            ("2026-11-12T10:00Z", "3 d ago"),
            ("2026-11-12T06:30Z", "3 d 3 h ago"),
            ("2026-10-01T06:30Z", "45 d ago"),
            ("2026-11-15T10:00:59Z", "now"),
            ("2026-11-15T09:45Z", "15 min ago"),
        ] {
            assert_eq!(relative(instant(text), now), expected, "{text}");
        }
    }
}
