//! Policies of sites and of the whole installation, and what waits for one's approval.

use reqwest::Method;

use super::{Client, Error};
use crate::headers::IfMatch;
use crate::page::Page;
use crate::paths;
use crate::policies::{
    GlobalPolicyChangeQuery, GlobalScope, NewPolicy, PartQuery, PolicyChange, PolicyChangeQuery,
    PolicyFindings, PolicyList, PolicyTest,
};
use crate::reference::SiteReference;
use crate::reservations::Reservation;

impl Client {
    /// What waits for the decision of the one who asks, in all their sites.
    pub async fn my_approvals(&self) -> Result<Page<Reservation>, Error> {
        self.call(Method::GET, paths::MY_APPROVALS).json().await
    }

    /// All that holds in a site, ceilings and defaults included.
    pub async fn policies(&self, site: &SiteReference) -> Result<PolicyList, Error> {
        let path = paths::policies(site);
        self.call(Method::GET, &path).json().await
    }

    pub async fn set_policy(
        &self,
        site: &SiteReference,
        query: &PolicyChangeQuery,
        version: Option<IfMatch>,
        new: &NewPolicy,
    ) -> Result<PolicyChange, Error> {
        let call = self.call(Method::PUT, &paths::policy(site)).query(query);
        let call = match version {
            Some(version) => call.if_match(version),
            None => call,
        };
        call.body(new).json().await
    }

    pub async fn remove_policy(
        &self,
        site: &SiteReference,
        query: &PolicyChangeQuery,
    ) -> Result<PolicyChange, Error> {
        let call = self.call(Method::DELETE, &paths::policy(site));
        call.query(query).json().await
    }

    pub async fn policy_history(
        &self,
        site: &SiteReference,
        query: &PartQuery,
    ) -> Result<PolicyList, Error> {
        let call = self.call(Method::GET, &paths::policy_history(site));
        call.query(query).json().await
    }

    pub async fn test_policies(
        &self,
        site: &SiteReference,
        test: &PolicyTest,
    ) -> Result<PolicyFindings, Error> {
        let path = paths::policy_test(site);
        self.call(Method::POST, &path).body(test).json().await
    }

    /// The ceilings and the defaults.
    pub async fn global_policies(&self) -> Result<PolicyList, Error> {
        self.call(Method::GET, paths::GLOBAL_POLICIES).json().await
    }

    pub async fn set_global_policy(
        &self,
        scope: GlobalScope,
        query: &GlobalPolicyChangeQuery,
        version: Option<IfMatch>,
        new: &NewPolicy,
    ) -> Result<PolicyChange, Error> {
        let path = paths::global_policy(&scope);
        let call = self.call(Method::PUT, &path).query(query);
        let call = match version {
            Some(version) => call.if_match(version),
            None => call,
        };
        call.body(new).json().await
    }

    pub async fn remove_global_policy(
        &self,
        scope: GlobalScope,
        query: &GlobalPolicyChangeQuery,
    ) -> Result<PolicyChange, Error> {
        let call = self.call(Method::DELETE, &paths::global_policy(&scope));
        call.query(query).json().await
    }

    pub async fn global_policy_history(&self, scope: GlobalScope) -> Result<PolicyList, Error> {
        let path = paths::global_policy_history(&scope);
        self.call(Method::GET, &path).json().await
    }
}
