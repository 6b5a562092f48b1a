//! Planned maintenance, negotiated with the bookings in its way.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use berth_api::maintenance::{
    Choice, Decision, Elsewhere, InTheWay, MaintenancePreview, MaintenanceQuery, MaintenanceWindow,
    NewMaintenance, WindowPart, WindowState,
};
use berth_api::members::Reason;
use berth_api::page::{DryRunQuery, Page};
use berth_api::{Names, paths};
use berth_app::maintenance::{self as planned, NewWindow, WindowChoice, WindowPreview, WindowView};
use berth_model::{FieldErrors, ReservationId, ResourceId, Span};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{SiteAt, WindowAt};
use super::paging::{ByStart, one_more, place};
use crate::answer::{Made, Versioned};
use crate::failure::Result;
use crate::openapi::{IdempotencyKeyHeader, IfMatchOptionalHeader};
use crate::request::{Body, Changing, Creating, Path, Query, Signed};
use crate::server::Server;
use crate::shown::{entry, names};

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_maintenance, plan_maintenance))
        .routes(routes!(get_maintenance))
        .routes(routes!(cancel_maintenance))
}

/// A window that was planned before, or what planning it would do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum PlannedOrPreview {
    Planned(MaintenanceWindow),
    Preview(MaintenancePreview),
}

/// The site's maintenance windows, by start.
#[utoipa::path(
    get, path = paths::MAINTENANCE, tag = "maintenance", params(SiteAt, MaintenanceQuery),
    responses((status = 200, description = "A page of windows.", body = Page<MaintenanceWindow>))
)]
async fn list_maintenance(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<MaintenanceQuery>,
) -> Result<Json<Page<MaintenanceWindow>>> {
    let from = query.from.map_or(Timestamp::MIN, |from| from.get());
    let after = place(query.cursor.as_ref())?.map(|ByStart(start, id)| (start, id));
    let limit = one_more(query.limit);
    let found = server
        .app
        .list_windows(&caller, &at.site, from, after, limit)
        .await?;
    let page = Page::cut(found, query.limit, |view| {
        ByStart(view.window.span.start(), view.window.id).to_string()
    });
    let now = server.app.now();
    Ok(Json(page.map(|view| shown(view, now))))
}

/// Plan a maintenance window.
///
/// Every booking in its way must be decided: kept, and the window goes around it; moved to others of its kind; or
/// cancelled, and its owner is told. While one is undecided the problem lists them all, and a dry run says where each
/// could go.
#[utoipa::path(
    post, path = paths::MAINTENANCE, tag = "maintenance", params(SiteAt, DryRunQuery, IdempotencyKeyHeader),
    request_body = NewMaintenance,
    responses(
        (status = 201, description = "Planned.", body = MaintenanceWindow,
            headers(
                ("ETag" = String, description = "The window's version."),
                ("Location" = String, description = "Where to read it."),
            )),
        (status = 200,
            description = "A dry run's preview; or the window that an earlier request with this key planned.",
            body = PlannedOrPreview,
            headers(("Idempotency-Replayed" = bool, description = "`true` if the window was planned before."))),
    )
)]
async fn plan_maintenance(
    State(server): State<Server>,
    _: Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<DryRunQuery>,
    Creating { caller, body }: Creating<NewMaintenance>,
) -> Result<Response> {
    let new = NewWindow {
        span: body.span()?,
        title: body.title,
        resources: body.resources.into_vec(),
        decisions: decisions(body.in_the_way.as_slice())?,
    };
    if query.dry_run {
        let preview = server.app.preview_window(&caller, &at.site, &new).await?;
        return Ok(Json(PlannedOrPreview::Preview(tried(preview))).into_response());
    }
    let made = server.app.plan_window(&caller, &at.site, &new).await?;
    let window = &made.value.window;
    let (location, version) = (paths::window(&window.site, &window.id), window.version);
    let now = server.app.now();
    let made = made.map(|view| PlannedOrPreview::Planned(shown(view, now)));
    let made = Made::from(made).at(server.link(&location));
    Ok(made.version(version).into_response())
}

/// One maintenance window.
#[utoipa::path(
    get, path = paths::WINDOW, tag = "maintenance", params(WindowAt),
    responses((status = 200, description = "The window.", body = MaintenanceWindow,
        headers(("ETag" = String, description = "The window's version."))))
)]
async fn get_maintenance(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<WindowAt>,
) -> Result<Versioned<MaintenanceWindow>> {
    let view = server.app.get_window(&caller, &at.site, at.window).await?;
    Ok(versioned(view, server.app.now()))
}

/// Give a window up; the rest of its time is free again at once.
///
/// Bookings that were cancelled for it stay cancelled.
#[utoipa::path(
    post, path = paths::WINDOW_CANCEL, tag = "maintenance", params(WindowAt, IfMatchOptionalHeader),
    request_body = Reason,
    responses((status = 200, description = "The window, cancelled.", body = MaintenanceWindow,
        headers(("ETag" = String, description = "The window's version."))))
)]
async fn cancel_maintenance(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<WindowAt>,
    Body(body): Body<Reason>,
) -> Result<Versioned<MaintenanceWindow>> {
    let view = server
        .app
        .cancel_window(&caller, &at.site, at.window, body.reason)
        .await?;
    Ok(versioned(view, server.app.now()))
}

/// What becomes of each booking. Two words about one booking would leave open which of them counts.
fn decisions(given: &[Decision]) -> Result<BTreeMap<ReservationId, WindowChoice>, FieldErrors> {
    let mut decided = BTreeMap::new();
    for (i, decision) in given.iter().enumerate() {
        let choice = match decision.choice {
            Choice::Keep => WindowChoice::Keep,
            Choice::Move => WindowChoice::Move,
            Choice::Cancel => WindowChoice::Cancel,
        };
        if decided.insert(decision.reservation, choice).is_some() {
            let field = format!("in_the_way[{i}].reservation");
            return Err(FieldErrors::one(field, "is decided twice"));
        }
    }
    Ok(decided)
}

fn versioned(view: WindowView, now: Timestamp) -> Versioned<MaintenanceWindow> {
    let version = view.window.version;
    Versioned(shown(view, now), version)
}

fn shown(view: WindowView, now: Timestamp) -> MaintenanceWindow {
    let names = names(&view.directory);
    let window = view.window;
    MaintenanceWindow {
        id: window.id,
        site: names.site(window.site),
        state: state(window.state, window.span, now),
        title: window.title,
        start: window.span.start(),
        end: window.span.end(),
        parts: parts(&view.parts, &names),
        created_by: window.planned_by.map(|by| names.person(by)),
        created_at: window.created_at,
        version: window.version,
    }
}

/// A window is stored as planned until it is closed; whether it has begun is a matter of the clock.
fn state(state: planned::WindowState, span: Span, now: Timestamp) -> WindowState {
    match state {
        planned::WindowState::Cancelled => WindowState::Cancelled,
        planned::WindowState::Ended => WindowState::Over,
        planned::WindowState::Planned if span.end() <= now => WindowState::Over,
        planned::WindowState::Planned if span.start() <= now => WindowState::Active,
        planned::WindowState::Planned => WindowState::Planned,
    }
}

fn parts(parts: &[(ResourceId, Span)], names: &Names) -> Vec<WindowPart> {
    let part =
        |(resource, span): &(ResourceId, Span)| WindowPart::new(names.resource(*resource), *span);
    parts.iter().map(part).collect()
}

fn tried(preview: WindowPreview) -> MaintenancePreview {
    let names = names(&preview.directory);
    let in_the_way = preview.in_the_way.iter().map(|met| InTheWay {
        booking: entry(&met.conflict.claim, &names),
        choice: met.choice.map(|choice| match choice {
            WindowChoice::Keep => Choice::Keep,
            WindowChoice::Move => Choice::Move,
            WindowChoice::Cancel => Choice::Cancel,
        }),
        instead: met.instead.as_ref().map(|instead| Elsewhere {
            resources: instead
                .resources
                .iter()
                .map(|id| names.resource(*id))
                .collect(),
            owner_decides: instead.owner_decides,
        }),
    });
    MaintenancePreview {
        accepted: preview.accepted,
        parts: parts(&preview.parts, &names),
        in_the_way: in_the_way.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_window_has_begun_is_a_matter_of_the_clock() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let span = Span::new(at("2026-11-20T09:00:00Z"), at("2026-11-20T12:00:00Z")).unwrap();
        let planned = |now| state(planned::WindowState::Planned, span, at(now));
        assert_eq!(planned("2026-11-20T08:59:59Z"), WindowState::Planned);
        assert_eq!(planned("2026-11-20T09:00:00Z"), WindowState::Active);
        assert_eq!(planned("2026-11-20T12:00:00Z"), WindowState::Over);
        let cancelled = state(
            planned::WindowState::Cancelled,
            span,
            at("2026-11-20T10:00:00Z"),
        );
        assert_eq!(cancelled, WindowState::Cancelled);
    }

    #[test]
    fn a_booking_is_decided_once() {
        let decision = |choice| Decision {
            reservation: "rsv_01kc3v9xwbe8rv5w2n9q3m7t4h".parse().unwrap(),
            choice,
        };
        assert_eq!(decisions(&[decision(Choice::Keep)]).unwrap().len(), 1);
        let twice = [decision(Choice::Keep), decision(Choice::Cancel)];
        let field = decisions(&twice).unwrap_err().0[0].field.clone();
        assert_eq!(field, "in_the_way[1].reservation");
    }
}
