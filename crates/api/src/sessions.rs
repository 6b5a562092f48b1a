//! Sessions: web apps that people work in.

use berth_model::name::Text;
use berth_model::session::{Access, App, SessionProfile, State};
use berth_model::workload::Wish;
use berth_model::{Name, ReservationId, SessionId, VisitId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::names::{PersonRef, ProjectRef, ResourceRef, SiteRef};
use crate::reference::{PersonReference, ProjectReference};
use crate::workloads::{Ends, Waits};

/// A session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    pub id: SessionId,
    pub site: SiteRef,
    pub owner: PersonRef,
    /// No other session of its owner at this site has it.
    pub name: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub project: Option<ProjectRef>,
    pub profile: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub environment: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub inside: Option<ReservationId>,
    pub state: State,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// Why it is over, or is tried again, in a sentence for its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub said: Option<Text>,
    /// Why it waits, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub waits: Option<Waits>,
    /// Where a browser opens it.
    pub url: String,
    /// The number of the workload it runs as, or ran as last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub workload: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub node: Option<ResourceRef>,
    /// When it is over at the latest, and why then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ends: Option<Ends>,
    pub shared: Vec<SharedWith>,
    /// When something was last done in it.
    pub active_at: Timestamp,
    /// When it is stopped if nothing is done in it until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub idle_until: Option<Timestamp>,
    /// Whether its owner was told that it will be stopped for being idle.
    pub is_warned: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub kept_until: Option<Timestamp>,
    /// Since when its GPUs are lent to opportunistic work, because nothing is done in it. When something is, they are its
    /// own again within the site's grace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lends_since: Option<Timestamp>,
    /// Whether somebody else has its GPUs at this moment.
    #[serde(default)]
    pub is_borrowed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub used: Option<Used>,
    /// How often it was started, the newest first; only of a session by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<Start>,
    /// Whether nothing of it is tried again by itself, because it failed too often in a row.
    #[serde(default)]
    pub is_given_up: bool,
    pub created_at: Timestamp,
    pub version: u64,
}

/// Somebody who may come in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SharedWith {
    pub person: PersonRef,
    pub access: Access,
}

/// What a session has used since it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Used {
    pub cpu_s: u64,
    pub memory_mib: u64,
    pub memory_peak_mib: u64,
}

/// One attempt to start a session, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SessionStart)]
pub struct Start {
    pub asked_at: Timestamp,
    /// Whether nobody asked: what failed was tried again.
    pub is_automatic: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ready_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ended_at: Option<Timestamp>,
    pub has_failed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub said: Option<Text>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub struct SessionQuery {
    /// Only this person's; one's own and those that are shared with one, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<PersonReference>,
    /// Everybody's, for admins of the site.
    pub everybody: bool,
    /// Only what waits or runs.
    pub live: bool,
}

/// All sessions that were asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    pub items: Vec<Session>,
}

/// A session to be started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    pub profile: Name,
    /// The profile's name, with a number where there is one already, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<Name>,
    /// A managed environment in place of the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub environment: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub project: Option<ProjectReference>,
    /// Inside this reservation of one's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub inside: Option<ReservationId>,
}

/// A session to be started again, as it was where nothing else is said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StartSession {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub profile: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub environment: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub inside: Option<ReservationId>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StopSession {
    /// What its owner is told, where somebody else stops it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<Text>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionPatch {
    pub name: Name,
}

/// Lets a colleague in, or out again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareSession {
    pub with: PersonReference,
    /// Not any more, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub access: Option<Access>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepSession {
    /// For how long it is left alone, however idle it is; a day at most.
    #[serde(rename = "for")]
    #[schema(value_type = String, max_length = 32, examples("PT2H"))]
    pub length: SignedDuration,
}

/// The last of what something said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionLog {
    pub text: String,
}

/// Somebody who came to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SessionVisit)]
pub struct Visit {
    pub id: VisitId,
    pub person: PersonRef,
    pub access: Access,
    /// Why somebody came whom it was not shared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<Text>,
    pub began: Timestamp,
    /// Whether they could still be there.
    pub is_open: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SessionVisitList)]
pub struct VisitList {
    pub items: Vec<Visit>,
}

/// Asks to be let in to a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewVisit {
    /// Why, where it is neither one's own nor shared with one: its owner reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
    /// The path inside the session to begin at, such as `/lab`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub to: Option<String>,
}

/// The way in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WayIn {
    /// Where a browser comes in. It holds a code that is good once, for a minute, for whoever opens it: give it to nobody.
    pub url: String,
}

/// What can be started here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = StartableProfile)]
pub struct Profile {
    pub name: Name,
    pub title: Text,
    pub wishes: Vec<Wish>,
    pub session: SessionProfile,
    /// Missing where the profile names an app that is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub app: Option<App>,
    /// Why nobody starts it at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub paused: Option<Paused>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Paused {
    pub since: Timestamp,
    pub said: Text,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = StartableProfileList)]
pub struct ProfileList {
    pub items: Vec<Profile>,
}
