//! The reasons for a refusal. Each variant becomes one problem code with its own page.

use berth_model::closure::ClosedSpan;
use berth_model::reservation::NotFrom;
use berth_model::{FieldErrors, Name, ReservationId, Selection, Status, Text};
use berth_store::Refused;
use jiff::Timestamp;

use crate::desk::Alternative;
use crate::directory::Directory;
use crate::reservations::HOLDS_MAX;
use crate::seen::Conflict;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It does not exist, or this caller may not know that it does.
    #[error("there is no such {0}, or you may not see it")]
    NotFound(&'static str),
    #[error("{needs}")]
    NotAllowed { needs: String },
    /// The person has permission, but their token does not.
    #[error("{needs}")]
    ScopeMissing { needs: String },
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error("the claim rule refuses it: {} claim(s) are in the way", conflicts.len())]
    Conflict {
        conflicts: Vec<Conflict>,
        alternatives: Vec<Alternative>,
        directory: Box<Directory>,
    },
    #[error("there is no room for {wanted} then")]
    NoRoom {
        wanted: Selection,
        alternatives: Vec<Alternative>,
        directory: Box<Directory>,
    },
    #[error("moving it would make {} claim(s) conflict", conflicts.len())]
    MoveConflict {
        conflicts: Vec<Conflict>,
        directory: Box<Directory>,
    },
    /// The file would break existing promises.
    #[error("{} booking(s) are in the way of what the file declares", conflicts.len())]
    ApplyConflict {
        conflicts: Vec<Conflict>,
        directory: Box<Directory>,
    },
    #[error("the site has changed since the differences were shown; nothing was applied")]
    SiteChanged,
    #[error("`{resource}` is {status}{}", inherited(resource, from))]
    NotActive {
        resource: Name,
        status: Status,
        from: Name,
        reason: Option<Text>,
    },
    /// The booking would break the policies of the site.
    #[error("{0}")]
    Policy(Box<berth_engine::policy::Refusal>),
    #[error(
        "the site is closed from {} to {}: {} (calendar `{calendar}`)",
        closed.span.start(), closed.span.end(), closed.title
    )]
    Blackout { calendar: Name, closed: ClosedSpan },
    /// A calendar that was to be imported.
    #[error("the calendar cannot be read: {0}")]
    Unreadable(String),
    #[error(transparent)]
    State(#[from] NotFrom),
    /// The state of the workload does not allow this.
    #[error(transparent)]
    NotNow(#[from] berth_model::workload::NotNow),
    /// The state of the session does not allow this.
    #[error(transparent)]
    SessionNotNow(#[from] berth_model::session::NotNow),
    #[error("the profile `{profile}` is paused: {said}")]
    ProfilePaused { profile: Name, said: Text },
    #[error("say why you open somebody else's session: its owner will see it")]
    ReasonMissing,
    #[error(
        "{most} workloads of yours wait at this site, and that is as many as one person may have"
    )]
    TooManyWaiting { most: u32 },
    /// No new work of this person starts until there is disk space again.
    #[error("{0}")]
    DiskFull(String),
    #[error("{0}")]
    InThePast(String),
    #[error("you hold {HOLDS_MAX} things already")]
    TooManyHolds,
    #[error("the hold ran out before it was taken")]
    HoldOver,
    #[error("check-in begins at {0}")]
    CheckInEarly(Timestamp),
    #[error("nothing of the series that you could change is still to come")]
    SeriesOver,
    #[error("someone changed it since you looked: it is at version {current} now")]
    Version { current: u64 },
    #[error("the name `{0}` is taken")]
    NameTaken(String),
    #[error("{0}")]
    InUse(String),
    #[error("a resource cannot stand below itself")]
    Cycle,
    #[error("the tree is too deep or too wide there")]
    TooDeep,
    #[error("a resource with a capacity has no children, and one with children no capacity")]
    Leaf,
    #[error("`{0}` is the only global admin; make another one first")]
    LastAdmin(String),
    #[error("{0}")]
    TooMuch(String),
    #[error("{0}")]
    Amount(String),
    #[error("{} booking(s) are in the way and not decided, or have nowhere to go", undecided.len())]
    InTheWay {
        undecided: Vec<ReservationId>,
        conflicts: Vec<Conflict>,
        directory: Box<Directory>,
    },
    #[error("this one-time link was used before, or has run out")]
    LinkSpent,
    #[error("you are a member of `{0}` already")]
    AlreadyMember(Name),
    #[error("you have asked already")]
    JoinWaiting,
    #[error("this request is decided already")]
    JoinDecided,
    #[error("this window has ended or was cancelled already")]
    WindowOver,
    #[error("this idempotency key was used for a different request")]
    IdempotencyMismatch,
    #[error("an earlier request with this idempotency key was carried out")]
    DoneBefore,
    #[error("sign in first")]
    SignInRequired,
    #[error("this API token is not known, or was revoked")]
    TokenUnknown,
    #[error("this sign-in or token has ended")]
    Expired,
    #[error("the login name or the password is wrong")]
    WrongCredentials,
    #[error("too many wrong passwords")]
    LockedOut { until: Timestamp },
    #[error("the database has trouble")]
    Store(#[source] berth_store::Error),
    #[error("{0}")]
    Internal(String),
}

fn inherited(resource: &Name, from: &Name) -> String {
    if resource == from {
        String::new()
    } else {
        format!(", because `{from}` above it is")
    }
}

/// For requests that cannot continue without the backend's answer.
impl From<berth_drivers::backend::Trouble> for Error {
    fn from(trouble: berth_drivers::backend::Trouble) -> Self {
        Error::Internal(trouble.to_string())
    }
}

impl From<berth_store::Error> for Error {
    fn from(error: berth_store::Error) -> Self {
        match (&error, error.refused()) {
            (berth_store::Error::TooDeep, _) => Error::TooDeep,
            (_, Some(Refused::Cycle)) => Error::Cycle,
            (_, Some(Refused::Parent)) => Error::NotFound("parent in this site"),
            (_, Some(Refused::Leaf)) => Error::Leaf,
            _ => Error::Store(error),
        }
    }
}

impl Error {
    pub(crate) fn is_refused(&self, refused: Refused) -> bool {
        matches!(self, Error::Store(error) if error.refused() == Some(refused))
    }

    /// Adds the name to the database's refusal of a duplicate.
    pub(crate) fn taken(self, name: impl std::fmt::Display) -> Error {
        if self.is_refused(Refused::Taken) {
            Error::NameTaken(name.to_string())
        } else {
            self
        }
    }
}
