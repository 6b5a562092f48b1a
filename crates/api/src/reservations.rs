//! Reservations: claims that people make on the calendar.

mod answers;
mod extension;

use berth_model::reservation::{self, AtEnd, Privacy, State, Terms};
use berth_model::{Amount, ClaimId, FieldErrors, Occurrence, ReservationId, Span, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::calendar::span;
use crate::desk::WaitFor;
use crate::list::List;
use crate::moment::Moment;
use crate::names::{Names, PersonRef, ProjectRef, ResourceRef, SiteRef};
use crate::page::{Cursor, Limit};
use crate::patch::present;
use crate::problem::Problem;
use crate::reference::{PersonReference, ProjectReference, ResourceReference};
use crate::schemas;

pub use answers::{AnswersByType, FormAnswers, FormAnswersError};
pub use extension::{Extension, ExtensionError};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Reservation {
    pub id: ReservationId,
    pub site: SiteRef,
    pub owner: PersonRef,
    pub project: Option<ProjectRef>,
    pub title: Text,
    pub privacy: Privacy,
    pub state: State,
    pub state_reason: Option<Text>,
    pub start: Timestamp,
    pub end: Timestamp,
    pub resources: Vec<ReservedResource>,
    /// What it waits for, where it named that; `terms.wait` says all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<ResourceRef>,
    /// Answers to the booking forms, by the type's name. A secret shows as `********`.
    #[schema(value_type = schemas::Parameters)]
    pub parameters: reservation::Parameters,
    /// What it must still meet: a hold taken, a decision made, its owner there.
    pub terms: Terms,
    /// Which of which series it is; left out for a booking by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub occurrence: Option<Occurrence>,
    pub version: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One resource of a reservation, and the claim that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReservedResource {
    pub resource: ResourceRef,
    /// How much of a divisible resource; null where the whole resource is taken.
    pub amount: Option<Amount>,
    pub claim: ClaimId,
}

impl Reservation {
    pub fn new(reservation: reservation::Reservation, names: &Names) -> Self {
        let resources = reservation.items.iter().map(|item| ReservedResource {
            resource: names.resource(item.resource),
            amount: item.take.amount(),
            claim: item.claim,
        });
        let waits_for = reservation.terms.waits_for();
        let waits_for = waits_for.map(|resource| names.resource(resource)).collect();
        Self {
            waits_for,
            id: reservation.id,
            site: names.site(reservation.site),
            owner: names.person(reservation.owner),
            project: reservation.project.map(|project| names.project(project)),
            resources: resources.collect(),
            title: reservation.title,
            privacy: reservation.privacy,
            state: reservation.state,
            state_reason: reservation.state_reason,
            start: reservation.span.start(),
            end: reservation.span.end(),
            parameters: reservation.parameters,
            terms: reservation.terms,
            occurrence: reservation.occurrence,
            version: reservation.version,
            created_at: reservation.created_at,
            updated_at: reservation.updated_at,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewReservation {
    pub title: Text,
    pub start: Moment,
    pub end: Moment,
    #[schema(value_type = Vec<WantedResource>, min_items = 1, max_items = 100)]
    pub resources: List<WantedResource, 1, 100>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectReference>,
    /// Visible to the site's members, if left out.
    #[serde(default = "visible_in_site")]
    pub privacy: Privacy,
    #[serde(default)]
    #[schema(value_type = schemas::Parameters)]
    pub parameters: FormAnswers,
    /// Whose reservation it is to be; only a site admin may book for another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<PersonReference>,
    /// Only keep it free for two minutes; taking it then cannot fail. At most three at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
    /// Where there is no room: wait for it, instead of being refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitFor>,
    /// What becomes of my work that still runs inside it when it ends; it stops, if left out.
    #[serde(default, skip_serializing_if = "AtEnd::is_stop")]
    pub at_end: AtEnd,
    /// Whether its idle time is lent to opportunistic work; as the site says, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lends: Option<bool>,
}

/// Who gets a reservation, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HandOver {
    pub to: PersonReference,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
}

pub(crate) fn visible_in_site() -> Privacy {
    Privacy::Site
}

impl NewReservation {
    pub fn span(&self) -> Result<Span, FieldErrors> {
        span(self.start, self.end, "end")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WantedResource {
    pub resource: ResourceReference,
    /// How much of a divisible resource; the whole resource if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Amount>,
}

/// Absent fields stay as they are; `resources` replaces the whole list, and so does each type's answers.
/// A secret that is left out of the answers stays as it was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReservationPatch {
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub title: Option<Text>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub start: Option<Moment>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub end: Option<Moment>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<Vec<WantedResource>>, min_items = 1, max_items = 100, nullable = false)]
    pub resources: Option<List<WantedResource, 1, 100>>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<ProjectReference>)]
    pub project: Option<Option<ProjectReference>>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub privacy: Option<Privacy>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<schemas::Parameters>, nullable = false)]
    pub parameters: Option<FormAnswers>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub at_end: Option<AtEnd>,
    /// Null for what the site says.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<bool>)]
    pub lends: Option<Option<bool>>,
}

impl ReservationPatch {
    /// The span after the change, of a reservation that has `now` as its span; none if it stays.
    pub fn span(&self, now: Span) -> Result<Option<Span>, FieldErrors> {
        if self.start.is_none() && self.end.is_none() {
            return Ok(None);
        }
        let start = self.start.map_or(now.start(), Moment::get);
        let end = self.end.map_or(now.end(), Moment::get);
        let field = if self.end.is_some() { "end" } else { "start" };
        Span::new(start, end)
            .map(Some)
            .map_err(|error| FieldErrors::one(field, error.to_string()))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ReservationQuery {
    /// Only in one of these states; repeat it for several.
    #[serde(default)]
    #[param(inline, value_type = Vec<State>, max_items = 9, required = false)]
    pub state: List<State, 0, 9>,
    /// Only this person's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub owner: Option<PersonReference>,
    /// Only those that hold this very resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub resource: Option<ResourceReference>,
    /// Only those that end after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub from: Option<Moment>,
    /// Only those that start before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub to: Option<Moment>,
    #[serde(default)]
    #[param(inline, required = false)]
    pub limit: Limit,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub cursor: Option<Cursor>,
}

/// One's own reservations, in all sites.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct MyReservationQuery {
    /// Only in one of these states; repeat it for several.
    #[serde(default)]
    #[param(inline, value_type = Vec<State>, max_items = 9, required = false)]
    pub state: List<State, 0, 9>,
    /// Only those that end after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub from: Option<Moment>,
    /// Only those that start before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub to: Option<Moment>,
    #[serde(default)]
    #[param(inline, required = false)]
    pub limit: Limit,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub cursor: Option<Cursor>,
}

/// What booking it would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReservationPreview {
    pub accepted: bool,
    /// The state it would begin in: `confirmed`, or `pending_approval` where an admin must say yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub state: Option<State>,
    /// The problem that the real request would be answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub refusal: Option<Problem>,
}

/// Why a request for approval is turned down; its owner reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    pub reason: Text,
}

/// One line of a reservation's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HistoryEntry {
    pub at: Timestamp,
    /// Null for its making.
    pub from: Option<State>,
    pub to: State,
    pub start: Timestamp,
    pub end: Timestamp,
    /// Null where Berth itself did it, at the due time.
    pub by: Option<PersonRef>,
    pub reason: Option<Text>,
}

impl HistoryEntry {
    pub fn new(entry: reservation::HistoryEntry, names: &Names) -> Self {
        Self {
            at: entry.at,
            from: entry.from,
            to: entry.to,
            start: entry.span.start(),
            end: entry.span.end(),
            by: entry.by.map(|by| names.person(by)),
            reason: entry.reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn new() -> serde_json::Value {
        json!({
            "title": "fine tuning",
            "start": "2026-11-20T09:00:00Z",
            "end": "2026-11-20T10:00:00Z",
            "resources": [{"resource": "gpu-01"}, {"resource": "licences", "amount": 3}],
        })
    }

    #[test]
    fn a_booking_needs_little() {
        let read: NewReservation = serde_json::from_value(new()).unwrap();
        assert_eq!(read.privacy, Privacy::Site);
        assert_eq!(read.resources.as_slice()[0].amount, None);
        assert_eq!(read.resources.as_slice()[1].amount, Amount::new(3).ok());
        assert!(read.span().is_ok());
    }

    #[test]
    fn too_many_or_no_resources_are_refused() {
        for count in [0, 101] {
            let mut body = new();
            body["resources"] = vec![json!({"resource": "gpu-01"}); count].into();
            assert!(
                serde_json::from_value::<NewReservation>(body).is_err(),
                "{count}"
            );
        }
    }

    #[test]
    fn a_patch_moves_one_end_or_both() {
        let now = serde_json::from_value::<NewReservation>(new())
            .unwrap()
            .span()
            .unwrap();
        let moved = |body| {
            let patch: ReservationPatch = serde_json::from_value(body).unwrap();
            patch.span(now)
        };
        assert_eq!(moved(json!({"title": "x"})), Ok(None));
        let later = moved(json!({"end": "2026-11-20T12:00:00Z"}))
            .unwrap()
            .unwrap();
        assert_eq!(later.start(), now.start());
        let field = |body| moved(body).unwrap_err().0[0].field.clone();
        assert_eq!(field(json!({"start": "2026-11-20T11:00:00Z"})), "start");
        assert_eq!(field(json!({"end": "2026-11-20T09:00:00Z"})), "end");
    }

    #[test]
    fn a_patch_can_take_a_reservation_out_of_its_project() {
        let patch: ReservationPatch = serde_json::from_value(json!({"project": null})).unwrap();
        assert_eq!(patch.project, Some(None));
        assert_eq!(
            serde_json::to_value(&patch).unwrap(),
            json!({"project": null})
        );
    }
}
