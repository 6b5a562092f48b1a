//! Bodies: JSON of a bounded size that arrives in time, read into the type the route wants.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Request};
use berth_api::headers::{IDEMPOTENCY_KEY, IdempotencyKey};
use berth_api::{Code, parse};
use berth_app::{Caller, Once};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::identity::Signed;
use crate::failure::{Failure, Result};
use crate::server::Server;

/// A JSON body as a typed request.
#[derive(Debug, Clone)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Server> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &Server) -> Result<Self> {
        let (parts, body) = request.into_parts();
        expect_json(&parts)?;
        let bytes = read(body, server).await?;
        Ok(Body(parse::body(&bytes)?))
    }
}

/// A signed body that makes something. The caller carries the request's idempotency key, if there is one.
#[derive(Debug)]
pub struct Creating<T> {
    pub caller: Caller,
    pub body: T,
}

impl<T: DeserializeOwned> FromRequest<Server> for Creating<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &Server) -> Result<Self> {
        let (mut parts, body) = request.into_parts();
        let Signed(mut caller) = Signed::from_request_parts(&mut parts, server).await?;
        let key = idempotency_key(&parts)?;
        expect_json(&parts)?;
        let bytes = read(body, server).await?;
        let body = parse::body(&bytes)?;
        caller.once = key.map(|key| {
            let path = parts.uri.path();
            let method = parts.method.as_str();
            Once::create(key, server.app.fingerprint(method, path, &bytes))
        });
        Ok(Creating { caller, body })
    }
}

/// How many times larger than others the body of a whole site may be.
pub(crate) const LARGE: usize = 16;

/// A signed body that may be larger than others: nobody can send it who has not signed in.
#[derive(Debug)]
pub struct Large<T> {
    pub caller: Caller,
    pub body: T,
}

impl<T: DeserializeOwned> FromRequest<Server> for Large<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &Server) -> Result<Self> {
        let (mut parts, body) = request.into_parts();
        let Signed(caller) = Signed::from_request_parts(&mut parts, server).await?;
        expect_json(&parts)?;
        let limit = server.config.request_body_limit_bytes.saturating_mul(LARGE);
        let bytes = read_up_to(limit, body, server).await?;
        let body = parse::body(&bytes)?;
        Ok(Large { caller, body })
    }
}

/// A body of any kind, of at most so many bytes.
#[derive(Debug, Clone)]
pub struct Content<const MAX: usize>(pub Bytes);

impl<const MAX: usize> FromRequest<Server> for Content<MAX> {
    type Rejection = Failure;

    async fn from_request(request: Request, server: &Server) -> Result<Self> {
        Ok(Content(read_up_to(MAX, request.into_body(), server).await?))
    }
}

fn expect_json(parts: &Parts) -> Result<()> {
    let given = super::header(parts, CONTENT_TYPE.as_str()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let failure = Failure::new(Code::RequestUnsupportedMediaType);
    Err(match essence {
        "" => failure.detail("The request does not say what its body is."),
        _ => failure,
    })
}

/// Reads the whole body. It has half of the request's time; the other half is the answer's.
async fn read(body: axum::body::Body, server: &Server) -> Result<Bytes> {
    read_up_to(server.config.request_body_limit_bytes, body, server).await
}

pub(crate) async fn read_up_to(
    limit: usize,
    body: axum::body::Body,
    server: &Server,
) -> Result<Bytes> {
    let patience = Duration::from_secs(server.config.request_timeout_s) / 2;
    let arrived = tokio::time::timeout(patience, Limited::new(body, limit).collect()).await;
    match arrived {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let detail = format!("The body is larger than {limit} bytes.");
            Err(Failure::new(Code::RequestTooLarge).detail(detail))
        }
        Ok(Err(_)) => Err(Failure::new(Code::RequestMalformed)
            .detail("The connection ended before the whole body had arrived.")),
        Err(_) => Err(Failure::new(Code::RequestTimeout)
            .detail(format!("The body did not arrive within {patience:?}."))),
    }
}

pub(crate) fn idempotency_key(parts: &Parts) -> Result<Option<String>> {
    let Some(value) = parts.headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let key = value.to_str().unwrap_or_default().parse::<IdempotencyKey>();
    let key = key.map_err(|error| {
        Failure::new(Code::RequestMalformed)
            .detail(format!("The header Idempotency-Key is wrong: {error}."))
            .hint("Send a new random text of 1 to 200 characters with each create or action.")
    })?;
    Ok(Some(key.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(method: &str, path: &str, content_type: &str) -> Parts {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, content_type);
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_json_is_taken_for_json() {
        for good in ["application/json", "Application/JSON; charset=utf-8"] {
            assert!(expect_json(&parts("POST", "/", good)).is_ok(), "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "application/jsonx",
            "application/x-www-form-urlencoded",
        ] {
            let failure = expect_json(&parts("POST", "/", bad)).unwrap_err();
            assert_eq!(failure.status(), 415, "{bad}");
        }
    }
}
