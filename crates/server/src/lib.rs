//! HTTP: routes, sign-in, the live stream of events, and pages for people.
//!
//! A request is read into typed values, handed to the application, and what comes back is written out. Nothing
//! is decided here that the application could decide: this crate knows connections, headers and documents, and
//! must not know SQL or the rules of booking.

mod answer;
mod browser;
pub mod config;
mod event_routes;
mod failure;
mod feed_routes;
mod fetch;
mod hosts;
mod hub;
mod limits;
mod listen;
mod meta_routes;
mod metrics;
mod observe;
mod openapi;
mod pages;
mod repeat;
mod request;
mod router;
mod routes;
mod server;
mod shares;
mod shown;
mod sign_in_routes;
mod throttle;
mod visits;

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use berth_app::{App, controllers};
use tokio::net::TcpListener;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use config::{Config, QueueBackend};
pub use listen::tls::TlsError;
pub use openapi::openapi;
pub use repeat::NOT_REPEATED;
pub use router::router;
pub use server::Server;
pub use visits::address::{addresses as session_addresses, share_origin as sessions_share_origin};

/// How long controllers may take to finish what they do and to give back their leases.
const CONTROLLERS_STOP: Duration = Duration::from_secs(5);

/// Why the server does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(
        "cannot listen on {address}; is another program there already? Set `listen` to change it"
    )]
    Listen {
        address: SocketAddr,
        #[source]
        error: std::io::Error,
    },
    #[error("cannot serve HTTPS")]
    Tls(#[from] TlsError),
    #[error("a controller stopped working")]
    Controller(#[source] JoinError),
    #[error(
        "sessions would share Berth's own address, and a script in one could act as its visitors in Berth and in other sessions; set `session_origin` to a name with a wildcard, or `unsafe_shared_origin = true` if all people here trust each other"
    )]
    SharedOrigin,
}

/// Serves until `stop`, then finishes what is under way. `ready` is told the address once requests are taken.
pub async fn serve(
    config: Config,
    app: App,
    stop: CancellationToken,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    run(Server::new(config, app, None, stop), ready).await
}

/// Serves a demo, whose welcome page says who can sign in.
pub async fn serve_demo(
    config: Config,
    app: App,
    demo: berth_api::about::Demo,
    stop: CancellationToken,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    run(Server::new(config, app, Some(demo), stop), ready).await
}

async fn run(server: Server, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    check_origin(&server)?;
    let tls = match server.config.tls() {
        Some((certificate, key)) => Some(listen::tls::load(certificate, key)?),
        None => None,
    };
    let wanted = server.config.listen;
    let in_use = |error| ServeError::Listen {
        address: wanted,
        error,
    };
    let listener = TcpListener::bind(wanted).await.map_err(in_use)?;
    let address = listener.local_addr().map_err(in_use)?;
    let router = router::router(&server);
    let controllers_stop = CancellationToken::new();
    let mut controllers = controllers::start(&server.app, server.fetch.clone(), &controllers_stop);
    controllers.spawn(visits::keep(server.clone(), controllers_stop.clone()));
    if server.config.queue_backend == QueueBackend::Local {
        controllers.spawn(hub::door::keep(server.clone(), controllers_stop.clone()));
    }
    ready(address);
    let mut serving = pin!(listen::run(&server, router, listener, tls));
    let outcome = tokio::select! {
        () = &mut serving => Ok(()),
        lost = lost(&mut controllers) => {
            server.stop.cancel();
            serving.await;
            Err(lost)
        }
    };
    // Controllers stop last: what the final requests wrote still gets its numbers.
    controllers_stop.cancel();
    let stopped = async { while controllers.join_next().await.is_some() {} };
    if tokio::time::timeout(CONTROLLERS_STOP, stopped)
        .await
        .is_err()
    {
        tracing::warn!(
            "controllers did not stop in {CONTROLLERS_STOP:?}; their leases run out by themselves"
        );
    }
    outcome
}

/// An admin chooses on purpose that sessions share Berth's own address.
fn check_origin(server: &Server) -> Result<(), ServeError> {
    match (server.shares_origin(), server.config.unsafe_shared_origin) {
        (true, false) => Err(ServeError::SharedOrigin),
        (true, true) => {
            tracing::warn!(
                "sessions share Berth's own address, so that what runs in one can act as its visitors in Berth and in other sessions (unsafe_shared_origin)"
            );
            Ok(())
        }
        (false, _) => Ok(()),
    }
}

/// Waits until a controller ends although nobody stopped it. A server without its controllers would look well and
/// start no reservation, so it must not go on.
async fn lost(controllers: &mut JoinSet<()>) -> ServeError {
    loop {
        match controllers.join_next().await {
            Some(Err(error)) => return ServeError::Controller(error),
            Some(Ok(())) => {}
            None => std::future::pending().await,
        }
    }
}
