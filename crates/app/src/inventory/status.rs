//! Status: a flag that says whether a resource takes new bookings. It moves nobody.

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::inventory::StatusChange;
use berth_model::reference::{ResourceReference, SiteReference};
use berth_model::{Status, Text};
use berth_store::inventory;
use serde_json::json;

use super::ResourceView;
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::directory::Directory;
use crate::error::Result;
use crate::place::Place;
use crate::record::Change;
use crate::transact::transact;
use crate::version;

impl App {
    pub async fn set_status(
        &self,
        caller: &Caller,
        site: &SiteReference,
        resource: &ResourceReference,
        version: Option<u64>,
        status: Status,
        reason: Option<Text>,
    ) -> Result<(Place, ResourceView, Directory)> {
        transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeCatalogue).await?;
            place.may(caller, Action::SetStatus, false, "resource")?;
            let before = self.resource(&mut tx, place.id(), resource).await?;
            version::expect(version, before.version)?;
            let now = self.now();
            let by = Some(caller.id());
            let change = StatusChange { resource: before.id, status, reason: reason.clone(), at: now, by };
            if !inventory::set_status(&mut tx, &change, fresh(now), before.version).await? {
                return Err(version::overtaken(before.version));
            }
            let told = json!({
                "resource": before.id, "name": before.name, "before": before.status, "status": status, "reason": reason,
            });
            let record = Change::new("resource.status", Some(place.id()), before.id)
                .before(before.status)
                .after(status)
                .because(reason.clone())
                .tell_only(EventKind::ResourceStatus, Audience::Members, told);
            self.record(&mut tx, caller, record).await?;
            let mut directory = Directory::with_site(&place.site);
            let view = self.resource_view(&mut tx, &place, before.id, &mut directory).await?;
            Ok((place, view, directory))
        })
    }

    /// The changes of a resource's own status, newest first, those before the given number.
    pub async fn status_history(
        &self,
        caller: &Caller,
        site: &SiteReference,
        resource: &ResourceReference,
        before: u64,
        limit: u64,
    ) -> Result<(Vec<(u64, StatusChange)>, Directory)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeStatusHistory)
            .await?;
        let resource = self.resource(&mut reader, place.id(), resource).await?;
        let changes = inventory::status_history(&mut reader, resource.id, before, limit).await?;
        let mut directory = Directory::with_site(&place.site);
        directory
            .learn_people(
                &mut reader,
                changes.iter().filter_map(|(_, change)| change.by),
            )
            .await?;
        Ok((changes, directory))
    }
}
