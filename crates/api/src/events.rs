//! Events: facts that happened, numbered without gaps, to be read in pages or live.

use berth_model::EventId;
use berth_model::event::{EventKind, NumberedEvent};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{IntoParams, ToSchema};

use crate::names::{Names, SiteRef};
use crate::page::Limit;
use crate::reference::SiteReference;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Where to read on from: pass it as `after`.
    pub number: u64,
    pub id: EventId,
    pub at: Timestamp,
    pub kind: EventKind,
    /// Null for what concerns no single site.
    pub site: Option<SiteRef>,
    /// The id of what it happened to.
    pub subject: String,
    pub data: Value,
}

impl Event {
    pub fn new(numbered: NumberedEvent, names: &Names) -> Self {
        let event = numbered.event;
        Self {
            number: numbered.number,
            id: event.id,
            at: event.at,
            kind: event.kind,
            site: event.site.map(|site| names.site(site)),
            subject: event.subject,
            data: event.data,
        }
    }
}

/// Some events in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    pub items: Vec<Event>,
    /// Pass it as `after` to read on. It can be beyond the last item, since not every event is for everyone.
    pub after: u64,
    /// Whether there is more to read now.
    pub more: bool,
}

/// A place in the stream of events; 0 is before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Position(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a place in the stream is a whole number from 0 to {}", Position::MAX)]
pub struct PositionError;

impl Position {
    /// The greatest whole number that every JSON reader keeps exactly.
    pub const MAX: u64 = (1 << 53) - 1;

    pub fn get(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for Position {
    type Error = PositionError;
    fn try_from(number: u64) -> Result<Self, PositionError> {
        if number <= Self::MAX {
            Ok(Self(number))
        } else {
            Err(PositionError)
        }
    }
}

impl From<Position> for u64 {
    fn from(position: Position) -> u64 {
        position.0
    }
}

impl utoipa::PartialSchema for Position {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
            .maximum(Some(Self::MAX as i64))
            .into()
    }
}
impl ToSchema for Position {}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Only events after this one; from the beginning if left out.
    #[serde(default)]
    #[param(inline, required = false)]
    pub after: Position,
    /// Only events of this site.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub site: Option<SiteReference>,
    #[serde(default)]
    #[param(inline, required = false)]
    pub limit: Limit,
}

/// The header `Last-Event-ID`, which browsers send by themselves when they reconnect, wins over `after`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EventStreamQuery {
    /// Only events after this one; from now on if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub after: Option<Position>,
    /// Only events of this site.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub site: Option<SiteReference>,
}
