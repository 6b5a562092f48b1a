//! Closure calendars: times at which a site is closed, read in from the calendars of its institution.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{ClosureId, SiteId};
use crate::name::{Name, Text};
use crate::span::Span;

/// A calendar of closed times, without the times themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closure {
    pub id: ClosureId,
    pub site: SiteId,
    pub name: Name,
    pub kind: ClosureKind,
    /// Where it is read from again; none for one that was given as a file.
    pub address: Option<String>,
    /// What of it was not understood, in sentences.
    pub notes: Vec<String>,
    /// When it was last read with success.
    pub read_at: Timestamp,
    pub tried_at: Timestamp,
    /// Why the last try failed, if it did; the times are those of the last good reading then.
    pub trouble: Option<String>,
    pub created_at: Timestamp,
    pub version: u64,
}

/// What follows from a closed time.
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
pub enum ClosureKind {
    /// Days off, which policies may look at.
    Holidays,
    /// Nothing can be booked then, except by admins.
    Blackouts,
}

/// One closed time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClosedSpan {
    pub span: Span,
    pub title: Text,
}

/// A closed time with the calendar it stands in: what a booking meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedTime {
    pub calendar: Name,
    pub kind: ClosureKind,
    pub closed: ClosedSpan,
}
