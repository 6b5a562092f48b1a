//! The layer that answers a repeated action with the answer of the first one.
//!
//! An action is a signed POST with an `Idempotency-Key` that makes no object; a create finds its object by itself
//! (`Creating`). The transaction of the action claims the key (`berth_app::Once`), so it happens once even where the
//! answer was lost. The answer is kept afterwards, for a caller who repeats the request. It must not keep secrets: the
//! routes in [`NOT_REPEATED`] take no key.

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use berth_api::headers::IDEMPOTENCY_REPLAYED;
use berth_api::{Code, paths};
use berth_app::{Once, Repeated};
use berth_model::PersonId;
use http::header::{CONTENT_TYPE, ETAG};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};
use crate::request::{Act, Identity, LARGE, idempotency_key, identify, read_up_to};
use crate::server::Server;

/// The POST routes that take no key, and why.
pub const NOT_REPEATED: [(&str, &str); 7] = [
    (
        paths::SIGN_IN,
        "nobody is signed in yet, and each sign-in gives a new secret",
    ),
    (
        paths::SIGN_OUT,
        "the sign-in that would repeat it has ended",
    ),
    (
        paths::PASSWORD_RESET,
        "nobody is signed in, and the link works once",
    ),
    (
        paths::PERSON_RESET_LINK,
        "each call gives a new secret, which is never stored",
    ),
    (
        paths::SESSION_VISITS,
        "each call gives a new secret, which is never stored",
    ),
    (paths::WHEN, "it only reads"),
    (paths::POLICY_TEST, "it only reads"),
];

/// A larger answer is not kept: a repeated request is told to read the object.
const ANSWER_MAX_BYTES: usize = 256 * 1024;

/// An answer, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    status: u16,
    etag: Option<String>,
    content_type: Option<String>,
    body: String,
}

pub async fn repeat(State(server): State<Server>, request: Request, next: Next) -> Response {
    match answer(&server, request, next).await {
        Ok(response) => response,
        Err(failure) => failure.into_response(),
    }
}

async fn answer(server: &Server, request: Request, next: Next) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    let person = match identify(&mut parts, server).await {
        Identity::Known { caller, .. } if is_action(&parts, server) => caller.person.id,
        _ => return Ok(next.run(Request::from_parts(parts, body)).await),
    };
    let Some(key) = idempotency_key(&parts)? else {
        return Ok(next.run(Request::from_parts(parts, body)).await);
    };
    let limit = server.config.request_body_limit_bytes.saturating_mul(LARGE);
    let body = read_up_to(limit, body, server).await?;
    let address = parts.uri.path_and_query();
    let address = address.map_or("/", |address| address.as_str());
    let once = Once::action(
        key,
        server
            .app
            .fingerprint(parts.method.as_str(), address, &body),
    );
    if let Some(before) = server.app.repeated(person, &once).await? {
        return again(before);
    }
    parts.extensions.insert(Act(once.clone()));
    let request = Request::from_parts(parts, Body::from(body));
    let response = next.run(request).await;
    if response.status().is_success() {
        return keep(server, person, &once, response).await;
    }
    // Of two at once, the second may meet what the first one changed.
    match server.app.repeated(person, &once).await? {
        Some(before) => again(before),
        None => Ok(response),
    }
}

fn is_action(parts: &Parts, server: &Server) -> bool {
    let route = server.route(parts.extensions.get::<MatchedPath>());
    let route = route.and_then(|route| route.strip_prefix(paths::API));
    let takes_key = |route| NOT_REPEATED.iter().all(|(other, _)| *other != route);
    parts.method == Method::POST && route.is_some_and(takes_key)
}

fn again(before: Repeated) -> Result<Response> {
    let Repeated::Answered(kept) = before else {
        return Err(Failure::new(Code::RequestDoneBefore));
    };
    let broken = |error| Failure::new(Code::ServerInternal).because(error);
    let kept: Kept = serde_json::from_str(&kept).map_err(broken)?;
    let mut response = Response::new(Body::from(kept.body));
    *response.status_mut() = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    for (name, value) in [(ETAG, kept.etag), (CONTENT_TYPE, kept.content_type)] {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
    let replayed = HeaderName::from_static(IDEMPOTENCY_REPLAYED);
    headers.insert(replayed, HeaderValue::from_static("true"));
    Ok(response)
}

async fn keep(
    server: &Server,
    person: PersonId,
    once: &Once,
    response: Response,
) -> Result<Response> {
    let (parts, body) = response.into_parts();
    let broken = |error| Failure::new(Code::ServerInternal).because(error);
    let body = body.collect().await.map_err(broken)?.to_bytes();
    let text = |name| Some(parts.headers.get(name)?.to_str().ok()?.to_owned());
    let (etag, content_type) = (text(ETAG), text(CONTENT_TYPE));
    if body.len() <= ANSWER_MAX_BYTES
        && let Ok(body) = std::str::from_utf8(&body)
    {
        let kept = Kept {
            status: parts.status.as_u16(),
            etag,
            content_type,
            body: body.to_owned(),
        };
        let kept = serde_json::to_string(&kept).unwrap_or_default();
        // The action is done. Without its answer a repeated request is told to read the object.
        if let Err(error) = server.app.keep_answer(person, once, &kept).await {
            tracing::warn!(error = %error, "the answer of an action could not be kept");
        }
    }
    Ok(Response::from_parts(parts, Body::from(body)))
}
