//! The timeline: what is taken, and what is free.

use axum::Json;
use axum::extract::State;
use berth_api::calendar::{
    Calendar, CalendarQuery, CalendarSummary, EntryKind, FreeQuery, FreeResource, FreeSpan,
    SummaryCovers, SummaryPart, SummaryRow, SummaryStep,
};
use berth_api::page::Page;
use berth_api::{Names, paths};
use berth_app::calendar::{self, CalendarRequest, Free, FreeRequest, Summary};
use berth_app::inventory::ResourceFilter;
use berth_engine::summary::{ClaimKind, RowSum, StepPart, StepSum};
use berth_model::{FieldErrors, Span};
use jiff::{SignedDuration, Timestamp};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::SiteAt;
use super::paging::after_name;
use super::resources::requirements;
use crate::failure::Result;
use crate::request::{Path, Query, Signed};
use crate::server::Server;
use crate::shown::{entry, names};

/// How far ahead free time is looked for, unless the question says.
const OUTLOOK: SignedDuration = SignedDuration::from_hours(4 * 7 * 24);

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(get_calendar))
        .routes(routes!(list_free))
}

/// What is taken within a time, by start.
///
/// A booked rack occupies its servers, so what stands above the wanted resources is among it. Of what I may not
/// know it is only said that the time is taken. Where there are more entries than `max_entries`, `summary` says what is
/// taken by resource and time step.
#[utoipa::path(
    get, path = paths::CALENDAR, tag = "calendar", params(SiteAt, CalendarQuery),
    responses((status = 200, description = "The calendar, whole.", body = Calendar))
)]
async fn get_calendar(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<CalendarQuery>,
) -> Result<Json<Calendar>> {
    let request = CalendarRequest {
        span: query.span()?,
        resources: query.resource.into_vec(),
        under: query.under,
        kind: query.kind,
        entries_max: query.max_entries.get().into(),
    };
    let view = server.app.calendar(&caller, &at.site, &request).await?;
    let names = names(&view.directory);
    Ok(Json(Calendar {
        items: view
            .entries
            .iter()
            .map(|seen| entry(seen, &names))
            .collect(),
        summary: view.summary.map(|summary| summarized(&summary, &names)),
    }))
}

fn summarized(summary: &Summary, names: &Names) -> CalendarSummary {
    let step = |sum: &StepSum| SummaryStep {
        start: summary.grid.start_of(sum.step),
        taken: sum.taken.amount(),
        is_full: sum.is_full,
        parts: sum.parts.iter().map(part).collect(),
    };
    let row = |row: &RowSum| SummaryRow {
        resource: names.resource(row.resource),
        steps: row.steps.iter().map(step).collect(),
    };
    CalendarSummary {
        step_s: summary.grid.step().as_secs().unsigned_abs(),
        covers: match summary.covers {
            calendar::SummaryCovers::Workloads => SummaryCovers::Workloads,
            calendar::SummaryCovers::All => SummaryCovers::All,
        },
        rows: summary.rows.iter().map(row).collect(),
    }
}

fn part(part: &StepPart) -> SummaryPart {
    SummaryPart {
        kind: match part.class.kind {
            ClaimKind::Reservation => EntryKind::Reservation,
            ClaimKind::Buffer => EntryKind::Buffer,
            ClaimKind::Maintenance => EntryKind::Maintenance,
            ClaimKind::Workload => EntryKind::Workload,
            ClaimKind::Busy => EntryKind::Busy,
        },
        mine: part.class.mine,
        claims: part.claims,
        taken: part.taken.amount(),
    }
}

/// When resources are free, by name.
#[utoipa::path(
    get, path = paths::FREE, tag = "calendar", params(SiteAt, FreeQuery),
    responses((status = 200, description = "A page of resources, each with its free time.",
        body = Page<FreeResource>))
)]
async fn list_free(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<FreeQuery>,
) -> Result<Json<Page<FreeResource>>> {
    let after = after_name(query.cursor.as_ref())?;
    let request = FreeRequest {
        window: window(&query, server.app.now())?,
        at_least: at_least(&query),
        filter: ResourceFilter {
            kind: query.kind,
            requirements: requirements(query.requirements),
            status: None,
            under: query.under,
        },
    };
    let limit = usize::from(query.limit.get()) + 1;
    let (_, found, directory) = server
        .app
        .free(&caller, &at.site, &request, &after, limit)
        .await?;
    let names = names(&directory);
    let page = Page::cut(found, query.limit, |free| {
        free.view.resource.name.to_string()
    });
    Ok(Json(page.map(|free| shown(free, &names))))
}

fn at_least(query: &FreeQuery) -> SignedDuration {
    query
        .lasting
        .map_or(SignedDuration::ZERO, |lasting| lasting.duration())
}

/// The time that is searched: from now for four weeks, or as long as is wanted at a stretch, if nothing else is said.
fn window(query: &FreeQuery, now: Timestamp) -> Result<Span, FieldErrors> {
    let start = query.from.map_or(now, |from| from.get());
    let ahead = OUTLOOK.max(at_least(query));
    let end = query.to.map_or(start + ahead, |to| to.get());
    Span::new(start, end).map_err(|error| FieldErrors::one("to", error.to_string()))
}

fn shown(free: Free, names: &Names) -> FreeResource {
    let resource = free.view.resource;
    let spans = free.spans.into_iter();
    FreeResource {
        resource: names.resource(resource.id),
        title: resource.title,
        status: free.view.status,
        free: spans
            .map(|(span, amount)| FreeSpan::new(span, amount))
            .collect(),
        free_until: free.until,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<(String, String), FieldErrors> {
        let query: FreeQuery = berth_api::parse::query(text).unwrap();
        let span = window(&query, "2026-11-20T09:00:00Z".parse().unwrap())?;
        Ok((span.start().to_string(), span.end().to_string()))
    }

    #[test]
    fn the_time_searched_has_a_beginning_and_an_end_even_if_nobody_says_so() {
        let four_weeks = ("2026-11-20T09:00:00Z".into(), "2026-12-18T09:00:00Z".into());
        assert_eq!(asked(""), Ok(four_weeks));
        let long = ("2026-11-21T00:00:00Z".into(), "2027-02-12T08:00:00Z".into());
        assert_eq!(asked("from=2026-11-21T00:00:00Z&for=PT2000H"), Ok(long));
        let field = |text| asked(text).unwrap_err().0[0].field.clone();
        assert_eq!(field("to=2026-11-20T08:00:00Z"), "to");
    }
}
