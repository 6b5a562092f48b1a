//! Tokens by JupyterHub's ways: Berth's own, with its scopes.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use berth_api::Code;
use berth_app::Caller;
use berth_app::accounts::NewToken;
use berth_model::person::{Person, Scope, Token};
use berth_model::reference::PersonReference;
use berth_model::{Text, TokenId};
use http::StatusCode;
use jiff::SignedDuration;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::json;

use super::servers::BODY_MAX;
use super::{ask, malformed, shown};
use crate::failure::{Failure, Result};
use crate::request::{Content, Path, Signed};
use crate::server::Server;

/// How long a token is good whose maker does not say. JupyterHub's would never end; ours do.
const LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);

pub async fn list(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(name): Path<String>,
) -> Result<Response> {
    let person = ask::person(&server, &caller, &name).await?;
    let tokens = live(&server, &caller, &person).await?;
    let shown = tokens.iter().map(|token| shown::token(&person, token));
    let all: Vec<_> = shown.collect();
    Ok(Json(json!({ "api_tokens": all })).into_response())
}

pub async fn look(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path((name, token)): Path<(String, TokenId)>,
) -> Result<Response> {
    let person = ask::person(&server, &caller, &name).await?;
    let tokens = live(&server, &caller, &person).await?;
    let found = tokens.iter().find(|known| known.id == token);
    let found = found.ok_or_else(|| Failure::new(Code::ObjectNotFound))?;
    Ok(Json(shown::token(&person, found)).into_response())
}

pub async fn revoke(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path((name, token)): Path<(String, TokenId)>,
) -> Result<StatusCode> {
    let person = ask::person(&server, &caller, &name).await?;
    let whose = whose(&caller, &person);
    let revoked = server.app.revoke_token(&caller, whose.as_ref(), token);
    revoked.await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Default, Deserialize)]
struct TokenBody {
    note: Option<Text>,
    /// In seconds.
    expires_in: Option<i64>,
    scopes: Option<Vec<String>>,
    /// Roles are no more in JupyterHub; they mean what one may do oneself.
    #[serde(default)]
    roles: Option<Vec<String>>,
}

pub async fn make(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(name): Path<String>,
    Content(body): Content<BODY_MAX>,
) -> Result<Response> {
    let person = ask::person(&server, &caller, &name).await?;
    if person.id != caller.id() {
        return Err(Failure::new(Code::AuthNotAllowed)
            .detail("Nobody makes tokens for somebody else: a token is its owner's word."));
    }
    let said: TokenBody = ask::json(&body)?.unwrap_or_default();
    let note = match said.note {
        Some(note) => note,
        None => text("Requested via JupyterHub's API")?,
    };
    let life = said.expires_in.map_or(LIFE, SignedDuration::from_secs);
    let expires_at = server.app.now().checked_add(life);
    let words = said.scopes.or(said.roles);
    let new = NewToken {
        label: note,
        scopes: scopes(&caller, words.as_deref())?,
        expires_at: expires_at.map_err(|_| malformed("It cannot last so long."))?,
    };
    let made = server.app.create_token(&caller, new).await?;
    let (token, secret) = made.value;
    let mut model = shown::token(&person, &token);
    model["token"] = json!(secret.as_ref().map(ExposeSecret::expose_secret));
    Ok((StatusCode::CREATED, Json(model)).into_response())
}

fn text(words: &str) -> Result<Text> {
    let text = words.parse();
    text.map_err(|error| Failure::new(Code::ServerInternal).because(error))
}

/// Berth's scopes by their own names or JupyterHub's; without a word, what the caller may do.
fn scopes(caller: &Caller, words: Option<&[String]>) -> Result<BTreeSet<Scope>> {
    let Some(words) = words else {
        return Ok(caller.scopes.clone());
    };
    let mut scopes = BTreeSet::new();
    let own = format!("!user={}", caller.person.login);
    for word in words {
        // What is asked for of one's own is all that anybody's token can do.
        let word = word.strip_suffix(own.as_str()).unwrap_or(word);
        let word = word.strip_suffix("!user").unwrap_or(word);
        match word {
            "inherit" | "self" | "all" | "user" | "token" => scopes.extend(&caller.scopes),
            word => scopes.extend(scope(word)?),
        }
    }
    Ok(scopes)
}

fn scope(word: &str) -> Result<Vec<Scope>> {
    if let Ok(scope) = serde_json::from_value(json!(word)) {
        return Ok(vec![scope]);
    }
    match word {
        "read:users" | "read:users:name" | "read:servers" | "read:tokens" => Ok(vec![Scope::Read]),
        "access:servers" | "servers" | "start:servers" | "delete:servers" | "users:activity" => {
            Ok(vec![Scope::Read, Scope::Book])
        }
        "tokens" => Ok(vec![Scope::Read, Scope::Manage]),
        other => Err(malformed(format!(
            "There is no scope `{other}` here: there are read, book and manage, and JupyterHub's \
             read:users, read:servers, access:servers, servers, users:activity, read:tokens and tokens."
        ))),
    }
}

async fn live(server: &Server, caller: &Caller, person: &Person) -> Result<Vec<Token>> {
    let whose = whose(caller, person);
    let (_, mut tokens) = server.app.tokens(caller, whose.as_ref()).await?;
    let now = server.app.now();
    tokens.retain(|token| token.revoked_at.is_none() && token.expires_at > now);
    Ok(tokens)
}

fn whose(caller: &Caller, person: &Person) -> Option<PersonReference> {
    (person.id != caller.id()).then(|| person.id.into())
}
