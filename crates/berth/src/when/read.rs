//! The grammar of moments: words, clock times and ISO dates, resolved to one instant or refused.
//!
//! Relative moments (`+2h`) are not here, they are durations; see the parent module.

use jiff::civil::{Date, Time, Weekday};
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::TimeZone;
use jiff::{ToSpan, Zoned};

use super::{Error, OUT_OF_RANGE};

const NOT_A_CLOCK_TIME: &str = "its time of day is not one from 00:00 to 23:59, or such as 9am";

/// What someone typed, and when and where they typed it.
pub(super) struct Typed<'a> {
    pub text: &'a str,
    pub now: &'a Zoned,
}

/// A place on the calendar of one zone: a clock time on a day, or the start of the day.
struct Place {
    date: Date,
    time: Option<Time>,
    zone: TimeZone,
}

impl Typed<'_> {
    pub(super) fn moment(&self) -> Result<Zoned, Error> {
        if starts_like_a_date(self.text) {
            self.iso()
        } else {
            self.words()
        }
    }

    fn refuse(&self, why: &'static str) -> Error {
        Error::moment(self.text, why)
    }

    /// `tomorrow 9am`, `next friday 10:00`, `14:30`.
    fn words(&self) -> Result<Zoned, Error> {
        let lower = self.text.to_lowercase();
        let words: Vec<&str> = lower.split_whitespace().collect();
        let today = self.now.date().weekday();
        match words.as_slice() {
            [] => Err(self.refuse("it is empty")),
            ["now"] => Ok(self.now.clone()),
            ["today", clock @ ..] => self.on_day(0, clock),
            ["tomorrow", clock @ ..] => self.on_day(1, clock),
            ["yesterday", clock @ ..] => self.on_day(-1, clock),
            ["next", name, clock @ ..] => match weekday(name) {
                Some(day) if day == today => self.on_day(7, clock),
                Some(day) => self.on_day(today.until(day).into(), clock),
                None => Err(self.refuse("after `next` comes a weekday")),
            },
            [first, rest @ ..] => match weekday(first) {
                Some(day) => self.coming(today.until(day).into(), rest, 7),
                None if first.starts_with(|c: char| c.is_ascii_digit()) => {
                    self.coming(0, &words, 1)
                }
                None => Err(self.refuse("it is neither a day, a clock time nor a date")),
            },
        }
    }

    fn on_day(&self, days_ahead: i32, clock: &[&str]) -> Result<Zoned, Error> {
        self.resolve(self.place(days_ahead, clock)?)
    }

    /// The place `days_ahead` if it still lies ahead, else the one `period_days` after it.
    ///
    /// A time that the clocks repeat counts as ahead until its second turn is over: which of the
    /// two is meant is for [`Typed::resolve`] to ask.
    fn coming(&self, days_ahead: i32, clock: &[&str], period_days: i32) -> Result<Zoned, Error> {
        let first = self.place(days_ahead, clock)?;
        let latest = first.readings().map_err(|_| self.refuse(OUT_OF_RANGE))?.1;
        let passed = latest <= *self.now;
        self.resolve(if passed {
            self.place(days_ahead + period_days, clock)?
        } else {
            first
        })
    }

    fn place(&self, days_ahead: i32, clock: &[&str]) -> Result<Place, Error> {
        let date = self
            .now
            .date()
            .checked_add(days_ahead.days())
            .map_err(|_| self.refuse(OUT_OF_RANGE))?;
        let time = match clock {
            [] => None,
            clock => Some(spoken_clock(clock).ok_or_else(|| self.refuse(NOT_A_CLOCK_TIME))?),
        };
        Ok(Place {
            date,
            time,
            zone: self.now.time_zone().clone(),
        })
    }

    /// The one instant that is meant, or a refusal naming the two that could be.
    fn resolve(&self, place: Place) -> Result<Zoned, Error> {
        let (earlier, later) = place.readings().map_err(|_| self.refuse(OUT_OF_RANGE))?;
        let asked = place
            .date
            .to_datetime(place.time.unwrap_or(Time::midnight()));
        if earlier == later {
            Ok(earlier)
        } else if later.datetime() == asked {
            Err(Error::Repeated {
                asked,
                first: earlier,
                second: later,
            })
        } else {
            Err(Error::Skipped {
                asked,
                earlier,
                later,
            })
        }
    }

    /// `2026-11-20`, then a clock time after a space or a `T`, an offset, a zone in brackets.
    fn iso(&self) -> Result<Zoned, Error> {
        let date: Date = self
            .text
            .get(..10)
            .and_then(|date| date.parse().ok())
            .ok_or_else(|| self.refuse("there is no such date (write year-month-day)"))?;
        let here = || self.now.time_zone().clone();
        let rest = self.text.get(10..).unwrap_or_default();
        if rest.is_empty() {
            return self.resolve(Place {
                date,
                time: None,
                zone: here(),
            });
        }
        // Our clock times are laxer than those of ISO (`9:00`, `9am`) but know no offsets.
        let clock = rest
            .strip_prefix(['T', 't', ' '])
            .unwrap_or_default()
            .to_lowercase();
        if let Some(time) = spoken_clock(&clock.split_whitespace().collect::<Vec<_>>()) {
            return self.resolve(Place {
                date,
                time: Some(time),
                zone: here(),
            });
        }

        let pieces = Pieces::parse(self.text).map_err(|_| {
            self.refuse("after the date comes a time such as 09:00, then an offset such as +01:00")
        })?;
        let named_zone = pieces
            .to_time_zone()
            .map_err(|_| self.refuse("its time zone is unknown here"))?;
        let Some(offset) = pieces.offset() else {
            let zone = named_zone.unwrap_or_else(here);
            return self.resolve(Place {
                date,
                time: pieces.time(),
                zone,
            });
        };
        let instant = offset
            .to_numeric_offset()
            .to_timestamp(date.to_datetime(pieces.time().unwrap_or(Time::midnight())))
            .map_err(|_| self.refuse(OUT_OF_RANGE))?;
        let Some(zone) = named_zone else {
            return Ok(instant.to_zoned(here()));
        };
        let moment = instant.to_zoned(zone);
        // `Z` fixes the instant and says nothing about the zone in the brackets.
        if offset != PiecesOffset::Zulu && moment.offset() != offset.to_numeric_offset() {
            return Err(self.refuse("its time zone does not have that offset at that time"));
        }
        Ok(moment)
    }
}

impl Place {
    /// The earliest and the latest instant this place can mean: the same one, unless the clocks
    /// skip or repeat it. The start of a day is always one instant, its first.
    fn readings(&self) -> Result<(Zoned, Zoned), jiff::Error> {
        let Some(time) = self.time else {
            let start = self.date.to_zoned(self.zone.clone())?.start_of_day()?;
            return Ok((start.clone(), start));
        };
        let readings = self.zone.to_ambiguous_zoned(self.date.to_datetime(time));
        Ok((readings.clone().earlier()?, readings.later()?))
    }
}

/// Four digits and a dash: nothing else that is accepted starts so.
fn starts_like_a_date(text: &str) -> bool {
    text.as_bytes()
        .split_first_chunk::<4>()
        .is_some_and(|(year, rest)| year.iter().all(u8::is_ascii_digit) && rest.starts_with(b"-"))
}

/// A weekday by its English name or a beginning of it that only one weekday has.
fn weekday(name: &str) -> Option<Weekday> {
    let spelled = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    let long_enough = name.len() >= 3;
    spelled
        .into_iter()
        .find(|(full, _)| long_enough && full.starts_with(name))
        .map(|(_, day)| day)
}

/// A clock time as people say it after a day: `9 am`, `at 14:30`.
fn spoken_clock(words: &[&str]) -> Option<Time> {
    match words {
        ["at", clock @ ..] | clock => clock_time(&clock.concat()),
    }
}

/// `14:30`, `9:00`, `09:00:30`, `9am`, `9:30pm`; in lower case and without spaces.
fn clock_time(text: &str) -> Option<Time> {
    let (digits, afternoon) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(digits), _) => (digits, Some(false)),
        (_, Some(digits)) => (digits, Some(true)),
        (None, None) => (text, None),
    };
    let mut numbers = [0_i8; 3];
    let mut count = 0;
    for part in digits.split(':') {
        // Minutes and seconds have two digits: `9:5` could be meant as 9:05 or 9:50.
        let lengths = if count == 0 { 1..=2 } else { 2..=2 };
        if !lengths.contains(&part.len()) || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *numbers.get_mut(count)? = part.parse().ok()?;
        count += 1;
    }
    let [hour, minute, second] = numbers;
    let hour = match afternoon {
        // A bare number is no clock time: it could as well be a day or a length.
        None if count == 1 => return None,
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(false) => hour % 12,
        Some(true) => hour % 12 + 12,
    };
    Time::new(hour, minute, second, 0).ok()
}
