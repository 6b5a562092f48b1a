//! Reads reservations: one, many, the caller's own, and the history of one.

use berth_engine::rights::Action;
use berth_engine::sight::{Sight, see};
use berth_model::reference::{PersonReference, ResourceReference, SiteReference};
use berth_model::reservation::{HistoryEntry, Reservation, State};
use berth_model::{ReservationId, SiteId};
use berth_store::{Conn, reservations, sites};
use jiff::Timestamp;

use super::create::Booked;
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;

/// A page of reservations, with everything they name.
#[derive(Debug, Clone)]
pub struct ReservationView {
    pub reservations: Vec<Reservation>,
    /// The start of the next page, if there may be one.
    pub next: Option<(Timestamp, ReservationId)>,
    pub directory: Directory,
}

#[derive(Debug, Clone, Default)]
pub struct ReservationFilter {
    pub states: Vec<State>,
    pub owner: Option<PersonReference>,
    pub resource: Option<ResourceReference>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub after: Option<(Timestamp, ReservationId)>,
    pub limit: u64,
}

pub(crate) fn is_visible(place: &Place, caller: &Caller, reservation: &Reservation) -> bool {
    see(
        place.standing,
        caller.id(),
        Some(reservation.owner),
        reservation.privacy,
    ) == Sight::Full
}

impl App {
    pub async fn get_reservation(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
    ) -> Result<Booked> {
        let mut reader = self.store.read().await?;
        let (place, reservation) = self
            .visible_reservation(&mut reader, caller, site, id)
            .await?;
        let mut directory = Directory::with_site(&place.site);
        directory
            .learn_reservations(&mut reader, std::slice::from_ref(&reservation))
            .await?;
        Ok(Booked {
            reservation,
            directory,
        })
    }

    pub async fn reservation_history(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
    ) -> Result<(Vec<HistoryEntry>, Directory)> {
        let mut reader = self.store.read().await?;
        let (place, _) = self
            .visible_reservation(&mut reader, caller, site, id)
            .await?;
        let history = reservations::history(&mut reader, id).await?;
        let mut directory = Directory::with_site(&place.site);
        directory
            .learn_people(&mut reader, history.iter().filter_map(|entry| entry.by))
            .await?;
        Ok((history, directory))
    }

    async fn visible_reservation(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
    ) -> Result<(Place, Reservation)> {
        let place = self
            .place(conn, caller, site, Action::SeeReservation)
            .await?;
        let found = reservations::get(conn, place.id(), id).await?;
        let reservation = found.ok_or(Error::NotFound("reservation"))?;
        if is_visible(&place, caller, &reservation)
            || self.is_asked(conn, caller, &place, &reservation).await?
        {
            return Ok((place, reservation));
        }
        Err(Error::NotFound("reservation"))
    }

    pub async fn list_reservations(
        &self,
        caller: &Caller,
        site: &SiteReference,
        filter: &ReservationFilter,
    ) -> Result<ReservationView> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeReservation)
            .await?;
        let owner = match &filter.owner {
            Some(owner) => Some(self.narrowed_to(&mut reader, owner).await?),
            None => None,
        };
        let resource = match &filter.resource {
            Some(resource) => Some(self.resource(&mut reader, place.id(), resource).await?.id),
            None => None,
        };
        let query = reservations::Filter {
            owner,
            resource,
            ..filter.stored(Some(place.id()))
        };
        let page = reservations::list(&mut reader, &query).await?;
        let next = next_page(&page, filter.limit);
        let mut directory = Directory::with_site(&place.site);
        let seen: Vec<_> = page
            .into_iter()
            .filter(|found| is_visible(&place, caller, found))
            .collect();
        directory.learn_reservations(&mut reader, &seen).await?;
        Ok(ReservationView {
            reservations: seen,
            next,
            directory,
        })
    }

    /// The caller's own reservations in all their sites.
    pub async fn my_reservations(
        &self,
        caller: &Caller,
        filter: &ReservationFilter,
    ) -> Result<ReservationView> {
        caller.may(Action::SeeOwnAccount, true, "account")?;
        let mut reader = self.store.read().await?;
        let query = reservations::Filter {
            owner: Some(caller.id()),
            ..filter.stored(None)
        };
        let page = reservations::list(&mut reader, &query).await?;
        let next = next_page(&page, filter.limit);
        let mut directory = Directory::default();
        // In other sites the caller sees nothing except the reservations of an ended membership.
        let mine: Vec<SiteId> = if caller.person.global_admin {
            page.iter().map(|found| found.site).collect()
        } else {
            sites::memberships_of(&mut reader, caller.id())
                .await?
                .iter()
                .map(|(site, _)| site.id)
                .collect()
        };
        for site in page.iter().map(|found| found.site) {
            if !directory.sites.contains_key(&site)
                && let Some((site, _)) = sites::by_id_for(&mut reader, site, caller.id()).await?
            {
                directory.add_site(&site);
            }
        }
        let seen: Vec<_> = page
            .into_iter()
            .filter(|found| mine.contains(&found.site))
            .collect();
        directory.learn_reservations(&mut reader, &seen).await?;
        Ok(ReservationView {
            reservations: seen,
            next,
            directory,
        })
    }
}

/// A full page may be followed by another. The cursor counts the rows read, not the rows shown.
fn next_page(page: &[Reservation], limit: u64) -> Option<(Timestamp, ReservationId)> {
    let last = page.last().filter(|_| page.len() as u64 >= limit)?;
    Some((last.span.start(), last.id))
}

impl ReservationFilter {
    fn stored(&self, site: Option<SiteId>) -> reservations::Filter {
        reservations::Filter {
            site,
            states: self.states.clone(),
            from: self.from,
            to: self.to,
            after: self.after,
            limit: self.limit,
            ..Default::default()
        }
    }
}
