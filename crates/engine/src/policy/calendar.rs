//! A site's calendar: its opening hours, its weeks, and the steps at which bookings may start.
//!
//! All times are read from the site's wall clock. Between two clock changes the clock runs evenly. So each stretch
//! between changes is computed alone, and no skipped or repeated hour needs a special case: a site is open exactly
//! while its clock shows a time within its opening hours.

use berth_model::policy::{Holiday, OpeningHours, Step};
use berth_model::{Span, Text};
use jiff::civil::{Date, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

#[derive(Debug, Clone)]
pub struct Calendar {
    zone: TimeZone,
    /// Ordered by start.
    holidays: Vec<(Span, Text)>,
}

/// A time within which the clock runs evenly.
struct Stretch {
    from: Timestamp,
    to: Timestamp,
    offset: Offset,
}

impl Stretch {
    /// The moment at which this stretch's clock shows midnight of a date, even if the stretch begins later.
    fn midnight(&self, date: Date) -> Timestamp {
        let midnight = date.to_datetime(Time::midnight());
        // Such a moment is missing only at the ends of the ten thousand years that dates cover.
        self.offset.to_timestamp(midnight).unwrap_or(self.to)
    }

    fn date(&self, at: Timestamp) -> Date {
        self.offset.to_datetime(at).date()
    }
}

impl Calendar {
    pub fn new<'a>(zone: TimeZone, holidays: impl IntoIterator<Item = &'a Holiday>) -> Calendar {
        let spans = holidays
            .into_iter()
            .filter_map(|holiday| Some((holiday.span(&zone)?, holiday.name.clone())));
        let mut holidays: Vec<(Span, Text)> = spans.collect();
        holidays.sort();
        Calendar { zone, holidays }
    }

    pub(super) fn zoned(&self, at: Timestamp) -> Zoned {
        at.to_zoned(self.zone.clone())
    }

    /// The holidays that overlap a time.
    pub(super) fn holidays(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> impl Iterator<Item = &(Span, Text)> {
        let begun = self.holidays.partition_point(|(span, _)| span.start() < to);
        self.holidays[..begun]
            .iter()
            .filter(move |(span, _)| from < span.end())
    }

    fn stretches(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Stretch> + '_ {
        let mut next = from;
        std::iter::from_fn(move || {
            if next >= to {
                return None;
            }
            let stretch = self.stretch_at(next);
            let from = next;
            next = stretch.to;
            let to = stretch.to.min(to);
            Some(Stretch {
                from,
                to,
                ..stretch
            })
        })
    }

    /// The whole stretch that contains a moment.
    fn stretch_at(&self, at: Timestamp) -> Stretch {
        let just_after = at + SignedDuration::from_micros(1);
        let began = self.zone.preceding(just_after).next();
        let ends = self.zone.following(at).next();
        Stretch {
            from: began.map_or(Timestamp::MIN, |change| change.timestamp()),
            to: ends.map_or(Timestamp::MAX, |change| change.timestamp()),
            offset: self.zone.to_offset(at),
        }
    }

    /// When `hours` are open between two moments: in order, no two touching.
    pub(super) fn open(
        &self,
        hours: &OpeningHours,
        from: Timestamp,
        to: Timestamp,
    ) -> Vec<(Timestamp, Timestamp)> {
        let mut open: Vec<(Timestamp, Timestamp)> = Vec::new();
        for stretch in self.stretches(from, to) {
            let mut date = stretch.date(stretch.from);
            let last = stretch.date(stretch.to);
            while date <= last {
                let midnight = stretch.midnight(date);
                for part in hours.on(date.weekday()) {
                    let after = |minutes: u16| midnight + SignedDuration::from_mins(minutes.into());
                    let begin = after(part.from_min()).max(stretch.from);
                    let end = after(part.to_min()).min(stretch.to);
                    match open.last_mut() {
                        Some(last) if last.1 == begin && begin < end => last.1 = end,
                        _ if begin < end => open.push((begin, end)),
                        _ => {}
                    }
                }
                match date.tomorrow() {
                    Ok(tomorrow) => date = tomorrow,
                    Err(_) => break,
                }
            }
        }
        open
    }

    /// The rest of the time between two moments.
    pub(super) fn closed(
        &self,
        hours: &OpeningHours,
        from: Timestamp,
        to: Timestamp,
    ) -> Vec<(Timestamp, Timestamp)> {
        let open = self.open(hours, from, to);
        let ends = std::iter::once(from).chain(open.iter().map(|(_, end)| *end));
        let begins = open.iter().map(|(begin, _)| *begin).chain([to]);
        ends.zip(begins)
            .filter(|(end, begin)| end < begin)
            .collect()
    }

    /// The whole closed time that contains `at`; at most a fortnight of it either way.
    pub(super) fn closing(&self, hours: &OpeningHours, at: Timestamp) -> (Zoned, Zoned) {
        let fortnight = SignedDuration::from_hours(14 * 24);
        let around = self.closed(hours, at - fortnight, at + fortnight);
        let met = around.into_iter().find(|(_, end)| at < *end);
        let (from, to) = met.unwrap_or((at, at));
        (self.zoned(from), self.zoned(to))
    }

    /// The weeks that overlap a time, from midnight to midnight, each with the date of its Monday.
    pub(super) fn weeks(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> impl Iterator<Item = (Date, Timestamp, Timestamp)> + '_ {
        let date = self.zone.to_datetime(from).date();
        let since_monday = i64::from(date.weekday().to_monday_zero_offset());
        let days =
            |date: Date, days: i64| date.saturating_add(SignedDuration::from_hours(24 * days));
        let midnight = |date: Date| date.to_zoned(self.zone.clone()).map(|day| day.timestamp());
        let mut monday = days(date, -since_monday);
        std::iter::from_fn(move || {
            let this = monday;
            let (begin, end) = (midnight(this).ok()?, midnight(days(this, 7)).ok()?);
            monday = days(this, 7);
            (begin < to && begin < end).then_some((this, begin, end))
        })
    }

    /// The first moment from `at` on at which the clock shows a multiple of `step` since midnight.
    pub(super) fn in_step_from(&self, at: Timestamp, step: Step) -> Timestamp {
        let mut at = at;
        loop {
            let stretch = self.stretch_at(at);
            let midnight = stretch.midnight(stretch.date(at));
            let steps = in_steps(at.duration_since(midnight), step);
            let up = midnight + step.length().duration() * steps.1;
            // If the steps do not divide a day, the next one is midnight.
            let tomorrow = midnight + SignedDuration::from_hours(24);
            let found = up.min(tomorrow);
            if found < stretch.to || stretch.to == Timestamp::MAX {
                return found;
            }
            at = stretch.to;
        }
    }

    /// The last moment up to `at` at which the clock shows a multiple of `step` since midnight.
    pub(super) fn in_step_until(&self, at: Timestamp, step: Step) -> Timestamp {
        let mut at = at;
        loop {
            let stretch = self.stretch_at(at);
            let midnight = stretch.midnight(stretch.date(at));
            let steps = in_steps(at.duration_since(midnight), step);
            let found = midnight + step.length().duration() * steps.0;
            if found >= stretch.from || stretch.from == Timestamp::MIN {
                return found;
            }
            at = stretch.from - SignedDuration::from_micros(1);
        }
    }
}

/// The number of whole steps in a time, and the number of steps that cover it.
fn in_steps(time: SignedDuration, step: Step) -> (i32, i32) {
    let (time, step) = (time.as_micros(), step.length().duration().as_micros());
    let whole = time / step;
    let cover = whole + i128::from(time % step > 0);
    let small = |steps: i128| i32::try_from(steps).unwrap_or(i32::MAX);
    (small(whole), small(cover))
}
