//! A recurrence set down in a place and time: the first start on the wall clock of a time zone, the length,
//! the rule, and the starts that are left out.

use std::collections::BTreeSet;

use jiff::civil::{Date, DateTime, Time};
use jiff::{SignedDuration, Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

use super::{End, Recurrence, YEARS_MAX, is_kept};
use crate::person::TimeZone;

/// What a pattern is made of. Anything can be written here; [`Pattern::new`] reads it.
///
/// To change a pattern, take its terms (`Terms::from`), change them, and make a pattern of them again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The first instance's start, on the wall clock. Every instance starts at this time of its day.
    pub start: DateTime,
    /// From start to end *on the wall clock*: 09:00 to 17:00 is eight hours on every day, also on one whose
    /// night had 23 or 25 hours.
    pub length: SignedDuration,
    pub time_zone: TimeZone,
    pub recurrence: Recurrence,
    /// Starts that the rule gives and the series does not have (EXDATE).
    #[serde(default)]
    pub except: BTreeSet<DateTime>,
}

impl Terms {
    /// The same days at another time of day; what is left out stays left out.
    pub fn at_time(self, time: Time) -> Self {
        let at_time = |civil: DateTime| civil.date().to_datetime(time);
        Self {
            start: at_time(self.start),
            except: self.except.into_iter().map(at_time).collect(),
            ..self
        }
    }
}

/// Terms that make sense together: the rule falls on the first start, ends after it and within the limit,
/// and would have every start that is left out.
///
/// RFC 5545 leaves it undefined what a start means on which its own rule does not fall. Calendars disagree,
/// so such terms are refused, with the next start that would do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Terms", into = "Terms")]
pub struct Pattern(Terms);

/// The longest an instance may be. What a site allows is a matter of its policy, and shorter.
const LENGTH_MAX: SignedDuration = SignedDuration::from_hours(366 * 24);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error(
        "a series is kept to the second: write its start, length and exceptions without fractions"
    )]
    Fraction,
    #[error("{0} is too far away: a series starts in the years 2000 to 2190")]
    Start(DateTime),
    #[error("an instance must be longer than nothing and at most 366 days long")]
    Length,
    #[error("there is no {day} in {}: the clocks there skip that day. Start on another", .zone.as_str())]
    NoSuchDay { day: Date, zone: TimeZone },
    #[error(
        "`{rule}` does not fall on {start}, the start: start the series on {next}, or change the rule"
    )]
    OffRule {
        rule: Recurrence,
        start: Date,
        next: Date,
    },
    #[error("`{0}` falls on no day in five years: change its BYDAY or BYMONTHDAY")]
    Never(Recurrence),
    #[error("`{rule}` ends before {start}, the start: give it a later UNTIL")]
    Ended { rule: Recurrence, start: DateTime },
    #[error("a series may run for five years: give it `UNTIL={}` or an earlier one", .last.strftime("%Y%m%d"))]
    TooFar { last: Date },
    #[error("{0} is left out, but is no start of this series: leave out starts that it has")]
    Exception(DateTime),
}

impl Pattern {
    pub fn new(terms: Terms) -> Result<Self, PatternError> {
        let (start, day) = (terms.start, terms.start.date());
        let in_seconds = |civil: &DateTime| civil.subsec_nanosecond() == 0;
        let whole = terms.length.subsec_nanos() == 0
            && in_seconds(&start)
            && terms.except.iter().all(in_seconds);
        if !whole {
            return Err(PatternError::Fraction);
        }
        // Ten years before the last that a span can hold: no instance comes near it.
        if !is_kept(start.year()) || start.year() > 2190 {
            return Err(PatternError::Start(start));
        }
        if !(SignedDuration::from_secs(1)..=LENGTH_MAX).contains(&terms.length) {
            return Err(PatternError::Length);
        }

        let pattern = Self(terms);
        let zone = pattern.0.time_zone.rules();
        if !has_day(&zone, day) {
            return Err(PatternError::NoSuchDay {
                day,
                zone: pattern.0.time_zone,
            });
        }
        let rule = &pattern.0.recurrence;
        let last = pattern.last_day();
        if !rule.falls_on(day, day) {
            let mut days = day.series(1.day()).take_while(|next| *next <= last);
            return Err(match days.find(|next| rule.falls_on(*next, *next)) {
                Some(next) => PatternError::OffRule {
                    rule: rule.clone(),
                    start: day,
                    next,
                },
                None => PatternError::Never(rule.clone()),
            });
        }
        let moment = zone.to_timestamp(start).unwrap_or(Timestamp::MAX);
        if !rule.end().admits(start, moment) {
            return Err(PatternError::Ended {
                rule: rule.clone(),
                start,
            });
        }
        let too_far = match rule.end() {
            End::Count(_) => false,
            End::Day(until) => until > last,
            End::Moment(until) => zone.to_datetime(until).date() > last,
        };
        if too_far {
            return Err(PatternError::TooFar { last });
        }
        let is_start = |civil: &&DateTime| {
            civil.time() == start.time() && civil.date() <= last && rule.falls_on(day, civil.date())
        };
        match pattern.0.except.iter().find(|civil| !is_start(civil)) {
            Some(civil) => Err(PatternError::Exception(*civil)),
            None => Ok(pattern),
        }
    }

    /// The last day on which an instance may start, whatever the rule says.
    pub fn last_day(&self) -> Date {
        self.0.start.date().saturating_add(YEARS_MAX.years())
    }
}

/// Whether the zone's clocks show this day at all. Samoa went from 29 to 31 December 2011.
pub fn has_day(zone: &jiff::tz::TimeZone, day: Date) -> bool {
    let midnight = zone.to_timestamp(day.to_datetime(Time::midnight()));
    midnight.is_ok_and(|moment| zone.to_datetime(moment).date() == day)
}

/// A pattern's terms are there to be read, and only to be read.
impl std::ops::Deref for Pattern {
    type Target = Terms;
    fn deref(&self) -> &Terms {
        &self.0
    }
}

impl TryFrom<Terms> for Pattern {
    type Error = PatternError;
    fn try_from(terms: Terms) -> Result<Self, PatternError> {
        Self::new(terms)
    }
}

impl From<Pattern> for Terms {
    fn from(pattern: Pattern) -> Terms {
        pattern.0
    }
}
