//! Series: bookings made together by one rule.

mod words;

use berth_model::reservation::{AtEnd, Privacy, State};
use berth_model::{FieldErrors, ReservationId, SeriesId, Span, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::calendar::span;
use crate::list::List;
use crate::moment::{Moment, Period};
use crate::names::{PersonRef, SiteRef};
use crate::page::{Cursor, Limit};
use crate::patch::present;
use crate::problem::Problem;
use crate::reference::{PersonReference, ProjectReference};
use crate::reservations::{FormAnswers, WantedResource, visible_in_site};
use crate::schemas;

pub use words::{Day, Rule, TimeOfDay, WordError};

/// A series. Its instances are reservations like any other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Series {
    pub id: SeriesId,
    pub site: SiteRef,
    pub owner: PersonRef,
    pub title: Text,
    pub privacy: Privacy,
    pub rule: Rule,
    /// When the first instance starts, on the site's wall clock; each of them starts at this time of its day.
    #[schema(value_type = String, examples("2026-11-23T09:00:00"))]
    pub first: jiff::civil::DateTime,
    /// From start to end on the wall clock, also on days when the clocks change.
    pub length: Period,
    #[schema(value_type = schemas::TimeZone)]
    pub time_zone: berth_model::person::TimeZone,
    /// Days of the rule that were left out from the beginning.
    pub except: Vec<Day>,
    /// When the last instance ends that was not cancelled.
    pub ends: Timestamp,
    /// By start, those that are over or cancelled too. Left out of lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub instances: Option<Vec<SeriesInstance>>,
    /// What the rule gives and was not booked, because something was in the way. Left out of lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub skipped: Option<Vec<SkippedInstance>>,
    /// What a change did not touch: instances that differ already, or are somebody else's now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<ReservationId>,
    pub version: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One instance, in short; the reservation itself says the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeriesInstance {
    pub reservation: ReservationId,
    pub start: Timestamp,
    pub end: Timestamp,
    pub state: State,
    /// Whether it was changed by itself.
    pub differs: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SkippedInstance {
    pub start: Timestamp,
    pub end: Timestamp,
    /// The problem that a booking of it alone would have been answered with; only told when the series is booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub refusal: Option<Problem>,
}

/// What to do where some instances cannot be booked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// Book nothing.
    #[default]
    Refuse,
    /// Leave those out, and list them.
    Skip,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSeries {
    pub title: Text,
    /// When the first instance starts. The others start at the same time of day in the site's time zone.
    pub start: Moment,
    /// When the first instance ends.
    pub end: Moment,
    pub rule: Rule,
    /// Days of the rule to leave out.
    #[serde(default)]
    #[schema(value_type = Vec<Day>, max_items = 1000)]
    pub except: List<Day, 0, 1000>,
    /// All or nothing, if left out.
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// What each instance takes.
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
    /// Whose series it is to be; only a site admin may book for another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<PersonReference>,
    /// What becomes of my work that still runs inside an instance when that ends; it stops, if left out.
    #[serde(default, skip_serializing_if = "AtEnd::is_stop")]
    pub at_end: AtEnd,
    /// Whether its idle time is lent to opportunistic work; as the site says, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lends: Option<bool>,
}

impl NewSeries {
    /// The first instance's time.
    pub fn span(&self) -> Result<Span, FieldErrors> {
        span(self.start, self.end, "end")
    }
}

/// What booking a series would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeriesPreview {
    /// Whether it would be booked as it was asked for: all of it, or with `skip` at least one instance.
    pub accepted: bool,
    pub instances: Vec<ForeseenInstance>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForeseenInstance {
    pub start: Timestamp,
    pub end: Timestamp,
    /// The state it would begin in; left out where it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub state: Option<State>,
    /// What a change of the clocks does to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub remark: Option<String>,
    /// The problem that a booking of it would be answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub refusal: Option<Problem>,
}

/// Which part of a series is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One instance.
    This,
    /// One instance and those after it.
    Following,
    /// All that are still to come.
    #[default]
    All,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ScopeQuery {
    /// One instance, that one and those after it, or all that are still to come.
    #[serde(default)]
    #[param(inline, required = false)]
    pub scope: Scope,
    /// The instance that `this` and `following` mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub instance: Option<ReservationId>,
}

impl ScopeQuery {
    /// All of it, or a part that begins with an instance.
    pub fn instance(self) -> Result<Option<(Scope, ReservationId)>, FieldErrors> {
        match (self.scope, self.instance) {
            (Scope::All, None) => Ok(None),
            (scope @ (Scope::This | Scope::Following), Some(id)) => Ok(Some((scope, id))),
            (Scope::All, Some(_)) => Err(FieldErrors::one(
                "instance",
                "is for the scopes `this` and `following`; leave it out for all",
            )),
            (Scope::This | Scope::Following, None) => Err(FieldErrors::one(
                "instance",
                "say which instance is meant, by its reservation's id",
            )),
        }
    }
}

/// Absent fields stay as they are; `resources` replaces the whole list of each instance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SeriesPatch {
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub title: Option<Text>,
    /// When each instance starts, on the site's wall clock.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub at: Option<TimeOfDay>,
    /// How long each instance lasts, on the site's wall clock.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub length: Option<Period>,
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
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SeriesQuery {
    /// Only this person's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub owner: Option<PersonReference>,
    /// Only those that end after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub from: Option<Moment>,
    #[serde(default)]
    #[param(inline, required = false)]
    pub limit: Limit,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub cursor: Option<Cursor>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn new() -> serde_json::Value {
        json!({
            "title": "night runs",
            "start": "2026-11-23T19:00:00Z",
            "end": "2026-11-24T07:00:00Z",
            "rule": "FREQ=DAILY;COUNT=5",
            "resources": [{"resource": "gpu-01"}],
        })
    }

    #[test]
    fn a_series_needs_a_rule_and_little_else() {
        let read: NewSeries = serde_json::from_value(new()).unwrap();
        assert_eq!(read.on_conflict, OnConflict::Refuse);
        assert!(read.except.as_slice().is_empty() && read.span().is_ok());
        let mut endless = new();
        endless["rule"] = json!("FREQ=DAILY");
        let said = serde_json::from_value::<NewSeries>(endless).unwrap_err();
        assert!(said.to_string().contains("COUNT"), "{said}");
    }

    #[test]
    fn a_part_names_where_it_begins() {
        let id: ReservationId = "rsv_01kc3v9xwbe8rv5w2n9q3m7t4h".parse().unwrap();
        let read = |scope, instance| ScopeQuery { scope, instance }.instance();
        assert_eq!(read(Scope::All, None), Ok(None));
        assert_eq!(
            read(Scope::Following, Some(id)),
            Ok(Some((Scope::Following, id)))
        );
        assert!(read(Scope::This, None).is_err());
        assert!(read(Scope::All, Some(id)).is_err());
    }
}
