//! Resources: one thing each in a site's tree.

use berth_model::attribute::Attributes;
use berth_model::inventory::{self, Capacity, Facts};
use berth_model::{Name, ResourceId, Status, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::attributes::{AttributeSet, Where};
use crate::calendar::Conflict;
use crate::list::List;
use crate::names::{Names, PersonRef, ResourceRef, SiteRef, TypeRef};
use crate::page::{Cursor, Limit};
use crate::patch::present;
use crate::reference::{ResourceReference, TypeReference};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    pub id: ResourceId,
    pub site: SiteRef,
    pub name: Name,
    pub title: Option<Text>,
    #[serde(rename = "type")]
    pub kind: TypeRef,
    /// What it is part of; null at the top of the tree.
    pub parent: Option<ResourceRef>,
    #[schema(value_type = AttributeSet)]
    pub attributes: Attributes,
    pub facts: Facts,
    /// How much there is to share; null for a resource that is taken whole.
    pub capacity: Option<Capacity>,
    /// Its own status, as set on it.
    pub status: Status,
    pub status_reason: Option<Text>,
    /// What counts: the worst of its own status and those above it.
    pub effective_status: Status,
    /// The resource above whose status counts, where that is worse than its own.
    pub status_from: Option<ResourceRef>,
    pub version: u64,
}

/// The worst status above a resource, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inherited {
    pub status: Status,
    pub from: ResourceId,
}

/// Who reads the facts: the provisioning address is for admins only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactsFor {
    Admins,
    Everyone,
}

impl Resource {
    pub fn new(
        resource: inventory::Resource,
        inherited: Option<Inherited>,
        reader: FactsFor,
        names: &Names,
    ) -> Self {
        let worse = inherited.filter(|above| above.status > resource.status);
        let facts = match reader {
            FactsFor::Admins => resource.facts,
            FactsFor::Everyone => Facts {
                provisioning_address: None,
                ..resource.facts
            },
        };
        Self {
            id: resource.id,
            site: names.site(resource.site),
            name: resource.name,
            title: resource.title,
            kind: names.kind(resource.type_id),
            parent: resource.parent.map(|parent| names.resource(parent)),
            attributes: resource.attributes,
            facts,
            capacity: resource.capacity,
            status: resource.status,
            status_reason: resource.status_reason,
            effective_status: worse.map_or(resource.status, |above| above.status),
            status_from: worse.map(|above| names.resource(above.from)),
            version: resource.version,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewResource {
    pub name: Name,
    #[serde(rename = "type")]
    pub kind: TypeReference,
    /// At the top of the tree, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ResourceReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Text>,
    #[serde(default)]
    pub attributes: AttributeSet,
    #[serde(default)]
    pub facts: Facts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
}

/// Absent fields stay as they are; `attributes` and `facts` replace all those before them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourcePatch {
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub name: Option<Name>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<Text>)]
    pub title: Option<Option<Text>>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub attributes: Option<AttributeSet>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub facts: Option<Facts>,
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<Capacity>)]
    pub capacity: Option<Option<Capacity>>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ResourceQuery {
    /// Only resources of this type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub kind: Option<TypeReference>,
    /// Only resources whose attributes meet every one of these; repeat it for several.
    #[serde(default, rename = "where")]
    #[param(inline, value_type = Vec<Where>, max_items = 20, required = false)]
    pub requirements: List<Where, 0, 20>,
    /// Only resources whose effective status is this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub status: Option<Status>,
    /// Only this resource and what is below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub under: Option<ResourceReference>,
    #[serde(default)]
    #[param(inline, required = false)]
    pub limit: Limit,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub cursor: Option<Cursor>,
}

/// Where a resource, with all that is below it, goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveResource {
    /// The new parent, or null for the top of the tree. It must be said: an empty body moves nothing.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required = true)]
    pub parent: Option<ResourceReference>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MoveOutcome {
    /// Whether it stands in its new place; false for a dry run.
    pub moved: bool,
    /// The bookings that would collide; empty if the move is possible.
    pub conflicts: Vec<Conflict>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusPatch {
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
}

/// One line of a resource's status history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusChange {
    pub status: Status,
    pub reason: Option<Text>,
    pub at: Timestamp,
    /// Null where Berth itself did it.
    pub by: Option<PersonRef>,
}

impl StatusChange {
    pub fn new(change: inventory::StatusChange, names: &Names) -> Self {
        Self {
            status: change.status,
            reason: change.reason,
            at: change.at,
            by: change.by.map(|by| names.person(by)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{SiteId, TypeId};
    use serde_json::json;

    fn id<I: std::str::FromStr<Err: std::fmt::Debug>>(prefix: &str) -> I {
        format!("{prefix}_01kc3v9xwbe8rv5w2n9q3m7t4h")
            .parse()
            .unwrap()
    }

    fn gpu(status: Status) -> inventory::Resource {
        inventory::Resource {
            id: id::<ResourceId>("res"),
            site: id::<SiteId>("sit"),
            parent: Some(id("res")),
            type_id: id::<TypeId>("typ"),
            name: "gpu-01".parse().unwrap(),
            title: None,
            attributes: Attributes::new(),
            facts: Facts {
                provisioning_address: Some("10.0.0.7".parse().unwrap()),
                ..Facts::default()
            },
            capacity: None,
            status,
            status_reason: None,
            version: 3,
        }
    }

    #[test]
    fn the_worst_status_above_counts_and_is_named() {
        let above = |status| {
            Some(Inherited {
                status,
                from: id("res"),
            })
        };
        let shown = |own, inherited| {
            let shown = Resource::new(gpu(own), inherited, FactsFor::Everyone, &Names::default());
            (shown.effective_status, shown.status_from.is_some())
        };
        use Status::{Active, Maintenance, Unavailable};
        assert_eq!(shown(Active, None), (Active, false));
        assert_eq!(shown(Active, above(Maintenance)), (Maintenance, true));
        assert_eq!(shown(Unavailable, above(Maintenance)), (Unavailable, false));
    }

    #[test]
    fn the_provisioning_address_is_for_admins() {
        let facts = |reader| {
            let shown = Resource::new(gpu(Status::Active), None, reader, &Names::default());
            serde_json::to_value(shown).unwrap()["facts"].clone()
        };
        assert_eq!(facts(FactsFor::Everyone), json!({}));
        assert_eq!(
            facts(FactsFor::Admins),
            json!({"provisioning_address": "10.0.0.7"})
        );
    }

    #[test]
    fn a_move_must_say_where_to() {
        let read = serde_json::from_value::<MoveResource>;
        assert_eq!(read(json!({"parent": null})).unwrap().parent, None);
        assert!(read(json!({"parent": "rack-1"})).unwrap().parent.is_some());
        assert!(read(json!({})).is_err());
    }

    #[test]
    fn a_query_repeats_its_requirements() {
        let text = "type=gpu&where=gpus%3E%3D4&where=gpu_model%3DA100&status=ACTIVE&limit=100";
        let query: ResourceQuery = crate::parse::query(text).unwrap();
        assert_eq!(query.requirements.as_slice().len(), 2);
        assert_eq!(crate::parse::write_query(&query).unwrap(), text);
    }
}
