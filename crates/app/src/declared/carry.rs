//! Applies a plan step by step in one transaction. Each step uses the same functions as a change by hand, so it leaves
//! the same audit entry and event.

use berth_engine::plan::Step;
use berth_model::declared::{DeclaredResource, ProjectSection, TypeSection};
use berth_model::inventory::Status;
use berth_model::policy::{Part, Policy};
use berth_model::site::{Project, Site};
use berth_model::{LoginName, Name, ProjectId, Resource, ResourceId, ResourceType, TypeId};
use berth_store::{Conn, Refused, inventory, people, sites};

use super::Compared;
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::{Error, Result};

/// The error for a name that the plan uses but that does not exist: a bug in the planner.
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

    fn kind(&self, name: &Name) -> Result<&ResourceType> {
        self.present.types.get(name).ok_or_else(|| lost(name))
    }

    fn project(&self, name: &Name) -> Result<&Project> {
        self.present.projects.get(name).ok_or_else(|| lost(name))
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
        let steps = compared.plan.steps.clone();
        let mut carrier = Carrier {
            app: self,
            conn,
            caller,
            compared,
        };
        for step in steps {
            carrier.carry_out(step).await?;
        }
        Ok(())
    }
}

/// Applies a plan to a site in one transaction, on behalf of one caller.
struct Carrier<'a> {
    app: &'a App,
    conn: &'a mut Conn,
    caller: &'a Caller,
    compared: &'a mut Compared,
}

impl Carrier<'_> {
    async fn carry_out(&mut self, step: Step) -> Result<()> {
        match step {
            Step::ChangeSite => self.declare_site().await,
            Step::AddType(name) => self.add_type(name).await,
            Step::ChangeType(name) => self.alter_type(name).await,
            Step::RemoveType(name) => self.drop_type(&name).await,
            Step::AddResource(name) => self.add_resource(name).await,
            Step::ChangeResource(name) => self.alter_resource(name).await,
            Step::PutAside(name) => self.hang(&name, None).await,
            Step::MoveResource(name) => self.hang_there(&name).await,
            Step::RemoveResource(name) => self.drop_resource(&name).await,
            Step::AddProject(name) => self.add_project(name).await,
            Step::ChangeProject(name) => self.alter_project(&name).await,
            Step::RemoveProject(name) => self.drop_project(&name).await,
            Step::SetPolicy(part) => {
                let wanted = self.compared.wanted.policies.as_ref();
                let policy = wanted.and_then(|all| all.get(&part)).cloned();
                self.declare_policy(part, policy).await
            }
            Step::RemovePolicy(part) => self.declare_policy(part, None).await,
        }
    }

    async fn declare_policy(&mut self, part: Part, policy: Option<Policy>) -> Result<()> {
        let site = &self.compared.place.site;
        self.app
            .declare_policy(self.conn, self.caller, site, part, policy)
            .await
    }

    async fn declare_site(&mut self) -> Result<()> {
        let Some(section) = self.compared.wanted.site.clone() else {
            return Ok(());
        };
        let before = &self.compared.place.site;
        let after = Site {
            title: section.title,
            time_zone: section.time_zone,
            outsiders_see: section.outsiders_see,
            accent: section.accent,
            version: before.version + 1,
            ..before.clone()
        };
        unchanged(
            self.app
                .write_site(self.conn, self.caller, before, &after)
                .await?,
        )
    }

    async fn add_type(&mut self, name: Name) -> Result<()> {
        let section = self.compared.wanted_type(&name)?.clone();
        let kind = ResourceType {
            id: TypeId(fresh(self.app.now())),
            site: self.compared.place.id(),
            name: name.clone(),
            title: section.title,
            colour: section.colour,
            form: section.form,
            needs_approval: section.needs_approval,
            version: 1,
        };
        self.app
            .write_new_type(self.conn, self.caller, &kind)
            .await?;
        self.compared.present.types.insert(name, kind);
        Ok(())
    }

    async fn alter_type(&mut self, name: Name) -> Result<()> {
        let section = self.compared.wanted_type(&name)?.clone();
        let before = self.compared.kind(&name)?;
        let after = ResourceType {
            title: section.title,
            colour: section.colour,
            form: section.form,
            needs_approval: section.needs_approval,
            version: before.version + 1,
            ..before.clone()
        };
        unchanged(
            self.app
                .write_type(self.conn, self.caller, before, &after)
                .await?,
        )
    }

    async fn drop_type(&mut self, name: &Name) -> Result<()> {
        let before = self.compared.kind(name)?;
        if !self
            .app
            .write_off_type(self.conn, self.caller, before)
            .await?
        {
            return Err(Error::InUse(format!(
                "the file does not name the type `{name}`, but there are still resources of it"
            )));
        }
        Ok(())
    }

    async fn add_resource(&mut self, name: Name) -> Result<()> {
        let now = self.app.now();
        let wanted = self.compared.wanted_resource(&name)?;
        let resource = Resource {
            id: ResourceId(fresh(now)),
            site: self.compared.place.id(),
            parent: self.compared.id_of(wanted.parent.as_ref())?,
            type_id: self.compared.kind(&wanted.kind)?.id,
            name: name.clone(),
            title: wanted.title.clone(),
            attributes: wanted.attributes.clone(),
            facts: wanted.facts.clone(),
            capacity: wanted.capacity.clone(),
            status: Status::Active,
            status_reason: None,
            version: 1,
        };
        self.app
            .write_new_resource(self.conn, self.caller, &resource)
            .await?;
        self.compared.present.resources.insert(name, resource);
        Ok(())
    }

    async fn alter_resource(&mut self, name: Name) -> Result<()> {
        let wanted = self.compared.wanted_resource(&name)?;
        let before = self.compared.resource(&name)?;
        let after = Resource {
            type_id: self.compared.kind(&wanted.kind)?.id,
            title: wanted.title.clone(),
            attributes: wanted.attributes.clone(),
            facts: wanted.facts.clone(),
            capacity: wanted.capacity.clone(),
            version: before.version + 1,
            ..before.clone()
        };
        let written = self
            .app
            .write_resource(self.conn, self.caller, before, &after)
            .await;
        let written = written.map_err(|error| match error {
            error if error.is_refused(Refused::Amount) => Error::Amount(format!(
                "more of `{name}` is promised than the file leaves of it; move or cancel those bookings first"
            )),
            error => error,
        });
        unchanged(written?)?;
        self.compared.present.resources.insert(name, after);
        Ok(())
    }

    async fn hang_there(&mut self, name: &Name) -> Result<()> {
        let to = self.compared.wanted_resource(name)?.parent.clone();
        let under = self.compared.id_of(to.as_ref())?;
        self.hang(name, under).await?;
        let now = self.compared.present.declared.resources.as_ref();
        let from = now
            .and_then(|all| all.get(name))
            .and_then(|it| it.parent.clone());
        let moved = self.compared.resource(name)?;
        let named = |parent: Option<Name>| -> Result<Option<(ResourceId, Name)>> {
            let id = self.compared.id_of(parent.as_ref())?;
            Ok(id.zip(parent))
        };
        self.app
            .tell_move(self.conn, self.caller, moved, named(from)?, named(to)?)
            .await
    }

    async fn drop_resource(&mut self, name: &Name) -> Result<()> {
        let before = self.compared.resource(name)?;
        if !self
            .app
            .write_off_resource(self.conn, self.caller, before)
            .await?
        {
            // A booking or a child was added since the plan was made. The retry shows it.
            return Err(Error::Store(berth_store::Error::Retry));
        }
        Ok(())
    }

    async fn add_project(&mut self, name: Name) -> Result<()> {
        let now = self.app.now();
        let section = self.compared.wanted_project(&name)?.clone();
        let project = Project {
            id: ProjectId(fresh(now)),
            site: self.compared.place.id(),
            name,
            title: section.title.clone(),
            version: 1,
            created_at: now,
        };
        self.app
            .write_new_project(self.conn, self.caller, &project)
            .await?;
        for login in &section.members {
            self.let_in(&project, login).await?;
        }
        Ok(())
    }

    async fn alter_project(&mut self, name: &Name) -> Result<()> {
        let section = self.compared.wanted_project(name)?.clone();
        let before = self.compared.project(name)?.clone();
        if before.title != section.title {
            let after = Project {
                title: section.title.clone(),
                version: before.version + 1,
                ..before.clone()
            };
            unchanged(
                self.app
                    .write_project(self.conn, self.caller, &before, &after)
                    .await?,
            )?;
        }
        let now = self.compared.present.declared.projects.as_ref();
        let members = now
            .and_then(|all| all.get(name))
            .map(|it| it.members.clone());
        let members = members.unwrap_or_default();
        for login in section.members.difference(&members) {
            self.let_in(&before, login).await?;
        }
        for login in members.difference(&section.members) {
            self.put_out(&before, login).await?;
        }
        Ok(())
    }

    async fn let_in(&mut self, project: &Project, login: &LoginName) -> Result<()> {
        let person = people::by_login(self.conn, login)
            .await?
            .ok_or(Error::SiteChanged)?;
        if sites::role_locked(self.conn, project.site, person.id)
            .await?
            .is_none()
        {
            return Err(Error::SiteChanged);
        }
        self.app
            .write_joined(self.conn, self.caller, project, person.id)
            .await
    }

    async fn put_out(&mut self, project: &Project, login: &LoginName) -> Result<()> {
        let person = people::by_login(self.conn, login)
            .await?
            .ok_or(Error::SiteChanged)?;
        unchanged(
            self.app
                .write_left(self.conn, self.caller, project, person.id)
                .await?,
        )
    }

    async fn drop_project(&mut self, name: &Name) -> Result<()> {
        let before = self.compared.project(name)?;
        self.app
            .write_off_project(self.conn, self.caller, before)
            .await
    }

    /// Moves a resource below another, and counts the new version that the move creates.
    async fn hang(&mut self, name: &Name, under: Option<ResourceId>) -> Result<()> {
        let resources = &mut self.compared.present.resources;
        let it = resources.get_mut(name).ok_or_else(|| lost(name))?;
        if it.parent != under {
            inventory::move_subtree(self.conn, it.site, it.id, under).await?;
            it.parent = under;
            it.version += 1;
        }
        Ok(())
    }
}

/// Fails if nothing was written, because another change to the site came first.
fn unchanged(written: bool) -> Result<()> {
    written.then_some(()).ok_or(Error::SiteChanged)
}
