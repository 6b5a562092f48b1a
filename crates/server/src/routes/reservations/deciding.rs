//! What becomes of a reservation: given up by its owner, allowed or turned down by an admin.

use axum::extract::State;
use berth_api::members::Reason;
use berth_api::reservations::{Rejection, Reservation};
use berth_api::{Problem, paths};

use super::versioned;
use crate::answer::Versioned;
use crate::failure::Result;
use crate::openapi::IfMatchOptionalHeader;
use crate::request::{Body, IfMatch, Path, Signed};
use crate::routes::addresses::ReservationAt;
use crate::server::Server;

/// Give a reservation up. One that runs is ended; the rest of its time is free again at once.
#[utoipa::path(
    post, path = paths::RESERVATION_CANCEL, tag = "reservations", params(ReservationAt, IfMatchOptionalHeader),
    request_body = Reason,
    responses((status = 200, description = "The reservation, cancelled or ending.", body = Reservation,
        headers(("ETag" = String, description = "The reservation's version."))))
)]
pub(super) async fn cancel_reservation(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ReservationAt>,
    version: IfMatch,
    Body(body): Body<Reason>,
) -> Result<Versioned<Reservation>> {
    let (site, version) = (&at.site, version.optional());
    let cancelled = server
        .app
        .cancel_reservation(&caller, site, at.reservation, version, body.reason)
        .await?;
    Ok(versioned(cancelled))
}

/// Allow a reservation that waits for approval.
///
/// The site's admins decide, or those whom the policies ask. Where several approvals are asked for, it waits until all
/// are given.
#[utoipa::path(
    post, path = paths::RESERVATION_APPROVE, tag = "reservations", params(ReservationAt, IfMatchOptionalHeader),
    responses(
        (status = 200, description = "The reservation: confirmed, or waiting for others.", body = Reservation,
            headers(("ETag" = String, description = "The reservation's version."))),
        (status = 409, description = "`reservation.illegal_state`: It does not wait for approval.",
            body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn approve_reservation(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ReservationAt>,
    version: IfMatch,
) -> Result<Versioned<Reservation>> {
    let (site, version) = (&at.site, version.optional());
    let approved = server
        .app
        .approve_reservation(&caller, site, at.reservation, version)
        .await?;
    Ok(versioned(approved))
}

/// Turn down a reservation that waits for approval; its owner reads the reason.
#[utoipa::path(
    post, path = paths::RESERVATION_REJECT, tag = "reservations", params(ReservationAt, IfMatchOptionalHeader),
    request_body = Rejection,
    responses((status = 200, description = "The reservation, rejected.", body = Reservation,
        headers(("ETag" = String, description = "The reservation's version."))))
)]
pub(super) async fn reject_reservation(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ReservationAt>,
    version: IfMatch,
    Body(body): Body<Rejection>,
) -> Result<Versioned<Reservation>> {
    let (site, version) = (&at.site, version.optional());
    let rejected = server
        .app
        .reject_reservation(&caller, site, at.reservation, version, body.reason)
        .await?;
    Ok(versioned(rejected))
}
