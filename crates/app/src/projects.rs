//! Projects: groups of members that book together.

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::person::Person;
use berth_model::reference::{PersonReference, ProjectReference, SiteReference};
use berth_model::site::Project;
use berth_model::{Name, ProjectId, Reference, SiteId, Text};
use berth_store::{Conn, projects, sites};
use jiff::Timestamp;

use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::policies::Renamed;
use crate::record::Change;
use crate::transact::transact;
use crate::version;

#[derive(Debug, Clone)]
pub struct NewProject {
    pub name: Name,
    pub title: Text,
}

#[derive(Debug, Clone, Default)]
pub struct ProjectChange {
    pub name: Option<Name>,
    pub title: Option<Text>,
}

impl App {
    pub(crate) async fn project(
        &self,
        conn: &mut Conn,
        site: SiteId,
        project: &ProjectReference,
    ) -> Result<Project> {
        let found = match project {
            Reference::Id(id) => projects::by_id(conn, site, *id).await?,
            Reference::Name(name) => projects::by_name(conn, site, name).await?,
        };
        found.ok_or(Error::NotFound("project"))
    }

    pub async fn create_project(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: NewProject,
    ) -> Result<Made<(Place, Project)>> {
        let now = self.now();
        let id = ProjectId(fresh(now));
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::ManageProjects).await?;
            if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                let project = self.project(&mut tx, place.id(), &Reference::Id(earlier)).await?;
                return Ok(Made::before((place, project)));
            }
            let project = Project {
                id,
                site: place.id(),
                name: new.name.clone(),
                title: new.title.clone(),
                version: 1,
                created_at: now,
            };
            projects::insert(&mut tx, &project).await?;
            let change = Change::new("project.create", Some(place.id()), id).after(&project);
            self.record(&mut tx, caller, change.tell(EventKind::ProjectCreated, Audience::Members)).await?;
            Ok(Made::now((place, project)))
        })
        .map_err(|error: Error| error.taken(&new.name))
    }

    pub async fn get_project(
        &self,
        caller: &Caller,
        site: &SiteReference,
        project: &ProjectReference,
    ) -> Result<(Place, Project)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeProjects)
            .await?;
        let project = self.project(&mut reader, place.id(), project).await?;
        Ok((place, project))
    }

    pub async fn list_projects(
        &self,
        caller: &Caller,
        site: &SiteReference,
        after: &str,
        limit: u64,
    ) -> Result<(Place, Vec<Project>)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeProjects)
            .await?;
        let projects = projects::list(&mut reader, place.id(), after, limit).await?;
        Ok((place, projects))
    }

    pub async fn update_project(
        &self,
        caller: &Caller,
        site: &SiteReference,
        project: &ProjectReference,
        version: Option<u64>,
        change: ProjectChange,
    ) -> Result<(Place, Project)> {
        let wanted = change.name.clone();
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::ManageProjects).await?;
            let before = self.project(&mut tx, place.id(), project).await?;
            version::expect(version, before.version)?;
            let after = Project {
                name: change.name.clone().unwrap_or(before.name.clone()),
                title: change.title.clone().unwrap_or(before.title.clone()),
                version: before.version + 1,
                ..before.clone()
            };
            if !projects::update(&mut tx, &after, before.version).await? {
                return Err(version::overtaken(before.version));
            }
            if after.name != before.name {
                let renamed = Renamed::Project { from: before.name.clone(), to: Some(after.name.clone()) };
                self.policies_follow(&mut tx, caller, place.id(), &renamed).await?;
            }
            let record = Change::new("project.change", Some(place.id()), after.id).before(&before).after(&after);
            self.record(&mut tx, caller, record.tell(EventKind::ProjectChanged, Audience::Members)).await?;
            Ok((place, after))
        })
        .map_err(|error: Error| error.taken(wanted.map(String::from).unwrap_or_default()))
    }

    /// Removes a project. Its reservations stay, and still say that they were its.
    pub async fn remove_project(
        &self,
        caller: &Caller,
        site: &SiteReference,
        project: &ProjectReference,
    ) -> Result<()> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::ManageProjects).await?;
            let before = self.project(&mut tx, place.id(), project).await?;
            projects::remove(&mut tx, before.id, self.now()).await?;
            let gone = Renamed::Project { from: before.name.clone(), to: None };
            self.policies_follow(&mut tx, caller, place.id(), &gone).await?;
            let record = Change::new("project.remove", Some(place.id()), before.id).before(&before);
            self.record(&mut tx, caller, record.tell(EventKind::ProjectRemoved, Audience::Members)).await
        })
    }

    /// Who is in the project by login, and since when.
    pub async fn project_members(
        &self,
        caller: &Caller,
        site: &SiteReference,
        project: &ProjectReference,
        after: &str,
        limit: u64,
    ) -> Result<Vec<(Person, Timestamp)>> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeProjects)
            .await?;
        let project = self.project(&mut reader, place.id(), project).await?;
        Ok(projects::members(&mut reader, project.id, after, limit).await?)
    }

    pub async fn add_project_member(
        &self,
        caller: &Caller,
        site: &SiteReference,
        project: &ProjectReference,
        person: &PersonReference,
    ) -> Result<(Person, Timestamp)> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::ManageProjects).await?;
            let project = self.project(&mut tx, place.id(), project).await?;
            let person = self.person(&mut tx, person).await?;
            if sites::role_locked(&mut tx, place.id(), person.id).await?.is_none() {
                return Err(Error::NotFound("member of this site"));
            }
            if projects::add_member(&mut tx, project.id, person.id, self.now()).await? {
                let record = Change::new("project.add_member", Some(place.id()), project.id).after(person.id);
                self.record(&mut tx, caller, record.tell(EventKind::ProjectChanged, Audience::Members)).await?;
            }
            let since = projects::member_since(&mut tx, project.id, person.id).await?;
            Ok((person, since.ok_or(Error::NotFound("member of this project"))?))
        })
    }

    pub async fn remove_project_member(
        &self,
        caller: &Caller,
        site: &SiteReference,
        project: &ProjectReference,
        person: &PersonReference,
    ) -> Result<()> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::ManageProjects).await?;
            let project = self.project(&mut tx, place.id(), project).await?;
            let person = self.person(&mut tx, person).await?;
            if !projects::remove_member(&mut tx, project.id, person.id).await? {
                return Err(Error::NotFound("member of this project"));
            }
            let record = Change::new("project.remove_member", Some(place.id()), project.id).before(person.id);
            self.record(&mut tx, caller, record.tell(EventKind::ProjectChanged, Audience::Members)).await
        })
    }
}
