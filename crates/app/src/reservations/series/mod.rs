//! Series: bookings made together by one rule, and read, changed and cancelled together.
//!
//! An instance is an ordinary reservation and takes the same path for drafting, claims, audit entries and events. Only
//! the number is special: the instances are drafted from one order and written in few statements. Conflicts are found
//! with one query per resource.

mod alternatives;
mod book;
mod cancel;
mod change;
mod look;
mod pattern;
mod preview;
mod room;

use std::collections::BTreeSet;

use berth_engine::recurrence::{Instance, Remark};
use berth_engine::rights::Action;
use berth_engine::sight::{Sight, see};
use berth_model::reference::{PersonReference, ProjectReference, SiteReference};
use berth_model::reservation::{Privacy, Reservation, State};
use berth_model::{FieldErrors, Recurrence, ReservationId, Series, SeriesId, Text};
use berth_store::{Conn, series};
use jiff::civil::{Date, Time};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::check::Item;
use super::create::NewReservation;
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;

#[derive(Debug, Clone)]
pub struct NewSeries {
    /// The template of each instance, at the time of the first.
    pub first: NewReservation,
    pub rule: Recurrence,
    /// Days of the rule that are left out.
    pub except: BTreeSet<Date>,
    pub on_conflict: OnConflict,
}

/// How to treat a series if some instances cannot be booked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// All or nothing.
    #[default]
    Refuse,
    /// Skip these instances, and list them.
    Skip,
}

/// A series with its instances, and everything they name.
#[derive(Debug)]
pub struct SeriesView {
    pub series: Series,
    /// By start, including past and cancelled ones.
    pub instances: Vec<Reservation>,
    /// The occurrences of the rule that were not booked.
    pub skipped: Vec<Skipped>,
    /// The instances that a change skipped although it covered them: they differ, or now belong to somebody else.
    pub left_alone: Vec<ReservationId>,
    pub directory: Directory,
}

#[derive(Debug)]
pub struct Skipped {
    pub instance: Instance,
    /// The reason. Known when the series is booked, and not stored.
    pub why: Option<Error>,
}

/// The result that booking a series would have, for each instance.
#[derive(Debug)]
pub struct SeriesPreview {
    pub instances: Vec<Foreseen>,
}

#[derive(Debug)]
pub struct Foreseen {
    pub instance: Instance,
    /// How a clock change affects it.
    pub remark: Option<Remark>,
    pub outcome: Result<State>,
}

/// A part of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    This(ReservationId),
    /// This instance and all later ones.
    Following(ReservationId),
    All,
}

/// The fields that may change. An absent field stays unchanged.
#[derive(Debug, Clone, Default)]
pub struct SeriesChange {
    pub title: Option<Text>,
    /// The start of each instance, on the site's wall clock.
    pub at: Option<Time>,
    /// The length of each instance, on the site's wall clock.
    pub length: Option<SignedDuration>,
    pub items: Option<Vec<Item>>,
    pub project: Option<Option<ProjectReference>>,
    pub privacy: Option<Privacy>,
}

#[derive(Debug, Clone)]
pub struct SeriesFilter {
    pub owner: Option<PersonReference>,
    /// Only series that end after this.
    pub from: Option<Timestamp>,
    pub after: Option<SeriesId>,
    pub limit: u64,
}

fn is_visible(place: &Place, caller: &Caller, series: &Series) -> bool {
    let sight = see(
        place.standing,
        caller.id(),
        Some(series.owner),
        series.privacy,
    );
    sight == Sight::Full
}

impl App {
    /// A series on which the caller may act, locked: their own, or one in a site they administer.
    async fn own_series(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        site: &SiteReference,
        id: SeriesId,
        action: Action,
    ) -> Result<(Place, Series)> {
        let place = self
            .place(conn, caller, site, Action::SeeReservation)
            .await?;
        let found = series::get_locked(conn, place.id(), id).await?;
        let series = found
            .filter(|found| is_visible(&place, caller, found))
            .ok_or(Error::NotFound("series"))?;
        place.may(caller, action, series.owner == caller.id(), "series")?;
        Ok((place, series))
    }
}

/// The first instance of a part.
fn instance(instances: &[Reservation], id: ReservationId) -> Result<&Reservation> {
    let found = instances.iter().find(|instance| instance.id == id);
    let message = "is not an instance of this series; `berth series show` lists them";
    found.ok_or_else(|| FieldErrors::one("instance", message).into())
}

/// The rule's day of an instance. Every reservation of a series has one.
fn day(instance: &Reservation) -> Date {
    instance
        .occurrence
        .map_or(Date::MIN, |occurrence| occurrence.start.date())
}

/// Whether an instance can still be changed or cancelled together with the others. An instance that has begun must be
/// named individually.
fn is_to_come(instance: &Reservation, now: Timestamp) -> bool {
    matches!(instance.state, State::PendingApproval | State::Confirmed)
        && instance.span.start() > now
}

/// The end of the last instance that was not cancelled. `otherwise` if none is left.
fn end_of<'a>(
    instances: impl IntoIterator<Item = &'a Reservation>,
    otherwise: Timestamp,
) -> Timestamp {
    let kept = instances
        .into_iter()
        .filter(|one| !matches!(one.state, State::Cancelled | State::Rejected));
    kept.map(|one| one.span.end()).max().unwrap_or(otherwise)
}

/// A series for the event stream, which every member reads.
fn told(series: &Series, instances: usize) -> serde_json::Value {
    let mut told = json!({
        "series": series.id,
        "instances": instances,
        "end": series.ends,
        "version": series.version,
    });
    if series.privacy == Privacy::Site {
        told["title"] = json!(series.title);
        told["owner"] = json!(series.owner);
        told["rule"] = json!(series.pattern.recurrence);
    }
    told
}
