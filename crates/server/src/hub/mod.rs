//! Berth as a JupyterHub: its REST API at `/hub/api`, so that programs which start and stop servers by it work unchanged.
//!
//! Everything here is a translation. A server is a session, the one without a name is the session `default`, and every
//! request goes through the same use cases as Berth's own API, which say who may do what. The answers have
//! JupyterHub's shapes, refusals too: a client of JupyterHub's reads `message`, takes 403 for "show who you are", and
//! knows no 422. See `docs/jupyterhub.md`.

mod ask;
mod asker;
pub mod door;
mod oauth;
mod progress;
mod servers;
mod shown;
mod tokens;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, delete, get, post};
use axum::{Json, Router};
use berth_api::Code;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::json;

use self::asker::Asker;
use crate::failure::{Failure, Result};
use crate::request::{Path, Query, Signed};
use crate::router::unknown;
use crate::server::Server;

/// Where it stands, below the server's own base path.
pub const API: &str = "/hub/api";

/// The JupyterHub whose API this is. Its servers compare it with their own version, and warn where they differ much.
const VERSION: &str = "6.1.1";
const VERSION_HEADER: HeaderName = HeaderName::from_static("x-jupyterhub-version");

pub fn router() -> Router<Server> {
    let hub = Router::new()
        .route("/", get(version))
        .route("/user", get(whoami))
        .route("/users/{name}", get(user))
        .route(
            "/users/{name}/server",
            post(servers::start_default).delete(servers::stop_default),
        )
        .route(
            "/users/{name}/server/progress",
            get(progress::follow_default),
        )
        .route(
            "/users/{name}/servers/{server}",
            post(servers::start_named).delete(servers::stop_named),
        )
        .route(
            "/users/{name}/servers/{server}/progress",
            get(progress::follow_named),
        )
        .route("/users/{name}/activity", post(servers::note_activity))
        .route("/users/{name}/tokens", get(tokens::list).post(tokens::make))
        .route(
            "/users/{name}/tokens/{token}",
            delete(tokens::revoke).get(tokens::look),
        )
        .route("/oauth2/authorize", get(oauth::authorize))
        .route("/oauth2/token", post(oauth::token))
        .route("/{*rest}", any(unknown));
    Router::new()
        .nest(API, hub)
        // Nested, the first answers without a slash at its end only.
        .route(&format!("{API}/"), get(version))
        .layer(from_fn(in_its_words))
}

/// What a session's own server may ask for, by its narrow way out.
fn inside() -> Router<Server> {
    let hub = Router::new()
        .route("/", get(version))
        .route("/user", get(whoami))
        .route("/users/{name}/activity", post(servers::note_activity))
        .route("/oauth2/token", post(oauth::token));
    Router::new().nest(API, hub).fallback(unknown)
}

async fn version() -> impl IntoResponse {
    Json(json!({ "version": VERSION }))
}

/// Whose token it is.
async fn whoami(State(server): State<Server>, asker: Asker) -> Result<Response> {
    let caller = match asker {
        Asker::Person(caller) => caller,
        Asker::Hub(asker) => return Ok(Json(shown::asker(&asker)).into_response()),
    };
    let servers = ask::servers_of(&server, &caller, &caller.person).await?;
    let mut model = shown::user(&server, &caller.person, &servers, false);
    model["scopes"] = json!(shown::scopes(&caller));
    model["token_id"] = json!(shown::token_id(&caller));
    model["session_id"] = json!(null);
    Ok(Json(model).into_response())
}

#[derive(Debug, serde::Deserialize)]
struct UserQuery {
    include_stopped_servers: Option<String>,
}

async fn user(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(name): Path<String>,
    Query(query): Query<UserQuery>,
) -> Result<Response> {
    let person = ask::person(&server, &caller, &name).await?;
    let servers = ask::servers_of(&server, &caller, &person).await?;
    let stopped = query.include_stopped_servers.unwrap_or_default();
    let with_stopped = !matches!(stopped.as_str(), "" | "0" | "false");
    let model = shown::user(&server, &person, &servers, with_stopped);
    Ok(Json(model).into_response())
}

/// Says everything as JupyterHub does. What is the server's own fault is left to be logged, and told, as always.
async fn in_its_words(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if !response.status().is_server_error()
        && let Some(failure) = response.extensions_mut().remove::<Failure>()
    {
        response = refused(&failure);
    }
    let version = HeaderValue::from_static(VERSION);
    response.headers_mut().insert(VERSION_HEADER, version);
    response
}

fn refused(failure: &Failure) -> Response {
    let problem = failure.problem();
    let status = match failure.status() {
        StatusCode::UNAUTHORIZED => StatusCode::FORBIDDEN,
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let (status_code, message) = (status.as_u16(), &problem.detail);
    let body = json!({ "status": status_code, "message": message, "code": problem.code });
    (status, Json(body)).into_response()
}

/// What was asked for is not said as it has to be.
fn malformed(sentence: impl Into<String>) -> Failure {
    Failure::new(Code::RequestMalformed).detail(sentence)
}
