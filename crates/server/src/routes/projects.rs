//! Projects, and who is in them.

use axum::Json;
use axum::extract::State;
use berth_api::page::{Page, PageQuery};
use berth_api::projects::{NewProject, Project, ProjectMember, ProjectPatch};
use berth_api::{Names, paths};
use berth_app::{Place, ProjectChange};
use berth_model::person::Person;
use berth_model::site;
use http::StatusCode;
use jiff::Timestamp;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{ProjectAt, ProjectMemberAt, SiteAt};
use super::paging::{after_name, one_more};
use crate::answer::{Made, Versioned};
use crate::failure::Result;
use crate::openapi::{IdempotencyKeyHeader, IfMatchHeader, IfMatchOptionalHeader};
use crate::request::{Body, Changing, Creating, IfMatch, Path, Query, Signed};
use crate::server::Server;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_projects, create_project))
        .routes(routes!(get_project, change_project, remove_project))
        .routes(routes!(list_project_members))
        .routes(routes!(put_project_member, remove_project_member))
}

/// The site's projects, by name.
#[utoipa::path(
    get, path = paths::PROJECTS, tag = "projects", params(SiteAt, PageQuery),
    responses((status = 200, description = "A page of projects.", body = Page<Project>))
)]
async fn list_projects(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<Project>>> {
    let after = after_name(query.cursor.as_ref())?;
    let (place, found) = server
        .app
        .list_projects(&caller, &at.site, &after, one_more(query.limit))
        .await?;
    let page = Page::cut(found, query.limit, |project| project.name.to_string());
    Ok(Json(page.map(|project| shown(&place, project))))
}

/// Start a project.
#[utoipa::path(
    post, path = paths::PROJECTS, tag = "projects", params(SiteAt, IdempotencyKeyHeader),
    request_body = NewProject,
    responses(
        (status = 201, description = "Made.", body = Project,
            headers(
                ("ETag" = String, description = "The project's version."),
                ("Location" = String, description = "Where to read it."),
            )),
        (status = 200, description = "An earlier request with this key made it; here it is as it is now.",
            body = Project,
            headers(
                ("ETag" = String, description = "The project's version."),
                ("Location" = String, description = "Where to read it."),
                ("Idempotency-Replayed" = bool, description = "`true` on such an answer."),
            )),
    )
)]
async fn create_project(
    State(server): State<Server>,
    Path(at): Path<SiteAt>,
    Creating { caller, body }: Creating<NewProject>,
) -> Result<Made<Project>> {
    let new = berth_app::NewProject {
        name: body.name,
        title: body.title,
    };
    let made = server.app.create_project(&caller, &at.site, new).await?;
    let (_, project) = &made.value;
    let (location, version) = (paths::project(&project.site, &project.id), project.version);
    let made = Made::from(made.map(|(place, project)| shown(&place, project)));
    Ok(made.at(server.link(&location)).version(version))
}

/// One project.
#[utoipa::path(
    get, path = paths::PROJECT, tag = "projects", params(ProjectAt),
    responses((status = 200, description = "The project.", body = Project,
        headers(("ETag" = String, description = "The project's version."))))
)]
async fn get_project(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ProjectAt>,
) -> Result<Versioned<Project>> {
    let (place, project) = server
        .app
        .get_project(&caller, &at.site, &at.project)
        .await?;
    Ok(versioned(&place, project))
}

/// Change a project's name or title.
#[utoipa::path(
    patch, path = paths::PROJECT, tag = "projects", params(ProjectAt, IfMatchHeader),
    request_body = ProjectPatch,
    responses((status = 200, description = "The project, as it is now.", body = Project,
        headers(("ETag" = String, description = "The project's version."))))
)]
async fn change_project(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ProjectAt>,
    version: IfMatch,
    Body(patch): Body<ProjectPatch>,
) -> Result<Versioned<Project>> {
    let change = ProjectChange {
        name: patch.name,
        title: patch.title,
    };
    let version = version.required()?;
    let (place, project) = server
        .app
        .update_project(&caller, &at.site, &at.project, version, change)
        .await?;
    Ok(versioned(&place, project))
}

/// Remove a project. Its reservations stay, and still say that they were its.
#[utoipa::path(
    delete, path = paths::PROJECT, tag = "projects", params(ProjectAt, IfMatchOptionalHeader),
    responses((status = 204, description = "Removed."))
)]
async fn remove_project(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<ProjectAt>,
) -> Result<StatusCode> {
    server
        .app
        .remove_project(&caller, &at.site, &at.project)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Who is in the project, by login name.
#[utoipa::path(
    get, path = paths::PROJECT_MEMBERS, tag = "projects", params(ProjectAt, PageQuery),
    responses((status = 200, description = "A page of people.", body = Page<ProjectMember>))
)]
async fn list_project_members(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ProjectAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<ProjectMember>>> {
    let after = after_name(query.cursor.as_ref())?;
    let limit = one_more(query.limit);
    let found = server
        .app
        .project_members(&caller, &at.site, &at.project, &after, limit)
        .await?;
    let page = Page::cut(found, query.limit, |(person, _)| person.login.to_string());
    Ok(Json(page.map(member)))
}

/// Take a member of the site into the project.
#[utoipa::path(
    put, path = paths::PROJECT_MEMBER, tag = "projects", params(ProjectMemberAt),
    responses((status = 200, description = "They are in it.", body = ProjectMember))
)]
async fn put_project_member(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ProjectMemberAt>,
) -> Result<Json<ProjectMember>> {
    let added = server
        .app
        .add_project_member(&caller, &at.site, &at.project, &at.person)
        .await?;
    Ok(Json(member(added)))
}

/// Take somebody out of the project.
#[utoipa::path(
    delete, path = paths::PROJECT_MEMBER, tag = "projects", params(ProjectMemberAt),
    responses((status = 204, description = "They are no longer in it."))
)]
async fn remove_project_member(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ProjectMemberAt>,
) -> Result<StatusCode> {
    server
        .app
        .remove_project_member(&caller, &at.site, &at.project, &at.person)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

fn versioned(place: &Place, project: site::Project) -> Versioned<Project> {
    let version = project.version;
    Versioned(shown(place, project), version)
}

fn shown(place: &Place, project: site::Project) -> Project {
    let mut names = Names::default();
    names.add_site((&place.site).into());
    Project::new(project, &names)
}

fn member((person, since): (Person, Timestamp)) -> ProjectMember {
    ProjectMember {
        person: (&person).into(),
        since,
    }
}
