//! The outermost layer: every request gets an id, every answer its security headers, and both are counted and logged.
//!
//! The log names the route, the path and who asked, by id. It never carries a query string, a header, a body or the
//! address of a calendar feed, since any of them may hold a secret.

use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use berth_api::paths;
use berth_app::clock::random;
use berth_model::{FeedId, PersonId};
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::failure::{self, Failure};
use crate::metrics::{Counted, Outcome};
use crate::request::address::client_address;
use crate::server::Server;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Who asked, as far as some inner layer found out; it travels on the answer.
#[derive(Debug, Clone, Copy)]
pub struct AskedBy(pub PersonId);

/// What is known of a request before it is answered, for the log and the counters.
struct Seen {
    id: String,
    method: Method,
    path: String,
    route: Option<String>,
    client: Option<IpAddr>,
    began: Instant,
}

pub async fn observe(State(server): State<Server>, request: Request, next: Next) -> Response {
    let counted = Counted::on(&server.metrics.in_flight);
    let (parts, body) = request.into_parts();
    let seen = Seen::of(&parts, &server);
    let response = next.run(Request::from_parts(parts, body)).await;
    let response = finish(&server, &seen, response);
    response.map(|body| {
        Body::new(Kept {
            body,
            _kept: counted,
        })
    })
}

/// Answers a request that is refused before any layer sees it, as if it had passed this one.
pub fn refuse(server: &Server, parts: &Parts, failure: Failure) -> Response {
    let seen = Seen::of(parts, server);
    finish(server, &seen, failure.into_response())
}

fn finish(server: &Server, seen: &Seen, response: Response) -> Response {
    let mut response = failure::write(server, &seen.id, response);
    add_headers(server, seen, &mut response);
    seen.report(server, &response);
    response
}

/// The path without what may be the secret of a feed: all that follows `/feeds/`, unless it is a feed's id. Whether a
/// route matched does not matter, since a misspelt address may hold the secret too.
fn loggable(path: &str) -> String {
    match path.split_once("/feeds/") {
        Some((before, rest)) if rest.parse::<FeedId>().is_err() => format!("{before}/feeds/…"),
        _ => path.to_owned(),
    }
}

fn request_id() -> String {
    format!("{:032x}", u128::from_be_bytes(random()))
}

impl Seen {
    fn of(parts: &Parts, server: &Server) -> Self {
        Self {
            id: request_id(),
            method: parts.method.clone(),
            path: loggable(parts.uri.path()),
            route: server.route(parts.extensions.get()).map(str::to_owned),
            client: client_address(parts, server),
            began: Instant::now(),
        }
    }

    fn report(&self, server: &Server, response: &Response) {
        let took = self.began.elapsed();
        let status = response.status();
        let route = self.route.as_deref();
        server.metrics.count(route, &self.method, status, took);
        if let Some(outcome) = self.booking(status) {
            server.metrics.count_booking(outcome);
        }
        self.log(response, status, took);
    }

    /// Whether this was a booking, and what became of it. A dry run (200) is neither.
    fn booking(&self, status: StatusCode) -> Option<Outcome> {
        let route = self.route.as_deref()?.strip_prefix(paths::API)?;
        if route != paths::RESERVATIONS || self.method != Method::POST {
            return None;
        }
        match status {
            StatusCode::CREATED => Some(Outcome::Accepted),
            StatusCode::CONFLICT => Some(Outcome::Refused),
            _ => None,
        }
    }

    fn log(&self, response: &Response, status: StatusCode, took: Duration) {
        let person = response.extensions().get::<AskedBy>();
        let person = person.map(|AskedBy(person)| tracing::field::display(person));
        let route = self.route.as_deref();
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    request.id = self.id,
                    request.route = route,
                    request.client = self.client.map(tracing::field::display),
                    request.person = person,
                    response.duration_ms = took.as_micros() as f64 / 1000.0,
                    "{} {} {}",
                    self.method,
                    self.path,
                    status.as_u16(),
                )
            };
        }
        // Probes come every few seconds and say nothing as long as they succeed.
        let is_probe = matches!(route, Some(paths::HEALTHZ | paths::READYZ | paths::METRICS));
        if is_probe && status.is_success() {
            line!(debug);
        } else {
            line!(info);
        }
    }
}

fn add_headers(server: &Server, seen: &Seen, response: &mut Response) {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&seen.id) {
        headers.insert(REQUEST_ID, id);
    }
    // The browser app and a site's logo say their own.
    let policy = headers.entry(CONTENT_SECURITY_POLICY);
    policy.or_insert_with(|| server.documents.content_security_policy.clone());
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if server.is_secure() {
        let year = HeaderValue::from_static("max-age=31536000");
        headers.insert(STRICT_TRANSPORT_SECURITY, year);
    }
    // Answers are for the one who asked; nobody between may keep them.
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

/// A body that keeps something alive until its last byte is sent, or given up.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    pub body: Body,
    pub _kept: T,
}

impl<T: Unpin> HttpBody for Kept<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_of_a_feed_is_kept_out_of_the_log() {
        let id = "/api/v1/me/feeds/fed_01kc3v9xwbe8rv5w2n9q3m7t4h";
        for (path, logged) in [
            ("/feeds/canary.ics", "/feeds/…"),
            ("/berth/feeds/canary.ics/", "/berth/feeds/…"),
            ("/feeds/canary/feeds/x", "/feeds/…"),
            ("/api/v1/me/feeds", "/api/v1/me/feeds"),
            (id, id),
        ] {
            assert_eq!(loggable(path), logged);
        }
    }

    #[test]
    fn a_kept_body_has_the_same_length_and_lets_go_at_its_end() {
        let gauge = prometheus_client::metrics::gauge::Gauge::default();
        let kept = Kept {
            body: Body::from("12345"),
            _kept: Counted::on(&gauge),
        };
        assert_eq!(kept.size_hint().exact(), Some(5));
        assert_eq!(gauge.get(), 1);
        drop(kept);
        assert_eq!(gauge.get(), 0);
    }
}
