//! Idle connections to an app.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::connection::Connection;
use crate::routes::Route;

/// How long an idle connection is kept. The usual servers close theirs after five seconds or more. Closing first avoids
/// sending a request on a connection that the app is closing.
const WAIT: Duration = Duration::from_secs(4);
const WAITING_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Pool {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The longest idle first.
    connections: Vec<(Instant, Connection)>,
    is_swept: bool,
}

impl Pool {
    /// A connection that can take a request now, if there is one.
    pub fn take(&self) -> Option<Connection> {
        loop {
            let (since, mut connection) = self.lock().connections.pop()?;
            if since.elapsed() < WAIT && connection.is_free() {
                return Some(connection);
            }
        }
    }

    /// Keeps the connection if it can take another request.
    pub fn put(route: &Arc<Route>, mut connection: Connection) {
        if !connection.is_free() || route.over.is_cancelled() {
            return;
        }
        let mut waiting = route.pool.lock();
        if waiting.connections.len() >= WAITING_MAX {
            return;
        }
        waiting.connections.push((Instant::now(), connection));
        if !waiting.is_swept
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            waiting.is_swept = true;
            let route = Arc::downgrade(route);
            runtime.spawn(async move {
                let mut next = WAIT;
                loop {
                    tokio::time::sleep(next).await;
                    let Some(route) = route.upgrade() else { return };
                    match route.pool.sweep() {
                        Some(wait) => next = wait,
                        None => return,
                    }
                }
            });
        }
    }

    pub fn clear(&self) {
        let gone = std::mem::take(&mut self.lock().connections);
        drop(gone);
    }

    /// Closes connections that were idle for too long. Returns when to sweep again, if any are left.
    fn sweep(&self) -> Option<Duration> {
        let mut waiting = self.lock();
        let stale = waiting
            .connections
            .partition_point(|(since, _)| since.elapsed() >= WAIT);
        let gone: Vec<_> = waiting.connections.drain(..stale).collect();
        let oldest = waiting
            .connections
            .first()
            .map(|(since, _)| since.elapsed());
        waiting.is_swept = oldest.is_some();
        drop(waiting);
        drop(gone);
        oldest.map(|age| WAIT.saturating_sub(age))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
