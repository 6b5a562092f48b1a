//! The proxy's own error responses: a sentence for people, or the same for programs. They never repeat any part of the
//! request.

use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, Response, StatusCode};

use crate::body::Body;

/// Why a request did not reach an app, or its response did not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No session has this address.
    Nobody,
    /// The request is ambiguous: it could be read in two ways.
    Malformed,
    /// A page of another origin made the request.
    Foreign,
    /// The head of the request is too long.
    TooLong,
    /// The visitor's access, or the session, has ended.
    Ended,
    /// The app does not accept connections.
    Unreachable,
    /// The app's response is not valid HTTP.
    Nonsense,
    /// The route has as many open requests as it may have.
    Busy,
    /// The app did not answer in time.
    Slow,
}

impl Failure {
    pub fn status(self) -> StatusCode {
        match self {
            Failure::Nobody => StatusCode::NOT_FOUND,
            Failure::Malformed => StatusCode::BAD_REQUEST,
            Failure::Foreign => StatusCode::FORBIDDEN,
            Failure::TooLong => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Failure::Ended => StatusCode::GONE,
            Failure::Unreachable | Failure::Nonsense => StatusCode::BAD_GATEWAY,
            Failure::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Slow => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Failure::Nobody => "There is no such session",
            Failure::Malformed => "This request cannot be passed on",
            Failure::Foreign => "Another site's page asked for this",
            Failure::TooLong => "The request's headers are too long",
            Failure::Ended => "This session is over for you",
            Failure::Unreachable => "The session does not answer",
            Failure::Nonsense => "The session's answer cannot be read",
            Failure::Busy => "The session has too much open",
            Failure::Slow => "The session takes too long",
        }
    }

    fn detail(self) -> &'static str {
        match self {
            Failure::Nobody => "It may have ended. Your sessions are listed in Berth.",
            Failure::Malformed => "Its address or its headers contradict each other.",
            Failure::Foreign => "Open the session from Berth, and try again there.",
            Failure::TooLong => "Remove cookies of this address, and try again.",
            Failure::Ended => "It has ended, or you have signed out, or may no longer use it.",
            Failure::Unreachable => {
                "Its app may still be starting, or has stopped. Try again in a moment."
            }
            Failure::Nonsense => "Its app may be broken; its log says more.",
            Failure::Busy => "Close some of its tabs, and try again.",
            Failure::Slow => "Its app may be busy. Try again in a moment.",
        }
    }

    /// The error as an HTML page for browsers, or as a problem document (RFC 9457) for clients that ask for JSON.
    pub fn answer(self, asked: &HeaderMap) -> Response<Body> {
        let (status, title, detail) = (self.status(), self.title(), self.detail());
        let (kind, text) = if wants_json(asked) {
            let code = status.as_u16();
            let text = format!(
                "{{\"type\":\"about:blank\",\"title\":\"{title}\",\"status\":{code},\"detail\":\"{detail}\"}}\n"
            );
            ("application/problem+json", text)
        } else {
            let text = format!(
                "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n\
                 <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\n\
                 <h1>{title}</h1>\n<p>{detail}</p>\n"
            );
            ("text/html; charset=utf-8", text)
        };
        let mut response = Response::new(Body::page(text));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        for (name, value) in [
            (CONTENT_TYPE, kind),
            (CACHE_CONTROL, "no-store"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (
                CONTENT_SECURITY_POLICY,
                "default-src 'none'; frame-ancestors 'none'",
            ),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

fn wants_json(asked: &HeaderMap) -> bool {
    let accepts = |kind: &str| {
        let mut values = asked.get_all(ACCEPT).iter();
        values.any(|value| value.to_str().is_ok_and(|text| text.contains(kind)))
    };
    accepts("json") && !accepts("text/html")
}
