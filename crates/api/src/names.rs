//! The names behind the ids of an answer, so that nobody ever has to look at a bare id.
//!
//! An answer is built from model values, which point at each other by id, and from a [`Names`], which
//! whoever answers has filled with one query. Names are plain text here: they were valid when they were
//! given, and an older client should be able to read what a newer server calls things.

use std::collections::HashMap;
use std::hash::Hash;

use berth_model::{LoginName, Name, Resource, ResourceType, Text, person, site};
use berth_model::{PersonId, ProjectId, ResourceId, SiteId, TypeId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PersonRef {
    pub id: PersonId,
    #[schema(value_type = LoginName)]
    pub login: String,
    #[schema(value_type = Text)]
    pub display_name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SiteRef {
    pub id: SiteId,
    #[schema(value_type = Name)]
    pub name: String,
    #[schema(value_type = Text)]
    pub title: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectRef {
    pub id: ProjectId,
    #[schema(value_type = Name)]
    pub name: String,
    #[schema(value_type = Text)]
    pub title: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TypeRef {
    pub id: TypeId,
    #[schema(value_type = Name)]
    pub name: String,
    #[schema(value_type = Text)]
    pub title: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceRef {
    pub id: ResourceId,
    #[schema(value_type = Name)]
    pub name: String,
    /// The name of its type.
    #[serde(rename = "type")]
    #[schema(value_type = Name)]
    pub type_name: String,
}

/// Every name that an answer needs. What is missing shows as its id: odd to read, but never wrong.
#[derive(Debug, Clone, Default)]
pub struct Names {
    people: HashMap<PersonId, PersonRef>,
    sites: HashMap<SiteId, SiteRef>,
    projects: HashMap<ProjectId, ProjectRef>,
    types: HashMap<TypeId, TypeRef>,
    resources: HashMap<ResourceId, ResourceRef>,
}

impl Names {
    pub fn add_person(&mut self, person: PersonRef) {
        self.people.insert(person.id, person);
    }

    pub fn add_site(&mut self, site: SiteRef) {
        self.sites.insert(site.id, site);
    }

    pub fn add_project(&mut self, project: ProjectRef) {
        self.projects.insert(project.id, project);
    }

    pub fn add_type(&mut self, kind: TypeRef) {
        self.types.insert(kind.id, kind);
    }

    pub fn add_resource(&mut self, resource: ResourceRef) {
        self.resources.insert(resource.id, resource);
    }

    pub fn person(&self, id: PersonId) -> PersonRef {
        find(&self.people, id, |id| PersonRef {
            id,
            login: id.to_string(),
            display_name: id.to_string(),
        })
    }

    pub fn site(&self, id: SiteId) -> SiteRef {
        find(&self.sites, id, |id| SiteRef {
            id,
            name: id.to_string(),
            title: id.to_string(),
        })
    }

    pub fn project(&self, id: ProjectId) -> ProjectRef {
        find(&self.projects, id, |id| ProjectRef {
            id,
            name: id.to_string(),
            title: id.to_string(),
        })
    }

    pub fn kind(&self, id: TypeId) -> TypeRef {
        find(&self.types, id, |id| TypeRef {
            id,
            name: id.to_string(),
            title: id.to_string(),
        })
    }

    pub fn resource(&self, id: ResourceId) -> ResourceRef {
        find(&self.resources, id, |id| ResourceRef {
            id,
            name: id.to_string(),
            type_name: "unknown".to_owned(),
        })
    }
}

fn find<I: Copy + Eq + Hash, R: Clone>(known: &HashMap<I, R>, id: I, unknown: fn(I) -> R) -> R {
    known.get(&id).cloned().unwrap_or_else(|| unknown(id))
}

impl From<&person::Person> for PersonRef {
    fn from(person: &person::Person) -> Self {
        Self {
            id: person.id,
            login: person.login.to_string(),
            display_name: person.display_name.to_string(),
        }
    }
}

impl From<&person::PersonName> for PersonRef {
    fn from(person: &person::PersonName) -> Self {
        Self {
            id: person.id,
            login: person.login.to_string(),
            display_name: person.display_name.to_string(),
        }
    }
}

impl From<&site::Site> for SiteRef {
    fn from(site: &site::Site) -> Self {
        Self {
            id: site.id,
            name: site.name.to_string(),
            title: site.title.to_string(),
        }
    }
}

impl From<&site::Project> for ProjectRef {
    fn from(project: &site::Project) -> Self {
        Self {
            id: project.id,
            name: project.name.to_string(),
            title: project.title.to_string(),
        }
    }
}

impl From<&ResourceType> for TypeRef {
    fn from(kind: &ResourceType) -> Self {
        Self {
            id: kind.id,
            name: kind.name.to_string(),
            title: kind.title.to_string(),
        }
    }
}

impl ResourceRef {
    pub fn new(resource: &Resource, kind: &ResourceType) -> Self {
        Self {
            id: resource.id,
            name: resource.name.to_string(),
            type_name: kind.name.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_nobody_gave_shows_as_the_id() {
        let mut names = Names::default();
        let id: PersonId = "per_01kc3v9xwbe8rv5w2n9q3m7t4h".parse().unwrap();
        assert_eq!(names.person(id).login, id.to_string());
        names.add_person(PersonRef {
            id,
            login: "ada".to_owned(),
            display_name: "Ada".to_owned(),
        });
        assert_eq!(names.person(id).login, "ada");
    }
}
