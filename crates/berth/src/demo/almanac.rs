//! Days and hours by the clock on the wall of the demo's sites.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

/// All three sites keep the same time.
pub const ZONE: &str = "Europe/Rome";

/// Tells moments by their distance from one day, the day on which the world was made.
#[derive(Debug, Clone)]
pub struct Almanac {
    zone: TimeZone,
    today: Date,
}

impl Almanac {
    pub fn new(now: Timestamp) -> Self {
        let zone = TimeZone::get(ZONE).unwrap_or(TimeZone::UTC);
        let today = now.to_zoned(zone.clone()).date();
        Self { zone, today }
    }

    /// The date so many days from the day the world was made.
    pub fn date(&self, day: i64) -> Date {
        self.today.saturating_add(Span::new().days(day))
    }

    /// `hour:minute` on that day, as the clocks on the wall show it.
    pub fn at(&self, day: i64, hour: i8, minute: i8) -> Timestamp {
        self.moment(self.date(day), Time::constant(hour, minute, 0, 0))
    }

    fn moment(&self, date: Date, time: Time) -> Timestamp {
        date.to_datetime(time)
            .to_zoned(self.zone.clone())
            .map_or(Timestamp::UNIX_EPOCH, |zoned| zoned.timestamp())
    }

    /// The first such weekday on or after that day, as a distance in days.
    pub fn next_weekday(&self, from: i64, weekday: Weekday) -> i64 {
        from + i64::from(self.date(from).weekday().until(weekday))
    }

    pub fn date_of(&self, moment: Timestamp) -> Date {
        moment.to_zoned(self.zone.clone()).date()
    }

    pub fn hour_of(&self, moment: Timestamp) -> i8 {
        moment.to_zoned(self.zone.clone()).hour()
    }

    /// Which day that is, as a distance from the day the world was made.
    pub fn day_of(&self, moment: Timestamp) -> i64 {
        let date = self.date_of(moment);
        self.today.duration_until(date).as_hours() / 24
    }

    /// The next full or half hour, since nobody books from 10:07.
    pub fn round_up(&self, moment: Timestamp) -> Timestamp {
        let half_hour = SignedDuration::from_mins(30).as_secs();
        let second = moment.as_second() + half_hour - 1;
        Timestamp::from_second(second - second.rem_euclid(half_hour)).unwrap_or(moment)
    }

    /// The given hour of that moment's day, or of the next working day if that day is none or the hour is over.
    pub fn working_hour(&self, not_before: Timestamp, hour: i8) -> Timestamp {
        let mut date = self.date_of(not_before);
        loop {
            let moment = self.moment(date, Time::constant(hour, 0, 0, 0));
            if is_working_day(date) && moment >= not_before {
                return moment;
            }
            date = date.saturating_add(Span::new().days(1));
        }
    }
}

pub fn is_working_day(date: Date) -> bool {
    !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_keep_their_clock_time_across_a_change_of_the_clocks() {
        // Clocks in Rome go back on 2026-10-25.
        let almanac = Almanac::new("2026-10-20T12:00:00Z".parse().unwrap());
        assert_eq!(almanac.at(0, 9, 0).to_string(), "2026-10-20T07:00:00Z");
        assert_eq!(almanac.at(7, 9, 0).to_string(), "2026-10-27T08:00:00Z");
        assert_eq!(almanac.next_weekday(0, Weekday::Tuesday), 0);
        assert_eq!(almanac.next_weekday(0, Weekday::Monday), 6);
    }

    #[test]
    fn bookings_start_on_the_half_hour_and_people_work_on_working_days() {
        let almanac = Almanac::new("2026-10-20T12:00:00Z".parse().unwrap());
        let saturday = "2026-10-24T10:07:00Z".parse().unwrap();
        assert_eq!(
            almanac.round_up(saturday).to_string(),
            "2026-10-24T10:30:00Z"
        );
        assert_eq!(
            almanac.working_hour(saturday, 9).to_string(),
            "2026-10-26T08:00:00Z"
        );
    }
}
