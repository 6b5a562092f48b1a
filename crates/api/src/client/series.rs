//! Series, from making one to giving it up.

use berth_model::SeriesId;
use reqwest::Method;

use super::{Client, Created, Error};
use crate::headers::{IdempotencyKey, IfMatch};
use crate::members::Reason;
use crate::page::{DryRunQuery, Page};
use crate::paths;
use crate::reference::SiteReference;
use crate::series::{NewSeries, ScopeQuery, Series, SeriesPatch, SeriesPreview, SeriesQuery};

impl Client {
    pub async fn all_series(
        &self,
        site: &SiteReference,
        query: &SeriesQuery,
    ) -> Result<Page<Series>, Error> {
        let call = self.call(Method::GET, &paths::all_series(site));
        call.query(query).json().await
    }

    pub async fn series(&self, site: &SiteReference, series: SeriesId) -> Result<Series, Error> {
        let path = paths::series(site, &series);
        self.call(Method::GET, &path).json().await
    }

    pub async fn book_series(
        &self,
        site: &SiteReference,
        new: &NewSeries,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<Series>, Error> {
        let call = self.call(Method::POST, &paths::all_series(site));
        call.key(key).body(new).created().await
    }

    /// What booking it would do, instance by instance.
    pub async fn preview_series(
        &self,
        site: &SiteReference,
        new: &NewSeries,
    ) -> Result<SeriesPreview, Error> {
        let call = self.call(Method::POST, &paths::all_series(site));
        let call = call.query(&DryRunQuery { dry_run: true });
        call.body(new).json().await
    }

    pub async fn change_series(
        &self,
        site: &SiteReference,
        series: SeriesId,
        version: IfMatch,
        scope: ScopeQuery,
        patch: &SeriesPatch,
    ) -> Result<Series, Error> {
        let call = self.call(Method::PATCH, &paths::series(site, &series));
        let call = call.query(&scope).if_match(version);
        call.body(patch).json().await
    }

    pub async fn cancel_series(
        &self,
        site: &SiteReference,
        series: SeriesId,
        scope: ScopeQuery,
        reason: &Reason,
    ) -> Result<Series, Error> {
        let call = self.call(Method::POST, &paths::series_cancel(site, &series));
        call.query(&scope).body(reason).json().await
    }
}
