//! Accounts, as global admins keep them.

use axum::Json;
use axum::extract::State;
use berth_api::members::Settlement;
use berth_api::page::{DryRunQuery, Page, PageQuery};
use berth_api::people::{CreatedPerson, NewPerson, Person, PersonPatch, ResetLink};
use berth_api::secret::Revealed;
use berth_api::{Code, Problem, paths};
use berth_app::{PersonChange, accounts};
use secrecy::ExposeSecret;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::PersonAt;
use super::members::settlement;
use super::mode;
use super::paging::{after_name, one_more};
use crate::answer::{Made, Versioned};
use crate::failure::{Failure, Result};
use crate::openapi::{IdempotencyKeyHeader, IfMatchHeader, IfMatchOptionalHeader};
use crate::request::{Body, Changing, Creating, IfMatch, Path, Query, Signed};
use crate::server::Server;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_people, create_person))
        .routes(routes!(get_person, change_person, remove_person))
        .routes(routes!(create_reset_link))
}

/// Everybody who has an account, by login name.
#[utoipa::path(
    get, path = paths::PEOPLE, tag = "people", params(PageQuery),
    responses((status = 200, description = "A page of people.", body = Page<Person>))
)]
async fn list_people(
    State(server): State<Server>,
    Signed(caller): Signed,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<Person>>> {
    let after = after_name(query.cursor.as_ref())?;
    let found = server
        .app
        .list_people(&caller, &after, one_more(query.limit))
        .await?;
    let page = Page::cut(found, query.limit, |person| person.login.to_string());
    Ok(Json(page.map(Person::from)))
}

/// Make an account.
///
/// Without a password the answer carries a one-time link with which the person sets one.
#[utoipa::path(
    post, path = paths::PEOPLE, tag = "people", params(IdempotencyKeyHeader),
    request_body = NewPerson,
    responses(
        (status = 201, description = "Made.", body = CreatedPerson,
            headers(
                ("ETag" = String, description = "The person's version."),
                ("Location" = String, description = "Where to read the person."),
            )),
        (status = 200, description = "An earlier request with this key made it; its link is not shown again.",
            body = CreatedPerson,
            headers(
                ("ETag" = String, description = "The person's version."),
                ("Location" = String, description = "Where to read the person."),
                ("Idempotency-Replayed" = bool, description = "`true` on such an answer."),
            )),
    )
)]
async fn create_person(
    State(server): State<Server>,
    Creating { caller, body }: Creating<NewPerson>,
) -> Result<Made<CreatedPerson>> {
    let new = berth_app::NewPerson {
        login: body.login,
        display_name: body.display_name,
        email: body.email.map(String::from),
        time_zone: body.time_zone,
        password: body.password.map(|password| password.into_inner()),
    };
    let made = server.app.create_person(&caller, new).await?;
    let (person, link) = made.value;
    let (id, version, replayed) = (person.id, person.version, made.replayed);
    let value = CreatedPerson {
        person: person.into(),
        reset_link: link.map(|link| written_out(&server, &link)).transpose()?,
    };
    let made = Made::from(berth_app::Made { value, replayed });
    Ok(made.at(server.link(&paths::person(&id))).version(version))
}

/// One person; anyone may look at themselves.
#[utoipa::path(
    get, path = paths::PERSON, tag = "people", params(PersonAt),
    responses((status = 200, description = "The person.", body = Person,
        headers(("ETag" = String, description = "The person's version."))))
)]
async fn get_person(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<PersonAt>,
) -> Result<Versioned<Person>> {
    let person = server.app.get_person(&caller, &at.person).await?;
    Ok(shown(person))
}

/// Change somebody's account, suspend it, or make them a global admin.
///
/// A suspended person cannot sign in; what they hold stands.
#[utoipa::path(
    patch, path = paths::PERSON, tag = "people", params(PersonAt, IfMatchHeader),
    request_body = PersonPatch,
    responses((status = 200, description = "The person, as they are now.", body = Person,
        headers(("ETag" = String, description = "The person's version."))))
)]
async fn change_person(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<PersonAt>,
    version: IfMatch,
    Body(patch): Body<PersonPatch>,
) -> Result<Versioned<Person>> {
    let change = PersonChange {
        display_name: patch.display_name,
        email: patch.email.map(|email| email.map(String::from)),
        time_zone: patch.time_zone,
        global_admin: patch.global_admin,
        suspended: patch.suspended,
    };
    let version = version.required()?;
    let person = server
        .app
        .update_person(&caller, &at.person, version, change)
        .await?;
    Ok(shown(person))
}

/// Remove a person for good.
///
/// They leave every site, their tokens and sessions end, and what they had reserved is cancelled. A dry run says
/// what that would be.
#[utoipa::path(
    delete, path = paths::PERSON, tag = "people", params(PersonAt, IfMatchOptionalHeader, DryRunQuery),
    responses(
        (status = 200, description = "What became, or would become, of what they held.", body = Settlement),
        (status = 409, description = "`member.last_admin`: Nobody would be left to administer it.",
            body = Problem, content_type = "application/problem+json"),
    )
)]
async fn remove_person(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<PersonAt>,
    Query(query): Query<DryRunQuery>,
) -> Result<Json<Settlement>> {
    let mode = mode(query);
    let settled = server.app.remove_person(&caller, &at.person, mode).await?;
    Ok(Json(settlement(&settled, mode)))
}

/// Make a one-time link with which a person sets a new password.
///
/// Whoever has the link is that person, so it is shown once, here. Links made before stay good until they are
/// used or run out.
#[utoipa::path(
    post, path = paths::PERSON_RESET_LINK, tag = "people", params(PersonAt),
    responses(
        (status = 200, description = "Pass it on by a way you trust.", body = ResetLink),
        (status = 409, description = "`object.in_use`: The account is suspended.",
            body = Problem, content_type = "application/problem+json"),
    )
)]
async fn create_reset_link(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<PersonAt>,
) -> Result<Json<ResetLink>> {
    let (_, link) = server.app.make_reset_link(&caller, &at.person).await?;
    Ok(Json(written_out(&server, &link)?))
}

fn shown(person: berth_model::person::Person) -> Versioned<Person> {
    let version = person.version;
    Versioned(person.into(), version)
}

/// The link as an address. The secret stands behind a `#`, which browsers keep to themselves: it appears in no log
/// of a server or proxy.
fn written_out(server: &Server, link: &accounts::ResetLink) -> Result<ResetLink> {
    let address = format!(
        "{}{}#{}",
        server.address(),
        paths::RESET_PAGE,
        link.token.expose_secret()
    );
    Ok(ResetLink {
        link: Revealed::new(address)
            .map_err(|error| Failure::new(Code::ServerInternal).because(error))?,
        expires_at: link.expires_at,
    })
}
