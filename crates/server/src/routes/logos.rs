//! A site's logo, as an image.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use berth_api::paths;
use berth_api::sites::Site;
use berth_model::branding::{LOGO_BYTES_MAX, LogoKind};
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue, StatusCode};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::addresses::SiteAt;
use super::sites::versioned;
use crate::answer::Versioned;
use crate::failure::Result;
use crate::feed_routes::is_known;
use crate::openapi::IfMatchOptionalHeader;
use crate::request::{Changing, Content, Path, Signed};
use crate::server::Server;

/// May be kept, and must be asked about before it is shown again: who may see the site can change.
const CACHING: &str = "private, no-cache";
/// An SVG is a document that a browser would run. In an `<img>` it never does; opened by itself, it has no scripts, no
/// origin and nothing to fetch.
const HARMLESS: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'";

pub fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::default().routes(routes!(get_logo, put_logo, remove_logo))
}

/// The site's logo. Whoever may know of the site sees it.
#[utoipa::path(
    get, path = paths::LOGO, tag = "sites", params(SiteAt),
    responses(
        (status = 200, description = "The image.",
            content(
                ("image/png"),
                ("image/webp"),
                ("image/svg+xml"),
            ),
            headers(("ETag" = String, description = "The image's digest."))),
        (status = 304, description = "The copy that `If-None-Match` names is still good."),
    )
)]
async fn get_logo(
    State(server): State<Server>,
    Signed(caller): Signed,
    Path(at): Path<SiteAt>,
    headers: HeaderMap,
) -> Result<Response> {
    let (logo, digest) = server.app.logo(&caller, &at.site).await?;
    // Weak, because what is sent may be compressed on its way.
    let tag = format!("W/\"{digest}\"");
    let head = [(ETAG, tag.as_str()), (CACHE_CONTROL, CACHING)];
    if is_known(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, head).into_response());
    }
    let kind = [(CONTENT_TYPE, logo.kind().media_type())];
    let is_document = logo.kind() == LogoKind::Svg;
    let mut response = (head, kind, logo.into_content()).into_response();
    if is_document {
        let policy = HeaderValue::from_static(HARMLESS);
        response
            .headers_mut()
            .insert(CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

/// Set the site's logo: a PNG, WebP or SVG image of at most 128 KiB.
///
/// What it is, is told by what is in it, whatever the request calls it.
#[utoipa::path(
    put, path = paths::LOGO, tag = "sites", params(SiteAt, IfMatchOptionalHeader),
    request_body(content(
        ("image/png"),
        ("image/webp"),
        ("image/svg+xml"),
        ("application/octet-stream"),
    )),
    responses((status = 200, description = "The site, as it is now.", body = Site,
        headers(("ETag" = String, description = "The site's version."))))
)]
async fn put_logo(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<SiteAt>,
    Content(content): Content<LOGO_BYTES_MAX>,
) -> Result<Versioned<Site>> {
    let place = server.app.set_logo(&caller, &at.site, &content).await?;
    Ok(versioned(place))
}

/// Take the site's logo away.
#[utoipa::path(
    delete, path = paths::LOGO, tag = "sites", params(SiteAt, IfMatchOptionalHeader),
    responses((status = 204, description = "It has none now."))
)]
async fn remove_logo(
    State(server): State<Server>,
    Changing(caller): Changing,
    Path(at): Path<SiteAt>,
) -> Result<StatusCode> {
    server.app.remove_logo(&caller, &at.site).await?;
    Ok(StatusCode::NO_CONTENT)
}
