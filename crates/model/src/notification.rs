//! Notifications: an event that somebody is told of, until they have read it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::EventKind;
use crate::id::{PersonId, SiteId};

/// One event, told to one person. Its number is the event's, so that nobody is told of one twice.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    pub person: PersonId,
    pub number: u64,
    pub kind: EventKind,
    pub site: Option<SiteId>,
    /// The id of what it happened to.
    pub subject: String,
    pub at: Timestamp,
    /// What the event says, with `as` ([`ToldAs`]) and, where a person did it, `by`.
    pub data: Value,
    pub read_at: Option<Timestamp>,
}

/// As whom somebody is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToldAs {
    /// Of what is theirs, or of what their bookings stand on.
    Owner,
    /// Of what was theirs until then.
    FormerOwner,
    /// Of what waits for their word.
    Approver,
    /// Of what is theirs to decide as an admin of the site.
    Admin,
    /// Of what became of them.
    Oneself,
}
