//! Writes inventory changes with their audit entries and events. The callers have already checked the change, whether
//! it is made by hand or declared by a file. If another change came first, the functions write nothing and return
//! `false`.

use berth_model::audit::Actor;
use berth_model::event::{Audience, EventKind};
use berth_model::inventory::StatusChange;
use berth_model::{Name, Resource, ResourceId, ResourceType, Status, Text};
use berth_store::{Conn, inventory};
use serde_json::json;

use super::resources::told;
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::Result;
use crate::policies::Renamed;
use crate::record::{By, Change};

impl App {
    pub(crate) async fn write_new_type(
        &self,
        conn: &mut Conn,
        by: impl Into<By>,
        new: &ResourceType,
    ) -> Result<()> {
        inventory::insert_type(conn, new).await?;
        let change = Change::new("type.create", Some(new.site), new.id).after(new);
        let change = change.tell(EventKind::TypeCreated, Audience::Members);
        self.record(conn, by, change).await
    }

    pub(crate) async fn write_type(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        before: &ResourceType,
        after: &ResourceType,
    ) -> Result<bool> {
        if !inventory::update_type(conn, after, before.version).await? {
            return Ok(false);
        }
        if after.name != before.name {
            let renamed = Renamed::Type {
                from: before.name.clone(),
                to: Some(after.name.clone()),
            };
            self.policies_follow(conn, caller, after.site, &renamed)
                .await?;
        }
        let change = Change::new("type.change", Some(after.site), after.id);
        let change = change.before(before).after(after);
        let change = change.tell(EventKind::TypeChanged, Audience::Members);
        self.record(conn, caller, change).await?;
        Ok(true)
    }

    /// Removes a type, unless a resource has it.
    pub(crate) async fn write_off_type(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        gone: &ResourceType,
    ) -> Result<bool> {
        if !inventory::remove_type(conn, gone.id, self.now()).await? {
            return Ok(false);
        }
        let renamed = Renamed::Type {
            from: gone.name.clone(),
            to: None,
        };
        self.policies_follow(conn, caller, gone.site, &renamed)
            .await?;
        let change = Change::new("type.remove", Some(gone.site), gone.id).before(gone);
        let change = change.tell(EventKind::TypeRemoved, Audience::Members);
        self.record(conn, caller, change).await?;
        Ok(true)
    }

    pub(crate) async fn write_new_resource(
        &self,
        conn: &mut Conn,
        by: impl Into<By>,
        new: &Resource,
    ) -> Result<()> {
        inventory::insert(conn, new, self.now()).await?;
        let change = Change::new("resource.create", Some(new.site), new.id).after(new);
        let change = change.tell_only(EventKind::ResourceCreated, Audience::Members, told(new));
        self.record(conn, by, change).await
    }

    pub(crate) async fn write_resource(
        &self,
        conn: &mut Conn,
        by: impl Into<By>,
        before: &Resource,
        after: &Resource,
    ) -> Result<bool> {
        if !inventory::update(conn, after, before.version).await? {
            return Ok(false);
        }
        let change = Change::new("resource.change", Some(after.site), after.id);
        let change = change.before(before).after(after);
        let change = change.tell_only(EventKind::ResourceChanged, Audience::Members, told(after));
        self.record(conn, by, change).await?;
        Ok(true)
    }

    /// Removes a resource, unless it has children or claims.
    pub(crate) async fn write_off_resource(
        &self,
        conn: &mut Conn,
        by: impl Into<By>,
        gone: &Resource,
    ) -> Result<bool> {
        if !inventory::remove(conn, gone.site, gone.id, self.now()).await? {
            return Ok(false);
        }
        let change = Change::new("resource.remove", Some(gone.site), gone.id).before(gone);
        let change = change.tell_only(EventKind::ResourceRemoved, Audience::Members, told(gone));
        self.record(conn, by, change).await?;
        Ok(true)
    }

    /// Sets a resource's own status.
    pub(crate) async fn write_status(
        &self,
        conn: &mut Conn,
        by: impl Into<By>,
        before: &Resource,
        status: Status,
        reason: Option<Text>,
    ) -> Result<bool> {
        let (by, now) = (by.into(), self.now());
        let change = StatusChange {
            resource: before.id,
            status,
            reason: reason.clone(),
            at: now,
            by: match by.actor {
                Actor::Person(person) => Some(person),
                Actor::System | Actor::Anonymous => None,
            },
        };
        if !inventory::set_status(conn, &change, fresh(now), before.version).await? {
            return Ok(false);
        }
        let told = json!({
            "resource": before.id, "name": before.name, "before": before.status, "status": status, "reason": reason,
        });
        let change = Change::new("resource.status", Some(before.site), before.id)
            .before(before.status)
            .after(status)
            .because(reason)
            .tell_only(EventKind::ResourceStatus, Audience::Members, told);
        self.record(conn, by, change).await?;
        Ok(true)
    }

    /// Records a completed move from one parent to another. None is the top of the tree.
    pub(crate) async fn tell_move(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        moved: &Resource,
        from: Option<(ResourceId, Name)>,
        to: Option<(ResourceId, Name)>,
    ) -> Result<()> {
        let ((before, from), (after, to)) = (from.unzip(), to.unzip());
        let told = json!({ "resource": moved.id, "name": moved.name, "from": from, "to": to });
        let change = Change::new("resource.move", Some(moved.site), moved.id)
            .before(json!({ "parent": before }))
            .after(json!({ "parent": after }));
        let change = change.tell_only(EventKind::ResourceMoved, Audience::Members, told);
        self.record(conn, caller, change).await
    }
}
