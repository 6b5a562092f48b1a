//! Who belongs to a site, and what becomes of what a leaver held.

use axum::Json;
use axum::extract::State;
use berth_api::members::{Member, MemberRole, SettledReservation, Settlement};
use berth_api::page::{DryRunQuery, Page, PageQuery};
use berth_api::{Names, paths};
use berth_app::settlement::{self, Mode};
use berth_model::person::Person;
use berth_model::site::Membership;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{MemberAt, SiteAt};
use super::mode;
use super::paging::{after_name, one_more};
use crate::failure::Result;
use crate::request::{Body, Path, Query, Signed};
use crate::server::Server;
use crate::shown::names;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_members))
        .routes(routes!(put_member, remove_member))
}

/// Who belongs to the site, by login name.
#[utoipa::path(
    get, path = paths::MEMBERS, tag = "members", params(SiteAt, PageQuery),
    responses((status = 200, description = "A page of members.", body = Page<Member>))
)]
async fn list_members(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<Member>>> {
    let after = after_name(query.cursor.as_ref())?;
    let found = server
        .app
        .list_members(&caller, &at.site, &after, one_more(query.limit))
        .await?;
    let page = Page::cut(found, query.limit, |(person, _)| person.login.to_string());
    Ok(Json(page.map(shown)))
}

/// Let a person in, or give a member another role.
#[utoipa::path(
    put, path = paths::MEMBER, tag = "members", params(MemberAt),
    request_body = MemberRole,
    responses((status = 200, description = "The member.", body = Member))
)]
async fn put_member(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<MemberAt>,
    Body(body): Body<MemberRole>,
) -> Result<Json<Member>> {
    let member = server
        .app
        .set_member(&caller, &at.site, &at.person, body.role)
        .await?;
    Ok(Json(shown(member)))
}

/// End a membership: my own, or as an admin another's.
///
/// What the member had reserved in the site is cancelled. A dry run says what that would be.
#[utoipa::path(
    delete, path = paths::MEMBER, tag = "members", params(MemberAt, DryRunQuery),
    responses((status = 200, description = "What became, or would become, of what they held.", body = Settlement))
)]
async fn remove_member(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<MemberAt>,
    Query(query): Query<DryRunQuery>,
) -> Result<Json<Settlement>> {
    let mode = mode(query);
    let settled = server
        .app
        .remove_member(&caller, &at.site, &at.person, mode)
        .await?;
    Ok(Json(settlement(&settled, mode)))
}

fn shown((person, membership): (Person, Membership)) -> Member {
    let mut names = Names::default();
    names.add_person((&person).into());
    Member::new(&membership, &names)
}

/// What a person's leaving came to, or would come to.
pub(super) fn settlement(settled: &settlement::Settlement, mode: Mode) -> Settlement {
    let names = names(&settled.directory);
    let reservations = settled
        .reservations
        .iter()
        .map(|(reservation, state)| SettledReservation::new(reservation, *state, &names));
    Settlement {
        applied: mode == Mode::Apply,
        person: names.person(settled.person.id),
        reservations: reservations.collect(),
        workloads: settled.workloads,
        sessions: settled.sessions,
        sites: settled.sites.iter().map(Into::into).collect(),
        tokens_revoked: settled.tokens_revoked,
    }
}
