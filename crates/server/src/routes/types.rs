//! Resource types, with the questions of their booking forms.

use axum::Json;
use axum::extract::State;
use berth_api::page::{Page, PageQuery};
use berth_api::types::{NewType, ResourceType, TypePatch};
use berth_api::{Names, paths};
use berth_app::{Place, inventory};
use berth_model::inventory as model;
use berth_model::parameter::Form;
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{SiteAt, TypeAt};
use super::paging::out_of_all;
use crate::answer::{Made, Versioned};
use crate::failure::Result;
use crate::openapi::{IdempotencyKeyHeader, IfMatchHeader, IfMatchOptionalHeader};
use crate::request::{Body, Changing, Creating, IfMatch, Path, Query, Signed};
use crate::server::Server;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_types, create_type))
        .routes(routes!(get_type, change_type, remove_type))
}

/// The site's resource types, by name.
#[utoipa::path(
    get, path = paths::TYPES, tag = "types", params(SiteAt, PageQuery),
    responses((status = 200, description = "A page of types.", body = Page<ResourceType>))
)]
async fn list_types(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<ResourceType>>> {
    let (place, types) = server.app.list_types(&caller, &at.site).await?;
    let page = out_of_all(types, &query, |kind| kind.name.to_string())?;
    Ok(Json(page.map(|kind| shown(&place, kind))))
}

/// Add a resource type.
#[utoipa::path(
    post, path = paths::TYPES, tag = "types", params(SiteAt, IdempotencyKeyHeader),
    request_body = NewType,
    responses(
        (status = 201, description = "Made.", body = ResourceType,
            headers(
                ("ETag" = String, description = "The type's version."),
                ("Location" = String, description = "Where to read it."),
            )),
        (status = 200, description = "An earlier request with this key made it; here it is as it is now.",
            body = ResourceType,
            headers(
                ("ETag" = String, description = "The type's version."),
                ("Location" = String, description = "Where to read it."),
                ("Idempotency-Replayed" = bool, description = "`true` on such an answer."),
            )),
    )
)]
async fn create_type(
    State(server): State<Server>,
    Path(at): Path<SiteAt>,
    Creating { caller, body }: Creating<NewType>,
) -> Result<Made<ResourceType>> {
    let new = inventory::NewType {
        name: body.name,
        title: body.title,
        colour: body.colour,
        form: Form::try_from(body.parameters)?,
        needs_approval: body.needs_approval,
    };
    let made = server.app.create_type(&caller, &at.site, new).await?;
    let (_, kind) = &made.value;
    let (location, version) = (paths::resource_type(&kind.site, &kind.id), kind.version);
    let made = Made::from(made.map(|(place, kind)| shown(&place, kind)));
    Ok(made.at(server.link(&location)).version(version))
}

/// One resource type.
#[utoipa::path(
    get, path = paths::TYPE, tag = "types", params(TypeAt),
    responses((status = 200, description = "The type.", body = ResourceType,
        headers(("ETag" = String, description = "The type's version."))))
)]
async fn get_type(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<TypeAt>,
) -> Result<Versioned<ResourceType>> {
    let (place, kind) = server.app.get_type(&caller, &at.site, &at.kind).await?;
    Ok(versioned(&place, kind))
}

/// Change a resource type.
///
/// Standing bookings keep the answers they gave; new questions are asked from now on.
#[utoipa::path(
    patch, path = paths::TYPE, tag = "types", params(TypeAt, IfMatchHeader),
    request_body = TypePatch,
    responses((status = 200, description = "The type, as it is now.", body = ResourceType,
        headers(("ETag" = String, description = "The type's version."))))
)]
async fn change_type(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<TypeAt>,
    version: IfMatch,
    Body(patch): Body<TypePatch>,
) -> Result<Versioned<ResourceType>> {
    let change = inventory::TypeChange {
        name: patch.name,
        title: patch.title,
        colour: patch.colour,
        form: patch.parameters.map(Form::try_from).transpose()?,
        needs_approval: patch.needs_approval,
    };
    let version = version.required()?;
    let (place, kind) = server
        .app
        .update_type(&caller, &at.site, &at.kind, version, change)
        .await?;
    Ok(versioned(&place, kind))
}

/// Remove a resource type that no resource has any more.
#[utoipa::path(
    delete, path = paths::TYPE, tag = "types", params(TypeAt, IfMatchOptionalHeader),
    responses((status = 204, description = "Removed."))
)]
async fn remove_type(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<TypeAt>,
) -> Result<StatusCode> {
    server.app.remove_type(&caller, &at.site, &at.kind).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn versioned(place: &Place, kind: model::ResourceType) -> Versioned<ResourceType> {
    let version = kind.version;
    Versioned(shown(place, kind), version)
}

fn shown(place: &Place, kind: model::ResourceType) -> ResourceType {
    let mut names = Names::default();
    names.add_site((&place.site).into());
    ResourceType::new(kind, &names)
}
