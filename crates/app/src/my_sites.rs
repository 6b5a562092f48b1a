//! The caller's sites, with the caller's open tasks in each.

use std::collections::BTreeMap;

use berth_model::SiteId;
use berth_store::my_sites::{self, Owned};
use jiff::Timestamp;

use crate::App;
use crate::caller::Caller;
use crate::error::Result;
use crate::place::Place;

#[derive(Debug, Clone)]
pub struct SiteActivity {
    pub place: Place,
    pub owned: Owned,
    /// Reservations of others that wait for the caller's approval.
    pub approvals: u64,
    /// The time of anybody's last activity in the site.
    pub last_activity: Option<Timestamp>,
}

impl App {
    /// The sites that the caller is a member of, and all sites for a global admin, by name.
    pub async fn my_sites(&self, caller: &Caller) -> Result<Vec<SiteActivity>> {
        let mut approvals: BTreeMap<SiteId, u64> = BTreeMap::new();
        for waiting in self.my_approvals(caller).await?.reservations {
            *approvals.entry(waiting.site).or_default() += 1;
        }
        let mut reader = self.store.read().await?;
        let owned = my_sites::owned(&mut reader, caller.id(), self.now()).await?;
        let mut all = Vec::new();
        for (id, place) in self.asked_places(&mut reader, caller).await? {
            all.push(SiteActivity {
                place,
                owned: owned.get(&id).copied().unwrap_or_default(),
                approvals: approvals.get(&id).copied().unwrap_or_default(),
                last_activity: my_sites::last_activity(&mut reader, id).await?,
            });
        }
        all.sort_by(|a, b| a.place.site.name.cmp(&b.place.site.name));
        Ok(all)
    }
}
