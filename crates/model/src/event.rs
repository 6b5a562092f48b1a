//! Events: facts that happened. Live pages, notifications, mail and webhooks all read the same stream.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{EventId, PersonId, SiteId};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub id: EventId,
    pub at: Timestamp,
    pub kind: EventKind,
    /// None for what concerns no single site (a person was added).
    pub site: Option<SiteId>,
    /// The id of what it happened to.
    pub subject: String,
    pub audience: Audience,
    pub data: Value,
}

/// Who may read an event, besides global admins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    /// Everyone in the site.
    Members,
    /// The site's admins, and this person.
    Person(PersonId),
    /// The site's admins only.
    Admins,
}

/// An event with the number a reader resumes from.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberedEvent {
    pub number: u64,
    pub event: Event,
}

macro_rules! kinds {
    ($($kind:ident $word:literal),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum EventKind { $(#[serde(rename = $word)] $kind,)* }
        impl EventKind {
            pub const ALL: &[EventKind] = &[$(EventKind::$kind),*];
            pub fn as_str(self) -> &'static str {
                match self { $(EventKind::$kind => $word,)* }
            }
        }
        impl std::str::FromStr for EventKind {
            type Err = UnknownKind;
            fn from_str(text: &str) -> Result<Self, UnknownKind> {
                match text { $($word => Ok(EventKind::$kind),)* _ => Err(UnknownKind(text.to_owned())) }
            }
        }
    };
}

/// Written out, because a derive does not see the words that the macro hands to serde.
impl utoipa::PartialSchema for EventKind {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        let words = Self::ALL.iter().map(|kind| kind.as_str());
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::Type::String)
            .enum_values(Some(words))
            .into()
    }
}
impl utoipa::ToSchema for EventKind {}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a kind of event")]
pub struct UnknownKind(String);

kinds! {
    PersonCreated "person.created",
    PersonChanged "person.changed",
    PersonRemoved "person.removed",
    SignedOut "person.signed_out",
    TokenRevoked "token.revoked",
    FeedCreated "feed.created",
    FeedRevoked "feed.revoked",
    SiteCreated "site.created",
    SiteChanged "site.changed",
    MemberJoined "member.joined",
    MemberChanged "member.changed",
    MemberLeft "member.left",
    JoinRequested "join.requested",
    JoinDeclined "join.declined",
    ProjectCreated "project.created",
    ProjectChanged "project.changed",
    ProjectRemoved "project.removed",
    TypeCreated "type.created",
    TypeChanged "type.changed",
    TypeRemoved "type.removed",
    ResourceCreated "resource.created",
    ResourceChanged "resource.changed",
    ResourceMoved "resource.moved",
    ResourceRemoved "resource.removed",
    ResourceStatus "resource.status",
    PolicyChanged "policy.changed",
    PolicyRemoved "policy.removed",
    ClosureAdded "closure.added",
    ClosureChanged "closure.changed",
    ClosureRemoved "closure.removed",
    MaintenancePlanned "maintenance.planned",
    MaintenanceCancelled "maintenance.cancelled",
    MaintenanceEnded "maintenance.ended",
    ReservationCreated "reservation.created",
    ReservationChanged "reservation.changed",
    ReservationMoved "reservation.moved",
    ReservationTroubled "reservation.troubled",
    ReservationWaiting "reservation.waiting",
    ReservationOffered "reservation.offered",
    ReservationHandedOver "reservation.handed_over",
    ReservationCheckedIn "reservation.checked_in",
    ReservationNoShow "reservation.no_show",
    ReservationApproved "reservation.approved",
    ReservationRejected "reservation.rejected",
    ReservationCancelled "reservation.cancelled",
    ReservationStarted "reservation.started",
    ReservationEnded "reservation.ended",
    ReservationFailed "reservation.failed",
    ReservationReminder "reservation.reminder",
    SeriesCreated "series.created",
    SeriesChanged "series.changed",
    SeriesCancelled "series.cancelled",
    WorkloadSubmitted "workload.submitted",
    WorkloadChanged "workload.changed",
    WorkloadStarted "workload.started",
    WorkloadStopping "workload.stopping",
    WorkloadRequeued "workload.requeued",
    WorkloadEnded "workload.ended",
    WorkloadCancelled "workload.cancelled",
    EnvironmentMade "environment.made",
    EnvironmentChanged "environment.changed",
    CutBegun "cut.begun",
    CutEnded "cut.ended",
    SessionChanged "session.changed",
    SessionFailed "session.failed",
    SessionIdle "session.idle",
    SessionOutOfMemory "session.out_of_memory",
    SessionVisited "session.visited",
    ProfilePaused "profile.paused",
    ProfileResumed "profile.resumed",
    QueueChanged "queue.changed",
    GrantGiven "grant.given",
    GrantRevoked "grant.revoked",
    ClaimYielded "claim.yielded",
    NotificationCreated "notification.created",
    NotificationRead "notification.read",
}
