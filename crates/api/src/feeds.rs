//! Feeds for calendar programs.

use berth_model::feed::{self, Shows};
use berth_model::reference::{ResourceReference, SiteReference, TypeReference};
use berth_model::{FeedId, FieldErrors, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::names::{Names, ResourceRef, SiteRef, TypeRef};
use crate::secret::Revealed;

/// A feed as its maker sees it; its address was shown once, when it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Feed {
    pub id: FeedId,
    pub label: Text,
    /// Null for a feed of one's own bookings in all sites.
    pub site: Option<SiteRef>,
    /// Set if it shows what occupies the resources of this type.
    #[serde(rename = "type")]
    pub kind: Option<TypeRef>,
    /// Set if it shows what occupies this resource.
    pub resource: Option<ResourceRef>,
    pub created_at: Timestamp,
    /// When a program last read it, to a quarter of an hour.
    pub last_read_at: Option<Timestamp>,
}

impl Feed {
    pub fn new(feed: &feed::Feed, names: &Names) -> Self {
        let (kind, resource) = match feed.shows {
            Shows::Mine | Shows::Site(_) => (None, None),
            Shows::Type(_, kind) => (Some(names.kind(kind)), None),
            Shows::Resource(_, resource) => (None, Some(names.resource(resource))),
        };
        Self {
            id: feed.id,
            label: feed.label.clone(),
            site: feed.shows.site().map(|site| names.site(site)),
            kind,
            resource,
            created_at: feed.created_at,
            last_read_at: feed.last_read_at,
        }
    }
}

/// A new feed: of one's own bookings, of a whole site, or of one type or resource in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFeed {
    /// Where it is read, so that its maker knows later which one to revoke.
    pub label: Text,
    /// Without it the feed shows one's own bookings in all sites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteReference>,
    /// Only what occupies resources of this type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<TypeReference>,
    /// Only what occupies this resource, or part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceReference>,
}

impl NewFeed {
    /// A type or a resource is one of a site, and a feed shows one or the other.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if self.site.is_none() && (self.kind.is_some() || self.resource.is_some()) {
            errors.push("site", "say which site the type or resource is in");
        }
        if self.kind.is_some() && self.resource.is_some() {
            errors.push("resource", "a feed shows a type or a resource, not both");
        }
        errors.or(Some(()))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CreatedFeed {
    pub feed: Feed,
    /// What to give to the calendar program: a full address where the server knows its own, else the path on its
    /// host. Shown this once; whoever has it can read the feed. Absent when an earlier request with the same key made
    /// the feed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub address: Option<Revealed>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_feed_shows_one_thing_and_a_type_needs_its_site() {
        let fields = |new: serde_json::Value| -> Vec<String> {
            let new: NewFeed = serde_json::from_value(new).unwrap();
            match new.check() {
                Ok(()) => Vec::new(),
                Err(errors) => errors.0.into_iter().map(|error| error.field).collect(),
            }
        };
        assert!(fields(json!({"label": "phone"})).is_empty());
        assert!(fields(json!({"label": "wall", "site": "torino", "type": "gpu"})).is_empty());
        assert_eq!(fields(json!({"label": "wall", "type": "gpu"})), ["site"]);
        let both = json!({"label": "wall", "site": "torino", "type": "gpu", "resource": "gpu-01"});
        assert_eq!(fields(both), ["resource"]);
    }
}
