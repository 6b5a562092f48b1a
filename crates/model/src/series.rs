//! A series: bookings made together by one rule, and which of them a reservation is.
//!
//! Each instance is a reservation like any other, with its own claims, state and history. The series only keeps what
//! they have in common, so that they can be looked at, changed and cancelled together.

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

use crate::id::{PersonId, SeriesId, SiteId};
use crate::name::Text;
use crate::recurrence::Pattern;
use crate::reservation::Privacy;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    pub id: SeriesId,
    pub site: SiteId,
    pub owner: PersonId,
    pub title: Text,
    pub privacy: Privacy,
    /// When its instances are, as it was last agreed. One that was cancelled, or differs, is still part of it.
    pub pattern: Pattern,
    /// When the last of its instances that was not cancelled ends; lists pass over what is over.
    pub ends: Timestamp,
    pub version: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Which of which series a reservation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Occurrence {
    pub series: SeriesId,
    /// Its start as the rule gives it, on the site's wall clock: RFC 5545 calls it the recurrence id.
    #[schema(value_type = String, examples("2026-11-23T09:00:00"))]
    pub start: DateTime,
    /// Whether it was changed by itself, so that changes of the whole series leave it alone.
    pub differs: bool,
}

impl Occurrence {
    /// The same, changed by itself.
    pub fn differing(self) -> Self {
        Self {
            differs: true,
            ..self
        }
    }
}
