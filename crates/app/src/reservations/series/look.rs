//! Reads series: one with its instances, or a site's.

use std::collections::BTreeSet;

use berth_engine::rights::Action;
use berth_model::reference::SiteReference;
use berth_model::{Series, SeriesId};
use berth_store::{Conn, reservations, series};
use jiff::Timestamp;

use super::super::look::is_visible as is_instance_visible;
use super::{SeriesFilter, SeriesView, Skipped, day, is_visible, pattern};
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;

impl App {
    pub async fn get_series(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: SeriesId,
    ) -> Result<SeriesView> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeReservation)
            .await?;
        self.series_view(&mut reader, caller, &place, id).await
    }

    /// A page of a site's series, in the order of their creation, and the start of the next one. Leaves out other
    /// people's private ones, so a page may be shorter than its limit.
    pub async fn list_series(
        &self,
        caller: &Caller,
        site: &SiteReference,
        filter: &SeriesFilter,
    ) -> Result<(Vec<Series>, Option<SeriesId>, Directory)> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeReservation)
            .await?;
        let owner = match &filter.owner {
            Some(owner) => Some(self.narrowed_to(&mut reader, owner).await?),
            None => None,
        };
        let query = series::Filter {
            site: place.id(),
            owner,
            from: filter.from.unwrap_or(Timestamp::MIN),
            after: filter.after,
            limit: filter.limit,
        };
        let mut page = series::list(&mut reader, &query).await?;
        let next = page
            .last()
            .filter(|_| page.len() as u64 >= filter.limit)
            .map(|last| last.id);
        page.retain(|found| is_visible(&place, caller, found));
        let mut directory = Directory::with_site(&place.site);
        directory
            .learn_people(&mut reader, page.iter().map(|found| found.owner))
            .await?;
        Ok((page, next, directory))
    }

    /// A series as this caller may see it. "Not found" covers both a missing series and one that the caller may not
    /// see.
    pub(super) async fn series_view(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        id: SeriesId,
    ) -> Result<SeriesView> {
        let found = series::get(conn, place.id(), id).await?;
        let series = found
            .filter(|found| is_visible(place, caller, found))
            .ok_or(Error::NotFound("series"))?;
        let mut instances = reservations::of_series(conn, id).await?;
        let made: BTreeSet<_> = instances.iter().map(day).collect();
        let skipped = pattern::missing(&series, |day| made.contains(&day));
        instances.retain(|instance| is_instance_visible(place, caller, instance));
        let mut directory = Directory::with_site(&place.site);
        directory.learn_people(conn, [series.owner]).await?;
        directory.learn_reservations(conn, &instances).await?;
        let skipped = skipped.into_iter().map(|instance| Skipped {
            instance,
            why: None,
        });
        Ok(SeriesView {
            series,
            instances,
            skipped: skipped.collect(),
            left_alone: Vec::new(),
            directory,
        })
    }
}
