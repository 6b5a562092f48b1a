//! How many resources a site has, and how many of them are free now.

use std::collections::BTreeMap;

use berth_engine::counts::{self, Count, Group};
use berth_engine::rights::Action;
use berth_model::reference::SiteReference;
use berth_model::{Claim, Span};
use berth_store::claims::{self, Holders};
use berth_store::{inventory, queues};
use jiff::SignedDuration;

use super::resources::tree_of;
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};

#[derive(Debug, Clone)]
pub struct ResourceCounts {
    pub counts: BTreeMap<Group, Count>,
    pub directory: Directory,
}

impl App {
    /// Counts the site's resources at this moment.
    pub async fn count_resources(
        &self,
        caller: &Caller,
        site: &SiteReference,
    ) -> Result<ResourceCounts> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeFreeBusy)
            .await?;
        let resources = inventory::of_site(&mut reader, place.id()).await?;
        let tree = tree_of(&resources)?;
        let roles = queues::policy(&mut reader, place.id()).await?.roles;
        let now = self.now();
        // A claim that covers this moment overlaps the microsecond after it.
        let moment = Span::new(now, now + SignedDuration::from_micros(1))
            .map_err(|error| Error::Internal(error.to_string()))?;
        let ids = resources.iter().map(|one| one.id).collect();
        let claims: Vec<Claim> = claims::calendar(&mut reader, &ids, moment, Holders::All)
            .await?
            .into_iter()
            .map(|entry| entry.claim)
            .collect();
        let mut counts = counts::count(&tree, &resources, &roles, &claims, now);
        if !place.can(caller, Action::SeeQueue) {
            counts.values_mut().for_each(Count::hide_work);
        }
        let mut directory = Directory::with_site(&place.site);
        for kind in inventory::types(&mut reader, place.id()).await? {
            directory.add_type(&kind);
        }
        Ok(ResourceCounts { counts, directory })
    }
}
