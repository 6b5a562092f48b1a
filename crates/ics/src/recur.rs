//! Recurrence rules, as far as institutional calendars use them: the days on which an event falls.
//!
//! The reader checks one day after the other, which is slow but simple. The caller limits the number of days.

use jiff::Span;
use jiff::civil::{Date, Weekday};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    every: Every,
    interval: i32,
    pub count: Option<u32>,
    /// The original text; the reader decides whether it is a day or a moment.
    pub until: Option<String>,
    months: Vec<i8>,
    month_days: Vec<i8>,
    /// With its position in the month, if any: `2MO`, `-1FR`.
    weekdays: Vec<(Option<i8>, Weekday)>,
    week_start: Weekday,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Every {
    Day,
    Week,
    Month,
    Year,
}

/// A part of a rule that this crate does not support.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotUnderstood;

impl Rule {
    pub fn parse(text: &str) -> Result<Self, NotUnderstood> {
        let mut every = None;
        let mut rule = Rule {
            every: Every::Day,
            interval: 1,
            count: None,
            until: None,
            months: Vec::new(),
            month_days: Vec::new(),
            weekdays: Vec::new(),
            week_start: Weekday::Monday,
        };
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or(NotUnderstood)?;
            let value = value.trim();
            match name.trim().to_ascii_uppercase().as_str() {
                "FREQ" => every = Some(frequency(value)?),
                "INTERVAL" => rule.interval = within(value, 1, 1000)?,
                "COUNT" => rule.count = Some(value.parse().map_err(|_| NotUnderstood)?),
                "UNTIL" => rule.until = Some(value.to_owned()),
                "BYMONTH" => rule.months = list(value, |one| within(one, 1, 12))?,
                "BYMONTHDAY" => {
                    rule.month_days = list(value, |one| within(one, -31, 31))?;
                }
                "BYDAY" => rule.weekdays = list(value, weekday_of)?,
                "WKST" => rule.week_start = weekday(value)?,
                _ => return Err(NotUnderstood),
            }
        }
        rule.every = every.ok_or(NotUnderstood)?;
        let is_counted = rule.weekdays.iter().any(|(nth, _)| nth.is_some());
        // "The second Monday" is supported within a month only; within a whole year it would be another day.
        let months_are_plain = match rule.every {
            Every::Month => true,
            Every::Year => !rule.months.is_empty(),
            Every::Day | Every::Week => false,
        };
        if (is_counted && !months_are_plain)
            || (rule.every == Every::Week && !rule.month_days.is_empty())
        {
            return Err(NotUnderstood);
        }
        Ok(rule)
    }

    /// Whether an event that first fell on `first` falls on `day`, ignoring counts and ends.
    pub fn falls_on(&self, first: Date, day: Date) -> bool {
        if day == first {
            return true;
        }
        let periods = match self.every {
            Every::Day => days(first, day),
            Every::Week => days(self.week_of(first), self.week_of(day)) / 7,
            Every::Month => months(day) - months(first),
            Every::Year => i32::from(day.year()) - i32::from(first.year()),
        };
        if periods % self.interval != 0 {
            return false;
        }
        let month_fits = match self.every {
            Every::Year if self.names_no_day() && self.months.is_empty() => {
                day.month() == first.month()
            }
            _ => self.months.is_empty() || self.months.contains(&day.month()),
        };
        month_fits && self.day_fits(first, day)
    }

    fn names_no_day(&self) -> bool {
        self.month_days.is_empty() && self.weekdays.is_empty()
    }

    fn day_fits(&self, first: Date, day: Date) -> bool {
        if self.names_no_day() {
            return match self.every {
                Every::Day => true,
                Every::Week => day.weekday() == first.weekday(),
                Every::Month | Every::Year => day.day() == first.day(),
            };
        }
        let from_end = day.day() - day.days_in_month() - 1;
        let of_month = self.month_days.is_empty()
            || self.month_days.contains(&day.day())
            || self.month_days.contains(&from_end);
        let of_week = self.weekdays.is_empty()
            || self.weekdays.iter().any(|(nth, weekday)| {
                let nth_fits = match nth {
                    None => true,
                    Some(nth) if *nth > 0 => (day.day() - 1) / 7 + 1 == *nth,
                    Some(nth) => (day.days_in_month() - day.day()) / 7 + 1 == -*nth,
                };
                *weekday == day.weekday() && nth_fits
            });
        of_month && of_week
    }

    fn week_of(&self, day: Date) -> Date {
        let back = day.weekday().since(self.week_start);
        day.checked_sub(Span::new().days(back)).unwrap_or(day)
    }
}

fn days(from: Date, to: Date) -> i32 {
    (to - from).get_days()
}

fn months(day: Date) -> i32 {
    i32::from(day.year()) * 12 + i32::from(day.month())
}

fn frequency(text: &str) -> Result<Every, NotUnderstood> {
    match text.to_ascii_uppercase().as_str() {
        "DAILY" => Ok(Every::Day),
        "WEEKLY" => Ok(Every::Week),
        "MONTHLY" => Ok(Every::Month),
        "YEARLY" => Ok(Every::Year),
        _ => Err(NotUnderstood),
    }
}

fn within<T: std::str::FromStr + PartialOrd>(
    text: &str,
    least: T,
    most: T,
) -> Result<T, NotUnderstood> {
    let number: T = text.parse().map_err(|_| NotUnderstood)?;
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(NotUnderstood)
    }
}

fn list<T>(
    text: &str,
    one: impl Fn(&str) -> Result<T, NotUnderstood>,
) -> Result<Vec<T>, NotUnderstood> {
    // No rule has more values than there are days in a year.
    let values: Vec<&str> = text.split(',').take(367).collect();
    if values.len() > 366 {
        return Err(NotUnderstood);
    }
    values.into_iter().map(|value| one(value.trim())).collect()
}

fn weekday_of(text: &str) -> Result<(Option<i8>, Weekday), NotUnderstood> {
    let at = text.len().checked_sub(2).ok_or(NotUnderstood)?;
    let (nth, name) = text.split_at_checked(at).ok_or(NotUnderstood)?;
    let nth = match nth.strip_prefix('+').unwrap_or(nth) {
        "" => None,
        nth => Some(within(nth, -5_i8, 5)?).filter(|nth| *nth != 0),
    };
    Ok((nth, weekday(name)?))
}

fn weekday(text: &str) -> Result<Weekday, NotUnderstood> {
    match text.to_ascii_uppercase().as_str() {
        "MO" => Ok(Weekday::Monday),
        "TU" => Ok(Weekday::Tuesday),
        "WE" => Ok(Weekday::Wednesday),
        "TH" => Ok(Weekday::Thursday),
        "FR" => Ok(Weekday::Friday),
        "SA" => Ok(Weekday::Saturday),
        "SU" => Ok(Weekday::Sunday),
        _ => Err(NotUnderstood),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first days on which the rule falls.
    fn days_of(rule: &str, first: &str, how_many: usize) -> Vec<String> {
        let (rule, first) = (Rule::parse(rule).unwrap(), first.parse::<Date>().unwrap());
        first
            .series(Span::new().days(1))
            .filter(|day| rule.falls_on(first, *day))
            .take(how_many)
            .map(|day| day.to_string())
            .collect()
    }

    #[test]
    fn the_rules_that_holidays_have() {
        for (rule, first, expected) in [
            (
                "FREQ=YEARLY",
                "2024-12-25",
                ["2024-12-25", "2025-12-25", "2026-12-25"],
            ),
            (
                "FREQ=YEARLY",
                "2024-02-29",
                ["2024-02-29", "2028-02-29", "2032-02-29"],
            ),
            (
                "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH",
                "2024-11-28",
                ["2024-11-28", "2025-11-27", "2026-11-26"],
            ),
            (
                "FREQ=YEARLY;INTERVAL=2",
                "2024-05-01",
                ["2024-05-01", "2026-05-01", "2028-05-01"],
            ),
            (
                "FREQ=YEARLY;BYMONTH=5;BYMONTHDAY=1",
                "2024-05-01",
                ["2024-05-01", "2025-05-01", "2026-05-01"],
            ),
            (
                "FREQ=MONTHLY;BYDAY=-1FR",
                "2026-01-30",
                ["2026-01-30", "2026-02-27", "2026-03-27"],
            ),
            (
                "FREQ=MONTHLY;BYMONTHDAY=-1",
                "2026-01-31",
                ["2026-01-31", "2026-02-28", "2026-03-31"],
            ),
            (
                "FREQ=MONTHLY",
                "2026-01-31",
                ["2026-01-31", "2026-03-31", "2026-05-31"],
            ),
            (
                "FREQ=WEEKLY",
                "2026-03-02",
                ["2026-03-02", "2026-03-09", "2026-03-16"],
            ),
            (
                "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=MO",
                "1997-08-05",
                ["1997-08-05", "1997-08-10", "1997-08-19"],
            ),
            (
                "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU",
                "1997-08-05",
                ["1997-08-05", "1997-08-17", "1997-08-19"],
            ),
            (
                "FREQ=DAILY;INTERVAL=10",
                "2026-01-01",
                ["2026-01-01", "2026-01-11", "2026-01-21"],
            ),
            (
                "FREQ=DAILY;BYDAY=SA",
                "2026-01-03",
                ["2026-01-03", "2026-01-10", "2026-01-17"],
            ),
        ] {
            assert_eq!(days_of(rule, first, 3), expected, "{rule} from {first}");
        }
    }

    #[test]
    fn what_is_not_understood_is_not_guessed_at() {
        for rule in [
            "",
            "FREQ=HOURLY",
            "COUNT=3",
            "FREQ=YEARLY;BYDAY=2MO",
            "FREQ=YEARLY;BYWEEKNO=20",
            "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1",
            "FREQ=WEEKLY;BYMONTHDAY=3",
            "FREQ=DAILY;INTERVAL=0",
            "FREQ=DAILY;BYDAY=€O",
            "FREQ=DAILY;COUNT=-1",
            "FREQ",
        ] {
            assert_eq!(Rule::parse(rule), Err(NotUnderstood), "{rule}");
        }
    }
}
