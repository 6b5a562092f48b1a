//! Resource types and resources.

use berth_model::declared::Document;
use reqwest::Method;

use super::{Client, Created, Error};
use crate::declared::{ApplyOutcome, ApplyQuery, SiteExport};
use crate::headers::{IdempotencyKey, IfMatch};
use crate::page::{DryRunQuery, Page, PageQuery};
use crate::paths;
use crate::reference::{ResourceReference, SiteReference, TypeReference};
use crate::resource_counts::ResourceCounts;
use crate::resources::{
    MoveOutcome, MoveResource, NewResource, Resource, ResourcePatch, ResourceQuery, StatusChange,
    StatusPatch,
};
use crate::types::{NewType, ResourceType, TypePatch};

impl Client {
    pub async fn types(
        &self,
        site: &SiteReference,
        query: &PageQuery,
    ) -> Result<Page<ResourceType>, Error> {
        let call = self.call(Method::GET, &paths::types(site));
        call.query(query).json().await
    }

    /// How many resources there are, and how many of them are free now.
    pub async fn resource_counts(&self, site: &SiteReference) -> Result<ResourceCounts, Error> {
        self.call(Method::GET, &paths::resource_counts(site))
            .json()
            .await
    }

    pub async fn create_type(
        &self,
        site: &SiteReference,
        new: &NewType,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<ResourceType>, Error> {
        let call = self.call(Method::POST, &paths::types(site));
        call.key(key).body(new).created().await
    }

    pub async fn resource_type(
        &self,
        site: &SiteReference,
        kind: &TypeReference,
    ) -> Result<ResourceType, Error> {
        let path = paths::resource_type(site, kind);
        self.call(Method::GET, &path).json().await
    }

    pub async fn change_type(
        &self,
        site: &SiteReference,
        kind: &TypeReference,
        version: IfMatch,
        patch: &TypePatch,
    ) -> Result<ResourceType, Error> {
        let call = self.call(Method::PATCH, &paths::resource_type(site, kind));
        call.if_match(version).body(patch).json().await
    }

    pub async fn remove_type(
        &self,
        site: &SiteReference,
        kind: &TypeReference,
    ) -> Result<(), Error> {
        let path = paths::resource_type(site, kind);
        self.call(Method::DELETE, &path).done().await
    }

    /// The whole site as a file declares it.
    pub async fn export_site(&self, site: &SiteReference) -> Result<SiteExport, Error> {
        self.call(Method::GET, &paths::export(site)).json().await
    }

    /// Makes the site what the document declares, all or nothing; or says what that would change.
    pub async fn apply_site(
        &self,
        site: &SiteReference,
        query: &ApplyQuery,
        document: &Document,
    ) -> Result<ApplyOutcome, Error> {
        let call = self.call(Method::POST, &paths::apply(site));
        call.query(query).body(document).json().await
    }

    pub async fn resources(
        &self,
        site: &SiteReference,
        query: &ResourceQuery,
    ) -> Result<Page<Resource>, Error> {
        let call = self.call(Method::GET, &paths::resources(site));
        call.query(query).json().await
    }

    pub async fn create_resource(
        &self,
        site: &SiteReference,
        new: &NewResource,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<Resource>, Error> {
        let call = self.call(Method::POST, &paths::resources(site));
        call.key(key).body(new).created().await
    }

    pub async fn resource(
        &self,
        site: &SiteReference,
        resource: &ResourceReference,
    ) -> Result<Resource, Error> {
        let path = paths::resource(site, resource);
        self.call(Method::GET, &path).json().await
    }

    pub async fn change_resource(
        &self,
        site: &SiteReference,
        resource: &ResourceReference,
        version: IfMatch,
        patch: &ResourcePatch,
    ) -> Result<Resource, Error> {
        let call = self.call(Method::PATCH, &paths::resource(site, resource));
        call.if_match(version).body(patch).json().await
    }

    pub async fn remove_resource(
        &self,
        site: &SiteReference,
        resource: &ResourceReference,
    ) -> Result<(), Error> {
        let path = paths::resource(site, resource);
        self.call(Method::DELETE, &path).done().await
    }

    /// Moves the resource with all that is below it; refused where bookings would collide.
    pub async fn move_resource(
        &self,
        site: &SiteReference,
        resource: &ResourceReference,
        to: &MoveResource,
    ) -> Result<MoveOutcome, Error> {
        let call = self.call(Method::POST, &paths::resource_move(site, resource));
        call.body(to).json().await
    }

    /// Whether the move would be possible, and what would collide.
    pub async fn preview_move(
        &self,
        site: &SiteReference,
        resource: &ResourceReference,
        to: &MoveResource,
    ) -> Result<MoveOutcome, Error> {
        let call = self.call(Method::POST, &paths::resource_move(site, resource));
        let call = call.query(&DryRunQuery { dry_run: true });
        call.body(to).json().await
    }

    pub async fn set_status(
        &self,
        site: &SiteReference,
        resource: &ResourceReference,
        version: IfMatch,
        status: &StatusPatch,
    ) -> Result<Resource, Error> {
        let call = self.call(Method::PATCH, &paths::resource_status(site, resource));
        call.if_match(version).body(status).json().await
    }

    pub async fn status_history(
        &self,
        site: &SiteReference,
        resource: &ResourceReference,
        query: &PageQuery,
    ) -> Result<Page<StatusChange>, Error> {
        let call = self.call(Method::GET, &paths::resource_status_history(site, resource));
        call.query(query).json().await
    }
}
