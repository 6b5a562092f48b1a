//! Which reservation is meant by the end of an id.
//!
//! One's own are looked through first, in every site, those that still hold something before those that are over;
//! then those of the site at hand. A full id with a site at hand needs no search at all.

use berth_api::Page;
use berth_api::client::Error;
use berth_api::page::{Cursor, Limit};
use berth_api::reference::{Reference, SiteReference};
use berth_api::reservations::{MyReservationQuery, Reservation, ReservationQuery};
use berth_model::ReservationId;
use berth_model::reservation::State;

use super::Named;
use crate::context::Context;
use crate::failure::not_found;
use crate::handle::Handle;

/// How far a search goes back. Beyond this the full id, which needs none, is quicker for everybody.
const PAGES_MAX: usize = 20;

pub async fn find(
    named: &Named,
    context: &Context,
) -> anyhow::Result<(SiteReference, ReservationId)> {
    let site = named.site.as_ref().or(context.site_if_any());
    if let (Handle::Id(id), Some(site)) = (&named.it, site) {
        return Ok((site.clone(), *id));
    }
    for states in [holding(), over()] {
        if named.site.is_none()
            && let Some(mine) = pick(named, mine(context, &states).await?)?
        {
            return Ok((Reference::Id(mine.site.id), mine.id));
        }
        if let Some(site) = site
            && let Some(found) = pick(named, of_site(context, site, &states).await?)?
        {
            return Ok((site.clone(), found.id));
        }
    }
    let place = match site {
        Some(site) => format!("among yours, and none in {site},"),
        None => "among yours".to_owned(),
    };
    Err(not_found(format!(
        "there is no reservation {place} whose id ends in `{}`",
        named.it
    )))
}

fn pick(named: &Named, found: Vec<Reservation>) -> anyhow::Result<Option<Reservation>> {
    named.it.pick(found, |reservation| reservation.id)
}

fn holding() -> Vec<State> {
    State::ALL
        .iter()
        .copied()
        .filter(|state| state.holds())
        .collect()
}

fn over() -> Vec<State> {
    State::ALL
        .iter()
        .copied()
        .filter(|state| !state.holds())
        .collect()
}

async fn mine(context: &Context, states: &[State]) -> anyhow::Result<Vec<Reservation>> {
    let state = states.to_vec().try_into()?;
    let query = MyReservationQuery {
        state,
        limit: Limit::LARGEST,
        ..Default::default()
    };
    Ok(some_pages(async |cursor| {
        let query = MyReservationQuery {
            cursor,
            ..query.clone()
        };
        context.client.my_reservations(&query).await
    })
    .await?)
}

async fn of_site(
    context: &Context,
    site: &SiteReference,
    states: &[State],
) -> anyhow::Result<Vec<Reservation>> {
    let state = states.to_vec().try_into()?;
    let query = ReservationQuery {
        state,
        limit: Limit::LARGEST,
        ..Default::default()
    };
    Ok(some_pages(async |cursor| {
        let query = ReservationQuery {
            cursor,
            ..query.clone()
        };
        context.client.reservations(site, &query).await
    })
    .await?)
}

async fn some_pages(
    mut fetch: impl AsyncFnMut(Option<Cursor>) -> Result<Page<Reservation>, Error>,
) -> Result<Vec<Reservation>, Error> {
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let page = fetch(cursor).await?;
        all.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(all)
}
