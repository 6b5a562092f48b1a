//! The existing bookings, counted as the limits require.

use std::collections::{BTreeSet, HashMap};

use berth_model::policy::Scope;
use berth_model::site::Role;
use berth_model::{Name, PersonId, ReservationId, ResourceId, Span};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use super::calendar::Calendar;
use super::rules::{Policies, Rules};

/// The properties of a requested or existing booking that the policies check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booking {
    /// None while it is only a request.
    pub id: Option<ReservationId>,
    pub person: PersonId,
    /// The person's role in the site.
    pub role: Role,
    pub project: Option<Name>,
    /// The types of its resources.
    pub types: BTreeSet<Name>,
    pub resources: Vec<ResourceId>,
    pub span: Span,
    /// The present start of an existing booking that changes. The notice rule does not apply to an unchanged start.
    pub stands_from: Option<Timestamp>,
}

impl Booking {
    pub fn rules(&self, policies: &Policies) -> Rules {
        policies.rules(&self.types, self.role, self.project.as_ref())
    }
}

/// The rules of bookings, computed once for all with the same types, role and project.
pub(super) struct RulesOf<'a> {
    policies: &'a Policies,
    known: HashMap<Kind<'a>, Rules>,
}

type Kind<'a> = (&'a BTreeSet<Name>, Role, Option<&'a Name>);

impl<'a> RulesOf<'a> {
    pub(super) fn new(policies: &'a Policies) -> Self {
        let known = HashMap::new();
        RulesOf { policies, known }
    }

    pub(super) fn get(&mut self, booking: &'a Booking) -> &Rules {
        let kind = (&booking.types, booking.role, booking.project.as_ref());
        let policies = self.policies;
        self.known
            .entry(kind)
            .or_insert_with(|| booking.rules(policies))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Whose {
    Person(PersonId),
    Project(Name),
}

/// Totals of the existing bookings. A limit counts only the bookings that its policy covers.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// By policy, person or project, and the week's Monday.
    hours: HashMap<(Scope, Whose, Date), SignedDuration>,
    /// The end of each of a person's bookings.
    ends: HashMap<(Scope, PersonId), Vec<Timestamp>>,
    beside: HashMap<(PersonId, ResourceId), Vec<Span>>,
}

impl Ledger {
    /// Counts the existing bookings other than `booking`, which may itself be in `standing`. `standing` needs the
    /// bookings of its person and of its project that are not over, or that lie in the weeks that it could lie in.
    pub fn beside<'a>(
        booking: &Booking,
        standing: impl IntoIterator<Item = &'a Booking>,
        policies: &'a Policies,
        calendar: &Calendar,
    ) -> Ledger {
        let mut rules = RulesOf::new(policies);
        let mut ledger = Ledger::default();
        for other in standing {
            if other.id.is_none() || other.id != booking.id {
                ledger.add(other, rules.get(other), calendar);
            }
        }
        ledger
    }

    /// `rules` are the rules of the booking itself.
    pub(super) fn add(&mut self, booking: &Booking, rules: &Rules, calendar: &Calendar) {
        let person = rules.person_hours_per_week.keys();
        let person = person.map(|scope| (scope, Whose::Person(booking.person)));
        let project = booking.project.iter().flat_map(|project| {
            let scopes = rules.project_hours_per_week.keys();
            scopes.map(|scope| (scope, Whose::Project(project.clone())))
        });
        for (scope, whose) in person.chain(project) {
            for (monday, part) in parts(booking.span, calendar) {
                let key = (scope.clone(), whose.clone(), monday);
                *self.hours.entry(key).or_default() += part;
            }
        }
        for scope in rules.active_bookings.keys() {
            let key = (scope.clone(), booking.person);
            self.ends.entry(key).or_default().push(booking.span.end());
        }
        for resource in &booking.resources {
            let key = (booking.person, *resource);
            self.beside.entry(key).or_default().push(booking.span);
        }
    }

    pub(super) fn hours(&self, scope: &Scope, whose: &Whose, monday: Date) -> SignedDuration {
        let key = (scope.clone(), whose.clone(), monday);
        self.hours.get(&key).copied().unwrap_or_default()
    }

    pub(super) fn active(&self, scope: &Scope, person: PersonId, now: Timestamp) -> usize {
        let ends = self.ends.get(&(scope.clone(), person));
        ends.map_or(0, |ends| ends.iter().filter(|end| now < **end).count())
    }

    /// The person's other bookings on the resources of this one.
    pub(super) fn neighbours<'a>(
        &'a self,
        booking: &'a Booking,
    ) -> impl Iterator<Item = Span> + 'a {
        let on = |resource: &ResourceId| self.beside.get(&(booking.person, *resource));
        booking.resources.iter().filter_map(on).flatten().copied()
    }
}

/// The length of a span in each of its weeks.
pub(super) fn parts(
    span: Span,
    calendar: &Calendar,
) -> impl Iterator<Item = (Date, SignedDuration)> + '_ {
    let weeks = calendar.weeks(span.start(), span.end());
    weeks.map(move |(monday, begin, end)| {
        let (from, to) = (span.start().max(begin), span.end().min(end));
        (monday, to.duration_since(from))
    })
}
