//! Carrying out a plan, step by step, in one transaction. Every step is written as if it had been done by hand, by the
//! same functions, so that it leaves the same audit entry and event.

use berth_engine::plan::Step;
use berth_model::declared::{DeclaredResource, ProjectSection, SiteSection, TypeSection};
use berth_model::inventory::Status;
use berth_model::site::{Project, Site};
use berth_model::{LoginName, Name, ProjectId, Resource, ResourceId, ResourceType, TypeId};
use berth_store::{Conn, Refused, inventory, people, sites};

use super::Compared;
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::{Error, Result};

/// The plan names only what it knows; a name that is missing here is a mistake of ours.
fn lost(name: &Name) -> Error {
    Error::Internal(format!("the plan speaks of `{name}`, which is not there"))
}

impl Compared {
    fn wanted_type(&self, name: &Name) -> Result<&TypeSection> {
        let types = self.wanted.types.as_ref();
        types
            .and_then(|types| types.get(name))
            .ok_or_else(|| lost(name))
    }

    fn wanted_resource(&self, name: &Name) -> Result<&DeclaredResource> {
        let resources = self.wanted.resources.as_ref();
        resources
            .and_then(|all| all.get(name))
            .ok_or_else(|| lost(name))
    }

    fn wanted_project(&self, name: &Name) -> Result<&ProjectSection> {
        let projects = self.wanted.projects.as_ref();
        projects
            .and_then(|all| all.get(name))
            .ok_or_else(|| lost(name))
    }

    fn resource(&self, name: &Name) -> Result<&Resource> {
        self.present.resources.get(name).ok_or_else(|| lost(name))
    }

    fn type_id(&self, name: &Name) -> Result<TypeId> {
        let kind = self.present.types.get(name);
        kind.map(|kind| kind.id).ok_or_else(|| lost(name))
    }

    fn id_of(&self, parent: Option<&Name>) -> Result<Option<ResourceId>> {
        parent
            .map(|parent| self.resource(parent).map(|it| it.id))
            .transpose()
    }
}

impl App {
    pub(super) async fn carry_out_plan(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &mut Compared,
    ) -> Result<()> {
        for step in compared.plan.steps.clone() {
            match step {
                Step::ChangeSite => {
                    if let Some(section) = compared.wanted.site.clone() {
                        self.declare_site(conn, caller, &compared.place.site, section)
                            .await?;
                    }
                }
                Step::AddType(name) => self.add_type(conn, caller, compared, name).await?,
                Step::ChangeType(name) => self.alter_type(conn, caller, compared, name).await?,
                Step::RemoveType(name) => self.drop_type(conn, caller, compared, &name).await?,
                Step::AddResource(name) => self.add_resource(conn, caller, compared, name).await?,
                Step::ChangeResource(name) => {
                    self.alter_resource(conn, caller, compared, name).await?;
                }
                Step::PutAside(name) => hang(conn, compared, &name, None).await?,
                Step::MoveResource(name) => self.hang_there(conn, caller, compared, &name).await?,
                Step::RemoveResource(name) => {
                    self.drop_resource(conn, caller, compared, &name).await?;
                }
                Step::AddProject(name) => self.add_project(conn, caller, compared, name).await?,
                Step::ChangeProject(name) => {
                    self.alter_project(conn, caller, compared, &name).await?;
                }
                Step::RemoveProject(name) => {
                    self.drop_project(conn, caller, compared, &name).await?;
                }
            }
        }
        Ok(())
    }

    async fn declare_site(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        before: &Site,
        section: SiteSection,
    ) -> Result<()> {
        let after = Site {
            title: section.title,
            time_zone: section.time_zone,
            outsiders_see: section.outsiders_see,
            accent: section.accent,
            version: before.version + 1,
            ..before.clone()
        };
        unchanged(self.write_site(conn, caller, before, &after).await?)
    }

    async fn add_type(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &mut Compared,
        name: Name,
    ) -> Result<()> {
        let section = compared.wanted_type(&name)?.clone();
        let kind = ResourceType {
            id: TypeId(fresh(self.now())),
            site: compared.place.id(),
            name: name.clone(),
            title: section.title,
            colour: section.colour,
            form: section.form,
            needs_approval: section.needs_approval,
            version: 1,
        };
        self.write_new_type(conn, caller, &kind).await?;
        compared.present.types.insert(name, kind);
        Ok(())
    }

    async fn alter_type(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &mut Compared,
        name: Name,
    ) -> Result<()> {
        let section = compared.wanted_type(&name)?.clone();
        let before = compared
            .present
            .types
            .get(&name)
            .ok_or_else(|| lost(&name))?;
        let after = ResourceType {
            title: section.title,
            colour: section.colour,
            form: section.form,
            needs_approval: section.needs_approval,
            version: before.version + 1,
            ..before.clone()
        };
        unchanged(self.write_type(conn, caller, before, &after).await?)
    }

    async fn drop_type(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &Compared,
        name: &Name,
    ) -> Result<()> {
        let before = compared.present.types.get(name).ok_or_else(|| lost(name))?;
        if !self.write_off_type(conn, caller, before).await? {
            return Err(Error::InUse(format!(
                "the file does not name the type `{name}`, but there are still resources of it"
            )));
        }
        Ok(())
    }

    async fn add_resource(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &mut Compared,
        name: Name,
    ) -> Result<()> {
        let now = self.now();
        let wanted = compared.wanted_resource(&name)?;
        let resource = Resource {
            id: ResourceId(fresh(now)),
            site: compared.place.id(),
            parent: compared.id_of(wanted.parent.as_ref())?,
            type_id: compared.type_id(&wanted.kind)?,
            name: name.clone(),
            title: wanted.title.clone(),
            attributes: wanted.attributes.clone(),
            facts: wanted.facts.clone(),
            capacity: wanted.capacity.clone(),
            status: Status::Active,
            status_reason: None,
            version: 1,
        };
        self.write_new_resource(conn, caller, &resource).await?;
        compared.present.resources.insert(name, resource);
        Ok(())
    }

    async fn alter_resource(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &mut Compared,
        name: Name,
    ) -> Result<()> {
        let wanted = compared.wanted_resource(&name)?;
        let before = compared.resource(&name)?;
        let after = Resource {
            type_id: compared.type_id(&wanted.kind)?,
            title: wanted.title.clone(),
            attributes: wanted.attributes.clone(),
            facts: wanted.facts.clone(),
            capacity: wanted.capacity.clone(),
            version: before.version + 1,
            ..before.clone()
        };
        let written = self.write_resource(conn, caller, before, &after).await;
        let written = written.map_err(|error| match error {
            error if error.is_refused(Refused::Amount) => Error::Amount(format!(
                "more of `{name}` is promised than the file leaves of it; move or cancel those bookings first"
            )),
            error => error,
        });
        unchanged(written?)?;
        compared.present.resources.insert(name, after);
        Ok(())
    }

    async fn hang_there(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &mut Compared,
        name: &Name,
    ) -> Result<()> {
        let to = compared.wanted_resource(name)?.parent.clone();
        let under = compared.id_of(to.as_ref())?;
        hang(conn, compared, name, under).await?;
        let now = compared.present.declared.resources.as_ref();
        let from = now
            .and_then(|all| all.get(name))
            .and_then(|it| it.parent.clone());
        let moved = compared.resource(name)?;
        let named = |parent: Option<Name>| -> Result<Option<(ResourceId, Name)>> {
            let id = compared.id_of(parent.as_ref())?;
            Ok(id.zip(parent))
        };
        self.tell_move(conn, caller, moved, named(from)?, named(to)?)
            .await
    }

    async fn drop_resource(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &Compared,
        name: &Name,
    ) -> Result<()> {
        let before = compared.resource(name)?;
        if !self.write_off_resource(conn, caller, before).await? {
            // A booking or a child came since we looked; the next look shows it.
            return Err(Error::Store(berth_store::Error::Retry));
        }
        Ok(())
    }

    async fn add_project(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &Compared,
        name: Name,
    ) -> Result<()> {
        let now = self.now();
        let section = compared.wanted_project(&name)?;
        let project = Project {
            id: ProjectId(fresh(now)),
            site: compared.place.id(),
            name,
            title: section.title.clone(),
            version: 1,
            created_at: now,
        };
        self.write_new_project(conn, caller, &project).await?;
        for login in &section.members {
            self.let_in(conn, caller, &project, login).await?;
        }
        Ok(())
    }

    async fn alter_project(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &Compared,
        name: &Name,
    ) -> Result<()> {
        let section = compared.wanted_project(name)?;
        let before = compared
            .present
            .projects
            .get(name)
            .ok_or_else(|| lost(name))?;
        if before.title != section.title {
            let after = Project {
                title: section.title.clone(),
                version: before.version + 1,
                ..before.clone()
            };
            unchanged(self.write_project(conn, caller, before, &after).await?)?;
        }
        let now = compared.present.declared.projects.as_ref();
        let members = now
            .and_then(|all| all.get(name))
            .map(|it| it.members.clone());
        let members = members.unwrap_or_default();
        for login in section.members.difference(&members) {
            self.let_in(conn, caller, before, login).await?;
        }
        for login in members.difference(&section.members) {
            self.put_out(conn, caller, before, login).await?;
        }
        Ok(())
    }

    async fn let_in(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        project: &Project,
        login: &LoginName,
    ) -> Result<()> {
        let person = people::by_login(conn, login)
            .await?
            .ok_or(Error::SiteChanged)?;
        if sites::role_locked(conn, project.site, person.id)
            .await?
            .is_none()
        {
            return Err(Error::SiteChanged);
        }
        self.write_joined(conn, caller, project, person.id).await
    }

    async fn put_out(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        project: &Project,
        login: &LoginName,
    ) -> Result<()> {
        let person = people::by_login(conn, login)
            .await?
            .ok_or(Error::SiteChanged)?;
        unchanged(self.write_left(conn, caller, project, person.id).await?)
    }

    async fn drop_project(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &Compared,
        name: &Name,
    ) -> Result<()> {
        let before = compared
            .present
            .projects
            .get(name)
            .ok_or_else(|| lost(name))?;
        self.write_off_project(conn, caller, before).await
    }
}

/// What was written, or else somebody changed the site since it was looked at.
fn unchanged(written: bool) -> Result<()> {
    written.then_some(()).ok_or(Error::SiteChanged)
}

/// Hangs a resource below another, and notes that this made a new version of it.
async fn hang(
    conn: &mut Conn,
    compared: &mut Compared,
    name: &Name,
    under: Option<ResourceId>,
) -> Result<()> {
    let it = compared
        .present
        .resources
        .get_mut(name)
        .ok_or_else(|| lost(name))?;
    if it.parent != under {
        inventory::move_subtree(conn, it.site, it.id, under).await?;
        it.parent = under;
        it.version += 1;
    }
    Ok(())
}
