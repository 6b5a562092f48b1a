//! Finds a reservation on which the caller may act, and cancels reservations.

use berth_engine::rights::Action;
use berth_model::reference::SiteReference;
use berth_model::reservation::{Reservation, State, Transition};
use berth_model::{ReservationId, Text};
use berth_store::{Conn, reservations};

use super::create::Booked;
use super::look::is_visible;
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::record::By;
use crate::transact::transact;
use crate::version;

impl App {
    /// A reservation on which the caller may act: their own, or one in a site they administer.
    pub(super) async fn own_reservation(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
        action: Action,
    ) -> Result<(Place, Reservation)> {
        let place = self
            .place(conn, caller, site, Action::SeeReservation)
            .await?;
        let reservation = reservations::get_locked(conn, place.id(), id)
            .await?
            .ok_or(Error::NotFound("reservation"))?;
        if !is_visible(&place, caller, &reservation) {
            return Err(Error::NotFound("reservation"));
        }
        place.may(
            caller,
            action,
            reservation.owner == caller.id(),
            "reservation",
        )?;
        Ok((place, reservation))
    }

    /// Cancels a reservation. A running one ends; the rest of its time is free at once.
    pub async fn cancel_reservation(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
        version: Option<u64>,
        reason: Option<Text>,
    ) -> Result<Booked> {
        self.decide(
            caller,
            site,
            id,
            Action::CancelReservation,
            version,
            reason,
            |state| Ok(state.cancel()?),
        )
        .await
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one decision with all it depends on"
    )]
    async fn decide(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
        action: Action,
        version: Option<u64>,
        reason: Option<Text>,
        transition: impl Fn(State) -> Result<Transition>,
    ) -> Result<Booked> {
        let decided = transact!(self, tx => {
            let (place, before) = self.own_reservation(&mut tx, caller, site, id, action).await?;
            version::expect(version, before.version)?;
            let transition = transition(before.state)?;
            let after = self.step(&mut tx, &By::from(caller), before, transition, reason.clone()).await?;
            let mut directory = Directory::with_site(&place.site);
            directory.learn_reservations(&mut tx, std::slice::from_ref(&after)).await?;
            Ok(Booked { reservation: after, directory })
        });
        self.planned.notify_one();
        decided
    }
}
