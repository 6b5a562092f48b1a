//! Series: bookings made together by one rule.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use berth_api::members::Reason;
use berth_api::moment::Period;
use berth_api::page::{Cursor, DryRunQuery, Page};
use berth_api::series::{
    ForeseenInstance, NewSeries, OnConflict, Scope, ScopeQuery, Series, SeriesInstance,
    SeriesPatch, SeriesPreview, SeriesQuery, SkippedInstance,
};
use berth_api::{Names, Problem, paths};
use berth_app::reservations::{self, Part, SeriesChange, SeriesFilter, SeriesView, Skipped};
use berth_model::FieldErrors;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{SeriesAt, SiteAt};
use super::paging::place;
use super::reservations::booking::item;
use crate::answer::{Made, Versioned};
use crate::failure::{Failure, Result};
use crate::openapi::{IdempotencyKeyHeader, IfMatchHeader, IfMatchOptionalHeader};
use crate::request::{Body, Creating, IfMatch, Path, Query, Signed};
use crate::server::Server;
use crate::shown::names;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_series, create_series))
        .routes(routes!(get_series, change_series))
        .routes(routes!(cancel_series))
}

/// A series that was made before, or what booking it would do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum SeriesOrPreview {
    Booked(Box<Series>),
    Preview(SeriesPreview),
}

/// The site's series, in the order in which they were made, without their instances.
///
/// Others' private ones are left out, so a page can be shorter than its limit and still have a next one.
#[utoipa::path(
    get, path = paths::ALL_SERIES, tag = "series", params(SiteAt, SeriesQuery),
    responses((status = 200, description = "A page of series.", body = Page<Series>))
)]
async fn list_series(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<SeriesQuery>,
) -> Result<Json<Page<Series>>> {
    let filter = SeriesFilter {
        owner: query.owner,
        from: query.from.map(|from| from.get()),
        after: place(query.cursor.as_ref())?,
        limit: query.limit.get().into(),
    };
    let (page, next, directory) = server.app.list_series(&caller, &at.site, &filter).await?;
    let names = names(&directory);
    let items = page.into_iter().map(|one| summary(one, &names));
    Ok(Json(Page {
        items: items.collect::<Result<_>>()?,
        next: next.map(|last| Cursor::after(&last.to_string())),
    }))
}

/// Book a series: the same resources at the same time of day, on every day that a rule gives.
///
/// All of it or nothing; or, with `on_conflict: skip`, all that can be had, with what was left out and why. The rule is
/// read in the site's time zone. A dry run says what would become of each instance.
#[utoipa::path(
    post, path = paths::ALL_SERIES, tag = "series", params(SiteAt, DryRunQuery, IdempotencyKeyHeader),
    request_body = NewSeries,
    responses(
        (status = 201, description = "Booked.", body = Series,
            headers(
                ("ETag" = String, description = "The series' version."),
                ("Location" = String, description = "Where to read it."),
            )),
        (status = 200,
            description = "A dry run's preview; or the series that an earlier request with this key made.",
            body = SeriesOrPreview,
            headers(("Idempotency-Replayed" = bool, description = "`true` if the series was made before."))),
    )
)]
async fn create_series(
    State(server): State<Server>,
    _: Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<DryRunQuery>,
    Creating { caller, body }: Creating<NewSeries>,
) -> Result<Response> {
    let on_conflict = body.on_conflict;
    let new = wanted(body)?;
    if query.dry_run {
        let preview = server.app.preview_series(&caller, &at.site, &new).await?;
        let preview = tried(&server, preview, on_conflict)?;
        return Ok(Json(SeriesOrPreview::Preview(preview)).into_response());
    }
    let made = server.app.book_series(&caller, &at.site, &new).await?;
    let series = &made.value.series;
    let (location, version) = (paths::series(&series.site, &series.id), series.version);
    let replayed = made.replayed;
    let booked = SeriesOrPreview::Booked(Box::new(shown(&server, made.value)?));
    let made = Made::from(berth_app::Made {
        value: booked,
        replayed,
    });
    Ok(made
        .at(server.link(&location))
        .version(version)
        .into_response())
}

/// One series with its instances.
#[utoipa::path(
    get, path = paths::SERIES, tag = "series", params(SeriesAt),
    responses((status = 200, description = "The series.", body = Series,
        headers(("ETag" = String, description = "The series' version."))))
)]
async fn get_series(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SeriesAt>,
) -> Result<Versioned<Series>> {
    let view = server.app.get_series(&caller, &at.site, at.series).await?;
    versioned(&server, view)
}

/// Change a series: one instance, one and those after it, or all that are still to come.
///
/// All of it or nothing. Instances that were changed by themselves before are left alone, and listed. A change of what
/// follows an instance makes a series of its own of it, which is the answer.
#[utoipa::path(
    patch, path = paths::SERIES, tag = "series", params(SeriesAt, ScopeQuery, IfMatchHeader),
    request_body = SeriesPatch,
    responses((status = 200, description = "The series, as it is now.", body = Series,
        headers(("ETag" = String, description = "The series' version."))))
)]
async fn change_series(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SeriesAt>,
    Query(scope): Query<ScopeQuery>,
    version: IfMatch,
    Body(patch): Body<SeriesPatch>,
) -> Result<Versioned<Series>> {
    let change = SeriesChange {
        title: patch.title,
        at: patch.at.map(|at| at.into_inner()),
        length: patch.length.map(Period::duration),
        items: patch
            .resources
            .map(|wanted| wanted.into_iter().map(item).collect()),
        project: patch.project,
        privacy: patch.privacy,
    };
    let (version, part) = (version.required()?, part(scope)?);
    let view = server
        .app
        .change_series(&caller, &at.site, at.series, version, part, &change)
        .await?;
    versioned(&server, view)
}

/// Give a series up: one instance, one and those after it, or all that are still to come.
///
/// What has begun is left alone unless it is named by itself.
#[utoipa::path(
    post, path = paths::SERIES_CANCEL, tag = "series", params(SeriesAt, ScopeQuery, IfMatchOptionalHeader),
    request_body = Reason,
    responses((status = 200, description = "The series, as it is now.", body = Series,
        headers(("ETag" = String, description = "The series' version."))))
)]
async fn cancel_series(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SeriesAt>,
    Query(scope): Query<ScopeQuery>,
    version: IfMatch,
    Body(body): Body<Reason>,
) -> Result<Versioned<Series>> {
    let (version, part) = (version.optional(), part(scope)?);
    let view = server
        .app
        .cancel_series(&caller, &at.site, at.series, version, part, body.reason)
        .await?;
    versioned(&server, view)
}

fn wanted(body: NewSeries) -> Result<reservations::NewSeries> {
    Ok(reservations::NewSeries {
        rule: body.rule.get().clone(),
        except: body
            .except
            .as_slice()
            .iter()
            .map(|day| *day.get())
            .collect(),
        on_conflict: match body.on_conflict {
            OnConflict::Refuse => reservations::OnConflict::Refuse,
            OnConflict::Skip => reservations::OnConflict::Skip,
        },
        first: reservations::NewReservation {
            span: body.span()?,
            title: body.title,
            items: body.resources.into_iter().map(item).collect(),
            project: body.project,
            privacy: body.privacy,
            parameters: body.parameters.into_inner(),
            owner: body.on_behalf_of,
            hold: false,
            any: None,
            pinned: false,
            wait: None,
            at_end: body.at_end,
            lends: body.lends,
        },
    })
}

fn part(scope: ScopeQuery) -> Result<Part, FieldErrors> {
    Ok(match scope.instance()? {
        None | Some((Scope::All, _)) => Part::All,
        Some((Scope::This, id)) => Part::This(id),
        Some((Scope::Following, id)) => Part::Following(id),
    })
}

/// A refusal of one instance, as a problem. That the server is in trouble says nothing about it.
fn refusal(server: &Server, error: berth_app::Error) -> Result<Problem> {
    let failure = Failure::from(error);
    if failure.status().is_server_error() {
        return Err(failure);
    }
    Ok(failure.problem().clone().under(&server.address()))
}

fn tried(
    server: &Server,
    preview: reservations::SeriesPreview,
    on_conflict: OnConflict,
) -> Result<SeriesPreview> {
    let foreseen = |one: reservations::Foreseen| {
        let (state, refusal) = match one.outcome {
            Ok(state) => (Some(state), None),
            Err(error) => (None, Some(refusal(server, error)?)),
        };
        Ok(ForeseenInstance {
            start: one.instance.span.start(),
            end: one.instance.span.end(),
            state,
            remark: one.remark.map(|remark| remark.to_string()),
            refusal,
        })
    };
    let instances: Vec<_> = preview
        .instances
        .into_iter()
        .map(foreseen)
        .collect::<Result<_>>()?;
    let is_good = |one: &ForeseenInstance| one.refusal.is_none();
    Ok(SeriesPreview {
        accepted: match on_conflict {
            OnConflict::Refuse => instances.iter().all(is_good),
            OnConflict::Skip => instances.iter().any(is_good),
        },
        instances,
    })
}

fn versioned(server: &Server, view: SeriesView) -> Result<Versioned<Series>> {
    let version = view.series.version;
    Ok(Versioned(shown(server, view)?, version))
}

fn shown(server: &Server, view: SeriesView) -> Result<Series> {
    let names = names(&view.directory);
    let instances = view.instances.iter().map(|one| SeriesInstance {
        reservation: one.id,
        start: one.span.start(),
        end: one.span.end(),
        state: one.state,
        differs: one.occurrence.is_some_and(|occurrence| occurrence.differs),
    });
    let skipped = |one: Skipped| {
        Ok(SkippedInstance {
            start: one.instance.span.start(),
            end: one.instance.span.end(),
            refusal: one.why.map(|why| refusal(server, why)).transpose()?,
        })
    };
    Ok(Series {
        instances: Some(instances.collect()),
        skipped: Some(
            view.skipped
                .into_iter()
                .map(skipped)
                .collect::<Result<_>>()?,
        ),
        left_alone: view.left_alone,
        ..summary(view.series, &names)?
    })
}

fn summary(series: berth_model::Series, names: &Names) -> Result<Series> {
    let pattern = &series.pattern;
    // What was read as a length from the wire can be written as one.
    let length = Period::new(pattern.length)
        .map_err(|error| berth_app::Error::Internal(error.to_string()))?;
    Ok(Series {
        id: series.id,
        site: names.site(series.site),
        owner: names.person(series.owner),
        privacy: series.privacy,
        rule: pattern.recurrence.clone().into(),
        first: pattern.start,
        length,
        time_zone: pattern.time_zone.clone(),
        except: pattern.except.iter().map(|one| one.date().into()).collect(),
        ends: series.ends,
        instances: None,
        skipped: None,
        left_alone: Vec::new(),
        version: series.version,
        created_at: series.created_at,
        updated_at: series.updated_at,
        title: series.title,
    })
}
