//! Projects: groups of members that book together.

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::person::Person;
use berth_model::reference::{PersonReference, ProjectReference, SiteReference};
use berth_model::site::Project;
use berth_model::{Name, PersonId, ProjectId, Reference, SiteId, Text};
use berth_store::{Conn, projects};
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
            self.write_new_project(&mut tx, caller, &project).await?;
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
            if !self.write_project(&mut tx, caller, &before, &after).await? {
                return Err(version::overtaken(before.version));
            }
            Ok((place, after))
        })
        .map_err(|error: Error| error.taken(wanted.map(String::from).unwrap_or_default()))
    }

    /// Removes a project. Its reservations stay, and still name it.
    pub async fn remove_project(
        &self,
        caller: &Caller,
        site: &SiteReference,
        project: &ProjectReference,
    ) -> Result<()> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::ManageProjects).await?;
            let before = self.project(&mut tx, place.id(), project).await?;
            caller.expects(before.version)?;
            self.write_off_project(&mut tx, caller, &before).await
        })
    }

    /// The members of the project by login, and since when.
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
            let what = "member of this site";
            let person = self.member_named(&mut tx, place.id(), person, what).await?;
            self.write_joined(&mut tx, caller, &project, person.id).await?;
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
            let person = self.narrowed_to(&mut tx, person).await?;
            if !self.write_left(&mut tx, caller, &project, person).await? {
                return Err(Error::NotFound("member of this project"));
            }
            Ok(())
        })
    }
}

/// Writes changes with their audit entries and events, for changes by hand and for changes declared by a file.
impl App {
    pub(crate) async fn write_new_project(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        new: &Project,
    ) -> Result<()> {
        projects::insert(conn, new).await?;
        let change = Change::new("project.create", Some(new.site), new.id).after(new);
        let change = change.tell(EventKind::ProjectCreated, Audience::Members);
        self.record(conn, caller, change).await
    }

    /// Returns `false` and writes nothing if another change came first.
    pub(crate) async fn write_project(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        before: &Project,
        after: &Project,
    ) -> Result<bool> {
        if !projects::update(conn, after, before.version).await? {
            return Ok(false);
        }
        if after.name != before.name {
            let renamed = Renamed::Project {
                from: before.name.clone(),
                to: Some(after.name.clone()),
            };
            self.policies_follow(conn, caller, after.site, &renamed)
                .await?;
        }
        let change = Change::new("project.change", Some(after.site), after.id);
        let change = change.before(before).after(after);
        let change = change.tell(EventKind::ProjectChanged, Audience::Members);
        self.record(conn, caller, change).await?;
        Ok(true)
    }

    pub(crate) async fn write_off_project(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        gone: &Project,
    ) -> Result<()> {
        projects::remove(conn, gone.id, self.now()).await?;
        let renamed = Renamed::Project {
            from: gone.name.clone(),
            to: None,
        };
        self.policies_follow(conn, caller, gone.site, &renamed)
            .await?;
        let change = Change::new("project.remove", Some(gone.site), gone.id).before(gone);
        let change = change.tell(EventKind::ProjectRemoved, Audience::Members);
        self.record(conn, caller, change).await
    }

    /// Writes nothing and sends no event if the person is already a member.
    pub(crate) async fn write_joined(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        project: &Project,
        person: PersonId,
    ) -> Result<()> {
        if !projects::add_member(conn, project.id, person, self.now()).await? {
            return Ok(());
        }
        let change = Change::new("project.add_member", Some(project.site), project.id);
        let change = change.after(person);
        let change = change.tell(EventKind::ProjectChanged, Audience::Members);
        self.record(conn, caller, change).await
    }

    /// Returns `false` if the person was not a member.
    pub(crate) async fn write_left(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        project: &Project,
        person: PersonId,
    ) -> Result<bool> {
        if !projects::remove_member(conn, project.id, person).await? {
            return Ok(false);
        }
        let change = Change::new("project.remove_member", Some(project.site), project.id);
        let change = change.before(person);
        let change = change.tell(EventKind::ProjectChanged, Audience::Members);
        self.record(conn, caller, change).await?;
        Ok(true)
    }
}
