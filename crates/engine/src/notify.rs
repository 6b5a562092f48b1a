//! Decides who is notified of an event and in which role, and when reminders are due.
//!
//! An event does not name its recipients. This module derives them from the event and from related data. [`concerns`]
//! says which data to look up; the other functions decide who is notified.

use std::collections::BTreeSet;

use berth_model::event::EventKind;
use berth_model::notification::ToldAs;
use berth_model::policy::Approver;
use berth_model::reservation::{AskedApproval, HistoryEntry, Reservation, State};
use berth_model::{LoginName, Name, PersonId, Span};
use jiff::{SignedDuration, Timestamp};

/// The data that the recipients depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concerns {
    Nobody,
    /// The reservation and its history.
    Reservation,
    /// The people with bookings on the resource, above it or below it.
    Resource,
    /// The admins of the site.
    Admins,
    /// The person that the event names.
    Person,
    /// The owner that the event names.
    Owner,
}

/// The match lists every kind, so that a new kind does not compile until its recipients are decided.
pub fn concerns(kind: EventKind) -> Concerns {
    use EventKind as Kind;
    match kind {
        Kind::ReservationCreated
        | Kind::ReservationChanged
        | Kind::ReservationMoved
        | Kind::ReservationTroubled
        | Kind::ReservationOffered
        | Kind::ReservationHandedOver
        | Kind::ReservationNoShow
        | Kind::ReservationApproved
        | Kind::ReservationRejected
        | Kind::ReservationCancelled
        | Kind::ReservationFailed
        | Kind::ReservationReminder => Concerns::Reservation,
        Kind::ResourceStatus => Concerns::Resource,
        Kind::JoinRequested | Kind::ProfilePaused => Concerns::Admins,
        Kind::SessionFailed
        | Kind::SessionIdle
        | Kind::SessionOutOfMemory
        | Kind::SessionVisited => Concerns::Owner,
        Kind::MemberJoined | Kind::JoinDeclined => Concerns::Person,
        // Nobody is notified of normal progress, or of an action of the person concerned.
        Kind::WorkloadSubmitted
        | Kind::WorkloadChanged
        | Kind::WorkloadStarted
        | Kind::WorkloadStopping
        | Kind::WorkloadRequeued
        | Kind::WorkloadEnded
        | Kind::WorkloadCancelled
        | Kind::CutBegun
        | Kind::CutEnded
        | Kind::SessionChanged
        | Kind::ProfileResumed
        | Kind::QueueChanged
        | Kind::GrantGiven
        | Kind::GrantRevoked
        | Kind::ReservationWaiting
        | Kind::ReservationCheckedIn
        | Kind::ReservationStarted
        | Kind::ReservationEnded
        | Kind::PersonCreated
        | Kind::PersonChanged
        | Kind::PersonRemoved
        | Kind::SignedOut
        | Kind::TokenRevoked
        | Kind::FeedCreated
        | Kind::FeedRevoked
        | Kind::SiteCreated
        | Kind::SiteChanged
        | Kind::MemberChanged
        | Kind::MemberLeft
        | Kind::ProjectCreated
        | Kind::ProjectChanged
        | Kind::ProjectRemoved
        | Kind::TypeCreated
        | Kind::TypeChanged
        | Kind::TypeRemoved
        | Kind::ResourceCreated
        | Kind::ResourceChanged
        | Kind::ResourceMoved
        | Kind::ResourceRemoved
        | Kind::PolicyChanged
        | Kind::PolicyRemoved
        | Kind::ClosureAdded
        | Kind::ClosureChanged
        | Kind::ClosureRemoved
        | Kind::EnvironmentMade
        | Kind::EnvironmentChanged
        // The owner of a booking that a window ends is notified by the event of that booking.
        | Kind::MaintenancePlanned
        | Kind::MaintenanceCancelled
        | Kind::MaintenanceEnded
        // Each instance sends its own event.
        | Kind::SeriesCreated
        | Kind::SeriesChanged
        | Kind::SeriesCancelled
        | Kind::ClaimYielded
        // A notification about a notification would never end.
        | Kind::NotificationCreated
        | Kind::NotificationRead => Concerns::Nobody,
    }
}

/// One step in the life of a reservation.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    pub kind: EventKind,
    /// The owner after the step.
    pub owner: PersonId,
    /// The owner before the step, if the reservation was handed over.
    pub former_owner: Option<PersonId>,
    /// The history up to this step; the last entry is the step itself. Empty if the step changed nothing.
    pub history: &'a [HistoryEntry],
    /// The approvals that the reservation needs, with the decisions so far.
    pub approvals: &'a [AskedApproval],
}

impl Step<'_> {
    /// The person who made the step; none if Berth made it.
    pub fn by(&self) -> Option<PersonId> {
        self.history.last()?.by
    }

    fn from(&self) -> Option<State> {
        self.history.last()?.from
    }

    fn is_by_another(&self) -> bool {
        self.by().is_some_and(|by| by != self.owner)
    }

    /// Whether the owner let a hold expire, which is no news to them. An expired offer is news, so it does not count.
    fn is_hold_run_out(&self) -> bool {
        let waited = self.history.iter().any(|entry| entry.to == State::Waiting);
        self.by().is_none() && self.from() == Some(State::Held) && !waited
    }

    /// Whether the step is one approval of several. The owner is notified when the approvals have a common result.
    fn is_word_of_approver(&self) -> bool {
        let [.., before, step] = self.history else {
            return false;
        };
        let mut decisions = self.approvals.iter().flat_map(|asked| &asked.decision);
        (step.from, step.to) == (Some(State::PendingApproval), State::PendingApproval)
            && decisions.any(|decision| (before.at..=step.at).contains(&decision.at))
    }

    /// Whether the reservation has just started to wait for approval.
    pub fn asks_approval(&self) -> bool {
        let last = self.history.last();
        let changes = matches!(
            self.kind,
            EventKind::ReservationCreated | EventKind::ReservationChanged
        );
        changes
            && last.is_some_and(|step| {
                step.to == State::PendingApproval && step.from != Some(State::PendingApproval)
            })
    }
}

/// The owner and the former owner of the reservation, as far as this step notifies them.
pub fn owners_told(step: &Step) -> Vec<(PersonId, ToldAs)> {
    use EventKind as Kind;
    let is_told = match step.kind {
        Kind::ReservationApproved
        | Kind::ReservationRejected
        | Kind::ReservationMoved
        | Kind::ReservationTroubled
        | Kind::ReservationOffered
        | Kind::ReservationHandedOver
        | Kind::ReservationNoShow
        | Kind::ReservationFailed
        | Kind::ReservationReminder => true,
        // Somebody else booked for them, or their place on the waitlist became a booking.
        Kind::ReservationCreated => step.is_by_another() || step.from() == Some(State::Waiting),
        Kind::ReservationChanged => step.is_by_another() && !step.is_word_of_approver(),
        Kind::ReservationCancelled => {
            let is_own = step.by() == Some(step.owner);
            !step.history.is_empty() && !is_own && !step.is_hold_run_out()
        }
        _ => false,
    };
    let owner = is_told.then_some((step.owner, ToldAs::Owner));
    let former = step.former_owner.filter(|former| *former != step.owner);
    let former = former.map(|former| (former, ToldAs::FormerOwner));
    owner.into_iter().chain(former).collect()
}

/// The approvers that a reservation waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    pub site_admins: bool,
    pub projects: BTreeSet<Name>,
    pub people: BTreeSet<LoginName>,
}

/// The approvers and deputies who have yet to decide about a reservation in its present state.
pub fn asked(about: &Reservation) -> Asked {
    let mut asked = Asked::default();
    if about.state != State::PendingApproval {
        return asked;
    }
    let approvals = &about.terms.approvals;
    // The admins of the site decide unless a policy names other approvers.
    asked.site_admins = approvals.is_empty();
    let open = approvals.iter().filter(|approval| approval.is_open());
    for approver in open.flat_map(|open| open.approvers.iter().chain(&open.deputies)) {
        match approver {
            Approver::SiteAdmins => asked.site_admins = true,
            Approver::Project(name) => {
                asked.projects.insert(name.clone());
            }
            Approver::Person(login) => {
                asked.people.insert(login.clone());
            }
        }
    }
    asked
}

/// How long before its start and its end the owner of a booking is reminded of it.
pub const REMIND_BEFORE: SignedDuration = SignedDuration::from_mins(15);

/// The moment that a reminder announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Start,
    End,
}

impl Moment {
    pub fn as_str(self) -> &'static str {
        match self {
            Moment::Start => "start",
            Moment::End => "end",
        }
    }
}

/// Whether a reminder of this moment of a booking is still useful. It is not if it comes late by more than the
/// booking's length. Nor is a reminder of the end if the booking is so short that it would come before the start.
pub fn reminds(of: Moment, span: Span, now: Timestamp) -> bool {
    let moment = match of {
        Moment::Start => span.start(),
        Moment::End if span.duration() <= REMIND_BEFORE => return false,
        Moment::End => span.end(),
    };
    let due = moment - REMIND_BEFORE;
    due <= now && now.duration_since(due) <= span.duration() && now < span.end()
}

#[cfg(test)]
mod tests;
