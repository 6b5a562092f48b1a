//! Carrying out a plan, step by step, in one transaction. Every step leaves the same audit entry and event as if it
//! had been done by hand.

use berth_engine::plan::Step;
use berth_model::declared::{DeclaredResource, ProjectSection, SiteSection, TypeSection};
use berth_model::event::{Audience, EventKind};
use berth_model::inventory::Status;
use berth_model::site::{Project, Site};
use berth_model::{LoginName, Name, ProjectId, Resource, ResourceId, ResourceType, TypeId};
use berth_store::{Conn, Refused, closures, inventory, people, projects, sites};
use serde_json::json;

use super::Compared;
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::inventory::told;
use crate::policies::Renamed;
use crate::record::Change;

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
                Step::SetPolicy(part) => {
                    let wanted = compared.wanted.policies.as_ref();
                    let policy = wanted.and_then(|all| all.get(&part)).cloned();
                    self.declare_policy(conn, caller, &compared.place.site, part, policy)
                        .await?;
                }
                Step::RemovePolicy(part) => {
                    self.declare_policy(conn, caller, &compared.place.site, part, None)
                        .await?;
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
            version: before.version + 1,
            ..before.clone()
        };
        if !sites::update(conn, &after, before.version).await? {
            return Err(Error::SiteChanged);
        }
        if after.time_zone != before.time_zone {
            // Their days are other ones now.
            closures::all_due(conn, after.id, self.now()).await?;
        }
        let record = Change::new("site.change", Some(after.id), after.id)
            .before(before)
            .after(&after);
        self.record(
            conn,
            caller,
            record.tell(EventKind::SiteChanged, Audience::Members),
        )
        .await
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
        inventory::insert_type(conn, &kind).await?;
        let record = Change::new("type.create", Some(kind.site), kind.id).after(&kind);
        compared.present.types.insert(name, kind);
        self.record(
            conn,
            caller,
            record.tell(EventKind::TypeCreated, Audience::Members),
        )
        .await
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
        if !inventory::update_type(conn, &after, before.version).await? {
            return Err(Error::SiteChanged);
        }
        let record = Change::new("type.change", Some(after.site), after.id)
            .before(before)
            .after(&after);
        self.record(
            conn,
            caller,
            record.tell(EventKind::TypeChanged, Audience::Members),
        )
        .await
    }

    async fn drop_type(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &Compared,
        name: &Name,
    ) -> Result<()> {
        let before = compared.present.types.get(name).ok_or_else(|| lost(name))?;
        if !inventory::remove_type(conn, before.id, self.now()).await? {
            return Err(Error::InUse(format!(
                "the file does not name the type `{name}`, but there are still resources of it"
            )));
        }
        let gone = Renamed::Type {
            from: name.clone(),
            to: None,
        };
        self.policies_follow(conn, caller, before.site, &gone)
            .await?;
        let record = Change::new("type.remove", Some(before.site), before.id).before(before);
        self.record(
            conn,
            caller,
            record.tell(EventKind::TypeRemoved, Audience::Members),
        )
        .await
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
        inventory::insert(conn, &resource, now).await?;
        let record = Change::new("resource.create", Some(resource.site), resource.id)
            .after(&resource)
            .tell_only(
                EventKind::ResourceCreated,
                Audience::Members,
                told(&resource),
            );
        compared.present.resources.insert(name, resource);
        self.record(conn, caller, record).await
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
        let updated = inventory::update(conn, &after, before.version).await;
        let updated = updated.map_err(|error| match Error::from(error) {
            error if error.is_refused(Refused::Amount) => Error::Amount(format!(
                "more of `{name}` is promised than the file leaves of it; move or cancel those bookings first"
            )),
            error => error,
        });
        if !updated? {
            return Err(Error::SiteChanged);
        }
        let record = Change::new("resource.change", Some(after.site), after.id)
            .before(before)
            .after(&after)
            .tell_only(EventKind::ResourceChanged, Audience::Members, told(&after));
        compared.present.resources.insert(name, after);
        self.record(conn, caller, record).await
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
        let told = json!({ "resource": moved.id, "name": name, "from": from, "to": to });
        let record = Change::new("resource.move", Some(moved.site), moved.id)
            .before(json!({ "parent": compared.id_of(from.as_ref())? }))
            .after(json!({ "parent": under }))
            .tell_only(EventKind::ResourceMoved, Audience::Members, told);
        self.record(conn, caller, record).await
    }

    async fn drop_resource(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        compared: &Compared,
        name: &Name,
    ) -> Result<()> {
        let before = compared.resource(name)?;
        if !inventory::remove(conn, before.site, before.id, self.now()).await? {
            // A booking or a child came since we looked; the next look shows it.
            return Err(Error::Store(berth_store::Error::Retry));
        }
        let record = Change::new("resource.remove", Some(before.site), before.id)
            .before(before)
            .tell_only(EventKind::ResourceRemoved, Audience::Members, told(before));
        self.record(conn, caller, record).await
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
        projects::insert(conn, &project).await?;
        let record = Change::new("project.create", Some(project.site), project.id).after(&project);
        self.record(
            conn,
            caller,
            record.tell(EventKind::ProjectCreated, Audience::Members),
        )
        .await?;
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
            if !projects::update(conn, &after, before.version).await? {
                return Err(Error::SiteChanged);
            }
            let record = Change::new("project.change", Some(after.site), after.id)
                .before(before)
                .after(&after);
            self.record(
                conn,
                caller,
                record.tell(EventKind::ProjectChanged, Audience::Members),
            )
            .await?;
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
        projects::add_member(conn, project.id, person.id, self.now()).await?;
        let record =
            Change::new("project.add_member", Some(project.site), project.id).after(person.id);
        self.record(
            conn,
            caller,
            record.tell(EventKind::ProjectChanged, Audience::Members),
        )
        .await
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
        projects::remove_member(conn, project.id, person.id).await?;
        let record =
            Change::new("project.remove_member", Some(project.site), project.id).before(person.id);
        self.record(
            conn,
            caller,
            record.tell(EventKind::ProjectChanged, Audience::Members),
        )
        .await
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
        projects::remove(conn, before.id, self.now()).await?;
        let gone = Renamed::Project {
            from: name.clone(),
            to: None,
        };
        self.policies_follow(conn, caller, before.site, &gone)
            .await?;
        let record = Change::new("project.remove", Some(before.site), before.id).before(before);
        self.record(
            conn,
            caller,
            record.tell(EventKind::ProjectRemoved, Audience::Members),
        )
        .await
    }
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
