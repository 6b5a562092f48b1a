//! Why a request is refused, on its way to becoming a problem document.
//!
//! Whatever goes wrong becomes a [`Failure`]. It is written out in one place, [`write`], which the outermost
//! layer calls: only there are the request's id and the server's own address known, and only there is it logged,
//! once, with all its causes. The causes go to the log and never to the client.

mod refusals;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use berth_api::headers::PROBLEM_JSON;
use berth_api::{Code, Problem};
use berth_model::FieldErrors;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use jiff::Timestamp;

use crate::server::Server;

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// A refused request: the problem that is told, and the causes that are only logged.
#[derive(Debug, Clone)]
pub struct Failure(Box<Refusal>);

#[derive(Debug, Clone)]
struct Refusal {
    problem: Problem,
    /// When it may be tried again; turned into seconds when it is written.
    until: Option<Timestamp>,
    cause: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Failure {
    /// The failure of this code, in its general words.
    pub fn new(code: Code) -> Self {
        Problem::new(code).into()
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.problem.detail = detail.into();
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.problem.hint = hint.into();
        self
    }

    /// Keeps what led to this, for the log.
    pub fn because(mut self, cause: impl StdError + Send + Sync + 'static) -> Self {
        self.0.cause = Some(Arc::new(cause));
        self
    }

    fn until(mut self, when: Timestamp) -> Self {
        self.0.until = Some(when);
        self
    }

    /// What the client is told, apart from the request's id and the server's address.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// Everything that led to this, for the log.
    pub(crate) fn cause(&self) -> String {
        match &self.0.cause {
            Some(cause) => Chain(cause.as_ref()).to_string(),
            None => self.0.problem.detail.clone(),
        }
    }

    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(Box::new(Refusal {
            problem,
            until: None,
            cause: None,
        }))
    }
}

impl From<Box<Problem>> for Failure {
    fn from(problem: Box<Problem>) -> Self {
        (*problem).into()
    }
}

impl From<FieldErrors> for Failure {
    fn from(errors: FieldErrors) -> Self {
        Problem::from(errors).into()
    }
}

/// An answer without a body that carries the failure; [`write`] gives it one.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes out the failure that an answer carries, if it carries one, and logs it if it is the server's fault.
pub fn write(server: &Server, request_id: &str, mut response: Response) -> Response {
    let Some(failure) = response.extensions_mut().remove::<Failure>() else {
        return response;
    };
    let (status, cause) = (failure.status(), failure.cause());
    let mut problem = failure.0.problem.under(&server.address());
    if let Some(until) = failure.0.until {
        let wait_s = until.duration_since(server.app.now()).as_secs().max(1);
        problem.retry_after_s = Some(wait_s.unsigned_abs());
    }
    // That a session does not run is no trouble of the server's.
    if status.is_server_error() && !problem.is(Code::SessionNotRunning) {
        problem.request_id = Some(request_id.to_owned());
        if problem.is(Code::ServerUnavailable) {
            tracing::warn!(
                request.id = request_id,
                "a request could not be met: {cause}"
            );
        } else {
            tracing::error!(request.id = request_id, "a request failed: {cause}");
        }
    }
    let headers = response.headers_mut();
    // It spoke of the answer without a body.
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    if let Some(seconds) = problem.retry_after_s {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    // A problem is made of texts and numbers, which always serialise.
    *response.body_mut() = Body::from(serde_json::to_vec(&problem).unwrap_or_default());
    response
}

/// An error followed by its causes, in one line.
pub(crate) struct Chain<'a>(pub &'a (dyn StdError + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(out, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
