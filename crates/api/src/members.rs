//! Who belongs to a site, who asks to, and what becomes of what a leaver held.

use berth_model::reservation::{self, State};
use berth_model::site::{self, JoinState, Role};
use berth_model::{JoinRequestId, ReservationId, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::names::{Names, PersonRef, SiteRef};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Member {
    pub person: PersonRef,
    pub role: Role,
    pub since: Timestamp,
}

impl Member {
    pub fn new(membership: &site::Membership, names: &Names) -> Self {
        Self {
            person: names.person(membership.person),
            role: membership.role,
            since: membership.since,
        }
    }
}

/// Lets a person in, or gives a member another role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberRole {
    pub role: Role,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JoinRequest {
    pub id: JoinRequestId,
    pub site: SiteRef,
    pub person: PersonRef,
    pub message: Option<Text>,
    pub state: JoinState,
    pub created_at: Timestamp,
}

impl JoinRequest {
    pub fn new(request: site::JoinRequest, names: &Names) -> Self {
        Self {
            id: request.id,
            site: names.site(request.site),
            person: names.person(request.person),
            message: request.message,
            state: request.state,
            created_at: request.created_at,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewJoinRequest {
    /// A word to the site's admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinAcceptance {
    /// A plain member, if left out.
    #[serde(default = "plain_member")]
    pub role: Role,
}

fn plain_member() -> Role {
    Role::Member
}

impl Default for JoinAcceptance {
    fn default() -> Self {
        Self {
            role: plain_member(),
        }
    }
}

/// Why something is given up or turned down; kept in the history.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
}

/// What becomes of a leaver's claims and rights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Settlement {
    /// False for a dry run: nothing has happened yet.
    pub applied: bool,
    pub person: PersonRef,
    /// Every reservation that still held something.
    pub reservations: Vec<SettledReservation>,
    /// How many workloads are cancelled, those that sessions run as among them.
    #[serde(default)]
    pub workloads: u64,
    /// How many sessions are stopped. The person's files stay where they are.
    #[serde(default)]
    pub sessions: u64,
    /// The sites that the person leaves.
    pub sites: Vec<SiteRef>,
    /// How many API tokens stop working.
    pub tokens_revoked: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettledReservation {
    pub id: ReservationId,
    pub site: SiteRef,
    pub title: Text,
    pub start: Timestamp,
    pub end: Timestamp,
    /// The state it is left in: `cancelled` before its start, `ending` while it runs.
    pub state: State,
}

impl SettledReservation {
    /// The reservation as it was, and the state it is left in.
    pub fn new(reservation: &reservation::Reservation, state: State, names: &Names) -> Self {
        Self {
            id: reservation.id,
            site: names.site(reservation.site),
            title: reservation.title.clone(),
            start: reservation.span.start(),
            end: reservation.span.end(),
            state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accepted_person_is_a_plain_member_unless_said() {
        let read = |text| serde_json::from_str::<JoinAcceptance>(text);
        assert_eq!(read("{}").unwrap().role, Role::Member);
        assert_eq!(
            read(r#"{"role":"site_admin"}"#).unwrap().role,
            Role::SiteAdmin
        );
        assert!(read(r#"{"role":"owner"}"#).is_err());
    }
}
