//! Feeds: what calendar programs subscribe to, each by a secret address.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{FeedId, PersonId, ResourceId, SiteId, TypeId};
use crate::name::Text;

/// A feed as it is kept; its address is known only to those who have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feed {
    pub id: FeedId,
    /// Whose eyes it sees with.
    pub person: PersonId,
    pub label: Text,
    pub shows: Shows,
    pub created_at: Timestamp,
    pub last_read_at: Option<Timestamp>,
}

/// What a feed is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shows {
    /// The person's own bookings in all their sites.
    Mine,
    Site(SiteId),
    Type(SiteId, TypeId),
    Resource(SiteId, ResourceId),
}

impl Shows {
    pub fn site(self) -> Option<SiteId> {
        match self {
            Shows::Mine => None,
            Shows::Site(site) | Shows::Type(site, _) | Shows::Resource(site, _) => Some(site),
        }
    }
}
