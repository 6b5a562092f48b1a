//! Managed environments.

use berth_model::reference::{EnvironmentReference, SiteReference};
use reqwest::Method;

use super::{Client, Created, Error};
use crate::environments::{Environment, EnvironmentChange, EnvironmentLog, NewEnvironment};
use crate::headers::IdempotencyKey;
use crate::page::{Page, PageQuery};
use crate::paths;

impl Client {
    pub async fn environments(
        &self,
        site: &SiteReference,
        query: &PageQuery,
    ) -> Result<Page<Environment>, Error> {
        let call = self.call(Method::GET, &paths::environments(site));
        call.query(query).json().await
    }

    pub async fn make_environment(
        &self,
        site: &SiteReference,
        new: &NewEnvironment,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<Environment>, Error> {
        let call = self.call(Method::POST, &paths::environments(site));
        call.key(key).body(new).created().await
    }

    pub async fn environment(
        &self,
        site: &SiteReference,
        environment: &EnvironmentReference,
    ) -> Result<Environment, Error> {
        let path = paths::environment(site, environment);
        self.call(Method::GET, &path).json().await
    }

    pub async fn change_environment(
        &self,
        site: &SiteReference,
        environment: &EnvironmentReference,
        change: &EnvironmentChange,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<Environment>, Error> {
        let path = paths::environment_versions(site, environment);
        let call = self.call(Method::POST, &path);
        call.key(key).body(change).created().await
    }

    pub async fn remove_environment(
        &self,
        site: &SiteReference,
        environment: &EnvironmentReference,
    ) -> Result<(), Error> {
        let path = paths::environment(site, environment);
        self.call(Method::DELETE, &path).done().await
    }

    pub async fn environment_log(
        &self,
        site: &SiteReference,
        environment: &EnvironmentReference,
    ) -> Result<EnvironmentLog, Error> {
        let path = paths::environment_log(site, environment);
        self.call(Method::GET, &path).json().await
    }
}
