//! The timeline: what is taken, and what is free.

use berth_model::reservation::State;
use berth_model::{Amount, Claim, ClaimId, Holder, PersonId, ReservationId, Status, Text};
use berth_model::{FieldErrors, Span, WindowId, WorkloadId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
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
    /// What is not among `items`, because there are more entries than `max_entries`; left out where everything is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub summary: Option<CalendarSummary>,
}

/// Claims summed by resource and time step. Steps begin at multiples of their length, counted in UTC from a Monday.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarSummary {
    /// How long each step is.
    pub step_s: u64,
    pub covers: SummaryCovers,
    /// The resources on which something is summed.
    pub rows: Vec<SummaryRow>,
}

/// Which claims are summed; the others are listed one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummaryCovers {
    /// Work of the queue. Reservations and maintenance are listed.
    Workloads,
    /// Everything.
    All,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SummaryRow {
    pub resource: ResourceRef,
    /// In order; steps in which nothing is taken are left out.
    pub steps: Vec<SummaryStep>,
}

/// What is taken of one resource in one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SummaryStep {
    pub start: Timestamp,
    /// The most that is taken at one moment; null where the whole resource is.
    pub taken: Option<Amount>,
    /// Whether nothing of the resource is left at any moment of the step, by what is summed here.
    pub is_full: bool,
    /// By kind; kinds that do not occur are left out.
    pub parts: Vec<SummaryPart>,
}

/// The claims of one kind in a step, one's own apart from others'.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SummaryPart {
    pub kind: EntryKind,
    /// Whether they belong to the one who asks.
    pub mine: bool,
    /// How many claims touch the step.
    pub claims: u64,
    /// The most that they take at one moment; null where one of them takes the whole resource.
    pub taken: Option<Amount>,
}

/// What was wanted, and a claim that stands in its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Conflict {
    /// The resource that was asked for, or whose own claim would collide after a move.
    pub wanted: ResourceRef,
    /// The claim in the way; its resource may stand above or below the one that was wanted.
    pub claim: CalendarEntry,
}

/// A part of the calendar. It comes whole, without pages: half a calendar looks free where it is not. What is too much
/// to list is summed.
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
    /// The most entries to list one by one. Where there are more, work of the queue is summed by time step; where that
    /// does not suffice, everything is.
    #[serde(default)]
    #[param(inline, required = false)]
    pub max_entries: MaxEntries,
}

/// How many entries of a calendar are listed before they are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct MaxEntries(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a calendar lists 0 to {} entries", MaxEntries::MAX)]
pub struct MaxEntriesError;

impl MaxEntries {
    pub const MAX: u32 = 50_000;
    /// A page draws no more of them in good time.
    pub const DEFAULT: MaxEntries = MaxEntries(10_000);

    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for MaxEntries {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl TryFrom<u32> for MaxEntries {
    type Error = MaxEntriesError;
    fn try_from(most: u32) -> Result<Self, MaxEntriesError> {
        (most <= Self::MAX)
            .then_some(Self(most))
            .ok_or(MaxEntriesError)
    }
}

impl From<MaxEntries> for u32 {
    fn from(most: MaxEntries) -> u32 {
        most.0
    }
}

impl utoipa::PartialSchema for MaxEntries {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            .maximum(Some(Self::MAX))
            .default(Some(Self::DEFAULT.0.into()))
            .into()
    }
}
impl ToSchema for MaxEntries {}

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

    #[test]
    fn a_calendar_lists_ten_thousand_entries_unless_the_question_says() {
        let asked = |more: &str| {
            let text = format!("from=2026-11-20T09:00:00Z&to=2026-11-20T10:00:00Z{more}");
            crate::parse::query::<CalendarQuery>(&text).map(|query| query.max_entries.get())
        };
        assert_eq!(asked("").unwrap(), 10_000);
        assert_eq!(asked("&max_entries=0").unwrap(), 0);
        assert!(asked("&max_entries=50001").is_err());
    }
}
