//! The OpenAPI document, made from the routes themselves.
//!
//! A route documents what is its own: parameters, bodies, what it answers when all is well. What every route
//! shares is added here, by rules a reader can check: which problems can come back, and how one signs in. The
//! document is complete without a running server, so that it can be checked in and compared.

use berth_api::{Code, Problem, headers, paths};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, PathItem,
    Ref, RefOr, Required, SecurityRequirement, Server as Address,
};
use utoipa::{IntoParams, PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::repeat::NOT_REPEATED;
use crate::server::Server;
use crate::{event_routes, routes, sign_in_routes};

/// What the routes are grouped by, in the order of the documentation.
const TAGS: &[(&str, &str)] = &[
    (
        "session",
        "Signing in and out, and what one sees and changes of oneself.",
    ),
    (
        "tokens",
        "API tokens: for programs that act in someone's name, within limits.",
    ),
    ("people", "Accounts, as global admins keep them."),
    (
        "sites",
        "Tenants: each has its own inventory, members and time zone.",
    ),
    ("members", "Who belongs to a site, and who asks to."),
    ("projects", "Groups of members inside a site."),
    (
        "policies",
        "What is asked of bookings: by the site, and for all sites by ceilings and defaults.",
    ),
    (
        "types",
        "Kinds of resources, with the questions of their booking form.",
    ),
    ("resources", "The tree of things that can be booked."),
    (
        "calendar",
        "What is taken, what is free, when a site is closed, and feeds for calendar programs.",
    ),
    ("reservations", "Booking, and what becomes of bookings."),
    (
        "series",
        "Bookings made together by one rule, changed and cancelled together.",
    ),
    (
        "queue",
        "Work that waits for room: submitted, planned, run; shares, quotas and what decides.",
    ),
    (
        "sessions",
        "Web apps to work in: notebooks, editors, dashboards; started, shared, kept and stopped.",
    ),
    (
        "environments",
        "Python with packages, read-only and in versions, for notebooks and for work.",
    ),
    (
        "maintenance",
        "Planned windows, negotiated with the bookings in their way.",
    ),
    (
        "usage",
        "How much of what there was to have was had, by whom and when, and what was refused.",
    ),
    (
        "notifications",
        "What one is told of what happened, and what of it one has read.",
    ),
    ("events", "Facts that happened, in pages or live."),
    ("health", "How the server is, for whoever looks after it."),
    (
        "audit",
        "Who changed what, when, from where and why; chained by hash.",
    ),
];

/// The API as a document, for a server that lives at the root of its host.
pub fn openapi() -> OpenApi {
    split().1
}

/// The API's routes and their document; paths are relative to `berth_api::paths::API`.
pub(crate) fn split() -> (axum::Router<Server>, OpenApi) {
    let (router, mut document) = OpenApiRouter::with_openapi(frame())
        .merge(sign_in_routes::router())
        .merge(event_routes::router())
        .merge(routes::router())
        .split_for_parts();
    complete(&mut document);
    (router, document)
}

/// The document as a server below `base` (a path or a full address) serves it.
pub(crate) fn served_under(mut document: OpenApi, base: &str) -> OpenApi {
    document.servers = Some(vec![Address::new(format!("{base}{}", paths::API))]);
    document
}

fn frame() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Berth")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "One control plane for shared research compute: nothing is promised twice.\n\n\
             Everything is JSON. Instants are RFC 3339 in UTC; spans of time include their start and not their \
             end. Lists come in pages: pass `next` back as `cursor`. An object that can change has a `version`, \
             which is also its ETag; send it back in `If-Match` with a change. A create with an \
             `Idempotency-Key` is safe to repeat, and so is any other POST that acts. What goes wrong comes as `application/problem+json` with a \
             stable `code`.",
        ))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
        .build();
    let tags = TAGS.iter().map(|(name, description)| {
        let tag = TagBuilder::new().name(*name);
        tag.description(Some(*description)).build()
    });
    OpenApiBuilder::new()
        .info(info)
        .tags(Some(tags))
        .servers(Some([Address::new(paths::API)]))
        .security(Some([
            SecurityRequirement::new::<_, [&str; 0], _>("token", []),
            SecurityRequirement::new::<_, [&str; 0], _>("session", []),
        ]))
        .build()
}

/// Adds what all routes share.
fn complete(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        if let Some(action) = &mut item.post {
            add_key(path, action);
        }
        for (effect, operation) in operations(item) {
            add_problems(effect, operation);
        }
    }
    let components = document.components.get_or_insert_default();
    let mut referred = Vec::new();
    Problem::schemas(&mut referred);
    components
        .schemas
        .insert(Problem::name().into_owned(), Problem::schema());
    components.schemas.extend(referred);
    for status in statuses() {
        let response = problem_response(status);
        components
            .responses
            .insert(response_name(status), response.into());
    }
    let token = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "An API token: `berth token create` or `POST /me/tokens` makes one.",
        ))
        .build();
    let session = ApiKeyValue::with_description(
        headers::SESSION_COOKIE,
        "A browser's session, as `POST /sign-in` sets it. Requests that change something must also carry the \
         session's `csrf_token` in the header `X-CSRF-Token`. Over HTTPS at the root of a host the cookie's name \
         begins with `__Host-`.",
    );
    components.add_security_scheme("token", SecurityScheme::Http(token));
    components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(session)));
}

/// Actions take a key by a layer of their own (`repeat`); creates have said so already.
fn add_key(path: &str, operation: &mut Operation) {
    let parameters = operation.parameters.get_or_insert_default();
    let says_so = |known: &RefOr<Parameter>| matches!(known, RefOr::T(known) if known.name == KEY);
    if NOT_REPEATED.iter().all(|(other, _)| *other != path) && !parameters.iter().any(says_so) {
        let about = "Makes the request safe to repeat: the same key gives the first answer again, and changes \
                     nothing more.";
        let key = headers::IdempotencyKey::schema();
        let key = parameter(KEY, about, Required::False, key);
        parameters.push(RefOr::T(key));
    }
}

const KEY: &str = "Idempotency-Key";

/// What an operation does to things.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    Changes,
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (Effect, &mut Operation)> {
    let PathItem {
        get,
        put,
        post,
        delete,
        patch,
        ..
    } = item;
    let changing = [put, post, delete, patch].into_iter().flatten();
    let reading = get.iter_mut().map(|operation| (Effect::Reads, operation));
    reading.chain(changing.map(|operation| (Effect::Changes, operation)))
}

/// The rules by which problems come back. A route that knows better documents the status itself.
fn add_problems(effect: Effect, operation: &mut Operation) {
    let parameters = operation.parameters.iter().flatten();
    let parameters: Vec<&Parameter> = parameters
        .filter_map(|parameter| match parameter {
            RefOr::T(parameter) => Some(parameter),
            RefOr::Ref(_) => None,
        })
        .collect();
    let takes = |place: ParameterIn| parameters.iter().any(|p| p.parameter_in == place);
    let version = parameters.iter().find(|p| p.name == "If-Match");
    let has_body = operation.request_body.is_some();
    let changes = effect == Effect::Changes;
    let security = operation.security.iter().flatten();
    let is_signed = !security
        .into_iter()
        .any(|need| *need == SecurityRequirement::default());
    let rules = [
        (has_body || takes(ParameterIn::Header), &[400][..]),
        (is_signed, &[401, 403, 404]),
        (has_body, &[408, 413, 415]),
        (changes || takes(ParameterIn::Query), &[422]),
        (changes && is_signed, &[409]),
        (version.is_some(), &[412]),
        (
            version.is_some_and(|v| v.required == Required::True),
            &[428],
        ),
        (true, &[421, 429, 500, 503]),
    ];
    let known = &mut operation.responses.responses;
    for (_, statuses) in rules.iter().filter(|(applies, _)| *applies) {
        for status in *statuses {
            let problem = Ref::from_response_name(response_name(*status));
            known
                .entry(status.to_string())
                .or_insert(RefOr::Ref(problem));
        }
    }
}

/// Every status that some problem has.
fn statuses() -> impl Iterator<Item = u16> {
    let mut all: Vec<u16> = Code::ALL.iter().map(|code| code.status()).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
}

fn response_name(status: u16) -> String {
    format!("Problem{status}")
}

fn problem_response(status: u16) -> Response {
    let codes = Code::ALL.iter().filter(|code| code.status() == status);
    let lines: Vec<String> = codes
        .map(|code| format!("`{code}`: {}.", code.title()))
        .collect();
    let schema = Ref::from_schema_name(Problem::name());
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new()
        .description(lines.join("\n"))
        .content(headers::PROBLEM_JSON, content);
    let seconds = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(1));
    let text = ObjectBuilder::new().schema_type(Type::String);
    match status {
        401 => response.header(
            "WWW-Authenticate",
            HeaderBuilder::new().schema(Some(text)).build(),
        ),
        405 => response.header("Allow", HeaderBuilder::new().schema(Some(text)).build()),
        429 | 503 => response.header(
            "Retry-After",
            HeaderBuilder::new().schema(Some(seconds)).build(),
        ),
        _ => response,
    }
    .build()
}

/// The header `If-Match`, for `params(…)` of a route that asks `IfMatch::required`.
#[derive(Debug)]
pub struct IfMatchHeader;

/// The header `If-Match`, for `params(…)` of a route that asks `IfMatch::optional` or takes `Changing`.
#[derive(Debug)]
pub struct IfMatchOptionalHeader;

/// The header `Idempotency-Key`, for `params(…)` of a route that takes `Creating`.
#[derive(Debug)]
pub struct IdempotencyKeyHeader;

/// The header `Last-Event-ID`.
#[derive(Debug)]
pub struct LastEventIdHeader;

impl IntoParams for IfMatchHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![if_match(Required::True)]
    }
}

impl IntoParams for IfMatchOptionalHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![if_match(Required::False)]
    }
}

impl IntoParams for IdempotencyKeyHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let about = "Makes the request safe to repeat: the same key gives the object that the first one made.";
        let key = headers::IdempotencyKey::schema();
        vec![parameter(KEY, about, Required::False, key)]
    }
}

impl IntoParams for LastEventIdHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let about = "The number of the last event that was seen; wins over `after`.";
        let number = berth_api::events::Position::schema();
        vec![parameter("Last-Event-ID", about, Required::False, number)]
    }
}

fn if_match(required: Required) -> Parameter {
    let about =
        "The ETag of the version that the change is meant for, or `*` for whatever it is now.";
    let tag = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r#"^(\*|"[0-9]{1,15}")$"#))
        .examples(["\"7\""]);
    parameter("If-Match", about, required, tag.into())
}

fn parameter(
    name: &str,
    about: &str,
    required: Required,
    schema: RefOr<utoipa::openapi::Schema>,
) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(required)
        .description(Some(about))
        .schema(Some(schema))
        .build()
}
