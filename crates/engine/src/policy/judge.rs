//! Checks whether a booking complies with the rules.

use berth_model::Span;
use berth_model::policy::{Length, Rule, Scope};
use jiff::{SignedDuration, Timestamp};

use super::approval::Approval;
use super::breach::{Accepts, Breach, Found, LOOK_D, Refusal, asks};
use super::calendar::Calendar;
use super::ledger::{Booking, Ledger, Whose, parts};
use super::rules::{Rules, Value};

/// The inputs for judging a booking.
#[derive(Debug, Clone, Copy)]
pub struct Desk<'a> {
    /// The rules of the booking.
    pub rules: &'a Rules,
    pub calendar: &'a Calendar,
    pub ledger: &'a Ledger,
    pub now: Timestamp,
}

/// The consequences of the rules for an accepted booking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Each must be approved before the booking is confirmed; its claims hold meanwhile.
    pub approvals: Vec<Approval>,
    /// Claims hold these buffers before and after the booking.
    pub buffer_before: Option<Span>,
    pub buffer_after: Option<Span>,
    /// When the booking is released unless somebody checks in.
    pub release_at: Option<Timestamp>,
}

/// A checked rule and the result. Its `Display` is a line of `berth policy test`.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub rule: Rule,
    pub value: Value,
    pub from: Vec<Scope>,
    /// Empty when the booking complies. Several if it exceeds the hours of several weeks.
    pub breaches: Vec<Breach>,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.breaches.is_empty() {
            let from: Vec<String> = self.from.iter().map(Scope::to_string).collect();
            write!(
                f,
                "{} ({}); holds",
                asks(self.rule, &self.value),
                from.join(", ")
            )
        } else {
            let breaches: Vec<String> = self.breaches.iter().map(Breach::to_string).collect();
            f.write_str(&breaches.join(". "))
        }
    }
}

impl Desk<'_> {
    pub fn judge(&self, booking: &Booking) -> Result<Accepted, Refusal> {
        let findings = self.explain(booking);
        let breaches: Vec<Breach> = findings
            .into_iter()
            .flat_map(|found| found.breaches)
            .collect();
        if breaches.is_empty() {
            return Ok(self.accept(booking));
        }
        let mendable = breaches.iter().all(|breach| breach.accepts.is_about_time());
        let instead = mendable.then(|| self.place(booking));
        Err(Refusal {
            breaches,
            instead: instead.flatten(),
        })
    }

    /// Every rule for the booking, in the order of [`Rule::ALL`], and whether the booking complies.
    pub fn explain(&self, booking: &Booking) -> Vec<Finding> {
        let look = |(rule, value, from): (Rule, Value, Vec<Scope>)| {
            let breaches = self.check(booking, rule, &value, &from);
            let breaches = breaches.into_iter().map(|(found, accepts)| Breach {
                rule,
                value: value.clone(),
                from: from.clone(),
                found,
                accepts,
            });
            let breaches = breaches.collect();
            Finding {
                rule,
                value,
                from,
                breaches,
            }
        };
        let mut findings: Vec<Finding> = self.rules.list().into_iter().map(look).collect();
        // Searching another start is expensive, and most bookings comply with the rules.
        if findings.iter().any(|finding| !finding.breaches.is_empty()) {
            let place = self.place(booking);
            let nearest = place.map(|span| self.calendar.zoned(span.start()));
            let breaches = findings
                .iter_mut()
                .flat_map(|finding| &mut finding.breaches);
            for breach in breaches {
                if let Accepts::Start(start) | Accepts::InWeek { start, .. } = &mut breach.accepts {
                    *start = nearest.clone();
                }
            }
        }
        findings
    }

    /// The breaches of one rule. The caller fills in the starts later.
    fn check(
        &self,
        booking: &Booking,
        rule: Rule,
        value: &Value,
        from: &[Scope],
    ) -> Vec<(Found, Accepts)> {
        let (start, end) = (booking.span.start(), booking.span.end());
        let length = booking.span.duration();
        let starts_in = start.duration_since(self.now);
        let elsewhere = Accepts::Start(None);
        let broken = match (rule, value) {
            (Rule::WhoMayBook, Value::Who(who)) => {
                let project = booking.project.clone();
                let role = booking.role;
                let accepts = if who.admits_nobody() {
                    Accepts::Nothing
                } else {
                    Accepts::Others
                };
                (!who.admits(role, project.as_ref()))
                    .then_some((Found::By { role, project }, accepts))
            }
            (Rule::Notice, Value::Length(notice)) => (starts_in < notice.duration()
                && booking.stands_from != Some(start))
            .then_some((Found::StartsIn(starts_in), elsewhere)),
            (Rule::Horizon, Value::Length(horizon)) => {
                (starts_in > horizon.duration()).then_some((Found::StartsIn(starts_in), elsewhere))
            }
            (Rule::LengthMin, Value::Length(min)) => (length < min.duration())
                .then_some((Found::Lasts(length), Accepts::AtLeast(min.duration()))),
            (Rule::LengthMax, Value::Length(max)) => (length > max.duration())
                .then_some((Found::Lasts(length), Accepts::AtMost(max.duration()))),
            (Rule::LengthStep, Value::Step(step)) => {
                let below = whole_steps(length, step.length());
                let around = [below, below + step.length().duration()];
                let accepted = around
                    .into_iter()
                    .filter(|length| self.fits_length(*length));
                let accepted = Accepts::Lengths(accepted.collect());
                (below != length).then_some((Found::Lasts(length), accepted))
            }
            (Rule::StartStep, Value::Step(step)) => (self.calendar.in_step_from(start, *step)
                != start)
                .then(|| (Found::StartsAt(self.calendar.zoned(start)), elsewhere)),
            (Rule::OpeningHours, Value::OpeningHours(hours)) => {
                let closed = self.calendar.closed(hours, start, end);
                closed.first().map(|(begin, _)| {
                    let (from, to) = self.calendar.closing(hours, *begin);
                    (Found::Closed { from, to }, elsewhere)
                })
            }
            (Rule::ClosedOnHolidays, Value::Flag(true)) => {
                let met = self.calendar.holidays(start, end).next();
                met.map(|(span, name)| {
                    let name = name.clone();
                    let (from, to) = (span.start(), span.end());
                    let (from, to) = (self.calendar.zoned(from), self.calendar.zoned(to));
                    (Found::Holiday { name, from, to }, elsewhere)
                })
            }
            (Rule::Gap, Value::Length(gap)) => {
                let near = self.ledger.neighbours(booking).map(|other| {
                    let before = start.duration_since(other.end());
                    let after = other.start().duration_since(end);
                    before.max(after).max(SignedDuration::ZERO)
                });
                let nearest = near.min().filter(|between| *between < gap.duration());
                nearest.map(|between| (Found::Near(between), elsewhere))
            }
            (Rule::ActiveBookings, Value::Count(most)) => {
                let active = from
                    .iter()
                    .map(|scope| self.ledger.active(scope, booking.person, self.now));
                let active = active.max().unwrap_or(0);
                let is_full = active >= usize::try_from(*most).unwrap_or(usize::MAX);
                let accepts = if *most == 0 {
                    Accepts::Nothing
                } else {
                    Accepts::Later
                };
                is_full.then_some((Found::Active(active), accepts))
            }
            (Rule::PersonHoursPerWeek | Rule::ProjectHoursPerWeek, Value::Hours(_)) => {
                return self.check_hours(booking, rule, from);
            }
            _ => None,
        };
        broken.into_iter().collect()
    }

    fn check_hours(&self, booking: &Booking, rule: Rule, from: &[Scope]) -> Vec<(Found, Accepts)> {
        let mut broken = Vec::new();
        for (scope, whose, most) in self.weekly(booking) {
            let of_person = matches!(whose, Whose::Person(_));
            if of_person != (rule == Rule::PersonHoursPerWeek) || !from.contains(scope) {
                continue;
            }
            for (week, adds) in parts(booking.span, self.calendar) {
                let already = self.ledger.hours(scope, &whose, week);
                if already + adds > most.duration() {
                    let left = (most.duration() - already).max(SignedDuration::ZERO);
                    let found = Found::Hours {
                        week,
                        already,
                        adds,
                    };
                    broken.push((found, Accepts::InWeek { left, start: None }));
                }
            }
        }
        broken
    }

    pub(super) fn fits_length(&self, length: SignedDuration) -> bool {
        self.fit(length) == Some(length)
    }

    /// The nearest length that the rules on length accept, the shorter first.
    fn fit(&self, length: SignedDuration) -> Option<SignedDuration> {
        let rules = self.rules;
        let min = rules
            .length_min
            .as_ref()
            .map_or(SignedDuration::ZERO, |limit| limit.value.duration());
        let max = rules
            .length_max
            .as_ref()
            .map_or(SignedDuration::MAX, |limit| limit.value.duration());
        let wished = length.max(min).min(max);
        let fitting = match &rules.length_step {
            None => wished,
            Some(step) => {
                let down = whole_steps(wished, step.value.length());
                if down >= min && down.is_positive() {
                    down
                } else {
                    down + step.value.length().duration()
                }
            }
        };
        (min <= fitting && fitting <= max && fitting.is_positive()).then_some(fitting)
    }

    /// The nearest time that all rules about time accept for a booking like this one.
    fn place(&self, booking: &Booking) -> Option<Span> {
        let length = self.fit(booking.span.duration())?;
        let wish = booking.span.start();
        let rules = self.rules;
        let mut around = wish;
        if let Some(horizon) = &rules.horizon {
            around = around.min(self.now + horizon.value.duration());
        }
        let notice = rules
            .notice
            .as_ref()
            .map_or(SignedDuration::ZERO, |limit| limit.value.duration());
        around = around.max(self.now + notice);
        let look = SignedDuration::from_hours(24 * LOOK_D);
        let window = Span::new(self.now.max(around - look), around + look).ok()?;
        // The search never offers a start in the past, except the booking's present start.
        let stays = booking.stands_from.filter(|stays| *stays == wish);
        let stays =
            stays.and_then(|stays| Span::new(stays, stays + SignedDuration::from_micros(1)).ok());
        let like = |length| {
            let like = Booking {
                span: Span::new(wish, wish + length).ok()?,
                ..booking.clone()
            };
            let as_it_is = stays.and_then(|stays| self.starts(&like, stays).nearest(wish));
            let start = as_it_is.or_else(|| self.starts(&like, window).nearest(wish))?;
            Span::new(start, start + length).ok()
        };
        // If the full length fits nowhere, the longest open time is the next best offer.
        like(length).or_else(|| {
            let mut closed = self.closed(window.start(), window.end());
            closed.sort_unstable();
            let longest = longest_between(window, &closed);
            let shorter = self
                .fit(longest.min(length))
                .filter(|fits| *fits < length)?;
            like(shorter)
        })
    }

    fn accept(&self, booking: &Booking) -> Accepted {
        let span = booking.span;
        let length = |limit: &Option<super::Limit<Length>>| {
            limit.as_ref().map(|limit| limit.value.duration())
        };
        let before = length(&self.rules.buffer_before);
        let after = length(&self.rules.buffer_after);
        Accepted {
            approvals: self.rules.approvals(span, self.now),
            buffer_before: before
                .and_then(|before| Span::new(span.start() - before, span.start()).ok()),
            buffer_after: after.and_then(|after| Span::new(span.end(), span.end() + after).ok()),
            release_at: self.rules.release_at(span),
        }
    }
}

fn whole_steps(length: SignedDuration, step: Length) -> SignedDuration {
    let micros = |time: SignedDuration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let step = micros(step.duration());
    SignedDuration::from_micros(micros(length) / step * step)
}

/// The longest time within `window` that no pair of moments covers. The pairs are in order.
fn longest_between(window: Span, closed: &[(Timestamp, Timestamp)]) -> SignedDuration {
    let mut longest = SignedDuration::ZERO;
    let mut open_from = window.start();
    for (begin, end) in closed.iter().copied().chain([(window.end(), window.end())]) {
        longest = longest.max(begin.duration_since(open_from));
        open_from = open_from.max(end);
    }
    longest
}
