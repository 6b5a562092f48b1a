//! The queue: submitting work, looking at it, and how it is run.

use berth_model::GrantId;
use berth_model::queue::Settings;
use reqwest::Method;

use super::{Client, Created, Error};
use crate::headers::{IdempotencyKey, IfMatch};
use crate::page::{DryRunQuery, Page, PageQuery};
use crate::paths;
use crate::reference::{SiteReference, WorkloadReference};
use crate::workloads::{
    CancelWorkload, ExtendWorkload, Grant, NewGrant, NewWorkload, QueueCounts, QueueNode,
    QueueSettingsView, Share, Workload, WorkloadPreview, WorkloadQuery,
};

impl Client {
    pub async fn workloads(
        &self,
        site: &SiteReference,
        query: &WorkloadQuery,
    ) -> Result<Page<Workload>, Error> {
        let call = self.call(Method::GET, &paths::workloads(site));
        call.query(query).json().await
    }

    pub async fn workload(
        &self,
        site: &SiteReference,
        workload: &WorkloadReference,
    ) -> Result<Workload, Error> {
        self.call(Method::GET, &paths::workload(site, workload))
            .json()
            .await
    }

    pub async fn submit(
        &self,
        site: &SiteReference,
        new: &NewWorkload,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<Workload>, Error> {
        let call = self.call(Method::POST, &paths::workloads(site));
        call.key(key).body(new).created().await
    }

    /// What would become of it.
    pub async fn preview_workload(
        &self,
        site: &SiteReference,
        new: &NewWorkload,
    ) -> Result<WorkloadPreview, Error> {
        let call = self.call(Method::POST, &paths::workloads(site));
        let call = call.query(&DryRunQuery { dry_run: true });
        call.body(new).json().await
    }

    pub async fn queue_counts(&self, site: &SiteReference) -> Result<QueueCounts, Error> {
        self.call(Method::GET, &paths::queue_counts(site))
            .json()
            .await
    }

    pub async fn cancel_workload(
        &self,
        site: &SiteReference,
        workload: &WorkloadReference,
        what: &CancelWorkload,
    ) -> Result<Workload, Error> {
        let call = self.call(Method::POST, &paths::workload_cancel(site, workload));
        call.body(what).json().await
    }

    pub async fn extend_workload(
        &self,
        site: &SiteReference,
        workload: &WorkloadReference,
        more: &ExtendWorkload,
    ) -> Result<Workload, Error> {
        let call = self.call(Method::POST, &paths::workload_extend(site, workload));
        call.body(more).json().await
    }

    pub async fn hold_workload(
        &self,
        site: &SiteReference,
        workload: &WorkloadReference,
    ) -> Result<Workload, Error> {
        self.call(Method::POST, &paths::workload_hold(site, workload))
            .json()
            .await
    }

    pub async fn release_workload(
        &self,
        site: &SiteReference,
        workload: &WorkloadReference,
    ) -> Result<Workload, Error> {
        self.call(Method::POST, &paths::workload_release(site, workload))
            .json()
            .await
    }

    pub async fn queue_settings(&self, site: &SiteReference) -> Result<QueueSettingsView, Error> {
        self.call(Method::GET, &paths::queue_settings(site))
            .json()
            .await
    }

    pub async fn set_queue_settings(
        &self,
        site: &SiteReference,
        version: IfMatch,
        settings: &Settings,
    ) -> Result<QueueSettingsView, Error> {
        let call = self.call(Method::PUT, &paths::queue_settings(site));
        call.if_match(version).body(settings).json().await
    }

    pub async fn shares(
        &self,
        site: &SiteReference,
        query: &PageQuery,
    ) -> Result<Page<Share>, Error> {
        self.call(Method::GET, &paths::queue_shares(site))
            .query(query)
            .json()
            .await
    }

    pub async fn queue_nodes(
        &self,
        site: &SiteReference,
        query: &PageQuery,
    ) -> Result<Page<QueueNode>, Error> {
        self.call(Method::GET, &paths::queue_nodes(site))
            .query(query)
            .json()
            .await
    }

    pub async fn grants(
        &self,
        site: &SiteReference,
        query: &PageQuery,
    ) -> Result<Page<Grant>, Error> {
        self.call(Method::GET, &paths::grants(site))
            .query(query)
            .json()
            .await
    }

    pub async fn give_grant(
        &self,
        site: &SiteReference,
        new: &NewGrant,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<Grant>, Error> {
        self.call(Method::POST, &paths::grants(site))
            .key(key)
            .body(new)
            .created()
            .await
    }

    pub async fn revoke_grant(&self, site: &SiteReference, grant: GrantId) -> Result<(), Error> {
        self.call(Method::DELETE, &paths::grant(site, &grant))
            .done()
            .await
    }
}
