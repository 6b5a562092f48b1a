//! API tokens: one's own, and as a global admin anyone's.

use axum::Json;
use axum::extract::State;
use berth_api::page::{Page, PageQuery};
use berth_api::secret::Revealed;
use berth_api::tokens::{CreatedToken, NewToken, Token};
use berth_api::{Code, Names, paths};
use berth_app::accounts;
use berth_model::person;
use http::StatusCode;
use secrecy::ExposeSecret;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::{MyTokenAt, PersonAt, TokenAt};
use super::paging::out_of_all;
use crate::answer::Made;
use crate::failure::{Failure, Result};
use crate::openapi::IdempotencyKeyHeader;
use crate::request::{Creating, Path, Query, Signed};
use crate::server::Server;

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default()
        .routes(routes!(list_my_tokens, create_token))
        .routes(routes!(revoke_my_token))
        .routes(routes!(list_tokens_of_person))
        .routes(routes!(revoke_token_of_person))
}

/// My API tokens, oldest first.
///
/// Revoked and expired ones are among them, so that a label in a log can still be found.
#[utoipa::path(
    get, path = paths::MY_TOKENS, tag = "tokens", params(PageQuery),
    responses((status = 200, description = "A page of tokens, without their secrets.", body = Page<Token>))
)]
async fn list_my_tokens(
    State(server): State<Server>,
    Signed(caller): Signed,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<Token>>> {
    let (owner, tokens) = server.app.tokens(&caller, None).await?;
    shown(&owner, tokens, &query)
}

/// Make an API token for myself.
///
/// Its secret is in the answer and nowhere else. A token can make only tokens that may do no more than itself.
#[utoipa::path(
    post, path = paths::MY_TOKENS, tag = "tokens", params(IdempotencyKeyHeader),
    request_body = NewToken,
    responses(
        (status = 201, description = "Made; keep the secret.", body = CreatedToken),
        (status = 200, description = "An earlier request with this key made it; its secret is not shown again.",
            body = CreatedToken,
            headers(("Idempotency-Replayed" = bool, description = "`true` on such an answer."))),
    )
)]
async fn create_token(
    State(server): State<Server>,
    Creating { caller, body }: Creating<NewToken>,
) -> Result<Made<CreatedToken>> {
    let new = accounts::NewToken {
        label: body.label,
        scopes: body.scopes.into_iter().collect(),
        expires_at: body.expires_at.get(),
    };
    let made = server.app.create_token(&caller, new).await?;
    let (token, secret) = made.value;
    if let Some(secret) = &secret {
        server.throttle.tokens.made(secret.expose_secret());
    }
    let secret = secret.map(|secret| Revealed::new(secret.expose_secret().to_owned()));
    let secret = secret
        .transpose()
        .map_err(|error| Failure::new(Code::ServerInternal).because(error))?;
    let value = CreatedToken {
        token: Token::new(token, &owner_name(&caller.person)),
        secret,
    };
    let replayed = made.replayed;
    Ok(berth_app::Made { value, replayed }.into())
}

/// Revoke one of my API tokens; it stops working at once.
#[utoipa::path(
    delete, path = paths::MY_TOKEN, tag = "tokens", params(MyTokenAt),
    responses((status = 204, description = "Revoked."))
)]
async fn revoke_my_token(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<MyTokenAt>,
) -> Result<StatusCode> {
    server.app.revoke_token(&caller, None, at.token).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Somebody's API tokens, oldest first.
#[utoipa::path(
    get, path = paths::PERSON_TOKENS, tag = "tokens", params(PersonAt, PageQuery),
    responses((status = 200, description = "A page of tokens, without their secrets.", body = Page<Token>))
)]
async fn list_tokens_of_person(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<PersonAt>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<Token>>> {
    let (owner, tokens) = server.app.tokens(&caller, Some(&at.person)).await?;
    shown(&owner, tokens, &query)
}

/// Revoke somebody's API token; it stops working at once.
#[utoipa::path(
    delete, path = paths::PERSON_TOKEN, tag = "tokens", params(TokenAt),
    responses((status = 204, description = "Revoked."))
)]
async fn revoke_token_of_person(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<TokenAt>,
) -> Result<StatusCode> {
    let person = Some(&at.person);
    server.app.revoke_token(&caller, person, at.token).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn shown(
    owner: &person::Person,
    tokens: Vec<person::Token>,
    query: &PageQuery,
) -> Result<Json<Page<Token>>> {
    let names = owner_name(owner);
    // Ids order by the moment they were made.
    let page = out_of_all(tokens, query, |token| token.id.to_string())?;
    Ok(Json(page.map(|token| Token::new(token, &names))))
}

fn owner_name(owner: &person::Person) -> Names {
    let mut names = Names::default();
    names.add_person(owner.into());
    names
}
