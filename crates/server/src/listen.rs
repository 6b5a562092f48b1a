//! Connections: taken in up to a limit, watched while they live, and given time to finish when the server stops.
//!
//! No client can hold up another. A connection that sends too slowly, reads too slowly or does nothing is closed
//! (see [`pace`] and [`wire`]); when all places are taken, new connections wait in the kernel's queue, and one
//! address cannot take them all.

mod pace;
pub mod tls;
mod wire;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use berth_proxy::Asked;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::config::Config;
use crate::metrics::Counted;
use crate::observe::{self, Kept};
use crate::request::address::{Peer, is_trusted};
use crate::server::Server;
use crate::shares::{Share, Shares};
use crate::throttle::network;
use crate::visits;
use pace::{Limits, Pace};
use wire::Wire;

/// How long requests may take to finish once the server stops.
const DRAIN: Duration = Duration::from_secs(10);
/// How long what is open in sessions may, before it is cut.
const SETTLE: Duration = Duration::from_secs(2);
/// How long a connection may do nothing between requests: longer than the usual proxy keeps its own, so that it is
/// the proxy that lets go, and no request meets a closing door.
const IDLE: Duration = Duration::from_secs(75);
/// How long to wait when the system gives no connection, as when all its file descriptors are taken.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The longest head of a request.
const HEAD_MAX_BYTES: usize = 64 * 1024;
/// Requests at the same time on one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;
const PING_EVERY: Duration = Duration::from_secs(30);

/// Takes in connections until the server stops, then lets them finish.
pub async fn run(server: &Server, router: Router, listener: TcpListener, tls: Option<TlsAcceptor>) {
    let places = Arc::new(Semaphore::new(server.config.connections_max));
    let connections = TaskTracker::new();
    let give_up = CancellationToken::new();
    let shared = Shared {
        http: http(),
        // Our own proxies speak for many; anyone else leaves room.
        shares: Shares::new(server.config.connections_max.div_ceil(2)),
        limits: limits(&server.config),
        server: server.clone(),
        router,
        tls,
    };
    let shared = Arc::new(shared);
    // The semaphore is never closed, so a place always comes, or the end.
    while let Some(Ok(place)) = unless(&server.stop, places.clone().acquire_owned()).await {
        match unless(&server.stop, listener.accept()).await {
            Some(Ok((stream, peer))) => {
                let work = shared.clone().serve(stream, peer, place);
                let give_up = give_up.clone();
                connections.spawn(async move {
                    unless(&give_up, work).await;
                });
            }
            Some(Err(error)) if is_the_client_s(&error) => {}
            Some(Err(error)) => {
                tracing::warn!("cannot accept connections just now: {error}");
                unless(&server.stop, tokio::time::sleep(ACCEPT_PAUSE)).await;
            }
            None => break,
        }
    }
    drop(listener);
    connections.close();
    // What people have open in their sessions may never end by itself.
    tokio::time::timeout(SETTLE, connections.wait()).await.ok();
    server.visits.proxy.routes.close();
    if tokio::time::timeout(DRAIN, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            "{} connection(s) did not finish in {DRAIN:?}",
            connections.len()
        );
        give_up.cancel();
        connections.wait().await;
    }
}

/// What comes of `work`; nothing if `stop` comes first.
async fn unless<T>(stop: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        value = work => Some(value),
    }
}

/// Whether a failed accept concerns only a client that has gone again.
fn is_the_client_s(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

fn limits(config: &Config) -> Limits {
    Limits {
        head: Duration::from_secs(config.header_timeout_s),
        idle: IDLE,
        stalled: Duration::from_secs(config.request_timeout_s),
    }
}

fn http() -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        // The pace of a connection is watched from outside, for both versions alike.
        .header_read_timeout(None)
        .max_buf_size(HEAD_MAX_BYTES);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_MAX_BYTES as u32)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    http
}

/// What a connection takes up until it is closed, also as a socket that has outlived its request.
struct Held {
    _place: OwnedSemaphorePermit,
    _share: Option<Share<IpAddr>>,
    _counted: Counted,
}

/// What all connections share.
struct Shared {
    server: Server,
    router: Router,
    tls: Option<TlsAcceptor>,
    http: auto::Builder<TokioExecutor>,
    limits: Limits,
    shares: Shares<IpAddr>,
}

impl Shared {
    async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        place: OwnedSemaphorePermit,
    ) {
        let address = peer.ip().to_canonical();
        let is_proxy = is_trusted(address, &self.server.config.trusted_proxies);
        let share = self.shares.take(network(address));
        if share.is_none() && !is_proxy {
            tracing::debug!("{peer} has too many connections open");
            return;
        }
        let held = Held {
            _place: place,
            _share: share,
            _counted: Counted::on(&self.server.metrics.connections),
        };
        // Answers are small and written whole; waiting to fill a packet only delays them.
        stream.set_nodelay(true).ok();
        let Some(tls) = self.tls.clone() else {
            return self.converse(stream, peer, held).await;
        };
        let handshake = tokio::time::timeout(self.limits.head, tls.accept(stream));
        match handshake.await {
            Ok(Ok(stream)) => self.converse(stream, peer, held).await,
            Ok(Err(error)) => tracing::debug!("a TLS handshake with {peer} failed: {error}"),
            Err(_) => tracing::debug!("a TLS handshake with {peer} took too long"),
        }
    }

    /// Answers one request: of Berth or of a session, if its host is one of ours.
    async fn answer(&self, request: hyper::Request<Incoming>) -> Result<Response, Infallible> {
        let server = &self.server;
        let (uri, headers) = (request.uri(), request.headers());
        if let Err(failure) = server.hosts.check(uri, headers, request.version()) {
            let (parts, _) = request.into_parts();
            return Ok(observe::refuse(server, &parts, failure));
        }
        match server.visits.asked(&request) {
            Asked::Elsewhere => self.router.clone().oneshot(request.map(Body::new)).await,
            asked => Ok(visits::answer(server, asked, request).await),
        }
    }

    /// Answers the requests of one connection.
    async fn converse<S>(self: Arc<Self>, stream: S, peer: SocketAddr, held: Held)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let pace = Arc::new(Pace::new(self.limits, Instant::now()));
        let wire = TokioIo::new(Wire::new(stream, pace.clone(), held));
        let service = service_fn(|mut request: hyper::Request<Incoming>| {
            let busy = pace.busy();
            request.extensions_mut().insert(Peer(peer));
            let shared = self.clone();
            async move {
                let response = shared.answer(request).await?;
                Ok::<_, Infallible>(response.map(|body| Kept { body, _kept: busy }))
            }
        });
        let mut connection = pin!(self.http.serve_connection_with_upgrades(wire, service));
        loop {
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!("a connection with {peer} ended: {error}");
                    }
                    return;
                }
                () = self.server.stop.cancelled() => break,
                () = tokio::time::sleep(self.limits.look_every()) => {
                    if pace.is_over(Instant::now()) {
                        break;
                    }
                }
            }
        }
        // What is under way is finished; a connection without a request in it ends at once.
        connection.as_mut().graceful_shutdown();
        let patience = if pace.is_busy() {
            DRAIN
        } else {
            Duration::from_secs(1)
        };
        tokio::time::timeout(patience, connection).await.ok();
    }
}
