//! The timeline: what is taken, and what is free.

use berth_model::reservation::State;
use berth_model::{Amount, Claim, ClaimId, Holder, PersonId, ReservationId, Status, Text};
use berth_model::{FieldErrors, Span, WindowId, WorkloadId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::attributes::Where;
use crate::list::List;
use crate::moment::{Moment, Period};
use crate::names::{Names, PersonRef, ResourceRef};
use crate::page::{Cursor, Limit};
use crate::reference::{ResourceReference, TypeReference};

/// One claim on the timeline, as far as the one who asks may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarEntry {
    pub claim: ClaimId,
    pub resource: ResourceRef,
    pub start: Timestamp,
    pub end: Timestamp,
    /// How much of a divisible resource; null where the whole resource is taken.
    pub amount: Option<Amount>,
    pub kind: EntryKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reservation: Option<ReservationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub window: Option<WindowId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub workload: Option<WorkloadId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub title: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub owner: Option<PersonRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub state: Option<State>,
    /// Whether it belongs to the one who asks.
    pub mine: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    Reservation,
    /// Time before or after a reservation that its resources are held to set up or to clean up.
    Buffer,
    Maintenance,
    Workload,
    /// Taken, and no more is said.
    Busy,
}

/// What a holder tells those who may see more than "busy".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    pub title: Option<Text>,
    pub owner: Option<PersonId>,
    pub state: Option<State>,
    pub mine: bool,
    pub is_buffer: bool,
}

impl CalendarEntry {
    /// The claim for someone who may know that it is there, and nothing else.
    pub fn busy(claim: &Claim, names: &Names) -> Self {
        Self {
            claim: claim.id,
            resource: names.resource(claim.resource),
            start: claim.span.start(),
            end: claim.span.end(),
            amount: claim.take.amount(),
            kind: EntryKind::Busy,
            reservation: None,
            window: None,
            workload: None,
            title: None,
            owner: None,
            state: None,
            mine: false,
        }
    }

    /// The claim for someone who may see what it is for.
    pub fn open(claim: &Claim, details: Details, names: &Names) -> Self {
        let shut = Self {
            title: details.title,
            owner: details.owner.map(|owner| names.person(owner)),
            state: details.state,
            mine: details.mine,
            ..Self::busy(claim, names)
        };
        match claim.holder {
            Holder::Reservation(id) => Self {
                kind: if details.is_buffer {
                    EntryKind::Buffer
                } else {
                    EntryKind::Reservation
                },
                reservation: Some(id),
                ..shut
            },
            Holder::Maintenance(id) => Self {
                kind: EntryKind::Maintenance,
                window: Some(id),
                ..shut
            },
            Holder::Workload(id) => Self {
                kind: EntryKind::Workload,
                workload: Some(id),
                ..shut
            },
        }
    }
}

/// What is taken within a time, by start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Calendar {
    pub items: Vec<CalendarEntry>,
}

/// What was wanted, and a claim that stands in its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Conflict {
    /// The resource that was asked for, or whose own claim would collide after a move.
    pub wanted: ResourceRef,
    /// The claim in the way; its resource may stand above or below the one that was wanted.
    pub claim: CalendarEntry,
}

/// A part of the calendar. It comes whole, without pages: half a calendar looks free where it is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct CalendarQuery {
    #[param(inline)]
    pub from: Moment,
    #[param(inline)]
    pub to: Moment,
    /// Only these resources; repeat it for several.
    #[serde(default)]
    #[param(inline, value_type = Vec<ResourceReference>, max_items = 500, required = false)]
    pub resource: List<ResourceReference, 0, 500>,
    /// Only this resource and what is below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub under: Option<ResourceReference>,
    /// Only resources of this type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub kind: Option<TypeReference>,
}

impl CalendarQuery {
    pub fn span(&self) -> Result<Span, FieldErrors> {
        span(self.from, self.to, "to")
    }
}

/// The span between two moments; a wrong order is a mistake in the field of the later one.
pub(crate) fn span(start: Moment, end: Moment, end_field: &str) -> Result<Span, FieldErrors> {
    Span::new(start.get(), end.get())
        .map_err(|error| FieldErrors::one(end_field, error.to_string()))
}

/// What is free between `from` and `to`, or for at least `for` at a stretch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct FreeQuery {
    /// Now, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub from: Option<Moment>,
    /// The end of the time that is searched; if left out, four weeks after `from`, or as long as `for` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub to: Option<Moment>,
    /// Only stretches at least this long.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub lasting: Option<Period>,
    /// Only resources of this type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub kind: Option<TypeReference>,
    /// Only resources whose attributes meet every one of these; repeat it for several.
    #[serde(default, rename = "where")]
    #[param(inline, value_type = Vec<Where>, max_items = 20, required = false)]
    pub requirements: List<Where, 0, 20>,
    /// Only this resource and what is below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub under: Option<ResourceReference>,
    #[serde(default)]
    #[param(inline, required = false)]
    pub limit: Limit,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub cursor: Option<Cursor>,
}

/// When one resource is free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FreeResource {
    pub resource: ResourceRef,
    pub title: Option<Text>,
    /// What counts: the worst of its own status and those above it. Only an ACTIVE resource can be booked.
    pub status: Status,
    /// In order, and apart from each other.
    pub free: Vec<FreeSpan>,
    /// If it is free at `from`: until when. Null if it is taken then, or free beyond the time searched.
    pub free_until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FreeSpan {
    pub start: Timestamp,
    pub end: Timestamp,
    /// Of a divisible resource, how much is free all the way through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub amount: Option<Amount>,
}

impl FreeSpan {
    pub fn new(span: Span, amount: Option<Amount>) -> Self {
        Self {
            start: span.start(),
            end: span.end(),
            amount,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{Firmness, Standing, Take};

    fn claim() -> Claim {
        let at = |text: &str| text.parse().unwrap();
        Claim {
            id: "clm_01kc3v9xwbe8rv5w2n9q3m7t4h".parse().unwrap(),
            site: "sit_01kc3v9xwbe8rv5w2n9q3m7t4h".parse().unwrap(),
            resource: "res_01kc3v9xwbe8rv5w2n9q3m7t4h".parse().unwrap(),
            span: Span::new(at("2026-11-20T09:00:00Z"), at("2026-11-20T10:00:00Z")).unwrap(),
            take: Take::Exclusive,
            firmness: Firmness::Firm,
            container: None,
            holder: Holder::Reservation("rsv_01kc3v9xwbe8rv5w2n9q3m7t4h".parse().unwrap()),
            standing: Standing::Holding,
        }
    }

    #[test]
    fn busy_says_nothing_but_that() {
        let shown = serde_json::to_value(CalendarEntry::busy(&claim(), &Names::default())).unwrap();
        let members: Vec<&str> = shown
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let allowed = [
            "amount", "claim", "end", "kind", "mine", "resource", "start",
        ];
        assert_eq!(members, allowed);
        assert_eq!(shown["kind"], "busy");
    }

    #[test]
    fn open_says_who_and_what_for() {
        let details = Details {
            title: Some("fine tuning".parse().unwrap()),
            owner: Some("per_01kc3v9xwbe8rv5w2n9q3m7t4h".parse().unwrap()),
            state: Some(State::Confirmed),
            mine: true,
            is_buffer: false,
        };
        let shown = CalendarEntry::open(&claim(), details, &Names::default());
        let shown = serde_json::to_value(shown).unwrap();
        assert_eq!(shown["kind"], "reservation");
        assert_eq!(shown["reservation"], "rsv_01kc3v9xwbe8rv5w2n9q3m7t4h");
        assert_eq!(shown["owner"]["id"], "per_01kc3v9xwbe8rv5w2n9q3m7t4h");
        assert_eq!(shown["amount"], serde_json::Value::Null);
    }

    #[test]
    fn a_calendar_that_ends_before_it_starts_is_refused_at_its_end() {
        let text = "from=2026-11-20T10:00:00Z&to=2026-11-20T09:00:00Z";
        let query: CalendarQuery = crate::parse::query(text).unwrap();
        assert_eq!(query.span().unwrap_err().0[0].field, "to");
        assert!(crate::parse::query::<CalendarQuery>("from=2026-11-20T10:00:00Z").is_err());
    }
}
