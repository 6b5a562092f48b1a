//! Sites, as far as the one who asks may see them.

use axum::Json;
use axum::extract::State;
use berth_api::page::{Page, PageQuery};
use berth_api::paths;
use berth_api::sites::{NewSite, Site, SiteActivity, SitePatch, SiteStanding};
use berth_app::{Place, SiteChange};
use berth_engine::rights::Standing;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::SiteAt;
use super::paging::{after_name, one_more};
use crate::answer::{Made, Versioned};
use crate::failure::Result;
use crate::openapi::{IdempotencyKeyHeader, IfMatchHeader};
use crate::request::{Body, Creating, IfMatch, Path, Query, Signed};
use crate::server::Server;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_sites, create_site))
        .routes(routes!(get_site, change_site))
        .routes(routes!(list_my_sites))
}

/// The sites that I may see, by name.
///
/// My own, and those that show themselves to outsiders; each says what I am to it and how much of it I see.
#[utoipa::path(
    get, path = paths::SITES, tag = "sites", params(PageQuery),
    responses((status = 200, description = "A page of sites.", body = Page<Site>))
)]
async fn list_sites(
    State(server): State<Server>,
    Signed(caller): Signed,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<Site>>> {
    let after = after_name(query.cursor.as_ref())?;
    let found = server
        .app
        .list_sites(&caller, &after, one_more(query.limit))
        .await?;
    let page = Page::cut(found, query.limit, |place| place.site.name.to_string());
    Ok(Json(page.map(shown)))
}

/// My sites, with what I have to do in each, by name.
///
/// Those that I am a member of; for a global admin, all of them.
#[utoipa::path(
    get, path = paths::MY_SITES, tag = "sites",
    responses((status = 200, description = "All of them, in one page.", body = Page<SiteActivity>))
)]
async fn list_my_sites(
    State(server): State<Server>,
    Signed(caller): Signed,
) -> Result<Json<Page<SiteActivity>>> {
    let found = server.app.my_sites(&caller).await?;
    let items = found.into_iter().map(|mine| SiteActivity {
        site: (&mine.place.site).into(),
        reservations: mine.owned.reservations,
        workloads: mine.owned.workloads,
        sessions: mine.owned.sessions,
        approvals: mine.approvals,
        last_activity: mine.last_activity,
    });
    Ok(Json(Page::whole(items.collect())))
}

/// Open a site.
#[utoipa::path(
    post, path = paths::SITES, tag = "sites", params(IdempotencyKeyHeader),
    request_body = NewSite,
    responses(
        (status = 201, description = "Made.", body = Site,
            headers(
                ("ETag" = String, description = "The site's version."),
                ("Location" = String, description = "Where to read it."),
            )),
        (status = 200, description = "An earlier request with this key made it; here it is as it is now.",
            body = Site,
            headers(
                ("ETag" = String, description = "The site's version."),
                ("Location" = String, description = "Where to read it."),
                ("Idempotency-Replayed" = bool, description = "`true` on such an answer."),
            )),
    )
)]
async fn create_site(
    State(server): State<Server>,
    Creating { caller, body }: Creating<NewSite>,
) -> Result<Made<Site>> {
    let new = berth_app::NewSite {
        name: body.name,
        title: body.title,
        time_zone: body.time_zone,
        outsiders_see: body.outsiders_see,
    };
    let made = server.app.create_site(&caller, new).await?;
    let (id, version) = (made.value.site.id, made.value.site.version);
    let made = Made::from(made.map(shown));
    Ok(made.at(server.link(&paths::site(&id))).version(version))
}

/// One site.
#[utoipa::path(
    get, path = paths::SITE, tag = "sites", params(SiteAt),
    responses((status = 200, description = "The site.", body = Site,
        headers(("ETag" = String, description = "The site's version."))))
)]
async fn get_site(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
) -> Result<Versioned<Site>> {
    let place = server.app.get_site(&caller, &at.site).await?;
    Ok(versioned(place))
}

/// Change a site's name, title, time zone, accent, or what outsiders see of it.
#[utoipa::path(
    patch, path = paths::SITE, tag = "sites", params(SiteAt, IfMatchHeader),
    request_body = SitePatch,
    responses((status = 200, description = "The site, as it is now.", body = Site,
        headers(("ETag" = String, description = "The site's version."))))
)]
async fn change_site(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    version: IfMatch,
    Body(patch): Body<SitePatch>,
) -> Result<Versioned<Site>> {
    let change = SiteChange {
        name: patch.name,
        title: patch.title,
        time_zone: patch.time_zone,
        outsiders_see: patch.outsiders_see,
        accent: patch.accent,
    };
    let version = version.required()?;
    let place = server
        .app
        .update_site(&caller, &at.site, version, change)
        .await?;
    Ok(versioned(place))
}

pub(super) fn versioned(place: Place) -> Versioned<Site> {
    let version = place.site.version;
    Versioned(shown(place), version)
}

fn shown(place: Place) -> Site {
    let standing = match place.standing {
        Standing::Outsider(_) => SiteStanding::Outsider,
        Standing::Member => SiteStanding::Member,
        Standing::SiteAdmin => SiteStanding::SiteAdmin,
        Standing::GlobalAdmin => SiteStanding::GlobalAdmin,
    };
    Site::new(place.site, standing)
}
