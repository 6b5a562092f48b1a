//! What a client writes when it wants something.

use anyhow::Result;
use berth_api::list::List;
use berth_api::reservations::{NewReservation, ReservationPatch, WantedResource};
use berth_api::series::NewSeries;
use berth_model::Take;
use berth_model::reservation::Privacy;

use super::known::Content;
use super::wish::{Days, How};

/// What to say for a booking like this.
pub fn booking(wanted: &Content, how: How) -> Result<NewReservation> {
    Ok(NewReservation {
        title: wanted.title.clone(),
        start: wanted.span.start().try_into()?,
        end: wanted.span.end().try_into()?,
        resources: resources(wanted)?,
        project: None,
        privacy: Privacy::Site,
        parameters: Default::default(),
        on_behalf_of: None,
        hold: how == How::Held,
        wait: match how {
            How::Waiting(until_room) => Some(until_room),
            How::Outright | How::Held => None,
        },
        at_end: Default::default(),
        lends: None,
    })
}

/// What to say for the same on several days.
pub fn series(first: &Content, days: Days) -> Result<NewSeries> {
    let one = booking(first, How::Outright)?;
    Ok(NewSeries {
        title: one.title,
        start: one.start,
        end: one.end,
        rule: format!("FREQ=DAILY;COUNT={}", days.count).parse()?,
        except: Default::default(),
        on_conflict: days.on_conflict,
        resources: one.resources,
        project: None,
        privacy: Privacy::Site,
        parameters: Default::default(),
        on_behalf_of: None,
        at_end: Default::default(),
        lends: None,
    })
}

/// What to say for `had` to become `wanted`: only what differs.
pub fn patch(had: &Content, wanted: &Content) -> Result<ReservationPatch> {
    let mut patch = ReservationPatch::default();
    if had.title != wanted.title {
        patch.title = Some(wanted.title.clone());
    }
    if had.span.start() != wanted.span.start() {
        patch.start = Some(wanted.span.start().try_into()?);
    }
    if had.span.end() != wanted.span.end() {
        patch.end = Some(wanted.span.end().try_into()?);
    }
    if had.items != wanted.items {
        patch.resources = Some(resources(wanted)?);
    }
    Ok(patch)
}

fn resources(content: &Content) -> Result<List<WantedResource, 1, 100>> {
    let wanted = content.items.iter().map(|(resource, take)| WantedResource {
        resource: (*resource).into(),
        amount: match take {
            Take::Exclusive => None,
            Take::Amount(amount) => Some(*amount),
        },
    });
    Ok(wanted.collect::<Vec<_>>().try_into()?)
}
