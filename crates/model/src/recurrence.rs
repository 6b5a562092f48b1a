//! How a booking repeats: a rule as RFC 5545 writes it (`FREQ=WEEKLY;BYDAY=MO,WE;COUNT=10`), and the
//! [`Pattern`] it makes together with a start on the wall clock.
//!
//! Only what is meant by people who book machines is supported: days, weeks and months. A rule says on which
//! *days* it falls, at most once a day; the time of day is the pattern's. So a rule is a question that can be
//! asked of any day ([`Recurrence::falls_on`]), and there is nothing to get wrong about hours here.
//! Whoever turns days into moments (the engine) knows about daylight saving; this module does not.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Weekday};
use serde::{Deserialize, Serialize};

pub use pattern::{Pattern, PatternError, Terms, has_day};

mod pattern;
#[cfg(test)]
mod tests;

/// The most instances a series may have: each is a booking of its own, made in one transaction.
pub const INSTANCES_MAX: u16 = 1000;

/// How long after its first instance the last one of a series may start.
pub const YEARS_MAX: i16 = 5;

/// Beyond this a rule of days has one instance in [`YEARS_MAX`] years or two, and is a slip of the finger.
const INTERVAL_MAX: u16 = 1000;

/// A rule of RFC 5545. Its only constructor is its text, and it prints as that text in one canonical form.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Recurrence {
    frequency: Frequency,
    interval: u16,
    /// Sorted, without doubles, like the month days: two texts that mean the same are one rule.
    by_day: Vec<ByDay>,
    by_month_day: Vec<i8>,
    end: End,
    week_start: Weekday,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Frequency {
    Daily,
    Weekly,
    Monthly,
}

/// `TU`, or with a place in the month `2TU`, and from its end `-1FR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ByDay {
    place: Option<i8>,
    weekday: Weekday,
}

/// Where a rule stops. There is no rule without an end: its bookings could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// After so many instances, those that are excepted included.
    Count(u16),
    /// `UNTIL=20261231`: the last day, in the pattern's time zone, on which an instance may start.
    Day(Date),
    /// `UNTIL=20261231T225959Z`: the last moment at which an instance may start.
    Moment(Timestamp),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecurrenceError {
    #[error("`{0}` is not a part of a rule: write it like `FREQ=WEEKLY;BYDAY=MO,WE;COUNT=10`")]
    Shape(String),
    #[error(
        "`{0}` is not supported: a rule has FREQ, INTERVAL, BYDAY, BYMONTHDAY, WKST, and COUNT or UNTIL"
    )]
    Part(String),
    #[error("`{part}={value}` is not accepted: {accepted}")]
    Value {
        part: &'static str,
        value: String,
        accepted: &'static str,
    },
    #[error("{0} is given twice: give it once, with its values separated by commas")]
    Twice(&'static str),
    #[error(
        "the rule does not say how often: begin it with FREQ=DAILY, FREQ=WEEKLY or FREQ=MONTHLY"
    )]
    NoFrequency,
    #[error("the rule has no end: add COUNT, as in `COUNT=10`, or UNTIL, as in `UNTIL=20271231`")]
    NoEnd,
    #[error("the rule has both COUNT and UNTIL: keep one of them")]
    TwoEnds,
}

impl Recurrence {
    pub fn frequency(&self) -> Frequency {
        self.frequency
    }

    pub fn end(&self) -> End {
        self.end
    }

    /// The same days with another end.
    pub fn ending(&self, end: End) -> Result<Self, RecurrenceError> {
        // Through the text, so that whatever holds for a rule that was read holds for this one.
        let ended = Self {
            end,
            ..self.clone()
        };
        ended.to_string().parse()
    }

    /// Whether the rule, counted from `start`, falls on `day`. Its end is not asked, nor whether it falls on
    /// `start` itself.
    pub fn falls_on(&self, start: Date, day: Date) -> bool {
        let steps = match self.frequency {
            Frequency::Daily => days_between(start, day),
            Frequency::Weekly => days_between(self.week_of(start), self.week_of(day)) / 7,
            Frequency::Monthly => months(day) - months(start),
        };
        start <= day && steps % i64::from(self.interval) == 0 && self.admits(start, day)
    }

    /// Whether the days of the week and of the month allow `day`. Where the rule names none, the first
    /// instance gives them, as the RFC says.
    fn admits(&self, start: Date, day: Date) -> bool {
        let named = match self.frequency {
            Frequency::Daily => true,
            Frequency::Weekly => !self.by_day.is_empty() || day.weekday() == start.weekday(),
            Frequency::Monthly => {
                let named = !self.by_day.is_empty() || !self.by_month_day.is_empty();
                named || day.day() == start.day()
            }
        };
        // Days of the month count from its end when they are negative: -1 is the last.
        let from_end = day.day() - day.days_in_month() - 1;
        let among = |given: &i8| *given == day.day() || *given == from_end;
        named
            && (self.by_month_day.is_empty() || self.by_month_day.iter().any(among))
            && (self.by_day.is_empty() || self.by_day.iter().any(|by_day| by_day.admits(day)))
    }

    fn week_of(&self, day: Date) -> Date {
        let into_week = i64::from(day.weekday().since(self.week_start));
        day.saturating_sub(jiff::SignedDuration::from_hours(24 * into_week))
    }
}

fn days_between(from: Date, to: Date) -> i64 {
    to.duration_since(from).as_hours() / 24
}

fn months(day: Date) -> i64 {
    i64::from(day.year()) * 12 + i64::from(day.month())
}

impl ByDay {
    fn admits(self, day: Date) -> bool {
        let place = match self.place {
            None => true,
            Some(place) if place > 0 => (day.day() - 1) / 7 + 1 == place,
            Some(place) => (day.days_in_month() - day.day()) / 7 + 1 == -place,
        };
        place && day.weekday() == self.weekday
    }
}

impl End {
    /// Whether an instance that starts at this time on the wall clock, and so at this moment, is still part
    /// of it. A count is kept by whoever counts.
    pub fn admits(self, start: DateTime, moment: Timestamp) -> bool {
        match self {
            End::Count(_) => true,
            End::Day(last) => start.date() <= last,
            End::Moment(last) => moment <= last,
        }
    }
}

const FREQUENCIES: [(&str, Frequency); 3] = [
    ("DAILY", Frequency::Daily),
    ("WEEKLY", Frequency::Weekly),
    ("MONTHLY", Frequency::Monthly),
];

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("MO", Weekday::Monday),
    ("TU", Weekday::Tuesday),
    ("WE", Weekday::Wednesday),
    ("TH", Weekday::Thursday),
    ("FR", Weekday::Friday),
    ("SA", Weekday::Saturday),
    ("SU", Weekday::Sunday),
];

/// The word of a table for its value, and the other way round.
fn called<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    let found = table.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value)
}

fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    let found = table.iter().find(|(_, known)| *known == value);
    found.map_or("", |(name, _)| name)
}

fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

/// The parts of a rule as they were written, each at most once.
#[derive(Default)]
struct Parts<'a> {
    given: Vec<(&'static str, &'a str)>,
}

/// In the order in which they are printed.
const PARTS: [&str; 7] = [
    "FREQ",
    "INTERVAL",
    "BYMONTHDAY",
    "BYDAY",
    "COUNT",
    "UNTIL",
    "WKST",
];

impl<'a> Parts<'a> {
    fn read(text: &'a str) -> Result<Self, RecurrenceError> {
        let mut parts = Self::default();
        for part in text.split(';') {
            let shape = || RecurrenceError::Shape(shortened(part));
            let (name, value) = part.split_once('=').ok_or_else(shape)?;
            let known = PARTS.into_iter().find(|known| *known == name);
            let known = known.ok_or_else(|| RecurrenceError::Part(shortened(name)))?;
            if parts.given.iter().any(|(given, _)| *given == known) {
                return Err(RecurrenceError::Twice(known));
            }
            parts.given.push((known, value));
        }
        Ok(parts)
    }

    /// The part's value as `read` takes it, if it is given; what `read` does not take is refused with what
    /// would be accepted.
    fn get<T>(
        &self,
        part: &'static str,
        accepted: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, RecurrenceError> {
        let given = self.given.iter().find(|(name, _)| *name == part);
        let Some((_, value)) = given else {
            return Ok(None);
        };
        let refused = || RecurrenceError::Value {
            part,
            value: shortened(value),
            accepted,
        };
        read(value).map(Some).ok_or_else(refused)
    }

    fn list<T>(
        &self,
        part: &'static str,
        accepted: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, RecurrenceError> {
        let read_all = |values: &str| values.split(',').map(&read).collect();
        Ok(self.get(part, accepted, read_all)?.unwrap_or_default())
    }
}

/// Digits with perhaps a sign, as the RFC has numbers; Rust's own reading is the same.
fn number<T: FromStr + PartialOrd>(text: &str, least: T, most: T) -> Option<T> {
    text.parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
}

fn by_day(text: &str) -> Option<ByDay> {
    let (place, weekday) = text.split_at_checked(text.len().checked_sub(2)?)?;
    let weekday = called(&WEEKDAYS, weekday)?;
    let place = match place {
        "" => None,
        place => Some(number(place, -5, 5).filter(|place| *place != 0)?),
    };
    Some(ByDay { place, weekday })
}

/// Years that a [`crate::Span`] can hold.
fn is_kept(year: i16) -> bool {
    (2000..2200).contains(&year)
}

fn until(text: &str) -> Option<End> {
    let (end, year) = match text.len() {
        8 => {
            let day = Date::strptime("%Y%m%d", text).ok()?;
            (End::Day(day), day.year())
        }
        16 => {
            let civil = DateTime::strptime("%Y%m%dT%H%M%SZ", text).ok()?;
            let moment = jiff::tz::TimeZone::UTC.to_timestamp(civil).ok()?;
            (End::Moment(moment), civil.year())
        }
        _ => return None,
    };
    Some(end).filter(|_| is_kept(year))
}

impl FromStr for Recurrence {
    type Err = RecurrenceError;

    fn from_str(text: &str) -> Result<Self, RecurrenceError> {
        // RFC 5545 reads names and these values in either case; calendars hand them over with the property's name.
        let text = text.trim().to_ascii_uppercase();
        let parts = Parts::read(text.strip_prefix("RRULE:").unwrap_or(&text))?;

        let accepted = "use DAILY, WEEKLY or MONTHLY";
        let frequency = parts.get("FREQ", accepted, |word| called(&FREQUENCIES, word))?;
        let frequency = frequency.ok_or(RecurrenceError::NoFrequency)?;
        let interval = parts.get("INTERVAL", "use a number from 1 to 1000", |value| {
            number(value, 1, INTERVAL_MAX)
        })?;
        let accepted = "use days such as MO,FR; in a monthly rule also with a place from 1 to 5 \
                        or from -5 to -1, such as 2TU or -1FR";
        let monthly = frequency == Frequency::Monthly;
        let mut by_day = parts.list("BYDAY", accepted, |value| {
            by_day(value).filter(|day| monthly || day.place.is_none())
        })?;
        let accepted =
            "use days from 1 to 31 or from -31 to -1, and only in a daily or monthly rule";
        let mut by_month_day = parts.list("BYMONTHDAY", accepted, |value| {
            number(value, -31, 31).filter(|day| *day != 0 && frequency != Frequency::Weekly)
        })?;
        let count = parts.get("COUNT", "use a number from 1 to 1000", |value| {
            number(value, 1, INSTANCES_MAX).map(End::Count)
        })?;
        let accepted = "use the last day, as in 20261231, or a moment in UTC, as in \
                        20261231T225959Z, in the years 2000 to 2199";
        let until = parts.get("UNTIL", accepted, until)?;
        let accepted = "use MO, TU, WE, TH, FR, SA or SU";
        let week_start = parts.get("WKST", accepted, |word| called(&WEEKDAYS, word))?;

        by_day.sort_by_key(|day| (day.place, day.weekday.to_monday_zero_offset()));
        by_day.dedup();
        by_month_day.sort_unstable();
        by_month_day.dedup();
        Ok(Self {
            frequency,
            interval: interval.unwrap_or(1),
            by_day,
            by_month_day,
            end: match (count, until) {
                (Some(end), None) | (None, Some(end)) => end,
                (None, None) => return Err(RecurrenceError::NoEnd),
                (Some(_), Some(_)) => return Err(RecurrenceError::TwoEnds),
            },
            week_start: week_start.unwrap_or(Weekday::Monday),
        })
    }
}

impl fmt::Display for Recurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FREQ={}", name_of(&FREQUENCIES, self.frequency))?;
        if self.interval != 1 {
            write!(f, ";INTERVAL={}", self.interval)?;
        }
        list(f, "BYMONTHDAY", &self.by_month_day)?;
        list(f, "BYDAY", &self.by_day)?;
        match self.end {
            End::Count(count) => write!(f, ";COUNT={count}")?,
            End::Day(day) => write!(f, ";UNTIL={}", day.strftime("%Y%m%d"))?,
            End::Moment(moment) => write!(f, ";UNTIL={}", moment.strftime("%Y%m%dT%H%M%SZ"))?,
        }
        // Monday is what a rule means that does not say.
        if self.week_start != Weekday::Monday {
            write!(f, ";WKST={}", name_of(&WEEKDAYS, self.week_start))?;
        }
        Ok(())
    }
}

fn list(f: &mut fmt::Formatter<'_>, part: &str, values: &[impl fmt::Display]) -> fmt::Result {
    for (place, value) in values.iter().enumerate() {
        match place {
            0 => write!(f, ";{part}={value}")?,
            _ => write!(f, ",{value}")?,
        }
    }
    Ok(())
}

impl fmt::Display for ByDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place}")?;
        }
        f.write_str(name_of(&WEEKDAYS, self.weekday))
    }
}

impl fmt::Debug for Recurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl TryFrom<String> for Recurrence {
    type Error = RecurrenceError;
    fn try_from(text: String) -> Result<Self, RecurrenceError> {
        text.parse()
    }
}

impl From<Recurrence> for String {
    fn from(rule: Recurrence) -> String {
        rule.to_string()
    }
}
