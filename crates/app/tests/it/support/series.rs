//! What tests of series share.

use std::collections::BTreeSet;

use berth_app::reservations::{
    NewSeries, OnConflict, Part, SeriesChange, SeriesFilter, SeriesView,
};
use berth_app::{Caller, Error};
use berth_model::reservation::Reservation;
use jiff::civil::time;

use super::{Lab, site};

/// A series on these resources whose first instance is at these hours.
pub fn wish(lab: &Lab, resources: &[&str], from: i64, to: i64, rule: &str) -> NewSeries {
    NewSeries {
        first: lab.wish(resources, from, to),
        rule: rule.parse().expect("a rule"),
        except: BTreeSet::new(),
        on_conflict: OnConflict::Refuse,
    }
}

pub async fn try_series(lab: &Lab, who: &Caller, new: &NewSeries) -> Result<SeriesView, Error> {
    Ok(lab.app.book_series(who, &site(), new).await?.value)
}

pub async fn series(lab: &Lab, who: &Caller, new: &NewSeries) -> SeriesView {
    try_series(lab, who, new).await.expect("it can be booked")
}

/// The hours, counted from the lab's opening, at which instances that still hold something start.
pub fn starts(lab: &Lab, view: &SeriesView) -> Vec<i64> {
    let holding = view.instances.iter().filter(|one| one.state.holds());
    let hour = |one: &Reservation| one.span.start().duration_since(lab.at(0)).as_hours();
    holding.map(hour).collect()
}

/// The hour of the same time of day, so many weeks later.
pub fn week(weeks: i64) -> i64 {
    24 + weeks * 7 * 24
}

pub const WEEKLY: &str = "FREQ=WEEKLY;COUNT=4";

pub async fn all_series(lab: &Lab, who: &Caller) -> usize {
    let filter = SeriesFilter {
        owner: None,
        from: None,
        after: None,
        limit: 100,
    };
    let (page, _, _) = lab
        .app
        .list_series(who, &site(), &filter)
        .await
        .expect("a list");
    page.len()
}

pub async fn change(
    lab: &Lab,
    who: &Caller,
    view: &SeriesView,
    part: Part,
    change: SeriesChange,
) -> Result<SeriesView, Error> {
    let id = view.series.id;
    lab.app
        .change_series(who, &site(), id, None, part, &change)
        .await
}

pub fn at(hour: i8) -> SeriesChange {
    SeriesChange {
        at: Some(time(hour, 0, 0, 0)),
        ..SeriesChange::default()
    }
}
