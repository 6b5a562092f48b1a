//! Cancels a series: one instance, one and all later ones, or all future ones.

use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::reference::SiteReference;
use berth_model::reservation::Reservation;
use berth_model::{Series, SeriesId, Text};
use berth_store::{reservations, series};

use super::{Part, SeriesView, day, end_of, instance, is_to_come, told};
use crate::App;
use crate::caller::Caller;
use crate::error::{Error, Result};
use crate::record::{By, Change};
use crate::transact::transact;
use crate::version;

impl App {
    /// Cancels a part of a series. Leaves instances that have begun alone, unless the caller names one. Also leaves
    /// instances alone that were handed over. Instances that differ are cancelled like the others.
    pub async fn cancel_series(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: SeriesId,
        version: Option<u64>,
        part: Part,
        reason: Option<Text>,
    ) -> Result<SeriesView> {
        if let Part::This(one) = part {
            let view = self.get_series(caller, site, id).await?;
            version::expect(version, view.series.version)?;
            instance(&view.instances, one)?;
            self.cancel_reservation(caller, site, one, None, reason)
                .await?;
            return self.get_series(caller, site, id).await;
        }
        let cancelled = transact!(self, tx => {
            let (place, before) = self.own_series(&mut tx, caller, site, id, Action::CancelReservation).await?;
            version::expect(version, before.version)?;
            let instances = reservations::of_series_locked(&mut tx, id).await?;
            let from = match part {
                Part::Following(one) => Some(day(instance(&instances, one)?)),
                Part::This(_) | Part::All => None,
            };
            let now = self.now();
            let is_meant = |one: &Reservation| {
                from.is_none_or(|from| day(one) >= from) && is_to_come(one, now)
            };
            let (meant, stay): (Vec<_>, Vec<_>) = instances.into_iter().partition(is_meant);
            let (theirs, others): (Vec<_>, Vec<_>) =
                meant.into_iter().partition(|one| one.owner == before.owner);
            if theirs.is_empty() {
                return Err(Error::SeriesOver);
            }
            let after = Series {
                ends: end_of(stay.iter().chain(&others), before.created_at),
                version: before.version + 1,
                updated_at: now,
                ..before.clone()
            };
            if !series::update(&mut tx, &after, before.version).await? {
                return Err(version::overtaken(before.version));
            }
            let cancelled = theirs.len();
            for one in theirs {
                let transition = one.state.cancel()?;
                self.step(&mut tx, &By::from(caller), one, transition, reason.clone()).await?;
            }
            let record = Change::new("series.cancel", Some(place.id()), id)
                .before(&before)
                .after(&after)
                .because(reason.clone())
                .tell_only(EventKind::SeriesCancelled, Audience::Members, told(&after, cancelled));
            self.record(&mut tx, caller, record).await?;
            let view = self.series_view(&mut tx, caller, &place, id).await?;
            Ok(SeriesView { left_alone: others.iter().map(|one| one.id).collect(), ..view })
        });
        self.planned.notify_one();
        cancelled
    }
}
