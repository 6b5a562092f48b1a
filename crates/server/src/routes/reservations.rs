//! Reservations: looking at them here, making and changing them in [`booking`], ending and deciding in [`deciding`].

mod any;
pub(in crate::routes) mod booking;
mod deciding;
mod desk;

use axum::Json;
use axum::extract::State;
use berth_api::page::{Cursor, Page, PageQuery};
use berth_api::paths;
use berth_api::reservations::{HistoryEntry, MyReservationQuery, Reservation, ReservationQuery};
use berth_app::reservations::{Booked, ReservationFilter, ReservationView};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{ReservationAt, SiteAt};
use super::paging::{ByStart, out_of_all, place};
use crate::answer::Versioned;
use crate::failure::Result;
use crate::request::{Path, Query, Signed};
use crate::server::Server;
use crate::shown::names;

pub(super) use booking::item;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_my_reservations))
        .routes(routes!(list_my_approvals))
        .routes(routes!(list_reservations, booking::create_reservation))
        .routes(routes!(any::book_any))
        .routes(routes!(get_reservation, booking::change_reservation))
        .routes(routes!(booking::extend_reservation))
        .routes(routes!(deciding::cancel_reservation))
        .routes(routes!(deciding::approve_reservation))
        .routes(routes!(deciding::reject_reservation))
        .routes(routes!(desk::take_reservation))
        .routes(routes!(desk::check_in))
        .routes(routes!(desk::hand_over))
        .routes(routes!(list_reservation_history))
}

/// My own reservations in all my sites, by start.
#[utoipa::path(
    get, path = paths::MY_RESERVATIONS, tag = "reservations", params(MyReservationQuery),
    responses((status = 200, description = "A page of reservations.", body = Page<Reservation>))
)]
async fn list_my_reservations(
    State(server): State<Server>,
    Signed(caller): Signed,
    Query(query): Query<MyReservationQuery>,
) -> Result<Json<Page<Reservation>>> {
    let filter = ReservationFilter {
        states: query.state.into_vec(),
        from: query.from.map(|from| from.get()),
        to: query.to.map(|to| to.get()),
        after: after(query.cursor.as_ref())?,
        limit: query.limit.get().into(),
        ..ReservationFilter::default()
    };
    let view = server.app.my_reservations(&caller, &filter).await?;
    Ok(Json(page(view)))
}

/// What waits for my approval in all my sites, by start.
///
/// As an admin, as somebody whom a policy names, or as a member of a project that it names. A private reservation is
/// shown to those who are asked about it.
#[utoipa::path(
    get, path = paths::MY_APPROVALS, tag = "reservations",
    responses((status = 200, description = "All of it, in one page.", body = Page<Reservation>))
)]
async fn list_my_approvals(
    State(server): State<Server>,
    Signed(caller): Signed,
) -> Result<Json<Page<Reservation>>> {
    let view = server.app.my_approvals(&caller).await?;
    Ok(Json(page(view)))
}

/// The site's reservations, by start.
///
/// Others' private ones are left out: the calendar says that their time is taken, and no more. A page can
/// therefore be shorter than its limit and still have a next one.
#[utoipa::path(
    get, path = paths::RESERVATIONS, tag = "reservations", params(SiteAt, ReservationQuery),
    responses((status = 200, description = "A page of reservations.", body = Page<Reservation>))
)]
async fn list_reservations(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<ReservationQuery>,
) -> Result<Json<Page<Reservation>>> {
    let filter = ReservationFilter {
        states: query.state.into_vec(),
        owner: query.owner,
        resource: query.resource,
        from: query.from.map(|from| from.get()),
        to: query.to.map(|to| to.get()),
        after: after(query.cursor.as_ref())?,
        limit: query.limit.get().into(),
    };
    let view = server
        .app
        .list_reservations(&caller, &at.site, &filter)
        .await?;
    Ok(Json(page(view)))
}

/// One reservation.
#[utoipa::path(
    get, path = paths::RESERVATION, tag = "reservations", params(ReservationAt),
    responses((status = 200, description = "The reservation.", body = Reservation,
        headers(("ETag" = String, description = "The reservation's version."))))
)]
async fn get_reservation(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ReservationAt>,
) -> Result<Versioned<Reservation>> {
    let found = server
        .app
        .get_reservation(&caller, &at.site, at.reservation)
        .await?;
    Ok(versioned(found))
}

/// How a reservation came to be what it is, from its making on.
#[utoipa::path(
    get, path = paths::RESERVATION_HISTORY, tag = "reservations", params(ReservationAt, PageQuery),
    responses((status = 200, description = "A page of its history.", body = Page<HistoryEntry>))
)]
async fn list_reservation_history(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ReservationAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<HistoryEntry>>> {
    let (history, directory) = server
        .app
        .reservation_history(&caller, &at.site, at.reservation)
        .await?;
    let names = names(&directory);
    // A history only grows at its end, so a line's position stays what it is; padded, it orders as a text.
    let lines = history.into_iter().enumerate().collect();
    let page = out_of_all(lines, &query, |(position, _)| format!("{position:010}"))?;
    Ok(Json(page.map(|(_, line)| HistoryEntry::new(line, &names))))
}

fn after(cursor: Option<&Cursor>) -> Result<Option<(jiff::Timestamp, berth_model::ReservationId)>> {
    Ok(place(cursor)?.map(|ByStart(start, id)| (start, id)))
}

fn page(view: ReservationView) -> Page<Reservation> {
    let names = names(&view.directory);
    let next = view
        .next
        .map(|(start, id)| Cursor::after(&ByStart(start, id).to_string()));
    let items = view.reservations.into_iter();
    Page {
        items: items.map(|one| Reservation::new(one, &names)).collect(),
        next,
    }
}

fn versioned(booked: Booked) -> Versioned<Reservation> {
    let version = booked.reservation.version;
    Versioned(shown(booked), version)
}

fn shown(booked: Booked) -> Reservation {
    Reservation::new(booked.reservation, &names(&booked.directory))
}
