//! What watches and what reads the server rather than uses it: probes, counters, the API's own document.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::IntoResponse;
use axum::routing::get;
use berth_api::{Code, Problem, paths};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use subtle::ConstantTimeEq;

use crate::failure::{Failure, Result};
use crate::request::address::Peer;
use crate::server::Server;

/// A probe that waits longer than this has its answer: not ready.
const PATIENCE: Duration = Duration::from_secs(2);

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub fn router() -> Router<Server> {
    Router::new()
        .route(paths::HEALTHZ, get(healthz))
        .route(paths::READYZ, get(readyz))
        .route(paths::METRICS, get(metrics))
}

/// The process lives; nothing else is asked.
async fn healthz() -> &'static str {
    "ok\n"
}

/// The database answers, in the shape this version needs, and the server is not on its way out.
async fn readyz(State(server): State<Server>) -> Result<&'static str> {
    if server.stop.is_cancelled() {
        return Err(unready("The server is stopping."));
    }
    match tokio::time::timeout(PATIENCE, server.app.health()).await {
        Ok(Ok(_)) => Ok("ready\n"),
        Ok(Err(error)) => Err(unready("The database does not answer.").because(error)),
        Err(late) => Err(unready("The database does not answer.").because(late)),
    }
}

fn unready(detail: &str) -> Failure {
    let problem = Problem::new(Code::ServerUnavailable).detail(detail);
    problem.retry_after_s(1).into()
}

/// Headers of proxies: what carries one comes from somewhere else.
const FORWARDED: [&str; 6] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// The counters tell how busy the site is, so they are for whoever has the token, and for this machine's own programs.
async fn may_read_metrics(server: &Server, parts: &Parts) -> Result<()> {
    let peer = parts.extensions.get::<Peer>();
    let is_local = peer.is_some_and(|Peer(peer)| peer.ip().to_canonical().is_loopback());
    if is_local
        && FORWARDED
            .iter()
            .all(|name| !parts.headers.contains_key(*name))
    {
        return Ok(());
    }
    let refused = Failure::new(Code::AuthTokenInvalid)
        .detail("The counters are for programs with their token, or on the server's own machine.")
        .hint("Send the token of `metrics_token_file` as `Authorization: Bearer …`.");
    let Some(file) = &server.config.metrics_token_file else {
        return Err(refused);
    };
    let wanted = tokio::fs::read_to_string(file).await.map_err(|error| {
        tracing::warn!(%error, "cannot read metrics_token_file {}", file.display());
        refused.clone()
    })?;
    let wanted = wanted.trim().as_bytes();
    let shown = parts.headers.get(AUTHORIZATION);
    let shown = shown.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    // An empty file is no token.
    let is_right = |shown: &[u8]| !wanted.is_empty() && bool::from(shown.ct_eq(wanted));
    match shown.is_some_and(is_right) {
        true => Ok(()),
        false => Err(refused),
    }
}

async fn metrics(State(server): State<Server>, request: Request) -> Result<impl IntoResponse> {
    let (parts, _) = request.into_parts();
    may_read_metrics(&server, &parts).await?;
    // A database that does not answer must not keep the other numbers from being read.
    if let Ok(Ok(health)) = tokio::time::timeout(PATIENCE, server.app.health()).await {
        let lag = Duration::try_from(health.sequencer_lag).unwrap_or_default();
        server.metrics.set_sequencer_lag(lag);
    }
    if let Ok(Ok(figures)) = tokio::time::timeout(PATIENCE, server.app.queue_figures()).await {
        server.metrics.set_queue(&figures);
    }
    let routes = server.visits.proxy.routes.all();
    let activities = routes.iter().map(|route| route.activity());
    server.metrics.set_sessions(activities);
    let text = server
        .metrics
        .text()
        .map_err(|error| Failure::new(Code::ServerInternal).because(error))?;
    Ok(([(CONTENT_TYPE, OPENMETRICS)], text))
}

/// The API as an OpenAPI document; mounted among the API's own routes.
pub async fn openapi(State(server): State<Server>) -> impl IntoResponse {
    let document = server.documents.openapi.clone();
    ([(CONTENT_TYPE, "application/json")], document)
}
