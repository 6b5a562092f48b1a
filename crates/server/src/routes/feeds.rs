//! Feeds for calendar programs: one's own, made and revoked here, read at an address outside the API.

use axum::Json;
use axum::extract::State;
use berth_api::feeds::{CreatedFeed, Feed, NewFeed};
use berth_api::page::{Page, PageQuery};
use berth_api::secret::Revealed;
use berth_api::{Code, paths};
use berth_app::feeds::{self, NewShows};
use http::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::MyFeedAt;
use super::paging::out_of_all;
use crate::answer::Made;
use crate::failure::{Failure, Result};
use crate::openapi::IdempotencyKeyHeader;
use crate::request::{Creating, Path, Query, Signed};
use crate::server::Server;
use crate::shown::names;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_my_feeds, create_feed))
        .routes(routes!(revoke_my_feed))
}

/// My calendar feeds, oldest first.
#[utoipa::path(
    get, path = paths::MY_FEEDS, tag = "calendar", params(PageQuery),
    responses((status = 200, description = "A page of feeds, without their addresses.", body = Page<Feed>))
)]
async fn list_my_feeds(
    State(server): State<Server>,
    Signed(caller): Signed,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<Feed>>> {
    let (feeds, directory) = server.app.feeds(&caller).await?;
    let names = names(&directory);
    // Ids order by the moment they were made.
    let page = out_of_all(feeds, &query, |feed| feed.id.to_string())?;
    Ok(Json(page.map(|feed| Feed::new(&feed, &names))))
}

/// Make a calendar feed.
///
/// Its address is in the answer and nowhere else; a calendar program subscribes to it without signing in. It shows, at
/// each reading, what its maker may see then: 90 days back and a year ahead. Revoke it to take it back.
#[utoipa::path(
    post, path = paths::MY_FEEDS, tag = "calendar", params(IdempotencyKeyHeader),
    request_body = NewFeed,
    responses(
        (status = 201, description = "Made; keep the address.", body = CreatedFeed),
        (status = 200, description = "An earlier request with this key made it; its address is not shown again.",
            body = CreatedFeed,
            headers(("Idempotency-Replayed" = bool, description = "`true` on such an answer."))),
    )
)]
async fn create_feed(
    State(server): State<Server>,
    Creating { caller, body }: Creating<NewFeed>,
) -> Result<Made<CreatedFeed>> {
    body.check()?;
    let shows = match (body.site, body.kind, body.resource) {
        (None, ..) => NewShows::Mine,
        (Some(site), Some(kind), _) => NewShows::Type(site, kind),
        (Some(site), None, Some(resource)) => NewShows::Resource(site, resource),
        (Some(site), None, None) => NewShows::Site(site),
    };
    let new = feeds::NewFeed {
        label: body.label,
        shows,
    };
    let made = server.app.create_feed(&caller, &new).await?;
    let (feed, directory, secret) = made.value;
    let value = CreatedFeed {
        feed: Feed::new(&feed, &names(&directory)),
        address: secret.map(|secret| address(&server, &secret)).transpose()?,
    };
    let replayed = made.replayed;
    Ok(berth_app::Made { value, replayed }.into())
}

/// Revoke one of my calendar feeds; its address leads nowhere at once.
#[utoipa::path(
    delete, path = paths::MY_FEED, tag = "calendar", params(MyFeedAt),
    responses((status = 204, description = "Revoked."))
)]
async fn revoke_my_feed(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<MyFeedAt>,
) -> Result<StatusCode> {
    server.app.revoke_feed(&caller, at.feed).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn address(server: &Server, secret: &SecretString) -> Result<Revealed> {
    let file = format!("{}.ics", secret.expose_secret());
    let address = format!("{}{}", server.address(), paths::feed_file(&file));
    Revealed::new(address).map_err(|error| Failure::new(Code::ServerInternal).because(error))
}
