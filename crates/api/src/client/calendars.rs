//! Feeds and closure calendars.

use berth_model::FeedId;
use berth_model::reference::{ClosureReference, SiteReference};
use reqwest::Method;

use super::{Client, Created, Error};
use crate::closures::{Closure, ClosureDetails, NewClosure};
use crate::feeds::{CreatedFeed, Feed, NewFeed};
use crate::headers::IdempotencyKey;
use crate::page::{Page, PageQuery};
use crate::paths;

impl Client {
    pub async fn my_feeds(&self, query: &PageQuery) -> Result<Page<Feed>, Error> {
        let call = self.call(Method::GET, paths::MY_FEEDS);
        call.query(query).json().await
    }

    pub async fn create_feed(
        &self,
        new: &NewFeed,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<CreatedFeed>, Error> {
        let call = self.call(Method::POST, paths::MY_FEEDS);
        call.key(key).body(new).created().await
    }

    pub async fn revoke_feed(&self, feed: FeedId) -> Result<(), Error> {
        let path = paths::my_feed(&feed);
        self.call(Method::DELETE, &path).done().await
    }

    pub async fn closures(
        &self,
        site: &SiteReference,
        query: &PageQuery,
    ) -> Result<Page<Closure>, Error> {
        let call = self.call(Method::GET, &paths::closures(site));
        call.query(query).json().await
    }

    pub async fn add_closure(
        &self,
        site: &SiteReference,
        new: &NewClosure,
        key: Option<&IdempotencyKey>,
    ) -> Result<Created<ClosureDetails>, Error> {
        let call = self.call(Method::POST, &paths::closures(site));
        call.key(key).body(new).created().await
    }

    pub async fn closure(
        &self,
        site: &SiteReference,
        closure: &ClosureReference,
    ) -> Result<ClosureDetails, Error> {
        let path = paths::closure(site, closure);
        self.call(Method::GET, &path).json().await
    }

    pub async fn refresh_closure(
        &self,
        site: &SiteReference,
        closure: &ClosureReference,
    ) -> Result<ClosureDetails, Error> {
        let path = paths::closure_refresh(site, closure);
        self.call(Method::POST, &path).json().await
    }

    pub async fn remove_closure(
        &self,
        site: &SiteReference,
        closure: &ClosureReference,
    ) -> Result<(), Error> {
        let path = paths::closure(site, closure);
        self.call(Method::DELETE, &path).done().await
    }
}
