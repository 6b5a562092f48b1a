//! Resources: the tree, where each stands in it, and whether it takes bookings.

use axum::Json;
use axum::extract::State;
use berth_api::attributes::Where;
use berth_api::page::{DryRunQuery, Page, PageQuery};
use berth_api::resources::{
    FactsFor, Inherited, MoveOutcome, MoveResource, NewResource, Resource, ResourcePatch,
    ResourceQuery, StatusChange, StatusPatch,
};
use berth_api::{Names, paths};
use berth_app::inventory::{self, ResourceFilter, ResourceView};
use berth_app::settlement::Mode;
use berth_app::{Caller, Directory, Place};
use berth_engine::rights::Action;
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{ResourceAt, SiteAt};
use super::mode;
use super::paging::{after_name, before_number, one_more};
use crate::answer::{Made, Versioned};
use crate::failure::Result;
use crate::openapi::{IdempotencyKeyHeader, IfMatchHeader, IfMatchOptionalHeader};
use crate::request::{Body, Changing, Creating, IfMatch, Path, Query, Signed};
use crate::server::Server;
use crate::shown::{conflicts, names};

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_resources, create_resource))
        .routes(routes!(get_resource, change_resource, remove_resource))
        .routes(routes!(move_resource))
        .routes(routes!(set_resource_status))
        .routes(routes!(list_status_history))
}

/// The site's resources, by name.
#[utoipa::path(
    get, path = paths::RESOURCES, tag = "resources", params(SiteAt, ResourceQuery),
    responses((status = 200, description = "A page of resources.", body = Page<Resource>))
)]
async fn list_resources(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<ResourceQuery>,
) -> Result<Json<Page<Resource>>> {
    let after = after_name(query.cursor.as_ref())?;
    let filter = ResourceFilter {
        kind: query.kind,
        requirements: requirements(query.requirements),
        status: query.status,
        under: query.under,
    };
    let limit = usize::from(query.limit.get()) + 1;
    let (place, found, directory) = server
        .app
        .list_resources(&caller, &at.site, &filter, &after, limit)
        .await?;
    let (names, reader) = (names(&directory), reader(&place, &caller));
    let page = Page::cut(found, query.limit, |view| view.resource.name.to_string());
    Ok(Json(page.map(|view| shown(view, reader, &names))))
}

/// Add a resource to the tree.
#[utoipa::path(
    post, path = paths::RESOURCES, tag = "resources", params(SiteAt, IdempotencyKeyHeader),
    request_body = NewResource,
    responses(
        (status = 201, description = "Made.", body = Resource,
            headers(
                ("ETag" = String, description = "The resource's version."),
                ("Location" = String, description = "Where to read it."),
            )),
        (status = 200, description = "An earlier request with this key made it; here it is as it is now.",
            body = Resource,
            headers(
                ("ETag" = String, description = "The resource's version."),
                ("Location" = String, description = "Where to read it."),
                ("Idempotency-Replayed" = bool, description = "`true` on such an answer."),
            )),
    )
)]
async fn create_resource(
    State(server): State<Server>,
    Path(at): Path<SiteAt>,
    Creating { caller, body }: Creating<NewResource>,
) -> Result<Made<Resource>> {
    let new = inventory::NewResource {
        name: body.name,
        kind: body.kind,
        parent: body.parent,
        title: body.title,
        attributes: body.attributes.into_inner(),
        facts: body.facts,
        capacity: body.capacity,
    };
    let made = server.app.create_resource(&caller, &at.site, new).await?;
    let (_, ResourceView { resource, .. }, _) = &made.value;
    let location = paths::resource(&resource.site, &resource.id);
    let version = resource.version;
    let made =
        Made::from(made.map(|(place, view, directory)| {
            shown(view, reader(&place, &caller), &names(&directory))
        }));
    Ok(made.at(server.link(&location)).version(version))
}

/// One resource.
#[utoipa::path(
    get, path = paths::RESOURCE, tag = "resources", params(ResourceAt),
    responses((status = 200, description = "The resource.", body = Resource,
        headers(("ETag" = String, description = "The resource's version."))))
)]
async fn get_resource(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ResourceAt>,
) -> Result<Versioned<Resource>> {
    let found = server
        .app
        .get_resource(&caller, &at.site, &at.resource)
        .await?;
    Ok(versioned(&caller, found))
}

/// Change what a resource is called, what describes it, or how much of it there is.
#[utoipa::path(
    patch, path = paths::RESOURCE, tag = "resources", params(ResourceAt, IfMatchHeader),
    request_body = ResourcePatch,
    responses((status = 200, description = "The resource, as it is now.", body = Resource,
        headers(("ETag" = String, description = "The resource's version."))))
)]
async fn change_resource(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ResourceAt>,
    version: IfMatch,
    Body(patch): Body<ResourcePatch>,
) -> Result<Versioned<Resource>> {
    let change = inventory::ResourceChange {
        name: patch.name,
        title: patch.title,
        attributes: patch.attributes.map(|attributes| attributes.into_inner()),
        facts: patch.facts,
        capacity: patch.capacity,
    };
    let version = version.required()?;
    let changed = server
        .app
        .update_resource(&caller, &at.site, &at.resource, version, change)
        .await?;
    Ok(versioned(&caller, changed))
}

/// Take a resource out of the inventory, if nothing is below it and nothing is promised on it.
#[utoipa::path(
    delete, path = paths::RESOURCE, tag = "resources", params(ResourceAt, IfMatchOptionalHeader),
    responses((status = 204, description = "Removed."))
)]
async fn remove_resource(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<ResourceAt>,
) -> Result<StatusCode> {
    server
        .app
        .remove_resource(&caller, &at.site, &at.resource)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Move a resource, with all that is below it, to another place in the tree.
///
/// Refused where bookings would then collide; the problem lists them. A dry run lists them too.
#[utoipa::path(
    post, path = paths::RESOURCE_MOVE, tag = "resources", params(ResourceAt, IfMatchOptionalHeader, DryRunQuery),
    request_body = MoveResource,
    responses((status = 200, description = "It stands there now, or what a move would meet.", body = MoveOutcome))
)]
async fn move_resource(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<ResourceAt>,
    Query(query): Query<DryRunQuery>,
    Body(body): Body<MoveResource>,
) -> Result<Json<MoveOutcome>> {
    let mode = mode(query);
    let moved = server
        .app
        .move_resource(&caller, &at.site, &at.resource, body.parent.as_ref(), mode)
        .await?;
    Ok(Json(MoveOutcome {
        moved: mode == Mode::Apply,
        conflicts: conflicts(&moved.conflicts, &moved.directory),
    }))
}

/// Take a resource out of service, or back into it.
///
/// The status counts for all that is below it. It moves nobody: standing bookings stay valid, but nothing new is
/// booked until the resource is ACTIVE again.
#[utoipa::path(
    patch, path = paths::RESOURCE_STATUS, tag = "resources", params(ResourceAt, IfMatchHeader),
    request_body = StatusPatch,
    responses((status = 200, description = "The resource, as it is now.", body = Resource,
        headers(("ETag" = String, description = "The resource's version."))))
)]
async fn set_resource_status(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ResourceAt>,
    version: IfMatch,
    Body(body): Body<StatusPatch>,
) -> Result<Versioned<Resource>> {
    let version = version.required()?;
    let StatusPatch { status, reason } = body;
    let changed = server
        .app
        .set_status(&caller, &at.site, &at.resource, version, status, reason)
        .await?;
    Ok(versioned(&caller, changed))
}

/// How a resource's own status changed, newest first.
#[utoipa::path(
    get, path = paths::RESOURCE_STATUS_HISTORY, tag = "resources", params(ResourceAt, PageQuery),
    responses((status = 200, description = "A page of changes.", body = Page<StatusChange>))
)]
async fn list_status_history(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<ResourceAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<StatusChange>>> {
    let before = before_number(query.cursor.as_ref())?;
    let limit = one_more(query.limit);
    let (changes, directory) = server
        .app
        .status_history(&caller, &at.site, &at.resource, before, limit)
        .await?;
    let names = names(&directory);
    let page = Page::cut(changes, query.limit, |(number, _)| number.to_string());
    Ok(Json(
        page.map(|(_, change)| StatusChange::new(change, &names)),
    ))
}

fn versioned(
    caller: &Caller,
    (place, view, directory): (Place, ResourceView, Directory),
) -> Versioned<Resource> {
    let version = view.resource.version;
    let shown = shown(view, reader(&place, caller), &names(&directory));
    Versioned(shown, version)
}

fn reader(place: &Place, caller: &Caller) -> FactsFor {
    if place.can(caller, Action::SeeProvisioningFacts) {
        FactsFor::Admins
    } else {
        FactsFor::Everyone
    }
}

fn shown(view: ResourceView, reader: FactsFor, names: &Names) -> Resource {
    let inherited = (view.status_from != view.resource.id).then_some(Inherited {
        status: view.status,
        from: view.status_from,
    });
    Resource::new(view.resource, inherited, reader, names)
}

pub(super) fn requirements(
    written: impl IntoIterator<Item = Where>,
) -> Vec<berth_model::attribute::Requirement> {
    let requirement = |one: Where| one.requirement().clone();
    written.into_iter().map(requirement).collect()
}
