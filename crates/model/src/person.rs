//! People and how they show who they are.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{PersonId, TokenId};
use crate::name::{LoginName, Text};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    pub id: PersonId,
    pub login: LoginName,
    pub display_name: Text,
    pub email: Option<String>,
    pub time_zone: TimeZone,
    pub global_admin: bool,
    pub state: PersonState,
    pub version: u64,
    pub created_at: Timestamp,
}

/// Enough of a person to show who is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonName {
    pub id: PersonId,
    pub login: LoginName,
    pub display_name: Text,
}

impl From<&Person> for PersonName {
    fn from(person: &Person) -> Self {
        Self {
            id: person.id,
            login: person.login.clone(),
            display_name: person.display_name.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PersonState {
    Active,
    /// May not sign in; their claims stand.
    Suspended,
    /// Gone for good; the name stays for the record, everything they held is settled.
    Removed,
}

/// An IANA time zone by name, checked to exist.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeZone(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time zone: use an IANA name such as `Europe/Rome` or `UTC`")]
pub struct TimeZoneError(String);

impl TimeZone {
    pub fn utc() -> Self {
        Self("UTC".into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn rules(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::get(&self.0).unwrap_or(jiff::tz::TimeZone::UTC)
    }
}

impl std::str::FromStr for TimeZone {
    type Err = TimeZoneError;
    fn from_str(text: &str) -> Result<Self, TimeZoneError> {
        let known = text.len() <= 64 && jiff::tz::TimeZone::get(text).is_ok();
        if known {
            Ok(Self(text.to_owned()))
        } else {
            Err(TimeZoneError(text.chars().take(64).collect()))
        }
    }
}

impl TryFrom<String> for TimeZone {
    type Error = TimeZoneError;
    fn try_from(text: String) -> Result<Self, TimeZoneError> {
        text.parse()
    }
}

impl From<TimeZone> for String {
    fn from(zone: TimeZone) -> String {
        zone.0
    }
}

/// What an API token may do, at most; its owner's rights bound it too.
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
pub enum Scope {
    /// Look at whatever the owner may see.
    Read,
    /// Make and change the owner's own reservations.
    Book,
    /// Everything else the owner may do, administration included.
    Manage,
}

impl Scope {
    pub const ALL: [Scope; 3] = [Scope::Read, Scope::Book, Scope::Manage];
}

/// An API token as its owner sees it; the secret itself is shown once, at birth, and only its hash is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub id: TokenId,
    pub person: PersonId,
    pub label: Text,
    pub scopes: BTreeSet<Scope>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}
