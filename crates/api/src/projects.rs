//! Projects: groups of members inside a site.

use berth_model::site;
use berth_model::{Name, ProjectId, Text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::names::{Names, PersonRef, SiteRef};
use crate::patch::present;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Project {
    pub id: ProjectId,
    pub site: SiteRef,
    pub name: Name,
    pub title: Text,
    pub version: u64,
    pub created_at: Timestamp,
}

impl Project {
    pub fn new(project: site::Project, names: &Names) -> Self {
        Self {
            id: project.id,
            site: names.site(project.site),
            name: project.name,
            title: project.title,
            version: project.version,
            created_at: project.created_at,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    pub name: Name,
    pub title: Text,
}

/// Absent fields stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectPatch {
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
    #[schema(nullable = false)]
    pub title: Option<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectMember {
    pub person: PersonRef,
    pub since: Timestamp,
}
