//! Answers that carry more than a body: versions, and whether something was made just now.

use axum::Json;
use axum::response::{IntoResponse, Response};
use berth_api::headers::{ETag, IDEMPOTENCY_REPLAYED};
use http::header::{ETAG, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;

/// An object that can change, with its version as the ETag.
#[derive(Debug)]
pub struct Versioned<T>(pub T, pub u64);

impl<T: Serialize> IntoResponse for Versioned<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.0).into_response();
        put(response.headers_mut(), ETAG, &ETag(self.1).to_string());
        response
    }
}

/// What a create answers: 201 when it made something, 200 when an earlier request with the same key had.
#[derive(Debug)]
pub struct Made<T> {
    value: T,
    replayed: bool,
    version: Option<u64>,
    location: Option<String>,
}

impl<T> From<berth_app::Made<T>> for Made<T> {
    fn from(made: berth_app::Made<T>) -> Self {
        Self {
            value: made.value,
            replayed: made.replayed,
            version: None,
            location: None,
        }
    }
}

impl<T> Made<T> {
    /// Says where it can be read; `Server::link` makes such addresses.
    pub fn at(mut self, location: String) -> Self {
        self.location = Some(location);
        self
    }

    pub fn version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }
}

impl<T: Serialize> IntoResponse for Made<T> {
    fn into_response(self) -> Response {
        let status = if self.replayed {
            StatusCode::OK
        } else {
            StatusCode::CREATED
        };
        let mut response = (status, Json(self.value)).into_response();
        let headers = response.headers_mut();
        if self.replayed {
            put(
                headers,
                HeaderName::from_static(IDEMPOTENCY_REPLAYED),
                "true",
            );
        }
        if let Some(version) = self.version {
            put(headers, ETAG, &ETag(version).to_string());
        }
        if let Some(location) = self.location {
            put(headers, LOCATION, &location);
        }
        response
    }
}

/// Versions are digits and links are percent-encoded, so the value always is one.
fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
