//! Moments as Slurm lets people write them: `now+1hour`, `16:00`, `tomorrow`, `noon 01/20/27`, `2027-01-20T12:34:00`.
//!
//! They are read in the time zone of whoever writes them, which comes with `now`.

use jiff::civil::{Date, Time};
use jiff::{Timestamp, ToSpan, Zoned};

/// Where a moment lies of which only a part was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lean {
    /// The next such time of day, the next such day of the year: when a job begins.
    Ahead,
    /// Today, this year: the past that one asks accounting for.
    Back,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "write now+1hour, 16:00, 4:30pm, tomorrow, noon, midnight, 01/20/27, 2027-01-20 or \
     2027-01-20T12:34:00 (stopped at `{0}`)"
)]
pub struct MomentError(String);

/// What has been read so far.
#[derive(Debug, Default)]
struct Read {
    date: Option<Date>,
    time: Option<Time>,
    /// The date came without a year.
    is_yearless: bool,
}

pub fn parse(text: &str, now: &Zoned, lean: Lean) -> Result<Timestamp, MomentError> {
    let text = text.trim();
    if let Some(seconds) = text.strip_prefix("uts") {
        let seconds = seconds.parse().map_err(|_| wrong(text))?;
        return Timestamp::from_second(seconds).map_err(|_| wrong(text));
    }
    if text
        .get(..3)
        .is_some_and(|word| word.eq_ignore_ascii_case("now"))
    {
        return from_now(&text[3..], now);
    }
    let mut read = Read::default();
    let mut rest = text;
    while !rest.is_empty() {
        rest = piece(rest, now, &mut read)?;
    }
    moment(&read, now, lean).ok_or_else(|| wrong(text))
}

fn wrong(rest: &str) -> MomentError {
    MomentError(rest.chars().take(40).collect())
}

/// `+1hour`, `-2 days`, `+60` (seconds), or nothing.
fn from_now(rest: &str, now: &Zoned) -> Result<Timestamp, MomentError> {
    let rest = rest.trim();
    if rest.is_empty() {
        return Ok(now.timestamp());
    }
    let sign = match rest.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return Err(wrong(rest)),
    };
    let amount = rest[1..].trim_start();
    let (digits, unit) = amount.split_at(digits(amount));
    let count: i64 = digits.parse().map_err(|_| wrong(rest))?;
    let unit = unit.trim().to_ascii_lowercase();
    let seconds = match unit.strip_suffix('s').unwrap_or(&unit) {
        "" | "second" => 1,
        "minute" => 60,
        "hour" => 3600,
        "day" => 86_400,
        "week" => 604_800,
        _ => return Err(wrong(&unit)),
    };
    count
        .checked_mul(sign * seconds)
        .and_then(|seconds| now.timestamp().as_second().checked_add(seconds))
        .and_then(|second| Timestamp::from_second(second).ok())
        .ok_or_else(|| wrong(rest))
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Reads one date or time of day, and gives back what follows it.
fn piece<'t>(text: &'t str, now: &Zoned, read: &mut Read) -> Result<&'t str, MomentError> {
    // Blanks and dashes part dates from times, and so does the T of ISO 8601.
    let before = text.trim_start_matches([' ', '\t', '-']);
    let text = match before.strip_prefix('T') {
        Some(after) if read.date.is_some() && read.time.is_none() => after,
        _ => before,
    };
    if text.is_empty() {
        return Ok(text);
    }
    let words = [("midnight", 0), ("noon", 12), ("fika", 15), ("teatime", 16)];
    for (word, hour) in words {
        if let Some(rest) = text.strip_prefix(word) {
            set(&mut read.time, Time::new(hour, 0, 0, 0).ok(), text)?;
            return ended(rest);
        }
    }
    if let Some(rest) = text.strip_prefix("today") {
        set(&mut read.date, Some(now.date()), text)?;
        return ended(rest);
    }
    if let Some(rest) = text.strip_prefix("tomorrow") {
        set(&mut read.date, now.date().tomorrow().ok(), text)?;
        return ended(rest);
    }
    let first = digits(text);
    let (number, rest) = text.split_at(first);
    match rest.chars().next() {
        Some(':') if (1..=2).contains(&first) => time_of_day(text, read),
        Some('-') if first == 4 => iso_date(text, read),
        Some(part @ ('/' | '.')) if (1..=2).contains(&first) => parted_date(text, part, now, read),
        _ if first == 4 || first == 6 => {
            let month = two(&number[0..2])?;
            let day = two(&number[2..4])?;
            let year = number.get(4..6).map(two).transpose()?;
            put_date(year, month, day, now, read, text)?;
            ended(rest)
        }
        _ => Err(wrong(text)),
    }
}

/// Nothing may touch the end of a piece but what parts it from the next.
fn ended(rest: &str) -> Result<&str, MomentError> {
    match rest.chars().next() {
        None | Some(' ' | '\t' | '-' | 'T') => Ok(rest),
        Some(_) => Err(wrong(rest)),
    }
}

fn set<T>(place: &mut Option<T>, value: Option<T>, text: &str) -> Result<(), MomentError> {
    match (place.is_some(), value) {
        (false, Some(value)) => {
            *place = Some(value);
            Ok(())
        }
        _ => Err(wrong(text)),
    }
}

fn two(text: &str) -> Result<i8, MomentError> {
    if text.is_empty() || text.len() > 2 {
        return Err(wrong(text));
    }
    text.parse().map_err(|_| wrong(text))
}

/// `16:00`, `16:00:30`, `4:30pm`, `4:30 PM`.
fn time_of_day<'t>(text: &'t str, read: &mut Read) -> Result<&'t str, MomentError> {
    let mut numbers = Vec::new();
    let mut rest = text;
    loop {
        let (number, after) = rest.split_at(digits(rest));
        numbers.push(two(number)?);
        rest = after;
        match after.strip_prefix(':') {
            Some(after) if numbers.len() < 3 => rest = after,
            _ => break,
        }
    }
    let mut hour = numbers[0];
    let half = rest.trim_start();
    let word = half.get(..2).unwrap_or_default().to_ascii_lowercase();
    if word == "am" || word == "pm" {
        hour = match (hour, word.as_str()) {
            (12, "am") => 0,
            (12, _) | (0..12, "am") => hour,
            (0..12, _) => hour + 12,
            _ => return Err(wrong(half)),
        };
        rest = &half[2..];
    }
    let minute = numbers.get(1).copied().ok_or_else(|| wrong(text))?;
    let second = numbers.get(2).copied().unwrap_or(0);
    set(
        &mut read.time,
        Time::new(hour, minute, second, 0).ok(),
        text,
    )?;
    ended(rest)
}

/// `2027-01-20`.
fn iso_date<'t>(text: &'t str, read: &mut Read) -> Result<&'t str, MomentError> {
    let (date, rest) = text.split_at_checked(10).ok_or_else(|| wrong(text))?;
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts[..] else {
        return Err(wrong(text));
    };
    let year = year.parse().map_err(|_| wrong(text))?;
    let date = Date::new(year, two(month)?, two(day)?).ok();
    set(&mut read.date, date, text)?;
    ended(rest)
}

/// `01/20/27`, `01.20.27`, `1/20`.
fn parted_date<'t>(
    text: &'t str,
    part: char,
    now: &Zoned,
    read: &mut Read,
) -> Result<&'t str, MomentError> {
    let mut numbers = Vec::new();
    let mut rest = text;
    loop {
        let (number, after) = rest.split_at(digits(rest));
        numbers.push(two(number)?);
        rest = after;
        match after.strip_prefix(part) {
            Some(after) if numbers.len() < 3 => rest = after,
            _ => break,
        }
    }
    let day = numbers.get(1).copied().ok_or_else(|| wrong(text))?;
    put_date(numbers.get(2).copied(), numbers[0], day, now, read, text)?;
    ended(rest)
}

fn put_date(
    year: Option<i8>,
    month: i8,
    day: i8,
    now: &Zoned,
    read: &mut Read,
    text: &str,
) -> Result<(), MomentError> {
    read.is_yearless = year.is_none();
    let year = year.map_or(now.year(), |year| 2000 + i16::from(year));
    set(&mut read.date, Date::new(year, month, day).ok(), text)
}

fn moment(read: &Read, now: &Zoned, lean: Lean) -> Option<Timestamp> {
    let at = |date: Date, time: Time| {
        let civil = date.to_datetime(time);
        let zoned = civil.to_zoned(now.time_zone().clone()).ok()?;
        Some(zoned.timestamp())
    };
    let is_over = |moment: Timestamp| lean == Lean::Ahead && moment < now.timestamp();
    match (read.date, read.time) {
        (None, None) => None,
        (None, Some(time)) => match at(now.date(), time)? {
            today if is_over(today) => at(now.date().tomorrow().ok()?, time),
            today => Some(today),
        },
        (Some(date), time) => {
            let time = time.unwrap_or(Time::midnight());
            match at(date, time)? {
                over if read.is_yearless && is_over(over) => {
                    at(date.checked_add(1.year()).ok()?, time)
                }
                moment => Some(moment),
            }
        }
    }
}

/// As Slurm prints a moment: local, without its zone.
pub fn print(moment: Timestamp, zone: &jiff::tz::TimeZone) -> String {
    let local = moment.to_zoned(zone.clone());
    local.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-11-16T05:41:30+00:00[UTC]".parse().unwrap()
    }

    fn read(text: &str) -> Option<String> {
        let moment = parse(text, &now(), Lean::Ahead).ok()?;
        Some(print(moment, &jiff::tz::TimeZone::UTC))
    }

    #[test]
    fn a_moment_is_written_in_every_form_of_slurm() {
        for (text, wanted) in [
            ("now", "2026-11-16T05:41:30"),
            ("NOW+1hour", "2026-11-16T06:41:30"),
            ("now + 1 hour", "2026-11-16T06:41:30"),
            ("now+60", "2026-11-16T05:42:30"),
            ("now+2days", "2026-11-18T05:41:30"),
            ("now+1week", "2026-11-23T05:41:30"),
            ("now-1hour", "2026-11-16T04:41:30"),
            ("16:00", "2026-11-16T16:00:00"),
            ("4:00", "2026-11-17T04:00:00"),
            ("04:30:15", "2026-11-17T04:30:15"),
            ("4:30pm", "2026-11-16T16:30:00"),
            ("4:30 PM", "2026-11-16T16:30:00"),
            ("12:00am", "2026-11-17T00:00:00"),
            ("tomorrow", "2026-11-17T00:00:00"),
            ("midnight", "2026-11-17T00:00:00"),
            ("noon", "2026-11-16T12:00:00"),
            ("fika", "2026-11-16T15:00:00"),
            ("teatime", "2026-11-16T16:00:00"),
            ("noon tomorrow", "2026-11-17T12:00:00"),
            ("tomorrow 16:00", "2026-11-17T16:00:00"),
            ("2027-01-20T12:34:00", "2027-01-20T12:34:00"),
            ("2027-01-20T12:34", "2027-01-20T12:34:00"),
            ("2027-01-20 12:34", "2027-01-20T12:34:00"),
            ("2027-01-20", "2027-01-20T00:00:00"),
            ("012027", "2027-01-20T00:00:00"),
            ("01/20/27-12:30", "2027-01-20T12:30:00"),
            ("12:30 01.20.27", "2027-01-20T12:30:00"),
            ("0120", "2027-01-20T00:00:00"),
            ("12/01", "2026-12-01T00:00:00"),
            ("1/2/27", "2027-01-02T00:00:00"),
            ("uts1800000000", "2027-01-15T08:00:00"),
        ] {
            assert_eq!(read(text).as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "abc",
            "now+1h",
            "now+1min",
            "now+x",
            "now+1month",
            "4pm",
            "13:00pm",
            "25:00",
            "16:60",
            "16",
            "1200",
            "130127",
            "tomorrow+1hour",
            "2027-1-2",
            "2027-13-01",
            "2027-01-20T12",
            "01/20/2027",
            "2027-01-20T12:34:00Z",
            "16:00 17:00",
            "-",
            "noonish",
            "99999999999",
            "now+99999999999999",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_past_is_not_put_off_to_the_future() {
        let read = |text| {
            print(
                parse(text, &now(), Lean::Back).unwrap(),
                &jiff::tz::TimeZone::UTC,
            )
        };
        assert_eq!(read("04:00"), "2026-11-16T04:00:00");
        assert_eq!(read("01/20"), "2026-01-20T00:00:00");
    }

    #[test]
    fn a_time_of_day_is_meant_where_its_writer_lives() {
        let now: Zoned = "2026-11-16T05:41:30+01:00[Europe/Rome]".parse().unwrap();
        let moment = parse("16:00", &now, Lean::Ahead).unwrap();
        assert_eq!(moment.to_string(), "2026-11-16T15:00:00Z");
    }
}
