//! Notifications: what I was told, and what of it I have read.

use axum::Json;
use axum::extract::State;
use berth_api::events::Position;
use berth_api::names::Names;
use berth_api::notifications::{
    MarkRead, MarkUnread, Notification, NotificationPage, NotificationQuery, ReservationRef, Unread,
};
use berth_api::page::Page;
use berth_api::paths;
use berth_app::notifications::{NotificationFilter, SeenNotification, Which};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::paging::{before_number, one_more};
use crate::failure::Result;
use crate::request::{Body, Query, Signed};
use crate::server::Server;
use crate::shown::names;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_my_notifications))
        .routes(routes!(mark_notifications_read))
        .routes(routes!(mark_notifications_unread))
}

/// What I was told, newest first, and how much of it I have not read.
///
/// Kept for 90 days. While one listens to the events, `notification.created` says that there is more, and
/// `notification.read` that some was marked on another page; each carries the new count as `unread`, and the reader's own
/// id as its subject.
#[utoipa::path(
    get, path = paths::MY_NOTIFICATIONS, tag = "notifications", params(NotificationQuery),
    responses((status = 200, description = "A page of notifications.", body = NotificationPage))
)]
async fn list_my_notifications(
    State(server): State<Server>,
    Signed(caller): Signed,
    Query(query): Query<NotificationQuery>,
) -> Result<Json<NotificationPage>> {
    let filter = NotificationFilter {
        unread: query.unread,
        kinds: query.kind.into_vec(),
        site: query.site,
        before: before_number(query.cursor.as_ref())?,
        limit: one_more(query.limit),
    };
    let found = server.app.notifications(&caller, &filter).await?;
    let names = names(&found.directory);
    let page = Page::cut(found.items, query.limit, |one| one.told.number.to_string());
    let page = page.map(|one| shown(one, &names));
    Ok(Json(NotificationPage {
        items: page.items,
        next: page.next,
        unread: found.unread,
    }))
}

/// Mark notifications as read: some, or all up to one.
#[utoipa::path(
    post, path = paths::NOTIFICATIONS_READ, tag = "notifications", request_body = MarkRead,
    responses((status = 200, description = "What is left to read.", body = Unread))
)]
async fn mark_notifications_read(
    State(server): State<Server>,
    Signed(caller): Signed,
    Body(body): Body<MarkRead>,
) -> Result<Json<Unread>> {
    body.check()?;
    let which = match (body.numbers, body.up_to) {
        (_, Some(up_to)) => Which::UpTo(up_to.get()),
        (numbers, None) => Which::These(plain(numbers.into_iter().flatten())),
    };
    let unread = server.app.mark_read(&caller, &which).await?;
    Ok(Json(Unread { unread }))
}

/// Mark notifications as not read.
#[utoipa::path(
    post, path = paths::NOTIFICATIONS_UNREAD, tag = "notifications", request_body = MarkUnread,
    responses((status = 200, description = "What is left to read.", body = Unread))
)]
async fn mark_notifications_unread(
    State(server): State<Server>,
    Signed(caller): Signed,
    Body(body): Body<MarkUnread>,
) -> Result<Json<Unread>> {
    let numbers = plain(body.numbers);
    let unread = server.app.mark_unread(&caller, &numbers).await?;
    Ok(Json(Unread { unread }))
}

fn plain(numbers: impl IntoIterator<Item = Position>) -> Vec<u64> {
    numbers.into_iter().map(Position::get).collect()
}

fn shown(seen: SeenNotification, names: &Names) -> Notification {
    let reservation = seen.reservation.as_ref();
    Notification {
        number: seen.told.number,
        kind: seen.told.kind,
        at: seen.told.at,
        read: seen.told.read_at.is_some(),
        site: seen.site.map(|site| names.site(site)),
        reservation: reservation.map(|one| ReservationRef::new(one, names)),
        resource: seen.resource.map(|resource| names.resource(resource)),
        by: seen.by.map(|by| names.person(by)),
        text: seen.text,
        data: seen.told.data,
    }
}
