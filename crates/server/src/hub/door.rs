//! The narrow way out of sandboxes, on the server's side: a socket that only keepers reach. Each says first whose run it
//! passes on, and what comes after is answered as a JupyterHub would, to that run and for that run alone.
//!
//! What comes after is the run's, and hostile: each person's runs have a share of the places, and no connection keeps its
//! place for longer than it takes to answer a request.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::middleware::{from_fn, from_fn_with_state};
use berth_app::sessions::hub_socket;
use berth_model::{PersonId, RunId};
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

/// Connections that are answered at the same time, of all runs together.
const AT_ONCE: usize = 256;
/// The same, of one person's runs; the next wait.
const AT_ONCE_EACH: usize = 16;
/// How long a connection may take from its beginning to its end, whatever its run reads or sends.
const LIFETIME: Duration = Duration::from_secs(60);
/// How long a keeper may take to say whose run it is, and a server to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers until `stop`.
pub async fn keep(server: Server, stop: CancellationToken) {
    let Some(socket) = server.app.hub_socket() else {
        return stop.cancelled().await;
    };
    let listener = match listen(&socket) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!("sessions that need a JupyterHub will not find one: {error}");
            return stop.cancelled().await;
        }
    };
    let app = server.app.clone();
    let router = inside()
        .layer(from_fn(in_its_words))
        .layer(from_fn_with_state(server.clone(), observe))
        .with_state(server);
    let places = Arc::new(Places::default());
    loop {
        let asking = tokio::select! {
            () = stop.cancelled() => return,
            asking = listener.accept() => asking,
        };
        if let Ok((asking, _)) = asking {
            let (app, places) = (app.clone(), places.clone());
            let (router, stop) = (router.clone(), stop.clone());
            tokio::spawn(async move {
                let owner = async |run| app.owner_of_run(run).await.ok().flatten();
                tokio::select! {
                    () = stop.cancelled() => {}
                    _ = tokio::time::timeout(LIFETIME, answer(asking, &places, owner, router)) => {}
                }
            });
        }
    }
}

/// Places for connections.
#[derive(Debug)]
struct Places {
    of_all: Semaphore,
    of_each: Mutex<HashMap<Option<PersonId>, Weak<Semaphore>>>,
}

impl Default for Places {
    fn default() -> Self {
        Places {
            of_all: Semaphore::new(AT_ONCE),
            of_each: Mutex::default(),
        }
    }
}

impl Places {
    /// One person's, for as long as somebody has or waits for one of them.
    fn of(&self, owner: Option<PersonId>) -> Arc<Semaphore> {
        let mut each = self.of_each.lock().unwrap_or_else(PoisonError::into_inner);
        each.retain(|_, places| places.strong_count() > 0);
        if let Some(places) = each.get(&owner).and_then(Weak::upgrade) {
            return places;
        }
        let places = Arc::new(Semaphore::new(AT_ONCE_EACH));
        each.insert(owner, Arc::downgrade(&places));
        places
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

async fn answer(
    mut asking: UnixStream,
    places: &Places,
    owner: impl AsyncFnOnce(RunId) -> Option<PersonId>,
    router: Router,
) -> io::Result<()> {
    let heard = tokio::time::timeout(PATIENCE, hub_socket::heard(&mut asking)).await;
    let run = heard.map_err(io::Error::other)??;
    // Runs whose owner is not known share the places of one person, and their tokens are refused.
    let owner = owner(run).await;
    // Who waits for a place of their own has none of all people's. No semaphore is ever closed.
    let own = places.of(owner);
    let _own_place = own.acquire().await;
    let _place = places.of_all.acquire().await;
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

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const ADA: PersonId = PersonId(uuid::Uuid::from_u128(1));
    const BOB: PersonId = PersonId(uuid::Uuid::from_u128(2));

    /// Asks as a run of somebody, and reads nothing.
    async fn ask(places: &Arc<Places>, owner: PersonId, requests: usize) -> UnixStream {
        let (mut asking, theirs) = UnixStream::pair().unwrap();
        let router = Router::new().route("/", get(async || "x".repeat(1 << 20)));
        let owner_of = async move |_| Some(owner);
        let places = places.clone();
        tokio::spawn(async move {
            let answer = answer(theirs, &places, owner_of, router);
            tokio::time::timeout(LIFETIME, answer).await
        });
        let run = RunId(uuid::Uuid::from_u128(7));
        let request = "GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(requests);
        let ask = format!("{run}\n{request}");
        asking.write_all(ask.as_bytes()).await.unwrap();
        asking
    }

    #[tokio::test]
    async fn who_never_reads_keeps_places_from_nobody_else() {
        let places = Arc::new(Places::default());
        let mut held = Vec::new();
        for _ in 0..AT_ONCE + 1 {
            held.push(ask(&places, ADA, 4).await);
        }
        let mut other = ask(&places, BOB, 1).await;
        let mut word = [0; 12];
        other.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"HTTP/1.1 200");
        let taken = AT_ONCE - places.of_all.available_permits();
        assert!(taken <= AT_ONCE_EACH + 1, "{taken}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_never_reads_loses_the_place_in_the_end() {
        let places = Arc::new(Places::default());
        let _held = ask(&places, ADA, 4).await;
        let own = places.of(Some(ADA));
        let all = u32::try_from(AT_ONCE_EACH).unwrap();
        let began = tokio::time::Instant::now();
        // The clock goes on whenever nobody else can.
        tokio::time::sleep(LIFETIME / 2).await;
        assert_eq!(own.available_permits(), AT_ONCE_EACH - 1);
        let _all = own.acquire_many(all).await.unwrap();
        assert!(began.elapsed() >= LIFETIME / 2);
        assert!(began.elapsed() <= LIFETIME);
    }
}
