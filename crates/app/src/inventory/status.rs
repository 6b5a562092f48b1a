//! Status: a flag that says whether a resource takes new bookings. It moves no booking.

use berth_engine::rights::Action;
use berth_model::inventory::StatusChange;
use berth_model::reference::{ResourceReference, SiteReference};
use berth_model::{Status, Text};
use berth_store::inventory;

use super::ResourceView;
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::Result;
use crate::place::Place;
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
            if !self.write_status(&mut tx, caller, &before, status, reason.clone()).await? {
                return Err(version::overtaken(before.version));
            }
            let mut directory = Directory::with_site(&place.site);
            let view = self.resource_view(&mut tx, &place, before.id, &mut directory).await?;
            Ok((place, view, directory))
        })
    }

    /// The changes of a resource's own status before the given number, newest first.
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
