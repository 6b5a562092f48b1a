//! Asking to join a site, and being let in.

use axum::Json;
use axum::extract::State;
use berth_api::members::{JoinAcceptance, JoinRequest, NewJoinRequest, Reason};
use berth_api::page::{Page, PageQuery};
use berth_api::{Names, paths};
use berth_app::Place;
use berth_model::person::Person;
use berth_model::site;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{JoinRequestAt, SiteAt};
use super::paging::out_of_all;
use crate::answer::Made;
use crate::failure::Result;
use crate::openapi::IdempotencyKeyHeader;
use crate::request::{Body, Creating, Path, Query, Signed};
use crate::server::Server;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_join_requests, ask_to_join))
        .routes(routes!(accept_join_request))
        .routes(routes!(decline_join_request))
}

/// Who waits to be let in, oldest first.
#[utoipa::path(
    get, path = paths::JOIN_REQUESTS, tag = "members", params(SiteAt, PageQuery),
    responses((status = 200, description = "A page of requests.", body = Page<JoinRequest>))
)]
async fn list_join_requests(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<JoinRequest>>> {
    let (place, waiting) = server.app.list_join_requests(&caller, &at.site).await?;
    // Ids order by the moment they were made.
    let page = out_of_all(waiting, &query, |(request, _)| request.id.to_string())?;
    let shown = |(request, person)| shown(request, &person, &place);
    Ok(Json(page.map(shown)))
}

/// Ask to become a member of the site.
#[utoipa::path(
    post, path = paths::JOIN_REQUESTS, tag = "members", params(SiteAt, IdempotencyKeyHeader),
    request_body = NewJoinRequest,
    responses(
        (status = 201, description = "Asked; the site's admins decide.", body = JoinRequest),
        (status = 200, description = "An earlier request with this key asked; here it is as it is now.",
            body = JoinRequest,
            headers(("Idempotency-Replayed" = bool, description = "`true` on such an answer."))),
    )
)]
async fn ask_to_join(
    State(server): State<Server>,
    Path(at): Path<SiteAt>,
    Creating { caller, body }: Creating<NewJoinRequest>,
) -> Result<Made<JoinRequest>> {
    let made = server
        .app
        .ask_to_join(&caller, &at.site, body.message)
        .await?;
    Ok(made
        .map(|(place, request)| shown(request, &caller.person, &place))
        .into())
}

/// Let somebody in who asked.
#[utoipa::path(
    post, path = paths::JOIN_ACCEPT, tag = "members", params(JoinRequestAt),
    request_body = JoinAcceptance,
    responses((status = 200, description = "The request, accepted.", body = JoinRequest))
)]
async fn accept_join_request(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<JoinRequestAt>,
    Body(body): Body<JoinAcceptance>,
) -> Result<Json<JoinRequest>> {
    let (place, request, person) = server
        .app
        .decide_join(&caller, &at.site, at.request, Some(body.role), None)
        .await?;
    Ok(Json(shown(request, &person, &place)))
}

/// Turn somebody away who asked; they read the reason.
#[utoipa::path(
    post, path = paths::JOIN_DECLINE, tag = "members", params(JoinRequestAt),
    request_body = Reason,
    responses((status = 200, description = "The request, declined.", body = JoinRequest))
)]
async fn decline_join_request(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<JoinRequestAt>,
    Body(body): Body<Reason>,
) -> Result<Json<JoinRequest>> {
    let (place, request, person) = server
        .app
        .decide_join(&caller, &at.site, at.request, None, body.reason)
        .await?;
    Ok(Json(shown(request, &person, &place)))
}

fn shown(request: site::JoinRequest, person: &Person, place: &Place) -> JoinRequest {
    let mut names = Names::default();
    names.add_person(person.into());
    names.add_site((&place.site).into());
    JoinRequest::new(request, &names)
}
