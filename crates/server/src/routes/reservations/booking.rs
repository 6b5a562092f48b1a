//! Booking, trying a booking, and changing one.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use berth_api::desk;
use berth_api::page::DryRunQuery;
use berth_api::paths;
use berth_api::reservations::{
    Extension, NewReservation, Reservation, ReservationPatch, ReservationPreview, WantedResource,
};
use berth_app::desk::WaitFor;
use berth_app::reservations::{self, Item, Preview, ReservationChange};
use serde::Serialize;
use utoipa::ToSchema;

use super::{shown, versioned};
use crate::answer::{Made, Versioned};
use crate::failure::{Failure, Result};
use crate::openapi::{IdempotencyKeyHeader, IfMatchHeader, IfMatchOptionalHeader};
use crate::request::{Body, Changing, Creating, IfMatch, Path, Query, Signed};
use crate::routes::addresses::{ReservationAt, SiteAt};
use crate::server::Server;

/// A reservation that was made before, or what booking it would do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum BookedOrPreview {
    Booked(Reservation),
    Preview(ReservationPreview),
}

/// Book one or several resources.
///
/// All of them or none. Where a type needs approval, the reservation holds its time while it waits for an admin.
/// A refusal lists what is in the way, as far as I may see it. A dry run says whether the booking would be
/// accepted, and with which problem it would be refused.
#[utoipa::path(
    post, path = paths::RESERVATIONS, tag = "reservations", params(SiteAt, DryRunQuery, IdempotencyKeyHeader),
    request_body = NewReservation,
    responses(
        (status = 201, description = "Booked.", body = Reservation,
            headers(
                ("ETag" = String, description = "The reservation's version."),
                ("Location" = String, description = "Where to read it."),
            )),
        (status = 200,
            description = "A dry run's preview; or the reservation that an earlier request with this key made.",
            body = BookedOrPreview,
            headers(("Idempotency-Replayed" = bool, description = "`true` if the reservation was made before."))),
    )
)]
pub(super) async fn create_reservation(
    State(server): State<Server>,
    _: Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<DryRunQuery>,
    Creating { caller, body }: Creating<NewReservation>,
) -> Result<Response> {
    let new = reservations::NewReservation {
        span: body.span()?,
        title: body.title,
        items: body.resources.into_iter().map(item).collect(),
        project: body.project,
        privacy: body.privacy,
        parameters: body.parameters.into_inner(),
        owner: body.on_behalf_of,
        hold: body.hold,
        any: None,
        pinned: false,
        wait: body.wait.map(wait_for),
        at_end: body.at_end,
        lends: body.lends,
    };
    if query.dry_run {
        let preview = server.app.preview_booking(&caller, &at.site, &new).await?;
        let preview = tried(&server, preview)?;
        return Ok(Json(BookedOrPreview::Preview(preview)).into_response());
    }
    let made = server.app.book(&caller, &at.site, &new).await?;
    Ok(booked(&server, made))
}

/// A booking that was made, now or before.
pub(super) fn booked(server: &Server, made: berth_app::Made<reservations::Booked>) -> Response {
    let reservation = &made.value.reservation;
    let location = paths::reservation(&reservation.site, &reservation.id);
    let version = reservation.version;
    let made = made.map(|booked| BookedOrPreview::Booked(shown(booked)));
    let made = Made::from(made).at(server.link(&location));
    made.version(version).into_response()
}

/// Change a reservation: its time, its resources, its words.
///
/// Shortening is always possible until it ends. Its start and its resources are fixed once it has begun.
#[utoipa::path(
    patch, path = paths::RESERVATION, tag = "reservations", params(ReservationAt, IfMatchHeader),
    request_body = ReservationPatch,
    responses((status = 200, description = "The reservation, as it is now.", body = Reservation,
        headers(("ETag" = String, description = "The reservation's version."))))
)]
pub(super) async fn change_reservation(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ReservationAt>,
    version: IfMatch,
    Body(patch): Body<ReservationPatch>,
) -> Result<Versioned<Reservation>> {
    let change = ReservationChange {
        title: patch.title,
        start: patch.start.map(|start| start.get()),
        end: patch.end.map(|end| end.get()),
        items: patch
            .resources
            .map(|wanted| wanted.into_iter().map(item).collect()),
        project: patch.project,
        privacy: patch.privacy,
        parameters: patch.parameters.map(|answers| answers.into_inner()),
        at_end: patch.at_end,
        lends: patch.lends,
    };
    let version = version.required()?;
    let changed = server
        .app
        .change_reservation(&caller, &at.site, at.reservation, version, &change)
        .await?;
    Ok(versioned(changed))
}

/// Make a reservation longer: by a length of time, or until a moment. It never becomes shorter.
#[utoipa::path(
    post, path = paths::RESERVATION_EXTEND, tag = "reservations", params(ReservationAt, IfMatchOptionalHeader),
    request_body = Extension,
    responses((status = 200, description = "The reservation, as it is now.", body = Reservation,
        headers(("ETag" = String, description = "The reservation's version."))))
)]
pub(super) async fn extend_reservation(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<ReservationAt>,
    Body(extension): Body<Extension>,
) -> Result<Versioned<Reservation>> {
    let extension = match extension {
        Extension::By(longer) => reservations::Extension::By(longer.duration()),
        Extension::Until(end) => reservations::Extension::Until(end.get()),
    };
    let extended = server
        .app
        .extend_reservation(&caller, &at.site, at.reservation, extension)
        .await?;
    Ok(versioned(extended))
}

pub(super) fn wait_for(wait: desk::WaitFor) -> WaitFor {
    match wait {
        desk::WaitFor::Booking => WaitFor::Booking,
        desk::WaitFor::Offer => WaitFor::Offer,
    }
}

pub(in crate::routes) fn item(wanted: WantedResource) -> Item {
    Item {
        resource: wanted.resource,
        amount: wanted.amount,
    }
}

/// What a try came to. That the server is in trouble says nothing about the booking, so it is no preview of it.
pub(super) fn tried(server: &Server, preview: Preview) -> Result<ReservationPreview> {
    let failure = match preview {
        Ok(state) => {
            return Ok(ReservationPreview {
                accepted: true,
                state: Some(state),
                refusal: None,
            });
        }
        Err(error) => Failure::from(error),
    };
    if failure.status().is_server_error() {
        return Err(failure);
    }
    Ok(ReservationPreview {
        accepted: false,
        state: None,
        refusal: Some(failure.problem().clone().under(&server.address())),
    })
}
