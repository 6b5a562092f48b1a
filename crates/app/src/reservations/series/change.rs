//! Changes a series: one instance, one and all later ones, or all future ones.
//!
//! Instances that were changed individually stay unchanged: a person who moved one Monday to the afternoon meant it.
//! The answer names them. See `docs/decisions/0008-series.md`.

use berth_engine::recurrence::{Halves, Instance, split};
use berth_engine::rights::Action;
use berth_model::event::{Audience, EventKind};
use berth_model::recurrence::Pattern;
use berth_model::reference::SiteReference;
use berth_model::reservation::Reservation;
use berth_model::{FieldErrors, Occurrence, ReservationId, Series, SeriesId};
use berth_store::{Conn, reservations, series};
use jiff::civil::Date;
use std::collections::BTreeMap;

use super::super::change::{Changing, ReservationChange};
use super::super::hold::{Softer, is_taken};
use super::{Part, SeriesChange, SeriesView, day, end_of, instance, is_to_come, pattern, told};
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::record::Change;
use crate::transact::transact;
use crate::version;

/// The split of a series at the first instance of a change.
struct Cut {
    /// The part that stays unchanged. None if the change is for the whole series.
    before: Option<Pattern>,
    rest: Pattern,
    /// The first day of the change.
    from: Date,
}

impl App {
    /// Changes a part of a series that is still at `version`. None accepts any version. All or nothing: if one instance
    /// cannot be changed, none is.
    pub async fn change_series(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: SeriesId,
        version: Option<u64>,
        part: Part,
        change: &SeriesChange,
    ) -> Result<SeriesView> {
        if let Part::This(one) = part {
            return self
                .change_one(caller, site, id, version, one, change)
                .await;
        }
        let mut tried = None;
        for softer in [Softer::LeftAlone, Softer::GiveWay] {
            let changed = transact!(self, tx => {
                let (place, before) = self.own_series(&mut tx, caller, site, id, Action::ChangeReservation).await?;
                version::expect(version, before.version)?;
                let mut changing = Changing { caller, place: &place, softer, tried: &mut tried };
                self.change_many(&mut tx, &mut changing, before, part, change).await
            });
            match changed {
                Err(error) if is_taken(&error) => {
                    // A later instance may meet another yielding claim, so this does not ask `might_yield` first.
                    if softer == Softer::GiveWay {
                        break;
                    }
                }
                changed => {
                    self.planned.notify_one();
                    return changed;
                }
            }
        }
        Err(self.change_refused(caller, tried).await)
    }

    /// Changes one instance like a single reservation, with its time computed from the series.
    async fn change_one(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: SeriesId,
        version: Option<u64>,
        one: ReservationId,
        change: &SeriesChange,
    ) -> Result<SeriesView> {
        let view = self.get_series(caller, site, id).await?;
        version::expect(version, view.series.version)?;
        let before = instance(&view.instances, one)?;
        let (_, by_day) = pattern::changed(&view.series.pattern, change)?;
        let then = by_day.get(&day(before)).filter(|_| change.moves());
        let change = change.of_one(then);
        self.change_reservation(caller, site, one, Some(before.version), &change)
            .await?;
        self.get_series(caller, site, id).await
    }

    async fn change_many(
        &self,
        conn: &mut Conn,
        changing: &mut Changing<'_>,
        before: Series,
        part: Part,
        change: &SeriesChange,
    ) -> Result<SeriesView> {
        let (now, caller, place) = (self.now(), changing.caller, changing.place);
        let instances = reservations::of_series_locked(conn, before.id).await?;
        let cut = cut(&before, &instances, part)?;
        let (pattern, by_day) = pattern::changed(&cut.rest, change)?;
        let is_split = cut.before.is_some();
        let (follow, stay): (Vec<_>, Vec<_>) =
            instances.into_iter().partition(|one| day(one) >= cut.from);
        let (theirs, others): (Vec<_>, Vec<_>) = follow
            .into_iter()
            .filter(|one| is_to_come(one, now))
            .partition(|one| one.owner == before.owner);
        let (differing, mut alike): (Vec<_>, Vec<_>) = theirs
            .into_iter()
            .partition(|one| one.occurrence.is_some_and(|occurrence| occurrence.differs));
        if alike.is_empty() {
            return Err(Error::SeriesOver);
        }
        let then = |one: &Reservation| by_day.get(&day(one)).copied();
        let spans = alike.iter().filter_map(|one| Some(then(one)?.span.end()));
        let after = Series {
            title: change.title.clone().unwrap_or(before.title.clone()),
            privacy: change.privacy.unwrap_or(before.privacy),
            pattern,
            ends: spans.max().unwrap_or(now).max(end_of(&differing, now)),
            updated_at: now,
            ..before.clone()
        };
        let after = match cut.before {
            None => Series {
                version: before.version + 1,
                ends: after.ends.max(end_of(&stay, after.ends)),
                ..after
            },
            Some(_) => Series {
                id: SeriesId(fresh(now)),
                version: 1,
                created_at: now,
                ..after
            },
        };
        if let Some(pattern) = cut.before {
            series::insert(conn, &after).await?;
            let shorter = Series {
                pattern,
                ends: end_of(&stay, before.created_at),
                version: before.version + 1,
                updated_at: now,
                ..before.clone()
            };
            self.rewrite_series(conn, caller, &before, &shorter, stay.len())
                .await?;
        }

        let left_alone: Vec<ReservationId> =
            differing.iter().chain(&others).map(|one| one.id).collect();
        let count = alike.len();
        // If instances move later, the last moves first. So no instance moves onto a neighbour that has not moved yet.
        let first = alike
            .first()
            .and_then(|one| Some((one.span, then(one)?.span)));
        if first.is_some_and(|(had, wanted)| wanted.start() > had.start()) {
            alike.reverse();
        }
        for one in alike {
            let then = then(&one).filter(|_| change.moves());
            let occurrence = occurrence(&one, &after, &by_day, false);
            let change = change.of_one(then.as_ref());
            self.change_inside(conn, changing, one, &change, occurrence)
                .await?;
        }
        if is_split {
            // These instances stay unchanged, but belong to the new series.
            for one in differing {
                let occurrence = occurrence(&one, &after, &by_day, true);
                let nothing = ReservationChange::default();
                self.change_inside(conn, changing, one, &nothing, occurrence)
                    .await?;
            }
            let record = Change::new("series.create", Some(after.site), after.id)
                .after(&after)
                .tell_only(
                    EventKind::SeriesCreated,
                    Audience::Members,
                    told(&after, count),
                );
            self.record(conn, caller, record).await?;
        } else {
            self.rewrite_series(conn, caller, &before, &after, count)
                .await?;
        }
        let view = self.series_view(conn, caller, place, after.id).await?;
        Ok(SeriesView { left_alone, ..view })
    }

    /// Writes a changed series, with its audit entry and event.
    async fn rewrite_series(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        before: &Series,
        after: &Series,
        instances: usize,
    ) -> Result<()> {
        if !series::update(conn, after, before.version).await? {
            return Err(version::overtaken(before.version));
        }
        let record = Change::new("series.change", Some(after.site), after.id)
            .before(before)
            .after(after)
            .tell_only(
                EventKind::SeriesChanged,
                Audience::Members,
                told(after, instances),
            );
        self.record(conn, caller, record).await
    }
}

/// Splits the series at the part to be changed.
fn cut(series: &Series, instances: &[Reservation], part: Part) -> Result<Cut> {
    let all = Cut {
        before: None,
        rest: series.pattern.clone(),
        from: Date::MIN,
    };
    let Part::Following(one) = part else {
        return Ok(all);
    };
    let from = day(instance(instances, one)?);
    let at = from.to_datetime(series.pattern.start.time());
    let Halves { before, rest } = split(&series.pattern, at)
        .map_err(|error| FieldErrors::one("instance", error.to_string()))?;
    Ok(match before {
        None => all,
        before => Cut { before, rest, from },
    })
}

/// The place of an instance in the changed series.
fn occurrence(
    one: &Reservation,
    series: &Series,
    by_day: &BTreeMap<Date, Instance>,
    differs: bool,
) -> Option<Occurrence> {
    let had = one.occurrence?;
    let start = by_day.get(&day(one)).map_or(had.start, |then| then.id);
    Some(Occurrence {
        series: series.id,
        start,
        differs,
    })
}

impl SeriesChange {
    /// Whether it changes the time.
    fn moves(&self) -> bool {
        self.at.is_some() || self.length.is_some()
    }

    /// The change of one instance, at the time of `then`. None keeps the time.
    fn of_one(&self, then: Option<&Instance>) -> ReservationChange {
        ReservationChange {
            title: self.title.clone(),
            start: then.map(|then| then.span.start()),
            end: then.map(|then| then.span.end()),
            items: self.items.clone(),
            project: self.project.clone(),
            privacy: self.privacy,
            ..ReservationChange::default()
        }
    }
}
