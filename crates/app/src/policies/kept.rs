//! The policies of each site, cached in memory. Every booking needs them, and they rarely change. The `policy_version`
//! of the site tells whether the cached copy is current, whichever server changed the policies.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use berth_engine::policy::Policies;
use berth_model::SiteId;
use berth_model::site::Site;
use berth_store::policies::Version;
use berth_store::{Conn, policies};

use crate::App;
use crate::error::Result;

/// The policies in force in a site.
#[derive(Debug)]
pub(crate) struct Kept {
    version: u64,
    pub policies: Policies,
    /// No policy is set, so nothing has to be looked up.
    pub asks_nothing: bool,
}

impl Kept {
    fn new(version: u64, policies: Policies) -> Self {
        Self {
            version,
            asks_nothing: policies == Policies::default(),
            policies,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct KeptPolicies(RwLock<HashMap<SiteId, Arc<Kept>>>);

impl KeptPolicies {
    fn get(&self, site: &Site) -> Option<Arc<Kept>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&site.id)
            .filter(|kept| kept.version == site.policy_version)
            .cloned()
    }

    fn put(&self, site: SiteId, kept: &Arc<Kept>) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(site, kept.clone());
    }
}

impl App {
    /// The policies in force in a site as it was read. A transaction that changes policies must not call this: it might
    /// be rolled back, but its policies would stay in the cache.
    pub(crate) async fn policies_of(&self, conn: &mut Conn, site: &Site) -> Result<Arc<Kept>> {
        if let Some(kept) = self.policies.get(site) {
            return Ok(kept);
        }
        let holding = combined(policies::holding_in(conn, site.id).await?);
        let kept = Arc::new(Kept::new(site.policy_version, holding));
        self.policies.put(site.id, &kept);
        Ok(kept)
    }
}

pub(super) fn combined(versions: Vec<Version>) -> Policies {
    let holding = versions
        .into_iter()
        .filter_map(|version| Some((version.scope, version.policy?)));
    Policies::new(holding)
}
