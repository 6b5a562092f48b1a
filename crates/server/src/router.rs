//! The whole tree of routes, and the layers every request passes.

use std::any::Any;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use berth_api::{Code, Problem, paths};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use crate::failure::Failure;
use crate::observe::observe;
use crate::repeat::repeat;
use crate::server::Server;
use crate::throttle::throttle;
use crate::{browser, feed_routes, hub, meta_routes, openapi, pages};

/// Below this, compressing costs more than it saves.
const COMPRESS_ABOVE_BYTES: u64 = 1024;

/// Everything the server answers, below its base path.
pub fn router(server: &Server) -> Router {
    let (api, _) = openapi::split();
    let limited = Router::new()
        .nest(
            paths::API,
            api.route(paths::OPENAPI, get(meta_routes::openapi))
                .fallback(unknown)
                .layer(from_fn_with_state(server.clone(), repeat)),
        )
        .merge(pages::router())
        .merge(feed_routes::router())
        .merge(hub::router())
        .fallback(browser::answer)
        .layer(from_fn_with_state(server.clone(), throttle));
    let tree = limited
        .merge(browser::hashed_files())
        .merge(meta_routes::router());
    let tree = match server.config.base_path.as_str() {
        "" => tree,
        // Nested, the first page answers without a slash at the end only.
        base => Router::new()
            .nest(base, tree)
            .route(&format!("{base}/"), get(browser::home))
            .fallback(unknown),
    };
    // From the outside in. Failures are written out by the outermost layer, so all others stand inside it.
    let layers = ServiceBuilder::new()
        .layer(from_fn_with_state(server.clone(), observe))
        .layer(compression())
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(server.clone(), in_time));
    tree.method_not_allowed_fallback(wrong_method)
        .layer(layers)
        .with_state(server.clone())
}

fn compression() -> CompressionLayer<impl Predicate> {
    let predicate = SizeAbove::new(COMPRESS_ABOVE_BYTES)
        // A stream of events must not wait until there is enough to compress.
        .and(NotForContentType::const_new("text/event-stream"));
    CompressionLayer::new().compress_when(predicate)
}

pub async fn unknown() -> Failure {
    Failure::new(Code::ObjectNotFound)
        .detail("There is nothing at this address.")
        .hint("Check the path; /docs lists all that there are.")
}

async fn wrong_method() -> Failure {
    Failure::new(Code::RequestMethodNotAllowed)
}

/// Gives up on an answer that takes too long. The head of a live stream comes at once, so it is not affected.
async fn in_time(State(server): State<Server>, request: Request, next: Next) -> Response {
    let limit = Duration::from_secs(server.config.request_timeout_s);
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(late) => Failure::from(
            Problem::new(Code::ServerUnavailable)
                .detail(format!("There was no answer within {limit:?}."))
                .retry_after_s(1),
        )
        .because(late)
        .into_response(),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a handler panicked: {0}")]
struct Panicked(String);

/// A bug in one handler is that request's misfortune and nobody else's.
fn panicked(payload: Box<dyn Any + Send>) -> Response {
    let message = payload
        .downcast_ref::<&str>()
        .map(|message| (*message).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a word".to_owned());
    Failure::new(Code::ServerInternal)
        .because(Panicked(message))
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use tower::ServiceExt;

    #[tokio::test]
    async fn a_handler_that_panics_costs_one_request() {
        async fn clumsy() {
            panic!("the cat walked over the keyboard");
        }
        let router = Router::<()>::new()
            .route("/", get(clumsy))
            .layer(CatchPanicLayer::custom(panicked));
        let request = Request::new(Body::empty());
        let response = router.oneshot(request).await.unwrap();
        let failure = response.extensions().get::<Failure>().expect("a failure");
        assert_eq!(failure.status(), 500);
        assert!(failure.cause().contains("the cat walked"));
        let told = serde_json::to_string(failure.problem()).unwrap();
        assert!(!told.contains("cat"), "{told}");
    }
}
