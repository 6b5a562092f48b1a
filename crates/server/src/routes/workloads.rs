//! Work in the queue.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use berth_api::page::{DryRunQuery, Page};
use berth_api::workloads::{
    CancelWorkload, Ends, ExtendWorkload, NewWorkload, Run, RunGpu, RunNode, TakenSeats, Waits,
    Workload, WorkloadLog, WorkloadPreview, WorkloadQuery,
};
use berth_api::{Names, paths};
use berth_app::queue::{self, Act, Trial, WorkloadFilter, WorkloadView};
use berth_model::workload as model;
use berth_model::{FieldErrors, Reference};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{SiteAt, WorkloadAt};
use super::paging::{one_more, place};
use crate::answer::{Made, Versioned};
use crate::failure::Result;
use crate::openapi::{IdempotencyKeyHeader, IfMatchOptionalHeader};
use crate::request::{Body, Changing, Creating, Path, Query, Signed};
use crate::server::Server;
use crate::shown::names;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_workloads, submit_workload))
        .routes(routes!(get_workload))
        .routes(routes!(cancel_workload))
        .routes(routes!(extend_workload))
        .routes(routes!(hold_workload))
        .routes(routes!(release_workload))
        .routes(routes!(workload_log))
}

/// The site's workloads, the newest first; those that are not over, unless others are asked for.
#[utoipa::path(
    get, path = paths::WORKLOADS, tag = "queue", params(SiteAt, WorkloadQuery),
    responses((status = 200, description = "A page of workloads.", body = Page<Workload>))
)]
async fn list_workloads(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<WorkloadQuery>,
) -> Result<Json<Page<Workload>>> {
    let filter = WorkloadFilter {
        owner: query.owner,
        project: query.project,
        class: query.class,
        text: short(query.text)?,
        states: states(query.state.as_deref())?,
        since: query.since.map(|since| since.get()),
        before: place(query.cursor.as_ref())?,
        limit: one_more(query.limit),
    };
    let mut view = server.app.list_workloads(&caller, &at.site, filter).await?;
    let names = names(&view.directory);
    let page = Page::cut(view.workloads, query.limit, |(workload, _)| {
        workload.number.to_string()
    });
    let mut shown = |(workload, reason): (model::Workload, Option<queue::Reason>)| {
        let runs = view.runs.remove(&workload.id).unwrap_or_default();
        without_private(shown(workload, reason, runs, &names))
    };
    Ok(Json(page.map(&mut shown)))
}

fn short(text: Option<String>) -> Result<Option<String>> {
    let is_long = |text: &String| text.chars().count() > WorkloadQuery::TEXT_MAX;
    if text.as_ref().is_some_and(is_long) {
        let message = format!("is longer than {} characters", WorkloadQuery::TEXT_MAX);
        return Err(berth_model::FieldErrors::one("text", message).into());
    }
    Ok(text)
}

/// A workload that was submitted before, or what would become of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum SubmittedOrPreview {
    Submitted(Box<Workload>),
    Preview(WorkloadPreview),
}

/// Submit work to the queue.
///
/// A dry run checks everything and submits nothing: it says when the work would probably begin, why it would wait,
/// which of its wishes it would get, and when it would be over at the latest.
#[utoipa::path(
    post, path = paths::WORKLOADS, tag = "queue", params(SiteAt, DryRunQuery, IdempotencyKeyHeader),
    request_body = NewWorkload,
    responses(
        (status = 201, description = "Submitted.", body = Workload,
            headers(
                ("ETag" = String, description = "The workload's version."),
                ("Location" = String, description = "Where to read it."),
            )),
        (status = 200,
            description = "A dry run's preview; or the workload that an earlier request with this key submitted.",
            body = SubmittedOrPreview,
            headers(("Idempotency-Replayed" = bool, description = "`true` if the workload was submitted before."))),
    )
)]
async fn submit_workload(
    State(server): State<Server>,
    // A stranger is asked to sign in, whatever else is wrong.
    _: Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<DryRunQuery>,
    Creating { caller, body }: Creating<NewWorkload>,
) -> Result<Response> {
    let new = queue::NewWorkload {
        project: body.project,
        profile: body.profile,
        is_held: body.held,
        ask: model::Ask {
            title: body.title,
            class: body.class,
            level: body.level,
            wishes: body.wishes.into_vec(),
            seats: body.seats.into_vec(),
            inside: body.inside,
            not_before: body.not_before.map(|at| at.get()),
            deadline: body.deadline.map(|at| at.get()),
            after: body.after.into_vec(),
            array: body.array,
            requeue: body.requeue,
            program: body.program,
        },
    };
    if query.dry_run {
        let trial = server.app.try_to_submit(&caller, &at.site, new).await?;
        return Ok(Json(SubmittedOrPreview::Preview(preview(trial))).into_response());
    }
    let made = server.app.submit(&caller, &at.site, new).await?;
    let workload = &made.value.workload;
    let (location, version) = (
        paths::workload(&workload.site, &workload.number),
        workload.version,
    );
    let made = made.map(|view| SubmittedOrPreview::Submitted(Box::new(whole(view, true))));
    let made = Made::from(made).at(server.link(&location));
    Ok(made.version(version).into_response())
}

fn preview(trial: Trial) -> WorkloadPreview {
    let names = names(&trial.directory);
    let outlook = trial.outlook;
    WorkloadPreview {
        number: trial.number,
        wishes: trial.workload.ask.wishes,
        begins: outlook.begins,
        waits: outlook.reason.map(waits),
        wish: outlook.wish.map(|wish| wish as u64),
        ends: outlook.ends.map(ends),
        nodes: outlook
            .nodes
            .into_iter()
            .map(|node| names.resource(node))
            .collect(),
    }
}

pub(super) fn waits(reason: queue::Reason) -> Waits {
    Waits {
        code: reason.code.to_owned(),
        words: reason.words,
        remedy: reason.remedy,
        promised: reason.promised,
        forecast: reason.forecast,
        ends: reason.ends.map(ends),
    }
}

fn ends(ends: queue::Ends) -> Ends {
    Ends {
        at: ends.at,
        by: ends.by,
    }
}

/// One workload with its runs, and why it waits.
#[utoipa::path(
    get, path = paths::WORKLOAD, tag = "queue", params(WorkloadAt),
    responses((status = 200, description = "The workload.", body = Workload,
        headers(("ETag" = String, description = "The workload's version."))))
)]
async fn get_workload(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<WorkloadAt>,
) -> Result<Versioned<Workload>> {
    let view = server
        .app
        .get_workload(&caller, &at.site, &at.workload)
        .await?;
    let may_see = view.workload.owner == caller.id()
        || view
            .place
            .can(&caller, berth_engine::rights::Action::ManageQueue);
    Ok(versioned(view, may_see))
}

/// Cancel a workload, or some tasks of it: nothing of that begins any more, and what runs of it is told to come to its end.
#[utoipa::path(
    post, path = paths::WORKLOAD_CANCEL, tag = "queue", params(WorkloadAt, IfMatchOptionalHeader), request_body = CancelWorkload,
    responses((status = 200, description = "The workload, as it is now.", body = Workload,
        headers(("ETag" = String, description = "The workload's version."))))
)]
async fn cancel_workload(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<WorkloadAt>,
    Body(body): Body<CancelWorkload>,
) -> Result<Versioned<Workload>> {
    let act = Act::Cancel {
        tasks: body.tasks,
        reason: body.reason,
    };
    let view = server
        .app
        .act_on_workload(&caller, &at.site, &at.workload, act)
        .await?;
    Ok(versioned(view, true))
}

/// Give what runs of a workload more time. It is a new question: refused where somebody else has a claim to what it runs on,
/// was promised it, or where the site's longest limit or a budget is reached.
#[utoipa::path(
    post, path = paths::WORKLOAD_EXTEND, tag = "queue", params(WorkloadAt, IfMatchOptionalHeader), request_body = ExtendWorkload,
    responses((status = 200, description = "The workload, as it is now.", body = Workload,
        headers(("ETag" = String, description = "The workload's version."))))
)]
async fn extend_workload(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<WorkloadAt>,
    Body(body): Body<ExtendWorkload>,
) -> Result<Versioned<Workload>> {
    if body.by <= jiff::SignedDuration::ZERO {
        let message = "has to be longer than nothing";
        return Err(berth_model::FieldErrors::one("by", message.to_owned()).into());
    }
    let act = Act::Extend { by: body.by };
    let view = server
        .app
        .act_on_workload(&caller, &at.site, &at.workload, act)
        .await?;
    Ok(versioned(view, true))
}

/// Hold a workload that waits: it is passed over until it is released.
#[utoipa::path(
    post, path = paths::WORKLOAD_HOLD, tag = "queue", params(WorkloadAt, IfMatchOptionalHeader),
    responses((status = 200, description = "The workload, as it is now.", body = Workload,
        headers(("ETag" = String, description = "The workload's version."))))
)]
async fn hold_workload(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<WorkloadAt>,
) -> Result<Versioned<Workload>> {
    let view = server
        .app
        .act_on_workload(&caller, &at.site, &at.workload, Act::Hold)
        .await?;
    Ok(versioned(view, true))
}

/// Release a workload that is held.
#[utoipa::path(
    post, path = paths::WORKLOAD_RELEASE, tag = "queue", params(WorkloadAt, IfMatchOptionalHeader),
    responses((status = 200, description = "The workload, as it is now.", body = Workload,
        headers(("ETag" = String, description = "The workload's version."))))
)]
async fn release_workload(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<WorkloadAt>,
) -> Result<Versioned<Workload>> {
    let view = server
        .app
        .act_on_workload(&caller, &at.site, &at.workload, Act::Release)
        .await?;
    Ok(versioned(view, true))
}

/// The last of what a workload's newest run said; for its owner and admins.
#[utoipa::path(
    get, path = paths::WORKLOAD_LOG, tag = "queue", params(WorkloadAt),
    responses((status = 200, description = "The end of its log.", body = WorkloadLog))
)]
async fn workload_log(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<WorkloadAt>,
) -> Result<Json<WorkloadLog>> {
    let text = server.app.workload_log(&caller, &at.site, &at.workload);
    Ok(Json(WorkloadLog { text: text.await? }))
}

fn states(text: Option<&str>) -> Result<Vec<model::State>> {
    let Some(text) = text else {
        return Ok(vec![
            model::State::Waiting,
            model::State::Held,
            model::State::Running,
        ]);
    };
    if text == "all" {
        return Ok(model::State::ALL.to_vec());
    }
    let read = |word: &str| {
        word.trim()
            .parse()
            .map_err(|error: model::UnknownState| error.to_string())
    };
    let states: std::result::Result<Vec<model::State>, String> =
        text.split(',').map(read).collect();
    states.map_err(|message| FieldErrors::one("state", message).into())
}

fn versioned(view: WorkloadView, shows_program: bool) -> Versioned<Workload> {
    let version = view.workload.version;
    Versioned(whole(view, shows_program), version)
}

fn whole(view: WorkloadView, shows_program: bool) -> Workload {
    let names = names(&view.directory);
    let shown = shown(view.workload, view.reason, view.runs, &names);
    match shows_program {
        true => shown,
        false => without_private(shown),
    }
}

/// What other members of the site see: the program may hold secrets, and a run's id names its socket and its folder.
fn without_private(workload: Workload) -> Workload {
    let runs = workload.runs.into_iter();
    Workload {
        program: None,
        runs: runs.map(|run| Run { id: None, ..run }).collect(),
        ..workload
    }
}

fn shown(
    workload: model::Workload,
    reason: Option<queue::Reason>,
    runs: Vec<model::Run>,
    names: &Names,
) -> Workload {
    let cancelled = workload.cancelled();
    let ask = workload.ask;
    let seats = ask.seats.iter().filter_map(|seats| match &seats.resource {
        Reference::Id(id) => Some(TakenSeats {
            resource: names.resource(*id),
            amount: seats.amount,
        }),
        Reference::Name(_) => None,
    });
    Workload {
        id: workload.id,
        number: workload.number,
        site: names.site(workload.site),
        owner: names.person(workload.owner),
        project: workload.project.map(|id| names.project(id)),
        title: ask.title,
        class: ask.class,
        level: ask.level,
        state: workload.state,
        waits: reason.map(waits),
        reason: workload.reason,
        runs: runs
            .into_iter()
            .map(|run| shown_run(run, &ask.wishes, names))
            .collect(),
        wishes: ask.wishes,
        seats: seats.collect(),
        after: ask.after,
        array: ask.array,
        inside: ask.inside,
        not_before: ask.not_before,
        deadline: ask.deadline,
        requeue: ask.requeue,
        waiting: workload.waiting,
        counts: workload.counts,
        cancelled,
        program: Some(ask.program),
        since: workload.since,
        ended_at: workload.ended_at,
        version: workload.version,
    }
}

fn shown_run(run: model::Run, wishes: &[model::Wish], names: &Names) -> Run {
    let gpu = |gpu: &model::RunGpu| RunGpu {
        gpu: names.resource(gpu.gpu),
        share: gpu.share,
    };
    let node = |piece: &model::RunPiece| RunNode {
        node: names.resource(piece.node),
        cores_milli: piece.cores_milli,
        memory_mib: piece.memory_mib,
        gpus: piece.gpus.iter().map(gpu).collect(),
    };
    Run {
        id: Some(run.id),
        task: run.task,
        attempt: run.attempt,
        wish: run.wish as u64,
        inside: run.inside,
        kept_from: run.kept_from,
        is_on_loan: run.lent_by.is_some(),
        state: run.state,
        nodes: run.pieces.iter().map(node).collect(),
        began: run.began,
        until: run.until,
        until_by: run.ends_by(wishes.get(run.wish)),
        ended_at: run.ended_at,
        said: run.said,
    }
}
