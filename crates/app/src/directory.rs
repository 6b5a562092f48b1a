//! The names for all ids in an answer, collected while it is built, so that no answer shows a bare id.

use std::collections::{BTreeSet, HashMap};

use berth_model::person::{Person, PersonName};
use berth_model::reservation::Reservation;
use berth_model::site::{Project, Site};
use berth_model::{PersonId, ProjectId, Resource, ResourceId, ResourceType, SiteId, TypeId};
use berth_store::{Conn, inventory, people, projects};

use crate::error::Result;

#[derive(Debug, Clone, Default)]
pub struct Directory {
    pub people: HashMap<PersonId, PersonName>,
    pub sites: HashMap<SiteId, Site>,
    pub projects: HashMap<ProjectId, Project>,
    pub types: HashMap<TypeId, ResourceType>,
    pub resources: HashMap<ResourceId, Resource>,
}

impl Directory {
    pub fn with_site(site: &Site) -> Self {
        let mut directory = Self::default();
        directory.add_site(site);
        directory
    }

    pub fn add_site(&mut self, site: &Site) {
        self.sites.insert(site.id, site.clone());
    }

    pub fn add_person(&mut self, person: &Person) {
        self.people.insert(person.id, person.into());
    }

    pub fn add_resource(&mut self, resource: &Resource) {
        self.resources.insert(resource.id, resource.clone());
    }

    pub fn add_type(&mut self, kind: &ResourceType) {
        self.types.insert(kind.id, kind.clone());
    }

    /// Adds everything from another directory.
    pub(crate) fn join(&mut self, other: Directory) {
        self.people.extend(other.people);
        self.sites.extend(other.sites);
        self.projects.extend(other.projects);
        self.types.extend(other.types);
        self.resources.extend(other.resources);
    }

    /// Looks up the people who are not in the directory yet.
    pub(crate) async fn learn_people(
        &mut self,
        conn: &mut Conn,
        ids: impl IntoIterator<Item = PersonId>,
    ) -> Result<()> {
        let missing: BTreeSet<PersonId> = ids
            .into_iter()
            .filter(|id| !self.people.contains_key(id))
            .collect();
        for person in people::named(conn, missing.into_iter().collect()).await? {
            self.people.insert(person.id, (&person).into());
        }
        Ok(())
    }

    pub(crate) async fn learn_resources(
        &mut self,
        conn: &mut Conn,
        ids: impl IntoIterator<Item = ResourceId>,
    ) -> Result<()> {
        let missing: BTreeSet<ResourceId> = ids
            .into_iter()
            .filter(|id| !self.resources.contains_key(id))
            .collect();
        for resource in inventory::named(conn, missing.into_iter().collect()).await? {
            self.resources.insert(resource.id, resource);
        }
        let missing: BTreeSet<TypeId> = self
            .resources
            .values()
            .map(|r| r.type_id)
            .filter(|id| !self.types.contains_key(id))
            .collect();
        for kind in inventory::types_named(conn, missing.into_iter().collect()).await? {
            self.types.insert(kind.id, kind);
        }
        Ok(())
    }

    pub(crate) async fn learn_projects(
        &mut self,
        conn: &mut Conn,
        ids: impl IntoIterator<Item = ProjectId>,
    ) -> Result<()> {
        let missing: BTreeSet<ProjectId> = ids
            .into_iter()
            .filter(|id| !self.projects.contains_key(id))
            .collect();
        for project in projects::named(conn, missing.into_iter().collect()).await? {
            self.projects.insert(project.id, project);
        }
        Ok(())
    }

    /// Adds everything that these reservations name, except sites.
    pub(crate) async fn learn_reservations(
        &mut self,
        conn: &mut Conn,
        reservations: &[Reservation],
    ) -> Result<()> {
        let owners: Vec<PersonId> = reservations.iter().map(|r| r.owner).collect();
        let projects: Vec<ProjectId> = reservations.iter().filter_map(|r| r.project).collect();
        let items = reservations.iter().flat_map(|r| &r.items);
        let waited_for = reservations.iter().flat_map(|r| r.terms.waits_for());
        let resources = items.map(|item| item.resource);
        let resources: Vec<ResourceId> = resources.chain(waited_for).collect();
        self.learn_people(conn, owners).await?;
        self.learn_projects(conn, projects).await?;
        self.learn_resources(conn, resources).await
    }
}
