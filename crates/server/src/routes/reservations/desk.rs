//! At the desk: taking what was held, checking in, handing over.

use axum::extract::State;
use berth_api::reservations::{HandOver, Reservation};
use berth_api::{Problem, paths};

use super::versioned;
use crate::answer::Versioned;
use crate::failure::Result;
use crate::openapi::IfMatchOptionalHeader;
use crate::request::{Body, Changing, IfMatch, Path, Signed};
use crate::routes::addresses::ReservationAt;
use crate::server::Server;

/// Make a hold a booking. Its time is kept already, so nobody can come in between.
#[utoipa::path(
    post, path = paths::RESERVATION_TAKE, tag = "reservations", params(ReservationAt, IfMatchOptionalHeader),
    responses(
        (status = 200, description = "The reservation, confirmed or waiting for approval.", body = Reservation,
            headers(("ETag" = String, description = "The reservation's version."))),
        (status = 409, description = "`reservation.hold_over`: The hold ran out. \
            `reservation.illegal_state`: It is no hold.",
            body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn take_reservation(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ReservationAt>,
    version: IfMatch,
) -> Result<Versioned<Reservation>> {
    let (site, version) = (&at.site, version.optional());
    let taken = server
        .app
        .take_reservation(&caller, site, at.reservation, version)
        .await?;
    Ok(versioned(taken))
}

/// Say that you are there, where the site releases what nobody comes for. Saying it twice changes nothing.
#[utoipa::path(
    post, path = paths::RESERVATION_CHECK_IN, tag = "reservations", params(ReservationAt, IfMatchOptionalHeader),
    responses(
        (status = 200, description = "The reservation, as it is now.", body = Reservation,
            headers(("ETag" = String, description = "The reservation's version."))),
        (status = 409, description = "`reservation.check_in_early`: It does not start soon. \
            `reservation.illegal_state`: It is over, or not confirmed.",
            body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn check_in(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<ReservationAt>,
) -> Result<Versioned<Reservation>> {
    let there = server
        .app
        .check_in(&caller, &at.site, at.reservation)
        .await?;
    Ok(versioned(there))
}

/// Give a reservation, as it stands, to another member of the site.
#[utoipa::path(
    post, path = paths::RESERVATION_HAND_OVER, tag = "reservations", params(ReservationAt, IfMatchOptionalHeader),
    request_body = HandOver,
    responses((status = 200, description = "The reservation, with its new owner.", body = Reservation,
        headers(("ETag" = String, description = "The reservation's version."))))
)]
pub(super) async fn hand_over(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ReservationAt>,
    version: IfMatch,
    Body(body): Body<HandOver>,
) -> Result<Versioned<Reservation>> {
    let (site, version) = (&at.site, version.optional());
    let handed = server
        .app
        .hand_over(
            &caller,
            site,
            at.reservation,
            version,
            &body.to,
            body.reason,
        )
        .await?;
    Ok(versioned(handed))
}
