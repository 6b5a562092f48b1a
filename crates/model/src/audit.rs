//! The audit log: who changed what, when, from where, before and after, and why.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AuditId, PersonId, SiteId};
use crate::name::Text;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub id: AuditId,
    pub at: Timestamp,
    pub actor: Actor,
    /// The client's address and the way it came in (`192.0.2.7 token tok_…`), as far as known.
    pub origin: Option<String>,
    pub site: Option<SiteId>,
    /// `reservation.create`, `resource.move`: a noun and a verb.
    pub action: String,
    /// The id of what was changed.
    pub subject: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub reason: Option<Text>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    Person(PersonId),
    /// Berth itself: a controller or a command on the server's own machine.
    System,
    /// Nobody is signed in yet, as when a password is reset by a one-time link.
    Anonymous,
}

/// An entry with its place in the chain, which readers see only once it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct ChainedEntry {
    pub number: u64,
    pub hash: [u8; 32],
    pub entry: AuditEntry,
}
