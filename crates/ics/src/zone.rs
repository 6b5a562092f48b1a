//! Writes a time zone with its clock changes over the relevant time. So a program with no time zone database, or an
//! old one, shows the right hour.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::line;

/// No zone changes its clocks more often than a few times a year.
const CHANGES_MAX: usize = 200;

/// Writes the zone for the time from `from` until `to`.
pub(crate) fn write(out: &mut String, name: &str, zone: &TimeZone, from: Timestamp, to: Timestamp) {
    line::write(out, "BEGIN:VTIMEZONE");
    line::write(out, &format!("TZID:{name}"));
    // The rule in force at the beginning, and since when. A zone that never changed has had it always.
    let including = from
        .checked_add(SignedDuration::from_nanos(1))
        .unwrap_or(from);
    match zone.preceding(including).next() {
        Some(last) => observance(out, zone, last.timestamp()),
        None => observance(out, zone, Timestamp::UNIX_EPOCH),
    }
    for change in zone.following(from).take(CHANGES_MAX) {
        if change.timestamp() > to {
            break;
        }
        observance(out, zone, change.timestamp());
    }
    line::write(out, "END:VTIMEZONE");
}

/// Writes the clock's offset from one moment until the next change.
fn observance(out: &mut String, zone: &TimeZone, at: Timestamp) {
    let before = at
        .checked_sub(SignedDuration::from_secs(1))
        .unwrap_or(Timestamp::MIN);
    let offset_before = zone.to_offset(before);
    let now = zone.to_offset_info(at);
    let kind = if now.dst().is_dst() {
        "DAYLIGHT"
    } else {
        "STANDARD"
    };
    line::write(out, &format!("BEGIN:{kind}"));
    let wall = offset_before.to_datetime(at);
    line::write(out, &format!("DTSTART:{}", wall.strftime("%Y%m%dT%H%M%S")));
    line::write(
        out,
        &format!("TZOFFSETFROM:{}", offset(offset_before.seconds())),
    );
    line::write(
        out,
        &format!("TZOFFSETTO:{}", offset(now.offset().seconds())),
    );
    line::write(out, &format!("TZNAME:{}", line::escape(now.abbreviation())));
    line::write(out, &format!("END:{kind}"));
}

fn offset(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let all = seconds.unsigned_abs();
    let (hours, minutes, rest) = (all / 3600, all / 60 % 60, all % 60);
    match rest {
        0 => format!("{sign}{hours:02}{minutes:02}"),
        rest => format!("{sign}{hours:02}{minutes:02}{rest:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, from: &str, to: &str) -> Vec<String> {
        let mut out = String::new();
        let zone = TimeZone::get(name).unwrap();
        write(
            &mut out,
            name,
            &zone,
            from.parse().unwrap(),
            to.parse().unwrap(),
        );
        out.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_year_has_its_two_changes_and_what_held_before() {
        let rome = written(
            "Europe/Rome",
            "2026-01-10T00:00:00Z",
            "2026-12-31T00:00:00Z",
        );
        let starts: Vec<&str> = rome
            .iter()
            .filter_map(|line| line.strip_prefix("DTSTART:"))
            .collect();
        assert_eq!(
            starts,
            ["20251026T030000", "20260329T020000", "20261025T030000"]
        );
        let second = rome
            .iter()
            .position(|line| line == "BEGIN:DAYLIGHT")
            .unwrap();
        assert_eq!(
            rome[second + 2..second + 5],
            ["TZOFFSETFROM:+0100", "TZOFFSETTO:+0200", "TZNAME:CEST"]
        );
    }

    #[test]
    fn a_zone_that_does_not_change_has_one_part() {
        let kolkata = written(
            "Asia/Kolkata",
            "2026-01-10T00:00:00Z",
            "2026-12-31T00:00:00Z",
        );
        let parts = kolkata
            .iter()
            .filter(|line| line.starts_with("BEGIN:STANDARD"));
        assert_eq!(parts.count(), 1);
        assert!(
            kolkata.contains(&"TZOFFSETTO:+0530".to_owned()),
            "{kolkata:?}"
        );
    }

    #[test]
    fn offsets_west_of_greenwich_and_odd_ones() {
        assert_eq!(offset(-3 * 3600 - 30 * 60), "-0330");
        assert_eq!(offset(0), "+0000");
        assert_eq!(offset(-2670), "-004430");
    }
}
