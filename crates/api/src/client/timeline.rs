//! The calendar, what is free, and maintenance windows.

use berth_model::WindowId;
use reqwest::Method;

use super::{Client, Created, Error};
use crate::calendar::{Calendar, CalendarQuery, FreeQuery, FreeResource};
use crate::desk::{When, WhenRequest};
use crate::headers::IdempotencyKey;
use crate::maintenance::{MaintenancePreview, MaintenanceQuery, MaintenanceWindow, NewMaintenance};
use crate::members::Reason;
use crate::page::{DryRunQuery, Page};
use crate::paths;
use crate::reference::SiteReference;

impl Client {
    pub async fn calendar(
        &self,
        site: &SiteReference,
        query: &CalendarQuery,
    ) -> Result<Calendar, Error> {
        let call = self.call(Method::GET, &paths::calendar(site));
        call.query(query).json().await
    }

    pub async fn free(
        &self,
        site: &SiteReference,
        query: &FreeQuery,
    ) -> Result<Page<FreeResource>, Error> {
        let call = self.call(Method::GET, &paths::free(site));
        call.query(query).json().await
    }

    /// The earliest times at which a wish can be met.
    pub async fn when(&self, request: &WhenRequest) -> Result<When, Error> {
        let call = self.call(Method::POST, &paths::when());
        call.body(request).json().await
    }

    pub async fn maintenance(
        &self,
        site: &SiteReference,
        query: &MaintenanceQuery,
    ) -> Result<Page<MaintenanceWindow>, Error> {
        let call = self.call(Method::GET, &paths::maintenance(site));
        call.query(query).json().await
    }

    pub async fn plan_maintenance(
        &self,
        site: &SiteReference,
        new: &NewMaintenance,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<MaintenanceWindow>, Error> {
        let call = self.call(Method::POST, &paths::maintenance(site));
        call.key(key).body(new).created().await
    }

    /// Which bookings stand in the window's way, and what it would occupy.
    pub async fn preview_maintenance(
        &self,
        site: &SiteReference,
        new: &NewMaintenance,
    ) -> Result<MaintenancePreview, Error> {
        let call = self.call(Method::POST, &paths::maintenance(site));
        let call = call.query(&DryRunQuery { dry_run: true });
        call.body(new).json().await
    }

    pub async fn maintenance_window(
        &self,
        site: &SiteReference,
        window: WindowId,
    ) -> Result<MaintenanceWindow, Error> {
        let path = paths::window(site, &window);
        self.call(Method::GET, &path).json().await
    }

    pub async fn cancel_maintenance(
        &self,
        site: &SiteReference,
        window: WindowId,
        reason: &Reason,
    ) -> Result<MaintenanceWindow, Error> {
        let call = self.call(Method::POST, &paths::window_cancel(site, &window));
        call.body(reason).json().await
    }
}
