//! The narrow way out of sandboxes, on the server's side: a socket that only keepers reach. Each says first whose run it
//! passes on, and what comes after is answered as a JupyterHub would, to that run and for that run alone.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::middleware::{from_fn, from_fn_with_state};
use berth_app::sessions::hub_socket;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::asker::FromRun;
use super::{in_its_words, inside};
use crate::observe::observe;
use crate::server::Server;

/// Connections at the same time, of all runs together.
const AT_ONCE: usize = 256;
/// How long a keeper may take to say whose run it is, and a server to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);
/// What runs below the data folder; the same that the machine's runs are kept in.
const WORK: &str = "work";

/// Answers until `stop`.
pub async fn keep(server: Server, stop: CancellationToken) {
    let work = server.config.data_dir.join(WORK);
    let listener = match listen(&hub_socket::server_socket(&work)) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!("sessions that need a JupyterHub will not find one: {error}");
            return stop.cancelled().await;
        }
    };
    let router = inside()
        .layer(from_fn(in_its_words))
        .layer(from_fn_with_state(server.clone(), observe))
        .with_state(server);
    let places = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        // The semaphore is never closed.
        let place = places.clone().acquire_owned().await;
        let asking = tokio::select! {
            () = stop.cancelled() => return,
            asking = listener.accept() => asking,
        };
        if let Ok((asking, _)) = asking {
            let (router, stop) = (router.clone(), stop.clone());
            tokio::spawn(async move {
                let _place = place;
                tokio::select! {
                    () = stop.cancelled() => {}
                    _ = answer(asking, router) => {}
                }
            });
        }
    }
}

/// Nobody but this server's own user comes by it, and the folder is closed to all others besides.
fn listen(socket: &Path) -> io::Result<UnixListener> {
    // What an earlier server left there answers nobody.
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn answer(mut asking: UnixStream, router: Router) -> io::Result<()> {
    let heard = tokio::time::timeout(PATIENCE, hub_socket::heard(&mut asking)).await;
    let run = heard.map_err(io::Error::other)??;
    let service = router.map_request(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(FromRun(run));
        request
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(asking), TowerToHyperService::new(service))
        .await
        .map_err(io::Error::other)
}
