//! Visitors of sessions: whose address a request is for, who asks, and the way on to the app.
//!
//! What is asked of a session comes here before the router and its layers: it is not compressed, not held to a size or
//! a time, and not counted against its sender, because what people do in their sessions is theirs. It is counted and
//! logged, without its query and its headers. Pages and sockets take the same way, and nothing takes it whose sender was
//! not let in. Who comes without a key is sent for one ([`hop`]).

pub mod address;
pub mod hop;
mod known;
mod path;
mod table;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use berth_api::{Code, Problem};
use berth_app::events::Watch;
use berth_app::sessions::Key;
use berth_model::event::{EventKind, NumberedEvent};
use berth_model::session::Access;
use berth_proxy::{
    Addressing, Asked, Failure as Page, Label, Limits, Own, Proxy, Route, Visitor, cookies,
    visit_cookie_name,
};
use http::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, UPGRADE, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::failure::{self, Failure, Result};
use crate::request::address::{client_address, origin};
use crate::server::Server;
use known::{Known, Shown, Visitors};
use path::Inside;
use table::Table;

/// How often the whole table is compared with the sessions there are.
const COMPARE_EVERY: Duration = Duration::from_secs(15);
/// How often it is told when visitors last did something.
const TELL_EVERY: Duration = Duration::from_secs(15);
/// Who comes back to a session whose GPUs are lent does not wait for that.
const RETURN_EVERY: Duration = Duration::from_secs(1);
/// How often those are looked at who were not for a while.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What the counters call all of it; addresses inside a session are its owner's business.
const ROUTE: &str = "session";

#[derive(Debug)]
pub struct Visits {
    pub(crate) proxy: Proxy,
    table: Table,
    visitors: Visitors,
    /// Berth's own address, where whoever shows nothing is sent.
    home: String,
    cookie: &'static str,
}

impl Visits {
    pub fn new(config: &Config) -> Self {
        let addressing = address::addressing(config);
        let home = address::own_origin(config) + config.base_path.as_str();
        Self {
            cookie: cookie_name(&addressing),
            proxy: Proxy::new(berth_proxy::Config {
                addressing,
                own: Own::default(),
                limits: Limits::default(),
            }),
            table: Table::default(),
            visitors: Visitors::new(),
            home,
        }
    }

    fn addressing(&self) -> &Addressing {
        self.proxy.routes.addressing()
    }

    /// A session's front door, with a slash at its end.
    pub fn url(&self, label: &Label) -> String {
        self.addressing().url(label)
    }

    /// Whose a request is. Cheap, as every request is asked this.
    pub fn asked(&self, request: &Request<Incoming>) -> Asked {
        self.proxy.asked(request)
    }
}

/// Only where nothing else is below the path can a cookie be bound to the host.
fn cookie_name(addressing: &Addressing) -> &'static str {
    visit_cookie_name(addressing.is_secure() && addressing.is_isolating())
}

/// Answers what was asked of a session.
pub async fn answer(server: &Server, asked: Asked, request: Request<Incoming>) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let path = tracing::enabled!(tracing::Level::DEBUG).then(|| request.uri().path().to_owned());
    let response = match serve(server, asked, request).await {
        Ok(response) => response,
        Err(failure) => refused(server, failure),
    };
    let (status, took) = (response.status(), began.elapsed());
    server.metrics.count(Some(ROUTE), &method, status, took);
    tracing::debug!(
        request.route = ROUTE,
        response.duration_ms = took.as_micros() as f64 / 1000.0,
        "{method} {} {}",
        path.unwrap_or_default(),
        status.as_u16(),
    );
    response
}

async fn serve(server: &Server, asked: Asked, request: Request<Incoming>) -> Result<Response> {
    let visits = &server.visits;
    let (label, route) = match asked {
        Asked::Session(route) => (route.label().clone(), Some(route)),
        Asked::Absent(label) => (label, None),
        Asked::Elsewhere | Asked::Nobody => {
            return Ok(Page::Nobody.answer(request.headers()).map(Body::new));
        }
    };
    let (parts, body) = request.into_parts();
    let inside = inside(visits.addressing(), &label, &parts);
    // Before the session is looked for: what is Berth's own has a limit of its own.
    if let Some(own) = inside.strip_prefix(hop::RESERVED) {
        return hop::own_page(server, &label, own, &parts).await;
    }
    let route = match route {
        Some(route) => Some(route),
        None => {
            let found = visits.table.find(&server.app, &visits.proxy, &label);
            found.await?
        }
    };
    let Some(route) = route else {
        return Ok(not_running(server, &label, inside, &parts));
    };
    let known = match who(server, &label, &parts).await {
        // Who goes to a page comes in anew, whatever others behind the same address show.
        Err(failure)
            if failure.status() == StatusCode::TOO_MANY_REQUESTS && is_navigation(&parts) =>
        {
            None
        }
        known => known?,
    };
    let Some(known) = known else {
        return Ok(to_be_let_in(server, &label, inside, &parts));
    };
    if known.access == Access::View && !only_looks(&parts) {
        return Err(Failure::new(Code::AuthNotAllowed)
            .detail("This session is shared with you to look at, not to work in.")
            .hint("Ask its owner to share it with you for editing."));
    }
    pass(server, route, &known, Request::from_parts(parts, body)).await
}

async fn pass(
    server: &Server,
    route: Arc<Route>,
    known: &Known,
    request: Request<Incoming>,
) -> Result<Response> {
    let (parts, body) = request.into_parts();
    let mut visitor = Visitor {
        address: client_address(&parts, server),
        ..known.visitor.clone()
    };
    if server.visits.table.speaks_hub(route.label())
        && let Some(word) = known.hub_word(&server.app)?
    {
        visitor.headers.insert(AUTHORIZATION, word);
    }
    let request = Request::from_parts(parts, body);
    let response = server.visits.proxy.serve(route, &visitor, request).await;
    Ok(response.map(Body::new))
}

/// Who asks, if they may come in: by their token, or else by the key in their cookie.
async fn who(server: &Server, label: &Label, parts: &Parts) -> Result<Option<Arc<Known>>> {
    let visits = &server.visits;
    let (limit, shown) = match token(&parts.headers) {
        Some(token) => (&server.throttle.tokens, vec![Shown::Token(token.into())]),
        None => {
            let keys = cookies(&parts.headers, visits.cookie).map(|key| Key::new(key.to_owned()));
            let keys = keys.filter(Key::is_well_formed).map(Shown::Key);
            (&server.throttle.visit_keys, keys.collect())
        }
    };
    let visitors = &visits.visitors;
    if let Some(known) = visitors.remembered(&server.app, label, &shown).await? {
        return Ok(Some(known));
    }
    if shown.is_empty() {
        return Ok(None);
    }
    let admitted = limit.admit(parts, server, shown.iter().map(Shown::secret))?;
    let origin = origin(parts, server);
    match visitors.find(&server.app, label, shown, &origin).await {
        Ok(Some(known)) => {
            limit.was_good(admitted, known.secret());
            Ok(Some(known))
        }
        Ok(None) => {
            limit.were_bad(admitted);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// A token of Berth's, as programs send it; `token` is Jupyter's word for it. Others are the app's own.
fn token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let is_ours = scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token");
    let token = token.trim();
    (is_ours && token.starts_with(Own::default().token_prefix)).then_some(token)
}

fn only_looks(parts: &Parts) -> bool {
    let is_safe = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
    is_safe && !parts.headers.contains_key(UPGRADE)
}

/// Whether a person's browser goes to a page, and can be sent elsewhere.
fn is_navigation(parts: &Parts) -> bool {
    let says = |name: &str| parts.headers.get(name).map(HeaderValue::as_bytes);
    let wants_page = match says("sec-fetch-mode") {
        Some(mode) => mode == b"navigate",
        None => says(ACCEPT.as_str())
            .is_some_and(|accepted| accepted.windows(9).any(|part| part == b"text/html")),
    };
    parts.method == Method::GET && wants_page && !parts.headers.contains_key(UPGRADE)
}

/// The path and the query inside the session, with a slash at the beginning.
fn inside<'a>(addressing: &Addressing, label: &Label, parts: &'a Parts) -> &'a str {
    let whole = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    if addressing.is_isolating() {
        return whole;
    }
    let base = addressing.base(label);
    let before = base.trim_end_matches('/').len();
    match whole.get(before..) {
        Some(rest) if rest.starts_with('/') => rest,
        _ => "/",
    }
}

/// A page is asked for by somebody who shows nothing that is good: they get it at Berth's own address.
fn to_be_let_in(server: &Server, label: &Label, inside: &str, parts: &Parts) -> Response {
    if is_navigation(parts) {
        return hop::to_berth(server, label, &Inside::read(inside));
    }
    let problem = Problem::new(Code::AuthSignInRequired)
        .detail("You have not come in to this session, or may no longer be there.");
    let hint = "Open the session from Berth, or send a token of yours.";
    refused(server, Failure::from(problem).hint(hint))
}

/// Nothing lets visitors in; Berth's own page says why, and waits with them.
fn not_running(server: &Server, label: &Label, inside: &str, parts: &Parts) -> Response {
    if is_navigation(parts) {
        return hop::to_berth(server, label, &Inside::read(inside));
    }
    let problem = Problem::new(Code::SessionNotRunning).retry_after_s(1);
    refused(server, problem.into())
}

fn refused(server: &Server, failure: Failure) -> Response {
    let id = format!("{:032x}", u128::from_be_bytes(berth_app::clock::random()));
    let mut response = failure::write(server, &id, failure.into_response());
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Keeps the table and the visitors in step with what happens, until `stop`.
pub async fn keep(server: Server, stop: CancellationToken) {
    let mut watch = server.app.watch();
    let mut looking = tokio::time::interval(LOOK_EVERY);
    let mut comparing = tokio::time::interval(COMPARE_EVERY);
    let mut telling = tokio::time::interval(TELL_EVERY);
    let mut returning = tokio::time::interval(RETURN_EVERY);
    for timer in [&mut looking, &mut comparing, &mut telling, &mut returning] {
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    }
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            happened = Watch::next(&mut watch) => follow(&server, happened).await,
            _ = looking.tick() => server.visits.visitors.look_at_aged(&server.app).await,
            _ = comparing.tick() => compare(&server).await,
            _ = returning.tick() => {
                let acted = server.visits.table.acted(
                    &server.visits.proxy,
                    server.app.now(),
                    2 * TELL_EVERY,
                );
                if let Err(error) = server.app.note_returned(&acted).await {
                    tracing::warn!(%error, "who came back could not be noted; trying again");
                }
            }
            _ = telling.tick() => {
                let acted = server.visits.table.acted(
                    &server.visits.proxy,
                    server.app.now(),
                    2 * TELL_EVERY,
                );
                if let Err(error) = server.app.note_visitors(&acted).await {
                    tracing::warn!(%error, "what visitors did could not be noted; trying again");
                }
            }
        }
    }
}

async fn follow(server: &Server, happened: Option<Vec<Arc<NumberedEvent>>>) {
    let visits = &server.visits;
    let Some(events) = happened else {
        compare(server).await;
        return visits.visitors.look_at_all(&server.app).await;
    };
    visits.visitors.look_after(&server.app, &events).await;
    for event in &events {
        let is_of_a_session = matches!(
            event.event.kind,
            EventKind::SessionChanged | EventKind::SessionFailed
        );
        let Some(session) = event.event.subject.parse().ok().filter(|_| is_of_a_session) else {
            continue;
        };
        let looked = visits.table.look_at(&server.app, &visits.proxy, session);
        if let Err(error) = looked.await {
            tracing::warn!("a session's way could not be looked up: {error}");
        }
    }
}

async fn compare(server: &Server) {
    let visits = &server.visits;
    if let Err(error) = visits.table.compare(&server.app, &visits.proxy).await {
        tracing::warn!("the ways to the sessions could not be compared: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, path: &str, headers: &[(&'static str, &str)]) -> Parts {
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap();
        for (name, value) in headers {
            request.headers_mut().append(*name, value.parse().unwrap());
        }
        request.into_parts().0
    }

    #[test]
    fn only_who_goes_to_a_page_can_be_sent_elsewhere() {
        let page = ("accept", "text/html,application/xhtml+xml");
        let going = ("sec-fetch-mode", "navigate");
        let upgrade = ("upgrade", "websocket");
        for (method, headers, expected) in [
            (Method::GET, &[going][..], true),
            (Method::GET, &[page], true),
            (Method::GET, &[page, ("sec-fetch-mode", "cors")], false),
            (Method::GET, &[("accept", "application/json")], false),
            (Method::GET, &[], false),
            (Method::GET, &[going, upgrade], false),
            (Method::HEAD, &[going], false),
            (Method::POST, &[going, page], false),
        ] {
            let parts = asked(method.clone(), "/", headers);
            assert_eq!(is_navigation(&parts), expected, "{method} {headers:?}");
        }
    }

    #[test]
    fn a_token_of_berths_is_told_from_an_apps() {
        for (value, expected) in [
            ("Bearer berth_x", Some("berth_x")),
            ("token  berth_x ", Some("berth_x")),
            ("TOKEN berth_x", Some("berth_x")),
            ("token of-the-app", None),
            ("Basic berth_x", None),
            ("berth_x", None),
        ] {
            let parts = asked(Method::GET, "/", &[("authorization", value)]);
            assert_eq!(token(&parts.headers), expected, "{value}");
        }
    }

    #[test]
    fn the_path_inside_a_session_begins_after_its_base() {
        let label: Label = "x7".parse().unwrap();
        let own = Addressing::origins("https://s.example.org").unwrap();
        let shared = Addressing::paths("https://b.example.org", "/lab").unwrap();
        for (addressing, path, expected) in [
            (&own, "/", "/"),
            (&own, "/lab?x", "/lab?x"),
            (&shared, "/lab/s/x7/lab?x", "/lab?x"),
            (&shared, "/lab/s/x7/", "/"),
            (&shared, "/lab/s/x7", "/"),
            (&shared, "/lab/s/x7?x", "/"),
        ] {
            let parts = asked(Method::GET, path, &[]);
            assert_eq!(inside(addressing, &label, &parts), expected, "{path}");
        }
    }
}
