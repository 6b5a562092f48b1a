//! The inventory of a site: resource types, and resources in a tree of any depth.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::attribute::Attributes;
use crate::claim::Amount;
use crate::id::{PersonId, ResourceId, SiteId, TypeId};
use crate::name::{Name, Text};
use crate::parameter::Form;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceType {
    pub id: TypeId,
    pub site: SiteId,
    pub name: Name,
    pub title: Text,
    pub colour: Colour,
    /// What a booking of this type asks for.
    pub form: Form,
    /// Whether a site admin must say yes before a booking is confirmed; the claim holds meanwhile.
    pub needs_approval: bool,
    pub version: u64,
}

/// A colour as `#rrggbb`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Colour(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a colour is written like `#1f77b4`")]
pub struct ColourError;

/// What a type is drawn in whose admin chose nothing.
impl Default for Colour {
    fn default() -> Self {
        Self("#1f77b4".to_owned())
    }
}

impl std::str::FromStr for Colour {
    type Err = ColourError;
    fn from_str(text: &str) -> Result<Self, ColourError> {
        match text.strip_prefix('#') {
            Some(hex) if hex.len() == 6 && hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
                Ok(Self(text.to_ascii_lowercase()))
            }
            _ => Err(ColourError),
        }
    }
}

impl Colour {
    /// Red, green and blue.
    pub fn rgb(&self) -> [u8; 3] {
        let channel = |at: usize| {
            let digits = self.0.get(at..at + 2);
            digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())
        };
        [1, 3, 5].map(|at| channel(at).unwrap_or_default())
    }
}

impl TryFrom<String> for Colour {
    type Error = ColourError;
    fn try_from(text: String) -> Result<Self, ColourError> {
        text.parse()
    }
}

impl From<Colour> for String {
    fn from(colour: Colour) -> String {
        colour.0
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    pub id: ResourceId,
    pub site: SiteId,
    pub parent: Option<ResourceId>,
    pub type_id: TypeId,
    /// Unique in its site, so that `torino/gpu-01` says which one is meant.
    pub name: Name,
    pub title: Option<Text>,
    pub attributes: Attributes,
    pub facts: Facts,
    /// How much there is to share, for a divisible resource (cores, GiB, seats). Such a resource is a leaf.
    pub capacity: Option<Capacity>,
    /// Its own status; what counts is the worst along the way to the root.
    pub status: Status,
    pub status_reason: Option<Text>,
    pub version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    pub amount: Amount,
    pub unit: Name,
}

/// Where other systems find this resource. The provisioning address is for admins and drivers only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_address: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring_url: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<Text>,
}

/// Whether a resource takes new bookings. A flag, not a claim: it moves nobody.
/// Ordered from best to worst, since a child inherits the worst status above it.
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
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    Active,
    Maintenance,
    Unavailable,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Status::Active => "ACTIVE",
            Status::Maintenance => "MAINTENANCE",
            Status::Unavailable => "UNAVAILABLE",
        })
    }
}

/// One line of a resource's status history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusChange {
    pub resource: ResourceId,
    pub status: Status,
    pub reason: Option<Text>,
    pub at: Timestamp,
    pub by: Option<PersonId>,
}
