//! The audit log: who changed what, when, from where, before and after, and why.

use std::str::FromStr;

use berth_model::audit::{self, ChainedEntry};
use berth_model::{AuditId, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::moment::Moment;
use crate::names::{Names, PersonRef, SiteRef};
use crate::page::{Cursor, Limit};
use crate::reference::PersonReference;

/// Which entries are wanted; all of them, if nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// Only what this person did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub actor: Option<PersonReference>,
    /// Only this action, `reservation.cancel`; or all that happens to such things, `reservation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline, value_type = Option<String>, pattern = "^[a-z_]+([.][a-z_]+)?$", max_length = 60)]
    pub action: Option<ActionName>,
    /// Only what was done to this, by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub subject: Option<Text>,
    /// Only from this moment on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub from: Option<Moment>,
    /// Only before this.
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

/// A noun, or a noun and a verb: `reservation`, `reservation.create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ActionName(String);

impl ActionName {
    pub fn get(self) -> String {
        self.0
    }
}

impl TryFrom<String> for ActionName {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
        };
        let words: Vec<&str> = text.split('.').collect();
        if text.len() <= 60 && words.len() <= 2 && words.into_iter().all(is_word) {
            Ok(Self(text))
        } else {
            Err("write a noun, or a noun and a verb: `reservation` or `reservation.cancel`")
        }
    }
}

impl FromStr for ActionName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::try_from(text.to_owned())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its place in the chain, without gaps.
    pub number: u64,
    pub id: AuditId,
    pub at: Timestamp,
    pub actor: Actor,
    /// The client's address and the way it came in, as far as known.
    pub origin: Option<String>,
    /// Null for what concerns no single site.
    pub site: Option<SiteRef>,
    /// A noun and a verb: `reservation.create`.
    pub action: String,
    /// The id of what was changed.
    pub subject: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub reason: Option<Text>,
    /// SHA-256 over this entry and the hash before it, in hexadecimal.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub hash: String,
}

/// Who did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    pub kind: ActorKind,
    /// Present if the kind is `person`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub person: Option<PersonRef>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    Person,
    /// Berth itself: a controller, or a command on the server's own machine.
    System,
    /// Nobody was signed in.
    Anonymous,
}

impl AuditEntry {
    pub fn new(chained: ChainedEntry, names: &Names) -> Self {
        let entry = chained.entry;
        Self {
            number: chained.number,
            id: entry.id,
            at: entry.at,
            actor: Actor::new(entry.actor, names),
            origin: entry.origin,
            site: entry.site.map(|site| names.site(site)),
            action: entry.action,
            subject: entry.subject,
            before: entry.before,
            after: entry.after,
            reason: entry.reason,
            hash: hex(&chained.hash),
        }
    }
}

impl Actor {
    fn new(actor: audit::Actor, names: &Names) -> Self {
        let (kind, person) = match actor {
            audit::Actor::Person(id) => (ActorKind::Person, Some(names.person(id))),
            audit::Actor::System => (ActorKind::System, None),
            audit::Actor::Anonymous => (ActorKind::Anonymous, None),
        };
        Self { kind, person }
    }
}

/// What following the whole chain found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditVerification {
    pub intact: bool,
    /// How many entries the chain has.
    pub entries: u64,
    /// How many rows wait for their place in the chain; a few are usual on a busy server.
    pub waiting: u64,
    /// The hash of the last entry. Keep it elsewhere, and later nobody can shorten the log unseen.
    pub last_hash: Option<String>,
    /// The first entry that does not fit, if the chain is not intact.
    pub broken: Option<BrokenLink>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrokenLink {
    pub number: u64,
    /// What does not fit, as a sentence.
    pub what: String,
}

/// Bytes in lower-case hexadecimal, as hashes are shown.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_say_who_they_are() {
        let show = |actor| serde_json::to_value(Actor::new(actor, &Names::default())).unwrap();
        assert_eq!(
            show(audit::Actor::System),
            serde_json::json!({"kind": "system"})
        );
        let person = audit::Actor::Person("per_01kc3v9xwbe8rv5w2n9q3m7t4h".parse().unwrap());
        assert_eq!(
            show(person)["person"]["id"],
            "per_01kc3v9xwbe8rv5w2n9q3m7t4h"
        );
    }

    #[test]
    fn hashes_are_hexadecimal() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
    }
}
