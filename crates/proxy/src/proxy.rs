//! Handles a request: checks it, forwards it over a connection of its route, and streams the response back.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::LOCATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::{Body as HttpBody, Incoming};
use tokio_util::sync::CancellationToken;

use crate::activity::is_by_itself;
use crate::address::{Addressing, Label, Named};
use crate::body::{AnyError, Body, Upload};
use crate::connection::Connection;
use crate::cookies::Own;
use crate::exchange::{Exchange, Watch};
use crate::failure::Failure;
use crate::routes::{Route, Routes};
use crate::{fence, head, tunnel};

#[derive(Debug, Clone)]
pub struct Config {
    pub addressing: Addressing,
    pub own: Own,
    pub limits: Limits,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The longest head of a request or a response.
    pub head_bytes_max: usize,
    /// How long an app may take to accept a connection.
    pub connect: Duration,
    /// How long a request may be open without a byte either way; longer than long polls take. Sockets may be silent
    /// without limit.
    pub idle: Duration,
    /// Requests and sockets that one route may have open.
    pub open_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 64 * 1024,
            connect: Duration::from_secs(5),
            idle: Duration::from_secs(600),
            open_max: 512,
        }
    }
}

/// A person whom the holder has admitted to one session.
#[derive(Debug, Clone)]
pub struct Visitor {
    pub credential: Credential,
    /// The visitor's address, for the app.
    pub address: Option<IpAddr>,
    /// Further headers about the visitor for the app. They replace any of the request's own.
    pub headers: HeaderMap,
    /// Cancelled when the visitor signs out or loses access. It closes all their open requests and sockets.
    pub over: CancellationToken,
    /// Every open request and socket of the visitor holds a clone, so the holder can tell whether there are any.
    pub here: Arc<()>,
}

/// How a visitor authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// A browser sends a cookie by itself, so the page that made the request matters too.
    Cookie,
    Token,
}

/// The session that a request is for.
#[derive(Debug, Clone)]
pub enum Asked {
    /// Not a session's address.
    Elsewhere,
    /// A session address with an impossible label.
    Nobody,
    /// A label that is not in the table.
    Absent(Label),
    Session(Arc<Route>),
}

#[derive(Debug)]
pub struct Proxy {
    pub routes: Routes,
    own: Own,
    limits: Limits,
}

impl Proxy {
    pub fn new(config: Config) -> Self {
        Self {
            routes: Routes::new(config.addressing),
            own: config.own,
            limits: config.limits,
        }
    }

    pub fn asked<B>(&self, request: &Request<B>) -> Asked {
        let addressing = self.routes.addressing();
        match addressing.named(request.uri(), request.headers(), request.version()) {
            Named::Elsewhere => Asked::Elsewhere,
            Named::Nobody => Asked::Nobody,
            Named::Label(label) => match self.routes.get(label) {
                Some(route) => Asked::Session(route),
                None => label.parse().map_or(Asked::Nobody, Asked::Absent),
            },
        }
    }

    /// Answers a visitor's request, or opens their socket, through `route`.
    pub async fn serve<B>(
        &self,
        route: Arc<Route>,
        visitor: &Visitor,
        request: Request<B>,
    ) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<AnyError>,
    {
        let (parts, body) = request.into_parts();
        let accept = parts.headers.get(http::header::ACCEPT).cloned();
        match self.pass(route, visitor, parts, body).await {
            Ok(response) => response,
            Err(failure) => {
                let asked = accept.map(|accept| (http::header::ACCEPT, accept));
                failure.answer(&HeaderMap::from_iter(asked))
            }
        }
    }

    async fn pass<B>(
        &self,
        route: Arc<Route>,
        visitor: &Visitor,
        mut parts: Parts,
        body: B,
    ) -> Result<Response<Body>, Failure>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<AnyError>,
    {
        head::check(&parts, self.limits.head_bytes_max)?;
        let wants_socket = head::wants_socket(&parts);
        fence::check(&parts, wants_socket, &route.face.origin, visitor.credential)?;
        parts.uri = match head::path_for_app(&parts.uri, &route) {
            Some(uri) => uri?,
            None => return Ok(to_front_door(&route)),
        };
        let is_work = !is_by_itself(parts.uri.path());
        let exchange = Exchange::begin(route, self.limits.open_max, is_work)?;
        let mut watch = Watch::new(exchange, visitor, self.limits.idle);
        let route = watch.exchange.route.clone();
        if is_work && !fence::is_safe(&parts.method) {
            route.tally.acted();
        }
        head::for_app(&mut parts, &route, visitor, &self.own);
        let upload = Upload::new(body, &watch.exchange);
        head::frame(&mut parts, &upload);
        if wants_socket {
            return tunnel::open(self, watch, visitor, parts, upload).await;
        }
        let sending = self.send(&route, Request::from_parts(parts, upload));
        let (response, connection) = watch.during(sending).await??;
        self.answer(response, connection, watch)
    }

    /// Streams a response to the visitor.
    pub(crate) fn answer(
        &self,
        mut response: Response<Incoming>,
        connection: Connection,
        watch: Watch,
    ) -> Result<Response<Body>, Failure> {
        if response.status().is_informational() {
            return Err(Failure::Nonsense);
        }
        head::for_visitor(&mut response, &watch.exchange.route, &self.own);
        Ok(response.map(|incoming| Body::download(incoming, connection, watch)))
    }

    /// Sends over an idle connection if there is one, otherwise over a new one. An app may close an idle connection at
    /// the moment of the request; then a repeatable request is sent again.
    async fn send(
        &self,
        route: &Route,
        mut request: Request<Upload>,
    ) -> Result<(Response<Incoming>, Connection), Failure> {
        if let Some(mut connection) = route.pool.take() {
            let again = again(&request);
            match connection.send(request).await {
                Ok(response) => return Ok((response, connection)),
                Err(mut refused) => match refused.take_message().or(again) {
                    Some(same) => request = same,
                    None => return Err(unanswered(&refused.into_error())),
                },
            }
        }
        let mut connection = self.connect(route).await?;
        let response = connection.send(request).await;
        let response = response.map_err(|refused| unanswered(&refused.into_error()))?;
        Ok((response, connection))
    }

    pub(crate) async fn connect(&self, route: &Route) -> Result<Connection, Failure> {
        route.target.upstream.connect(&self.limits).await
    }

    pub(crate) fn own(&self) -> &Own {
        &self.own
    }
}

/// A copy of a request that may be sent twice: it changes nothing, and it has no body.
fn again(request: &Request<Upload>) -> Option<Request<Upload>> {
    if !request.body().is_empty() || !fence::is_safe(request.method()) {
        return None;
    }
    let mut again = Request::new(Upload::Empty);
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    *again.headers_mut() = request.headers().clone();
    Some(again)
}

pub(crate) fn unanswered(error: &hyper::Error) -> Failure {
    tracing::debug!("an app gave no answer: {error}");
    if error.is_user() {
        // The visitor's upload broke off, so nobody is there to read this.
        return Failure::Malformed;
    }
    if error.is_parse() {
        Failure::Nonsense
    } else {
        Failure::Unreachable
    }
}

/// Redirects a visitor who omitted the last slash to the session's start page, so that relative links work.
fn to_front_door(route: &Route) -> Response<Body> {
    let mut response = Response::new(Body::page(""));
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    if let Ok(door) = HeaderValue::from_str(&route.face.base) {
        response.headers_mut().insert(LOCATION, door);
    }
    response
}
