//! Previews a series before it is booked.

use std::collections::BTreeMap;

use berth_engine::recurrence::preview;
use berth_engine::rights::Action;
use berth_model::reference::SiteReference;
use berth_model::{FieldErrors, SeriesId};

use super::{Foreseen, NewSeries, OnConflict, SeriesPreview};
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::{Error, Result};

impl App {
    /// Checks every instance, and books nothing. Unlike the preview of a single booking it only reads: otherwise other
    /// requests would wait while a thousand claims are inserted and rolled back.
    pub async fn preview_series(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewSeries,
    ) -> Result<SeriesPreview> {
        let mut reader = self.store.read().await?;
        let place = self.place(&mut reader, caller, site, Action::Book).await?;
        // Every refusal is of interest, also for a series that is all or nothing.
        let all = NewSeries {
            on_conflict: OnConflict::Skip,
            ..new.clone()
        };
        let id = SeriesId(fresh(self.now()));
        let mut plan = self
            .plan_series(&mut reader, caller, &place, &all, id)
            .await?;
        self.leave_out(&mut reader, caller, &place, &mut plan)
            .await?;
        let shown = preview(&plan.series.pattern)
            .map_err(|error| FieldErrors::one("rule", error.to_string()))?;
        let mut remarks: BTreeMap<_, _> = shown
            .lines
            .into_iter()
            .filter_map(|line| Some((line.instance.id, line.remark?)))
            .collect();
        let states = plan.reservations.iter().map(|one| Ok(one.state));
        let booked = plan.instances.into_iter().zip(states);
        let refused = plan.skipped.into_iter().map(|skipped| {
            (
                skipped.instance,
                Err(skipped.why.unwrap_or(Error::SeriesOver)),
            )
        });
        let mut instances: Vec<Foreseen> = booked
            .chain(refused)
            .map(|(instance, outcome)| Foreseen {
                instance,
                remark: remarks.remove(&instance.id),
                outcome,
            })
            .collect();
        instances.sort_by_key(|foreseen| foreseen.instance.id);
        Ok(SeriesPreview { instances })
    }
}
