//! Closure calendars: the holidays and blackouts of a site.

use axum::Json;
use axum::extract::State;
use berth_api::closures::{ClosedSpan, Closure, ClosureDetails, NewClosure, Source};
use berth_api::page::{Page, PageQuery};
use berth_api::paths;
use berth_app::closures::{self, ClosureView, NewSource};
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{ClosureAt, SiteAt};
use super::paging::out_of_all;
use crate::answer::{Made, Versioned};
use crate::failure::Result;
use crate::openapi::{IdempotencyKeyHeader, IfMatchOptionalHeader};
use crate::request::{Changing, Creating, Path, Query, Signed};
use crate::server::Server;
use crate::shown::names;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_closures, add_closure))
        .routes(routes!(get_closure, remove_closure))
        .routes(routes!(refresh_closure))
}

/// The site's closure calendars, by name.
#[utoipa::path(
    get, path = paths::CLOSURES, tag = "calendar", params(SiteAt, PageQuery),
    responses((status = 200, description = "A page of calendars, without their closed times.", body = Page<Closure>))
)]
async fn list_closures(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<Closure>>> {
    let (found, directory, shows_address) = server.app.closures(&caller, &at.site).await?;
    let names = names(&directory);
    let page = out_of_all(found, &query, |closure| closure.name.to_string())?;
    Ok(Json(page.map(|closure| {
        Closure::new(&closure, shows_address, &names)
    })))
}

/// Bring in a calendar of closed times, as a file or by its address.
///
/// All-day events are days in the site's time zone, and recurring ones are worked out for the coming two years. An
/// address is read now, and then every hour. While a blackout lasts, only admins can book.
#[utoipa::path(
    post, path = paths::CLOSURES, tag = "calendar", params(SiteAt, IdempotencyKeyHeader),
    request_body = NewClosure,
    responses(
        (status = 201, description = "Brought in.", body = ClosureDetails,
            headers(
                ("ETag" = String, description = "The calendar's version."),
                ("Location" = String, description = "Where to read it."),
            )),
        (status = 200, description = "An earlier request with this key brought it in; here it is as it is now.",
            body = ClosureDetails,
            headers(
                ("Location" = String, description = "Where to read it."),
                ("Idempotency-Replayed" = bool, description = "`true` on such an answer."),
            )),
    )
)]
async fn add_closure(
    State(server): State<Server>,
    Path(at): Path<SiteAt>,
    Creating { caller, body }: Creating<NewClosure>,
) -> Result<Made<ClosureDetails>> {
    let from = match body.source()? {
        Source::File(text) => NewSource::File(text),
        Source::Address(address) => NewSource::Address(address),
    };
    let new = closures::NewClosure {
        name: body.name,
        kind: body.kind,
        from,
    };
    let made = server
        .app
        .add_closure(&caller, &at.site, &new, server.fetch.as_ref())
        .await?;
    let closure = &made.value.closure;
    let (location, version) = (paths::closure(&closure.site, &closure.id), closure.version);
    let made = Made::from(made.map(shown)).at(server.link(&location));
    Ok(made.version(version))
}

/// One closure calendar, with its closed times.
#[utoipa::path(
    get, path = paths::CLOSURE, tag = "calendar", params(ClosureAt),
    responses((status = 200, description = "The calendar.", body = ClosureDetails,
        headers(("ETag" = String, description = "The calendar's version."))))
)]
async fn get_closure(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ClosureAt>,
) -> Result<Versioned<ClosureDetails>> {
    let view = server.app.closure(&caller, &at.site, &at.closure).await?;
    Ok(versioned(view))
}

/// Remove a closure calendar; its times are open again at once.
#[utoipa::path(
    delete, path = paths::CLOSURE, tag = "calendar", params(ClosureAt, IfMatchOptionalHeader),
    responses((status = 204, description = "Removed."))
)]
async fn remove_closure(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<ClosureAt>,
) -> Result<StatusCode> {
    server
        .app
        .remove_closure(&caller, &at.site, &at.closure)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Read a closure calendar again now.
///
/// If that fails, the closed times stay as they were, and `trouble` says why.
#[utoipa::path(
    post, path = paths::CLOSURE_REFRESH, tag = "calendar", params(ClosureAt),
    responses((status = 200, description = "The calendar as it is now.", body = ClosureDetails,
        headers(("ETag" = String, description = "The calendar's version."))))
)]
async fn refresh_closure(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ClosureAt>,
) -> Result<Versioned<ClosureDetails>> {
    let view = server
        .app
        .refresh_closure(&caller, &at.site, &at.closure, server.fetch.as_ref())
        .await?;
    Ok(versioned(view))
}

fn versioned(view: ClosureView) -> Versioned<ClosureDetails> {
    let version = view.closure.version;
    Versioned(shown(view), version)
}

fn shown(view: ClosureView) -> ClosureDetails {
    let names = names(&view.directory);
    ClosureDetails {
        closure: Closure::new(&view.closure, view.shows_address, &names),
        closed: view.spans.iter().map(ClosedSpan::from).collect(),
    }
}
