//! Alternatives to a refused series: all of it at another time of day, or all of it on equivalent resources.
//!
//! Each alternative is planned like the series itself and checked against the existing claims, so it could be booked
//! now.

use berth_model::{Reference, ResourceId, SeriesId, Span, Take};
use jiff::SignedDuration;

use super::{NewSeries, OnConflict};
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::desk::{Alternative, AlternativeKind, Part};
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::reservations::Item;

/// The step between other times of day, and how many steps to search.
const STEP: SignedDuration = SignedDuration::from_mins(30);
const STEPS_MAX: i32 = 24;
const OFFERS_MAX: usize = 3;
/// Planning a long series takes a moment, and the caller waits for the answer.
const PLANNED_MAX: usize = 12;
/// The distance of equivalent resources.
const NEXT_DOOR: SignedDuration = SignedDuration::from_mins(5);

impl App {
    /// Adds alternatives to the refusal of a series. The refusal itself stays, even if the search fails.
    pub(super) async fn with_series_alternatives(
        &self,
        refusal: Error,
        caller: &Caller,
        place: &Place,
        new: &NewSeries,
    ) -> Error {
        let Error::Conflict {
            conflicts,
            mut directory,
            ..
        } = refusal
        else {
            return refusal;
        };
        let alternatives = match self.series_alternatives(caller, place, new).await {
            Ok((alternatives, known)) => {
                directory.join(known);
                alternatives
            }
            Err(error) => {
                tracing::warn!(%error, "no alternatives to a series could be looked for");
                Vec::new()
            }
        };
        Error::Conflict {
            conflicts,
            alternatives,
            directory,
        }
    }

    async fn series_alternatives(
        &self,
        caller: &Caller,
        place: &Place,
        new: &NewSeries,
    ) -> Result<(Vec<Alternative>, Directory)> {
        let mut directory = Directory::default();
        directory.add_site(&place.site);
        let mut offers = Vec::new();
        let others = self.other_series(caller, place, new).await?;
        for (distance, other) in others.into_iter().take(PLANNED_MAX) {
            if offers.len() == OFFERS_MAX {
                break;
            }
            if let Some((part, take)) = self.fits(caller, place, &other, &mut directory).await? {
                let kind = match other.first.span == new.first.span {
                    true => AlternativeKind::Elsewhere,
                    false => AlternativeKind::Time,
                };
                offers.push(Alternative {
                    kind,
                    distance,
                    take,
                    parts: vec![part],
                    holds: Vec::new(),
                });
            }
        }
        Ok((offers, directory))
    }

    /// The alternatives to try, the nearest first.
    async fn other_series(
        &self,
        caller: &Caller,
        place: &Place,
        new: &NewSeries,
    ) -> Result<Vec<(SignedDuration, NewSeries)>> {
        let mut others = Vec::new();
        for steps in 1..=STEPS_MAX {
            for offset in [STEP * steps, -(STEP * steps)] {
                let span = new.first.span;
                let (start, end) = (span.start() + offset, span.end() + offset);
                if start > self.now()
                    && let Ok(span) = Span::new(start, end)
                {
                    let mut other = refusing(new);
                    other.first.span = span;
                    others.push((offset.abs(), other));
                }
            }
        }
        if let Some(items) = self.as_good_as_all(caller, place, new).await? {
            let mut other = refusing(new);
            other.first.items = items;
            others.insert(0, (NEXT_DOOR, other));
        }
        Ok(others)
    }

    /// The same number of equivalent resources that are free at all times of the series.
    async fn as_good_as_all(
        &self,
        caller: &Caller,
        place: &Place,
        new: &NewSeries,
    ) -> Result<Option<Vec<Item>>> {
        let mut reader = self.store.read().await?;
        let id = SeriesId(fresh(self.now()));
        let everything = NewSeries {
            on_conflict: OnConflict::Skip,
            ..new.clone()
        };
        let plan = self.plan_series(&mut reader, caller, place, &everything, id);
        let plan = plan.await?;
        drop(reader);
        let named: Vec<ResourceId> = plan.order.takes.iter().map(|(id, _)| *id).collect();
        let take = plan
            .order
            .takes
            .first()
            .map_or(Take::Exclusive, |(_, take)| *take);
        if plan.order.takes.iter().any(|(_, other)| *other != take) {
            return Ok(None);
        }
        let board = self.board(place.id()).await?;
        let Some(kind) = board.common_kind(&named) else {
            return Ok(None);
        };
        let is_free = |id: &ResourceId| {
            let mut held = plan.reservations.iter().map(|one| one.held_span());
            held.all(|span| board.busy.is_free(*id, take, span))
        };
        let free = board
            .of_kind(&kind, &named)
            .into_iter()
            .map(|one| one.resource);
        let free: Vec<ResourceId> = free.filter(is_free).take(named.len()).collect();
        let item = |resource: ResourceId| Item {
            resource: Reference::Id(resource),
            amount: take.amount(),
        };
        let is_enough = free.len() == named.len();
        Ok(is_enough.then(|| free.into_iter().map(item).collect()))
    }

    /// The first instance of a series, if the whole series could be booked now.
    async fn fits(
        &self,
        caller: &Caller,
        place: &Place,
        other: &NewSeries,
        directory: &mut Directory,
    ) -> Result<Option<(Part, Take)>> {
        let mut reader = self.store.read().await?;
        let id = SeriesId(fresh(self.now()));
        let plan = match self
            .plan_series(&mut reader, caller, place, other, id)
            .await
        {
            Ok(plan) => plan,
            Err(Error::Store(error)) => return Err(error.into()),
            Err(_) => return Ok(None),
        };
        let wanted: Vec<_> = plan.claims.iter().map(Vec::as_slice).collect();
        let met = self
            .in_the_way_of_each(&mut reader, &plan.order.directory, &wanted)
            .await?;
        if !met.iter().all(Vec::is_empty) {
            return Ok(None);
        }
        directory.join(plan.order.directory);
        let take = plan
            .order
            .takes
            .first()
            .map_or(Take::Exclusive, |(_, take)| *take);
        let resources = plan.order.takes.iter().map(|(id, _)| *id);
        let part = Part {
            site: place.id(),
            span: other.first.span,
            resources: resources.collect(),
        };
        Ok(Some((part, take)))
    }
}

/// The same series, all or nothing.
fn refusing(new: &NewSeries) -> NewSeries {
    NewSeries {
        on_conflict: OnConflict::Refuse,
        ..new.clone()
    }
}
