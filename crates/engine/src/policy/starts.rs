//! Computes when a booking of a given length may start, without trying each start.
//!
//! Every rule about time forbids starts strictly between two moments. For example, a closed time from `c` to `d`
//! forbids a booking of length `l` to start between `c - l` and `d`. The remaining starts are closed ranges, down to
//! single moments: a booking as long as the opening hours of a day starts when they start.

use berth_model::Span;
use berth_model::policy::{Length, Scope, Step};
use jiff::{SignedDuration, Timestamp};

use super::calendar::Calendar;
use super::judge::Desk;
use super::ledger::{Booking, Whose};

/// The permitted starts within a window.
#[derive(Debug, Clone)]
pub struct Starts<'a> {
    /// First and last start of each range, in order. Both are permitted if they fit the start step.
    ranges: Vec<(Timestamp, Timestamp)>,
    step: Option<Step>,
    calendar: &'a Calendar,
}

impl Starts<'_> {
    /// First and last of each contiguous range, in order. With a start step, the ranges still include moments between
    /// the steps, and their ends may lie between steps too.
    pub fn ranges(&self) -> &[(Timestamp, Timestamp)] {
        &self.ranges
    }

    pub fn contains(&self, at: Timestamp) -> bool {
        self.from(at) == Some(at)
    }

    /// The earliest permitted start from `at` on.
    pub fn from(&self, at: Timestamp) -> Option<Timestamp> {
        let next = self.ranges.partition_point(|(_, last)| *last < at);
        self.ranges[next..].iter().find_map(|(first, last)| {
            let start = at.max(*first);
            let start = self
                .step
                .map_or(start, |step| self.calendar.in_step_from(start, step));
            (start <= *last).then_some(start)
        })
    }

    /// The latest permitted start up to `at`.
    pub fn until(&self, at: Timestamp) -> Option<Timestamp> {
        let end = self.ranges.partition_point(|(first, _)| *first <= at);
        self.ranges[..end].iter().rev().find_map(|(first, last)| {
            let start = at.min(*last);
            let start = self
                .step
                .map_or(start, |step| self.calendar.in_step_until(start, step));
            (*first <= start).then_some(start)
        })
    }

    /// The permitted start that is closest to `at`; of two, the earlier.
    pub fn nearest(&self, at: Timestamp) -> Option<Timestamp> {
        let both = [self.until(at), self.from(at)].into_iter().flatten();
        both.min_by_key(|start| start.duration_since(at).unsigned_abs())
    }
}

impl Desk<'_> {
    /// The starts in `window` that every rule permits for a booking like this one: as long, by the same person, on
    /// the same resources. The booking's own start does not matter. Who may book and the number of bookings do not
    /// depend on the start; [`Desk::judge`] checks them.
    pub fn starts(&self, booking: &Booking, window: Span) -> Starts<'_> {
        let length = booking.span.duration();
        let (first, mut last) = (
            window.start(),
            window.end() - SignedDuration::from_micros(1),
        );
        if let Some(horizon) = &self.rules.horizon {
            last = last.min(self.now + horizon.value.duration());
        }
        let ranges = if self.fits_length(length) && first <= last {
            let mut forbidden = self.forbidden(booking, length, first, last);
            forbidden.sort_unstable();
            left_over(first, last, &forbidden)
        } else {
            Vec::new()
        };
        Starts {
            ranges,
            step: self.rules.start_step.as_ref().map(|limit| limit.value),
            calendar: self.calendar,
        }
    }

    /// Pairs of moments strictly between which a booking may not start.
    fn forbidden(
        &self,
        booking: &Booking,
        length: SignedDuration,
        first: Timestamp,
        last: Timestamp,
    ) -> Vec<(Timestamp, Timestamp)> {
        let until = last + length;
        let mut forbidden = Vec::new();
        if let Some(notice) = &self.rules.notice {
            let earliest = self.now + notice.value.duration();
            match booking.stands_from {
                Some(stays) if stays < earliest => {
                    forbidden.extend([(Timestamp::MIN, stays), (stays, earliest)]);
                }
                _ => forbidden.push((Timestamp::MIN, earliest)),
            }
        }
        let closed = self.closed(first, until);
        forbidden.extend(closed.into_iter().map(|(from, to)| (from - length, to)));
        if let Some(gap) = &self.rules.gap {
            // Without a gap there is nothing to check: the claim rule decides whether two bookings may overlap.
            let gap = gap.value.duration();
            let neighbours = self
                .ledger
                .neighbours(booking)
                .filter(|_| gap.is_positive());
            forbidden
                .extend(neighbours.map(|other| (other.start() - gap - length, other.end() + gap)));
        }
        for (scope, whose, most) in self.weekly(booking) {
            for (monday, begin, end) in self.calendar.weeks(first, until) {
                let left = most.duration() - self.ledger.hours(scope, &whose, monday);
                let left = left.max(SignedDuration::ZERO);
                // More than the remaining hours would lie within the week, unless the booking or the week is too
                // short for that.
                if left < length && left < end.duration_since(begin) {
                    forbidden.push((begin - length + left, end - left));
                }
            }
        }
        forbidden
    }

    /// Closed hours and holidays that overlap a time, in no order.
    pub(super) fn closed(&self, from: Timestamp, to: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let hours = self.rules.opening_hours.as_ref();
        let mut closed = hours.map_or_else(Vec::new, |limit| {
            self.calendar.closed(&limit.value, from, to)
        });
        if self
            .rules
            .closed_on_holidays
            .as_ref()
            .is_some_and(|limit| limit.value)
        {
            let holidays = self.calendar.holidays(from, to);
            closed.extend(holidays.map(|(span, _)| (span.start(), span.end())));
        }
        closed
    }

    /// The limits on hours that apply to a booking.
    pub(super) fn weekly<'b>(
        &'b self,
        booking: &'b Booking,
    ) -> impl Iterator<Item = (&'b Scope, Whose, Length)> {
        let person = self.rules.person_hours_per_week.iter();
        let person = person.map(|(scope, most)| (scope, Whose::Person(booking.person), *most));
        let project = booking.project.iter().flat_map(|project| {
            let limits = self.rules.project_hours_per_week.iter();
            limits.map(|(scope, most)| (scope, Whose::Project(project.clone()), *most))
        });
        person.chain(project)
    }
}

/// The parts of `[first, last]` that lie strictly between no pair. The pairs are in order.
fn left_over(
    first: Timestamp,
    last: Timestamp,
    forbidden: &[(Timestamp, Timestamp)],
) -> Vec<(Timestamp, Timestamp)> {
    let mut left = Vec::new();
    let mut from = first;
    for (begin, end) in forbidden {
        if last < from {
            break;
        }
        if *end <= from || end <= begin {
            continue;
        }
        if from <= *begin {
            left.push((from, (*begin).min(last)));
        }
        from = *end;
    }
    if from <= last {
        left.push((from, last));
    }
    left
}
