//! The existing bookings that count against limits, read no further than needed.
//!
//! The person or the project stays locked until the transaction ends, so that two simultaneous requests count each
//! other.

use std::collections::BTreeSet;

use berth_engine::policy::{
    Accepted, Booking, Desk, Finding, LOOK_D, Ledger, Refusal, Rules, Starts,
};
use berth_model::policy::{Length, Rule};
use berth_model::reservation::Reservation;
use berth_model::{Name, PersonId, ProjectId, Span};
use berth_store::reservations::{self, Whose};
use berth_store::{Conn, projects};
use jiff::{SignedDuration, Timestamp};

use super::check::LENGTH_MAX;
use super::judge::buffer_lengths;
use crate::App;
use crate::caller::Caller;
use crate::desk::{MOMENT, Permitted};
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::policies::Kept;

/// A week and a day: at any clock change, a week lies within this distance of each of its moments.
const WEEK: SignedDuration = SignedDuration::from_hours(8 * 24);

impl App {
    /// Every rule that applies to a booking, and the verdict.
    pub(super) async fn look(
        &self,
        conn: &mut Conn,
        place: &Place,
        kept: &Kept,
        booking: &Booking,
        project: Option<ProjectId>,
        beside: &[Reservation],
    ) -> Result<(Vec<Finding>, Result<Accepted, Refusal>)> {
        let now = self.now();
        let rules = booking.rules(&kept.policies);
        let holidays = holidays_asked(&rules, booking);
        let calendar = self.calendar_of(conn, &place.site, holidays).await?;
        let counts = Counts::of(&rules, project);
        counts.hold(conn, booking.person).await?;
        // The first pass reads only what the decision needs. If it refuses, the second reads further to offer another
        // time.
        for reach in [Reach::Decide, Reach::Offer] {
            let standing = self
                .counted(
                    conn,
                    place,
                    &counts,
                    booking,
                    reach.time(&rules, booking, now),
                    beside,
                )
                .await?;
            let desk = Desk {
                rules: &rules,
                calendar: &calendar,
                ledger: &Ledger::beside(booking, &standing, &kept.policies, &calendar),
                now,
            };
            let verdict = desk.judge(booking);
            if verdict.is_ok() || counts == Counts::NOTHING || reach == Reach::Offer {
                return Ok((desk.explain(booking), verdict));
            }
        }
        Err(Error::Internal("a booking was judged by nobody".into()))
    }

    /// The starts in `window` at which the policies accept such a booking. None if no policy applies.
    #[expect(
        clippy::too_many_arguments,
        reason = "who asks for what, where and when"
    )]
    pub(crate) async fn permitted_by_policy(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        owner: PersonId,
        project: Option<Name>,
        types: BTreeSet<Name>,
        length: SignedDuration,
        window: Span,
    ) -> Result<Option<Permitted>> {
        let kept = self.policies_of(conn, &place.site).await?;
        if kept.asks_nothing {
            return Ok(None);
        }
        let now = self.now();
        let span = Span::new(window.start(), window.start() + length)
            .map_err(|error| Error::Internal(error.to_string()))?;
        let in_project = match &project {
            Some(name) => projects::by_name(conn, place.id(), name).await?,
            None => None,
        };
        let booking = Booking {
            id: None,
            person: owner,
            role: self.role_of(conn, caller, place, owner).await?,
            project,
            types,
            resources: Vec::new(),
            span,
            stands_from: None,
        };
        let rules = booking.rules(&kept.policies);
        let asked = rules.closed_on_holidays.as_ref();
        let asked = asked.filter(|limit| limit.value);
        let holidays = asked.and(Span::new(window.start(), window.end() + length).ok());
        let calendar = self.calendar_of(conn, &place.site, holidays).await?;
        let counts = Counts::of(&rules, in_project.map(|project| project.id));
        let time = (now.min(window.start() - WEEK), window.end() + length + WEEK);
        let standing = self
            .counted(conn, place, &counts, &booking, time, &[])
            .await?;
        let desk = Desk {
            rules: &rules,
            calendar: &calendar,
            ledger: &Ledger::beside(&booking, &standing, &kept.policies, &calendar),
            now,
        };
        let at_no_time = [Rule::WhoMayBook, Rule::ActiveBookings];
        let findings = desk.explain(&booking);
        let refuses =
            |finding: &Finding| at_no_time.contains(&finding.rule) && !finding.breaches.is_empty();
        let starts = if findings.iter().any(refuses) {
            Vec::new()
        } else {
            spans(&desk.starts(&booking, window), rules.start_step.is_some())
        };
        let (set_up, clean_up) = buffer_lengths(&rules);
        Ok(Some(Permitted {
            starts,
            set_up: set_up.duration(),
            clean_up: clean_up.duration(),
            rules: Some(rules),
        }))
    }

    /// The existing bookings of the person and the project that count, within `time`.
    async fn counted(
        &self,
        conn: &mut Conn,
        place: &Place,
        counts: &Counts,
        booking: &Booking,
        time: (Timestamp, Timestamp),
        beside: &[Reservation],
    ) -> Result<Vec<Booking>> {
        let touches = |one: &&Reservation| one.span.end() > time.0 && one.span.start() < time.1;
        // These bookings have the same owner and project, so all of them count.
        let together = beside.iter().filter(touches).cloned();
        let mut found: Vec<Reservation> = together.collect();
        let whose = [
            counts.person.then_some(Whose::Person(booking.person)),
            counts.project.map(Whose::Project),
        ];
        for whose in whose.into_iter().flatten() {
            found.extend(reservations::counted(conn, place.id(), whose, time, LENGTH_MAX).await?);
        }
        found.sort_by_key(|one| one.id);
        found.dedup_by_key(|one| one.id);
        let mut directory = Directory::with_site(&place.site);
        let mut standing = self
            .bookings(conn, place.id(), &found, &mut directory)
            .await?;
        for own in standing
            .iter_mut()
            .filter(|one| one.person == booking.person)
        {
            own.role = booking.role;
        }
        Ok(standing)
    }
}

/// Enough steps: the later ones matter less and less.
const STEPS_MAX: usize = 20_000;

/// Permitted starts as spans. If starts go in steps, each step is a span of its own.
fn spans(starts: &Starts<'_>, in_steps: bool) -> Vec<Span> {
    let mut spans = Vec::new();
    for (first, last) in starts.ranges() {
        if !in_steps {
            spans.extend(Span::new(*first, *last + MOMENT));
            continue;
        }
        let mut next = starts.from(*first);
        while let Some(at) = next.filter(|at| at <= last && spans.len() < STEPS_MAX) {
            spans.extend(Span::new(at, at + MOMENT));
            next = starts.from(at + MOMENT);
        }
    }
    spans
}

/// The time whose holidays matter: the booking's own, and the time around it in which another start is searched.
fn holidays_asked(rules: &Rules, booking: &Booking) -> Option<Span> {
    let asked = rules.closed_on_holidays.as_ref();
    asked.filter(|limit| limit.value)?;
    let around = WEEK + SignedDuration::from_hours(24 * LOOK_D);
    let (from, to) = (booking.span.start() - around, booking.span.end() + around);
    Some(Span::new(from, to).unwrap_or(booking.span))
}

/// The person and the project whose bookings the rules count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    person: bool,
    project: Option<ProjectId>,
}

impl Counts {
    const NOTHING: Counts = Counts {
        person: false,
        project: None,
    };

    fn of(rules: &Rules, project: Option<ProjectId>) -> Self {
        Self {
            person: !rules.active_bookings.is_empty()
                || !rules.person_hours_per_week.is_empty()
                || rules.gap.is_some(),
            project: project.filter(|_| !rules.project_hours_per_week.is_empty()),
        }
    }

    /// Locks the person and the project, always in this order.
    async fn hold(&self, conn: &mut Conn, person: PersonId) -> Result<()> {
        if self.person {
            reservations::hold_person(conn, person).await?;
        }
        if let Some(project) = self.project {
            reservations::hold_project(conn, project).await?;
        }
        Ok(())
    }
}

/// The time within which bookings are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The bookings that the limits on this booking count.
    Decide,
    /// Also the bookings that count for other times near it.
    Offer,
}

impl Reach {
    fn time(self, rules: &Rules, booking: &Booking, now: Timestamp) -> (Timestamp, Timestamp) {
        let gap = rules.gap.as_ref().map_or(Length::ZERO, |gap| gap.value);
        let near = WEEK + gap.duration();
        let (mut from, mut to) = (booking.span.start() - near, booking.span.end() + near);
        if self == Reach::Offer {
            let far = near + SignedDuration::from_hours(24 * LOOK_D);
            (from, to) = (
                now.min(from),
                to.max(now + far).max(booking.span.end() + far),
            );
        }
        if !rules.active_bookings.is_empty() {
            (from, to) = (from.min(now), Timestamp::MAX);
        }
        (from, to)
    }
}
