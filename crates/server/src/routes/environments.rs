//! Managed environments: Python with packages, read-only and in versions.

use axum::Json;
use axum::extract::State;
use berth_api::environments::{
    About, Environment, EnvironmentChange, EnvironmentLog, NewEnvironment,
};
use berth_api::page::{Page, PageQuery};
use berth_api::paths;
use berth_app::environments::{self, EnvironmentView};
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{EnvironmentAt, SiteAt};
use super::paging::out_of_all;
use crate::answer::Made;
use crate::failure::Result;
use crate::openapi::IdempotencyKeyHeader;
use crate::request::{Creating, Path, Query, Signed};
use crate::server::Server;
use crate::shown::names;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_environments, make_environment))
        .routes(routes!(get_environment, remove_environment))
        .routes(routes!(make_environment_version))
        .routes(routes!(get_environment_log))
}

/// The site's environments, by name, the newest version first.
///
/// Curated ones are for everybody, and so are those that people made for themselves; as kernels of a notebook, each
/// finds the curated ones and their own.
#[utoipa::path(
    get, path = paths::ENVIRONMENTS, tag = "environments", params(SiteAt, PageQuery),
    responses((status = 200, description = "A page of environments.", body = Page<Environment>))
)]
async fn list_environments(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<Environment>>> {
    let found = server.app.environments(&caller, &at.site).await?;
    let page = out_of_all(found, &query, |view| {
        let one = &view.environment;
        let owner = view.called.owner.as_ref().map(ToString::to_string);
        let (owner, newest_first) = (owner.unwrap_or_default(), u32::MAX - one.version);
        format!("{} {owner} {newest_first:010}", one.name)
    })?;
    Ok(Json(page.map(shown)))
}

/// Make an environment, from nothing or on top of another one.
///
/// It is made by a workload of yours, in the site's queue; `percent` and `saying` tell how far that is. Once it is ready
/// it changes no more.
#[utoipa::path(
    post, path = paths::ENVIRONMENTS, tag = "environments", params(SiteAt, IdempotencyKeyHeader),
    request_body = NewEnvironment,
    responses(
        (status = 201, description = "It is being made.", body = Environment,
            headers(("Location" = String, description = "Where to read it."))),
        (status = 200, description = "An earlier request with this key made it; here it is as it is now.",
            body = Environment,
            headers(
                ("Location" = String, description = "Where to read it."),
                ("Idempotency-Replayed" = bool, description = "`true` on such an answer."),
            )),
    )
)]
async fn make_environment(
    State(server): State<Server>,
    Path(at): Path<SiteAt>,
    Creating { caller, body }: Creating<NewEnvironment>,
) -> Result<Made<Environment>> {
    let new = environments::NewEnvironment {
        name: body.name,
        is_curated: body.curated,
        base: body.base,
        packages: body.packages,
    };
    let made = server.app.make_environment(&caller, &at.site, &new).await?;
    let one = &made.value.environment;
    let location = paths::environment(&one.site, &one.id);
    Ok(Made::from(made.map(shown)).at(server.link(&location)))
}

/// One environment: a version, or the newest that is ready.
#[utoipa::path(
    get, path = paths::ENVIRONMENT, tag = "environments", params(EnvironmentAt),
    responses((status = 200, description = "The environment.", body = Environment))
)]
async fn get_environment(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<EnvironmentAt>,
) -> Result<Json<Environment>> {
    let view = server
        .app
        .environment(&caller, &at.site, &at.environment)
        .await?;
    Ok(Json(shown(view)))
}

/// Let nothing new begin in an environment: in one version of it, or in all where none is named.
///
/// What runs in it goes on, and so does what extends it; its room on the disk is given back when nothing needs it.
#[utoipa::path(
    delete, path = paths::ENVIRONMENT, tag = "environments", params(EnvironmentAt),
    responses((status = 204, description = "Nothing new begins in it."))
)]
async fn remove_environment(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<EnvironmentAt>,
) -> Result<StatusCode> {
    server
        .app
        .retire_environment(&caller, &at.site, &at.environment)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Make the next version of an environment; those that there are stay as they are.
#[utoipa::path(
    post, path = paths::ENVIRONMENT_VERSIONS, tag = "environments", params(EnvironmentAt, IdempotencyKeyHeader),
    request_body = EnvironmentChange,
    responses(
        (status = 201, description = "It is being made.", body = Environment,
            headers(("Location" = String, description = "Where to read it."))),
        (status = 200, description = "An earlier request with this key made it; here it is as it is now.",
            body = Environment,
            headers(
                ("Location" = String, description = "Where to read it."),
                ("Idempotency-Replayed" = bool, description = "`true` on such an answer."),
            )),
    )
)]
async fn make_environment_version(
    State(server): State<Server>,
    Path(at): Path<EnvironmentAt>,
    Creating { caller, body }: Creating<EnvironmentChange>,
) -> Result<Made<Environment>> {
    let change = environments::EnvironmentChange {
        add: body.add,
        remove: body.remove,
    };
    let made = server
        .app
        .change_environment(&caller, &at.site, &at.environment, &change)
        .await?;
    let one = &made.value.environment;
    let location = paths::environment(&one.site, &one.id);
    Ok(Made::from(made.map(shown)).at(server.link(&location)))
}

/// The last of what was said while an environment was made.
#[utoipa::path(
    get, path = paths::ENVIRONMENT_LOG, tag = "environments", params(EnvironmentAt),
    responses((status = 200, description = "The end of the log.", body = EnvironmentLog))
)]
async fn get_environment_log(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<EnvironmentAt>,
) -> Result<Json<EnvironmentLog>> {
    let log = server
        .app
        .environment_log(&caller, &at.site, &at.environment)
        .await?;
    Ok(Json(EnvironmentLog { log }))
}

fn shown(view: EnvironmentView) -> Environment {
    let about = About {
        reference: view.called.to_string(),
        base: view.base.map(|base| base.to_string()),
        is_waiting: view.progress.is_waiting,
        percent: view.progress.percent,
        saying: view.progress.now,
    };
    Environment::new(&view.environment, about, &names(&view.directory))
}
