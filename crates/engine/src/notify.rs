//! Who is told of what happened, and as whom; and of what they are reminded.
//!
//! An event says what happened, and not whom it matters to. That is worked out here, from the event and from what is
//! looked up for it: [`concerns`] says what has to be looked up, the rest says who is told.

use std::collections::BTreeSet;

use berth_model::event::EventKind;
use berth_model::notification::ToldAs;
use berth_model::policy::Approver;
use berth_model::reservation::{AskedApproval, HistoryEntry, Reservation, State};
use berth_model::{LoginName, Name, PersonId, Span};
use jiff::{SignedDuration, Timestamp};

/// What has to be known before it can be said who is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concerns {
    Nobody,
    /// The reservation, and how it came to be what it is.
    Reservation,
    /// Who has booked the resource, what is above it or what is below it.
    Resource,
    /// Who administers the site.
    Admins,
    /// The person whom the event names.
    Person,
    /// Whose it is, as the event says.
    Owner,
}

/// Every kind stands here, so that a new one does not compile until somebody has thought about whom it concerns.
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
        // What goes its way, or was done by whoever it concerns.
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
        // Whose booking a window ends is told of that booking.
        | Kind::MaintenancePlanned
        | Kind::MaintenanceCancelled
        | Kind::MaintenanceEnded
        // Each instance tells of itself.
        | Kind::SeriesCreated
        | Kind::SeriesChanged
        | Kind::SeriesCancelled
        | Kind::ClaimYielded
        // To be told of having been told would never end.
        | Kind::NotificationCreated
        | Kind::NotificationRead => Concerns::Nobody,
    }
}

/// One step of a reservation's life.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    pub kind: EventKind,
    /// Whose it is after the step.
    pub owner: PersonId,
    /// Whose it was before, where it was handed over.
    pub former_owner: Option<PersonId>,
    /// How it came to be what it was then; the last entry is the step itself. Empty where nothing about it changed.
    pub history: &'a [HistoryEntry],
    /// The approvals it needs, with what was decided so far.
    pub approvals: &'a [AskedApproval],
}

impl Step<'_> {
    /// Who did it; none where it was Berth itself.
    pub fn by(&self) -> Option<PersonId> {
        self.history.last()?.by
    }

    fn from(&self) -> Option<State> {
        self.history.last()?.from
    }

    fn is_by_another(&self) -> bool {
        self.by().is_some_and(|by| by != self.owner)
    }

    /// A hold that ran out is no news to whoever let it; an offer that did is.
    fn is_hold_run_out(&self) -> bool {
        let waited = self.history.iter().any(|entry| entry.to == State::Waiting);
        self.by().is_none() && self.from() == Some(State::Held) && !waited
    }

    /// Whether it is one of several approvals, given: what they come to together is told when it is known.
    fn is_word_of_approver(&self) -> bool {
        let [.., before, step] = self.history else {
            return false;
        };
        let mut decisions = self.approvals.iter().flat_map(|asked| &asked.decision);
        (step.from, step.to) == (Some(State::PendingApproval), State::PendingApproval)
            && decisions.any(|decision| (before.at..=step.at).contains(&decision.at))
    }

    /// Whether it has just begun to wait for approval.
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

/// Whoever's reservation it is, or was, as far as they are told of this step.
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
        // Made for them, or given to them at last.
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

/// Whose word a reservation waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    pub site_admins: bool,
    pub projects: BTreeSet<Name>,
    pub people: BTreeSet<LoginName>,
}

/// Who is asked about a reservation as it is now: approvers and their deputies, where they have not decided yet.
pub fn asked(about: &Reservation) -> Asked {
    let mut asked = Asked::default();
    if about.state != State::PendingApproval {
        return asked;
    }
    let approvals = &about.terms.approvals;
    // The admins of the site decide unless a policy asks somebody else.
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

/// How long before its start and its end whoever has something is reminded of it.
pub const REMIND_BEFORE: SignedDuration = SignedDuration::from_mins(15);

/// What somebody is reminded of.
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

/// Whether it is still worth a reminder that this moment of a booking is near. What is late by more than the booking's
/// own time is not, nor is the end of one that is so short that it would be told of before its start.
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
