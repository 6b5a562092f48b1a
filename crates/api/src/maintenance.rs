//! Planned maintenance: windows on the timeline, negotiated with the bookings in their way.

use berth_model::{FieldErrors, ReservationId, Span, Text, WindowId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::calendar::{CalendarEntry, span};
use crate::list::List;
use crate::moment::Moment;
use crate::names::{PersonRef, ResourceRef, SiteRef};
use crate::page::{Cursor, Limit};
use crate::reference::ResourceReference;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaintenanceWindow {
    pub id: WindowId,
    pub site: SiteRef,
    pub title: Text,
    pub start: Timestamp,
    pub end: Timestamp,
    pub state: WindowState,
    /// What it occupies: all of its time, less the bookings that it goes around.
    pub parts: Vec<WindowPart>,
    /// Null where Berth itself planned it.
    pub created_by: Option<PersonRef>,
    pub created_at: Timestamp,
    pub version: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowState {
    Planned,
    Active,
    Over,
    Cancelled,
}

/// A stretch of one resource's time that the window holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WindowPart {
    pub resource: ResourceRef,
    pub start: Timestamp,
    pub end: Timestamp,
}

impl WindowPart {
    pub fn new(resource: ResourceRef, span: Span) -> Self {
        Self {
            resource,
            start: span.start(),
            end: span.end(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMaintenance {
    pub title: Text,
    #[schema(value_type = Vec<ResourceReference>, min_items = 1, max_items = 100)]
    pub resources: List<ResourceReference, 1, 100>,
    pub start: Moment,
    pub end: Moment,
    /// What to do with each booking in the way. All must be decided; a dry run lists them.
    #[serde(default)]
    #[schema(value_type = Vec<Decision>, max_items = 1000)]
    pub in_the_way: List<Decision, 0, 1000>,
}

impl NewMaintenance {
    pub fn span(&self) -> Result<Span, FieldErrors> {
        span(self.start, self.end, "end")
    }
}

/// Windows by start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceQuery {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    pub reservation: ReservationId,
    pub choice: Choice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = MaintenanceChoice)]
pub enum Choice {
    /// The window goes around it.
    Keep,
    /// A booking of any of a kind gets others. The owner of any other is offered some and decides; until then the
    /// window goes around it. Refused where nothing as good is free.
    Move,
    /// It is cancelled, and its owner is told.
    Cancel,
}

/// What planning the window would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaintenancePreview {
    /// Whether every booking in the way is decided, and those to be moved have somewhere to go, so that the window can
    /// be planned.
    pub accepted: bool,
    /// What the window would occupy.
    pub parts: Vec<WindowPart>,
    pub in_the_way: Vec<InTheWay>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InTheWay {
    pub booking: CalendarEntry,
    /// Null while it is undecided.
    pub choice: Option<Choice>,
    /// What it could have instead; null where nothing as good is free, and where it is kept or cancelled.
    pub instead: Option<Elsewhere>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Elsewhere {
    pub resources: Vec<ResourceRef>,
    /// Only its owner may move it, and is asked to.
    pub owner_decides: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_window_needs_resources_and_time() {
        let new = |resources: serde_json::Value, end: &str| {
            serde_json::from_value::<NewMaintenance>(json!({
                "title": "firmware", "resources": resources,
                "start": "2026-11-20T09:00:00Z", "end": end,
                "in_the_way": [{"reservation": "rsv_01kc3v9xwbe8rv5w2n9q3m7t4h", "choice": "keep"}],
            }))
        };
        let good = new(json!(["rack-1"]), "2026-11-20T12:00:00Z").unwrap();
        assert!(good.span().is_ok());
        assert_eq!(good.in_the_way.as_slice()[0].choice, Choice::Keep);
        assert!(new(json!([]), "2026-11-20T12:00:00Z").is_err());
        let backwards = new(json!(["rack-1"]), "2026-11-20T08:00:00Z").unwrap();
        assert_eq!(backwards.span().unwrap_err().0[0].field, "end");
    }
}
