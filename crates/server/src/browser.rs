//! The browser app: files that were built into this binary, and one page for every address that is the app's.
//!
//! The app reads its address by itself, so the same page answers for all of them. Its other files carry a hash of
//! what is in them in their names and never change; the page that names them is asked for each time. A binary that was
//! built without the app has none of this, and answers with the readable welcome instead.

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, Method};
use rust_embed::{Embed, EmbeddedFile};

use crate::pages;
use crate::router::unknown;
use crate::server::Server;

#[derive(Embed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Files;

const PAGE: &str = "index.html";
/// Below this a file's name says what is in it.
const HASHED: &str = "assets/";

/// Everything comes from here, nothing runs that is not a file of ours, and nobody frames it.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     manifest-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
);

/// The app's page, told below which path it stands; none where the app was not built.
pub fn page(base_path: &str) -> Option<Bytes> {
    let file = Files::get(PAGE)?;
    let page = std::str::from_utf8(&file.data).ok()?;
    // A base path is made of letters that mean nothing to HTML.
    let base = format!("<base href=\"{base_path}/\"");
    Some(page.replacen("<base href=\"/\"", &base, 1).into())
}

/// The files whose names say what is in them. Each is in memory and costs no more than a refusal, so no limit of requests
/// counts them: a page without one of its scripts would stay empty.
pub fn hashed_files() -> Router<Server> {
    Router::new().route("/assets/{*file}", get(answer))
}

/// The first page.
pub async fn home(State(server): State<Server>) -> Response {
    match &server.documents.app {
        Some(page) => shown(page),
        None => pages::welcome(State(server)).await,
    }
}

/// Whatever nothing else answers to: a file of the app, or one of its addresses.
pub async fn answer(State(server): State<Server>, request: Request) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.uri().path().trim_start_matches('/');
    if reads && path != PAGE {
        if let Some(file) = Files::get(path) {
            return sent(path, file);
        }
        if let (true, Some(page)) = (is_for_a_person(&request), &server.documents.app) {
            return shown(page);
        }
    }
    unknown().await.into_response()
}

pub fn shown(page: &Bytes) -> Response {
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, page.clone()).into_response()
}

fn sent(path: &str, file: EmbeddedFile) -> Response {
    let kept = if path.starts_with(HASHED) {
        "public, max-age=31536000, immutable"
    } else {
        "public, max-age=3600"
    };
    let kind = match path.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json" | "webmanifest") => "application/json",
        _ => "application/octet-stream",
    };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CACHE_CONTROL, HeaderValue::from_static(kept)),
    ];
    (headers, Bytes::from(file.data.into_owned())).into_response()
}

/// Whether a page is asked for, and not something that a program reads.
fn is_for_a_person(request: &Request) -> bool {
    let accepted = request.headers().get_all(ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/html"))
}
