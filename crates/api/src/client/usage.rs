//! How much was used.

use reqwest::Method;

use super::{Client, Error};
use crate::paths;
use crate::reference::SiteReference;
use crate::usage::{AllUsage, AllUsageQuery, Usage, UsageQuery};

impl Client {
    pub async fn usage(&self, site: &SiteReference, query: &UsageQuery) -> Result<Usage, Error> {
        let call = self.call(Method::GET, &paths::usage(site));
        call.query(query).json().await
    }

    /// The sums of every site.
    pub async fn all_usage(&self, query: &AllUsageQuery) -> Result<AllUsage, Error> {
        let call = self.call(Method::GET, paths::ALL_USAGE);
        call.query(query).json().await
    }
}
