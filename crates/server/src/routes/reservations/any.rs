//! Booking any of a kind.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use berth_api::desk::NewAnyReservation;
use berth_api::page::DryRunQuery;
use berth_api::paths;
use berth_api::reservations::Reservation;
use berth_app::desk::NewAny;

use super::booking::{BookedOrPreview, booked, tried, wait_for};
use crate::failure::Result;
use crate::openapi::IdempotencyKeyHeader;
use crate::request::{Creating, Path, Query, Signed};
use crate::routes::addresses::SiteAt;
use crate::routes::when::wish;
use crate::server::Server;

/// Book any of a kind: so many of a type, or with an attribute, at a time or as early as possible before a deadline.
///
/// The smallest set that fits is taken, near each other in the tree. If nothing is free, bookings of any of a kind that
/// are not pinned are given others of theirs where that makes room; each keeps its time and its number. A refusal
/// lists alternatives; with `hold` the nearest are kept free for two minutes.
#[utoipa::path(
    post, path = paths::RESERVATIONS_ANY, tag = "reservations", params(SiteAt, DryRunQuery, IdempotencyKeyHeader),
    request_body = NewAnyReservation,
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
pub(super) async fn book_any(
    State(server): State<Server>,
    _: Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<DryRunQuery>,
    Creating { caller, body }: Creating<NewAnyReservation>,
) -> Result<Response> {
    let new = NewAny {
        wish: wish(&body.wish, server.app.now())?,
        pinned: body.pinned,
        title: body.title,
        project: body.project,
        privacy: body.privacy,
        parameters: body.parameters.into_inner(),
        owner: body.on_behalf_of,
        hold: body.hold,
        wait: body.wait.map(wait_for),
        at_end: body.at_end,
        lends: body.lends,
    };
    if query.dry_run {
        let preview = server.app.preview_any(&caller, &at.site, &new).await?;
        let preview = tried(&server, preview)?;
        return Ok(Json(BookedOrPreview::Preview(preview)).into_response());
    }
    let made = server.app.book_any(&caller, &at.site, &new).await?;
    Ok(booked(&server, made))
}
