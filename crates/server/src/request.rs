//! What a handler takes: requests read into typed values, before any of the application runs.
//!
//! - [`Signed`] is whoever asks; every route takes it but those of signing in. It comes first among the
//!   arguments, so that nobody learns anything without it.
//! - [`Path`], [`Query`] and [`Body`] are read into types that are right by construction.
//! - [`Changing`] is the same for a change of something that has a version; the caller carries the version.
//! - [`Creating`] is a signed body with its idempotency key, for everything that makes something. It reads the
//!   body, so it comes last.
//! - [`IfMatch`] is the version a change is meant for.
//!
//! Each refuses with a [`Failure`]. None of them decides whether the caller may do what they ask.

pub mod address;
mod body;
mod identity;

use axum::extract::FromRequestParts;
use axum::extract::rejection::PathRejection;
use berth_api::headers::{IfMatch as Tag, IfMatchError};
use berth_api::{Code, parse};
use http::header::IF_MATCH;
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::failure::{Failure, Result};
use crate::server::Server;

pub use body::{Body, Content, Creating, Large};
pub(crate) use body::{LARGE, idempotency_key, read_up_to};
pub(crate) use identity::{Act, identify};
pub use identity::{Changing, Identity, Session, Signed, cookie_name};

/// The query string as a typed request.
#[derive(Debug, Clone)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Server> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Server) -> Result<Self> {
        Ok(Query(parse::query(parts.uri.query().unwrap_or_default())?))
    }
}

/// The values in the path: one type, or a tuple in the order of the template.
///
/// Something that cannot be a name or an id names nothing, so it is "not found" like any other such name.
#[derive(Debug, Clone)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Server> for Path<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self> {
        match axum::extract::Path::from_request_parts(parts, server).await {
            Ok(axum::extract::Path(values)) => Ok(Path(values)),
            Err(PathRejection::FailedToDeserializePathParams(_)) => {
                // Where the body holds the signature it is read after this; strangers must not tell names apart.
                Signed::from_request_parts(parts, server).await?;
                Err(Failure::new(Code::ObjectNotFound))
            }
            Err(error) => Err(Failure::new(Code::ServerInternal).because(error)),
        }
    }
}

/// The version that a change is meant for, if the request says so.
///
/// Either way the use case gets an `Option<u64>`, where none means "whatever it is now".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IfMatch(Option<Tag>);

impl IfMatch {
    /// The version, where a change without a word about it could undo another's by mistake. `*` is such a word.
    pub fn required(self) -> Result<Option<u64>> {
        match self.0 {
            Some(_) => Ok(self.optional()),
            None => Err(Failure::new(Code::RequestPreconditionRequired)),
        }
    }

    /// The version, where a change is harmless without one.
    pub fn optional(self) -> Option<u64> {
        match self.0 {
            Some(Tag::Version(version)) => Some(version),
            Some(Tag::Any) | None => None,
        }
    }
}

impl FromRequestParts<Server> for IfMatch {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Server) -> Result<Self> {
        let Some(value) = parts.headers.get(IF_MATCH) else {
            return Ok(IfMatch(None));
        };
        let tag = value.to_str().unwrap_or_default().parse();
        let tag = tag.map_err(|error: IfMatchError| {
            Failure::new(Code::RequestMalformed)
                .detail(format!("{error}."))
                .hint("Send the ETag of the object back as it was given.")
        })?;
        Ok(IfMatch(Some(tag)))
    }
}

/// A header's value as text; one that is no text is as good as absent.
fn header<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name)?.to_str().ok()
}
