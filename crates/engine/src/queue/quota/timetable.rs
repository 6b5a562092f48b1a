//! Allowances that differ by hour and day, such as more at night and at weekends when fewer people wait.
//!
//! A workload that starts at night may still run in the morning. So its allowance is the lowest of all that apply
//! during its possible run. The week repeats itself, so the changes of one week ahead are enough.

use super::super::Micros;
use super::Allowance;

const MINUTE: Micros = 60_000_000;
const HOUR_MINUTES: u16 = 60;
const DAY_MINUTES: u16 = 24 * 60;
/// One week, and a day for changes of daylight saving time.
const AHEAD: Micros = 8 * 24 * 60 * MINUTE;

/// The local time of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    /// From 0 on Monday to 6 on Sunday.
    pub weekday: u8,
    /// Minutes since midnight.
    pub minute: u16,
}

/// Some hours of some days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    /// The lowest bit is Monday.
    pub weekdays: u8,
    /// Minutes since midnight. Hours with an end at or before their start go on into the next day.
    pub from: u16,
    pub to: u16,
}

impl Hours {
    fn hold(&self, local: LocalTime) -> bool {
        let is_on = |weekday: u8| self.weekdays >> (weekday % 7) & 1 == 1;
        if self.from < self.to {
            return is_on(local.weekday) && (self.from..self.to).contains(&local.minute);
        }
        let begun_today = is_on(local.weekday) && local.minute >= self.from;
        let begun_yesterday = is_on(local.weekday + 6) && local.minute < self.to;
        begun_today || begun_yesterday
    }
}

/// The allowance by hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timetable {
    /// Where no hours apply; `None` for no allowance.
    pub usual: Option<Allowance>,
    /// The first hours that apply count.
    pub hours: Vec<(Hours, Option<Allowance>)>,
}

impl Timetable {
    pub fn at(&self, local: LocalTime) -> Option<Allowance> {
        let holds = self.hours.iter().find(|(hours, _)| hours.hold(local));
        holds.map_or(self.usual, |(_, allowance)| *allowance)
    }

    /// The allowance now, and every change in the week ahead.
    pub fn ahead(
        &self,
        now: Micros,
        local: impl Fn(Micros) -> LocalTime,
    ) -> (Option<Allowance>, Vec<(Micros, Option<Allowance>)>) {
        let first = self.at(local(now));
        let mut last = first;
        let mut changes = Vec::new();
        let mut at = now;
        while at < now.saturating_add(AHEAD) {
            at = self.next_stop(at, local(at));
            let allowance = self.at(local(at));
            if allowance != last {
                changes.push((at, allowance));
                last = allowance;
            }
        }
        (first, changes)
    }

    /// The next moment that can change an allowance. Not later than the next full hour: the local clock jumps on full
    /// hours only.
    fn next_stop(&self, at: Micros, local: LocalTime) -> Micros {
        let edges = self
            .hours
            .iter()
            .flat_map(|(hours, _)| [hours.from, hours.to]);
        let hour = (local.minute / HOUR_MINUTES + 1) * HOUR_MINUTES;
        let later = edges.filter(|edge| *edge > local.minute).chain([hour]);
        let next = later.min().unwrap_or(hour).min(DAY_MINUTES);
        let minutes = next.saturating_sub(local.minute).max(1);
        let minute_began = at - at.rem_euclid(MINUTE);
        minute_began.saturating_add(Micros::from(minutes) * MINUTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Micros = 60 * MINUTE;
    const DAY: Micros = 24 * HOUR;
    const WORKDAYS: u8 = 0b001_1111;
    const WEEKEND: u8 = 0b110_0000;

    fn allowance(limit: u64) -> Option<Allowance> {
        Some(Allowance {
            guaranteed: 1,
            limit: Some(limit),
        })
    }

    /// Eight on workday nights, everything at weekends, otherwise two.
    fn timetable() -> Timetable {
        let hours = |weekdays, from: u16, to: u16| Hours {
            weekdays,
            from: from * 60,
            to: to * 60,
        };
        Timetable {
            usual: allowance(2),
            hours: vec![
                (hours(WEEKEND, 0, 0), None),
                (hours(WORKDAYS, 20, 6), allowance(8)),
            ],
        }
    }

    /// A clock that shows Monday midnight at 0, and is one hour ahead after Wednesday at two.
    fn local(at: Micros) -> LocalTime {
        let shown = if at >= 2 * DAY + 2 * HOUR {
            at + HOUR
        } else {
            at
        };
        LocalTime {
            weekday: (shown.div_euclid(DAY)).rem_euclid(7) as u8,
            minute: (shown.rem_euclid(DAY) / MINUTE) as u16,
        }
    }

    #[test]
    fn nights_and_weekends_have_limits_of_their_own() {
        let table = timetable();
        let at = |weekday, minute| table.at(LocalTime { weekday, minute });
        assert_eq!(at(0, 12 * 60), allowance(2));
        assert_eq!(at(0, 20 * 60), allowance(8));
        assert_eq!(at(1, 5 * 60 + 59), allowance(8));
        assert_eq!(at(1, 6 * 60), allowance(2));
        assert_eq!(at(0, 0), allowance(2), "a whole day ends at midnight");
        assert_eq!(at(5, 3), None);
    }

    #[test]
    fn every_change_of_the_week_is_known_ahead_by_the_clock_on_the_wall() {
        let table = timetable();
        let now = 12 * HOUR + 7;
        let (first, changes) = table.ahead(now, local);
        assert_eq!(first, allowance(2));
        let mut last = first;
        let mut known = changes.iter().peekable();
        for at in (now / MINUTE + 1..)
            .map(|minute| minute * MINUTE)
            .take(7 * 24 * 60)
        {
            if let Some((_, allowance)) = known.next_if(|(change, _)| *change == at) {
                assert_ne!(*allowance, last, "at {at}");
                last = *allowance;
            }
            assert_eq!(table.at(local(at)), last, "at {at}");
        }
        assert!(changes.len() >= 10);
    }
}
