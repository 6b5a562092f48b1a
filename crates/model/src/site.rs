//! Sites are tenants: their own inventory, members, projects, time zone and rules.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::branding::Accent;
use crate::id::{JoinRequestId, PersonId, ProjectId, SiteId};
use crate::name::{Name, Text};
use crate::person::TimeZone;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    pub id: SiteId,
    pub name: Name,
    pub title: Text,
    pub time_zone: TimeZone,
    pub outsiders_see: OutsiderView,
    /// Its own colour; Berth's where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accent: Option<Accent>,
    /// The digest of its logo, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logo: Option<String>,
    pub version: u64,
    /// Counts the changes of the policies that can concern it, so that whoever keeps them knows when they are stale.
    #[serde(skip)]
    pub policy_version: u64,
    pub created_at: Timestamp,
}

/// What signed-in people who are not members see of a site. Ordered: each step includes those before it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OutsiderView {
    Nothing,
    /// That it exists, and a way to ask to join.
    Name,
    /// Types and resources, without their bookings.
    Catalogue,
    /// The catalogue, and when each resource is free or busy; never who or why.
    FreeBusy,
}

#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Member,
    SiteAdmin,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    pub site: SiteId,
    pub person: PersonId,
    pub role: Role,
    pub since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    pub id: ProjectId,
    pub site: SiteId,
    pub name: Name,
    pub title: Text,
    pub version: u64,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    pub id: JoinRequestId,
    pub site: SiteId,
    pub person: PersonId,
    pub message: Option<Text>,
    pub state: JoinState,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JoinState {
    Waiting,
    Accepted,
    Declined,
}
