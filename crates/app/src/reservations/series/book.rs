//! Books a series: all of it, or all instances that fit.

use berth_engine::recurrence::Instance;
use berth_model::event::{Audience, EventKind};
use berth_model::reference::SiteReference;
use berth_model::reservation::Reservation;
use berth_model::{Claim, FieldErrors, Occurrence, ReservationId, Series, SeriesId};
use berth_store::{Conn, booking, series};

use super::super::create::Order;
use super::super::hold::{Softer, is_taken};
use super::{NewSeries, OnConflict, SeriesView, Skipped, pattern, told};
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::record::{By, Change};
use crate::transact::transact;

/// How often a series with [`OnConflict::Skip`] is planned again after another booking came in between.
const LOOKS_MAX: usize = 8;

/// A planned series, before anything is written.
pub(super) struct Plan {
    pub order: Order,
    pub series: Series,
    /// The instances, with the reservation and the claims of each at the same index.
    pub instances: Vec<Instance>,
    pub reservations: Vec<Reservation>,
    pub claims: Vec<Vec<Claim>>,
    pub skipped: Vec<Skipped>,
}

impl App {
    pub async fn book_series(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewSeries,
    ) -> Result<Made<SeriesView>> {
        let booked = self.book_series_uncounted(caller, site, new).await;
        self.tallied(site, booked)
    }

    async fn book_series_uncounted(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: &NewSeries,
    ) -> Result<Made<SeriesView>> {
        let id = SeriesId(fresh(self.now()));
        let tries = match new.on_conflict {
            OnConflict::Refuse => 2,
            OnConflict::Skip => LOOKS_MAX,
        };
        let mut asked = None;
        for attempt in 0..tries {
            // As for a single booking: the first try leaves yielding claims alone, which is nearly always enough.
            let softer = if attempt == 0 {
                Softer::LeftAlone
            } else {
                Softer::GiveWay
            };
            let made = transact!(self, tx => {
                let place = self.booking_place(&mut tx, caller, site).await?;
                if let Some(earlier) = self.first_time(&mut tx, caller, id).await? {
                    return Ok(Made::before(self.series_view(&mut tx, caller, &place, earlier).await?));
                }
                let mut plan = self.plan_series(&mut tx, caller, &place, new, id).await?;
                if new.on_conflict == OnConflict::Skip {
                    self.leave_out(&mut tx, caller, &place, &mut plan).await?;
                }
                plan.refuse_if_empty()?;
                let claims = plan.claims.concat();
                asked = Some((place, plan.order.directory.clone(), plan.claims.clone()));
                self.hold(&mut tx, &By::from(caller), &claims, softer).await?;
                Ok(Made::now(self.write_series(&mut tx, caller, plan).await?))
            });
            match made {
                Err(error) if is_taken(&error) => {}
                made => {
                    self.falls_due(new.first.span.start());
                    return made;
                }
            }
        }
        match (asked, new.on_conflict) {
            (Some((place, directory, wanted)), OnConflict::Refuse) => {
                let refusal = self.series_refusal(&place, caller, &directory, &wanted);
                let refusal = refusal.await?;
                let refusal = self.with_series_alternatives(refusal, caller, &place, new);
                Err(refusal.await)
            }
            // Another booking came in between every time. Nothing was booked, and a new request may succeed.
            (_, OnConflict::Skip) => Err(berth_store::Error::Retry.into()),
            (None, OnConflict::Refuse) => Err(Error::Internal(
                "a claim was refused that nobody made".into(),
            )),
        }
    }

    /// Makes every decision that precedes the claim rule. An instance that cannot be booked refuses the whole series,
    /// or is skipped.
    pub(super) async fn plan_series(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        new: &NewSeries,
        id: SeriesId,
    ) -> Result<Plan> {
        let now = self.now();
        let (pattern, instances) = pattern::read(new, &place.site.time_zone)?;
        let order = self.order(conn, caller, place, &new.first).await?;
        let mut plan = Plan {
            series: Series {
                id,
                site: place.id(),
                owner: order.owner,
                title: new.first.title.clone(),
                privacy: new.first.privacy,
                pattern,
                ends: new.first.span.end(),
                version: 1,
                created_at: now,
                updated_at: now,
            },
            order,
            instances: Vec::with_capacity(instances.len()),
            reservations: Vec::with_capacity(instances.len()),
            claims: Vec::with_capacity(instances.len()),
            skipped: Vec::new(),
        };
        for instance in instances {
            let (id, span) = (ReservationId(fresh(now)), instance.span);
            let beside = &plan.reservations;
            let drafted = self
                .draft_at(conn, caller, place, &plan.order, id, span, beside)
                .await;
            match drafted {
                Ok((reservation, claims)) => plan.add(instance, reservation, claims)?,
                Err(error) if new.on_conflict == OnConflict::Skip && is_refusal(&error) => {
                    plan.skipped.push(Skipped {
                        instance,
                        why: Some(error),
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(plan)
    }

    /// Skips the instances that the claim rule would refuse, as far as can be seen now.
    pub(super) async fn leave_out(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        plan: &mut Plan,
    ) -> Result<()> {
        let wanted: Vec<&[Claim]> = plan.claims.iter().map(Vec::as_slice).collect();
        let directory = &plan.order.directory;
        let met = self.in_the_way_of_each(conn, directory, &wanted).await?;
        if met.iter().all(Vec::is_empty) {
            return Ok(());
        }
        let refusals = self
            .refusal_of_each(conn, place, caller, directory, met)
            .await?;
        let mut is_free = refusals.iter().map(Option::is_none);
        let mut is_kept = || is_free.next().unwrap_or(true);
        plan.reservations.retain(|_| is_kept());
        let mut is_free = refusals.iter().map(Option::is_none);
        let mut is_kept = || is_free.next().unwrap_or(true);
        plan.claims.retain(|_| is_kept());
        let instances = std::mem::take(&mut plan.instances);
        for (instance, refusal) in instances.into_iter().zip(refusals) {
            match refusal {
                None => plan.instances.push(instance),
                why => plan.skipped.push(Skipped { instance, why }),
            }
        }
        plan.skipped.sort_by_key(|skipped| skipped.instance.id);
        Ok(())
    }

    /// Writes the series, its instances, the audit entries and the events.
    async fn write_series(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        plan: Plan,
    ) -> Result<SeriesView> {
        let Plan {
            order,
            mut series,
            reservations,
            skipped,
            ..
        } = plan;
        let ends = reservations.iter().map(|one| one.span.end());
        series.ends = ends.max().unwrap_or(series.ends);
        series::insert(conn, &series).await?;
        let change = Change::new("series.create", Some(series.site), series.id)
            .after(&series)
            .tell_only(
                EventKind::SeriesCreated,
                Audience::Members,
                told(&series, reservations.len()),
            );
        self.record(conn, caller, change).await?;
        let bookings = reservations
            .into_iter()
            .map(|reservation| self.booking(caller, reservation));
        let bookings = bookings.collect::<Result<Vec<_>>>()?;
        booking::insert_all(conn, &bookings).await?;
        for booking in &bookings {
            self.keep_secrets(conn, &booking.reservation, &order.answers)
                .await?;
        }
        Ok(SeriesView {
            series,
            instances: bookings.into_iter().map(|one| one.reservation).collect(),
            skipped,
            left_alone: Vec::new(),
            directory: order.directory,
        })
    }
}

impl Plan {
    /// Adds an instance. Including its buffers, it must not overlap the previous one.
    fn add(
        &mut self,
        instance: Instance,
        mut reservation: Reservation,
        claims: Vec<Claim>,
    ) -> Result<()> {
        let last = self.claims.last().into_iter().flatten();
        if let Some(end) = last.map(|claim| claim.span.end()).max()
            && claims.iter().any(|claim| claim.span.start() < end)
        {
            let message = format!(
                "the time held before and after each instance makes that of {} overlap the one before it; \
                 make them shorter, or repeat them less often",
                instance.id.date()
            );
            return Err(FieldErrors::one("rule", message).into());
        }
        reservation.occurrence = Some(Occurrence {
            series: self.series.id,
            start: instance.id,
            differs: false,
        });
        self.instances.push(instance);
        self.reservations.push(reservation);
        self.claims.push(claims);
        Ok(())
    }

    /// Refuses a series without any bookable instance, with the reason of the first one.
    fn refuse_if_empty(&mut self) -> Result<()> {
        if !self.instances.is_empty() {
            return Ok(());
        }
        let first = self
            .skipped
            .iter_mut()
            .find_map(|skipped| skipped.why.take());
        Err(first.unwrap_or(Error::SeriesOver))
    }
}

/// Whether this is a refusal of the request, and not a failure of the server.
fn is_refusal(error: &Error) -> bool {
    !matches!(error, Error::Store(_) | Error::Internal(_))
}
