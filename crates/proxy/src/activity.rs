//! Counts the activity on a route, for the code that ends idle sessions.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

/// Paths to which open pages send requests by themselves, whether or not anybody is there. JupyterLab saves its layout
/// every ten seconds. The pages of MLflow and TensorBoard poll with a method that others use for changes.
const BY_ITSELF: [&str; 6] = [
    "/lab/api/workspaces/",
    "/mlflow/runs/search",
    "/mlflow/logged-models/search",
    "/mlflow/traces/search",
    "/mlflow/traces/metrics",
    "/data/plugin/",
];

/// Whether an open page sends requests to this path by itself, without anybody at work.
pub(crate) fn is_by_itself(path: &str) -> bool {
    BY_ITSELF.iter().any(|place| path.contains(place))
}

/// A route's counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// Since a visitor's last request. An open page may send requests by itself.
    pub since_asked: Duration,
    /// Since a visitor last sent something: a request that may change something, a part of its body, or a message on a
    /// WebSocket. An open page that only reads does not count, and neither do keep-alive frames on a socket.
    pub since_acted: Duration,
    pub requests: u64,
    /// Bytes of bodies and messages from visitors to the app.
    pub bytes_in: u64,
    /// Bytes of bodies and messages from the app to visitors.
    pub bytes_out: u64,
    /// Requests and sockets that are open now.
    pub open: usize,
    /// Open sockets, which are part of `open`.
    pub sockets: usize,
}

/// The counts themselves. Moments are milliseconds since the first call of [`now_ms`].
#[derive(Debug)]
pub(crate) struct Tally {
    asked_ms: AtomicU64,
    acted_ms: AtomicU64,
    requests: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    pub open: AtomicUsize,
    pub sockets: AtomicUsize,
}

impl Default for Tally {
    fn default() -> Self {
        let now = now_ms();
        Self {
            asked_ms: now.into(),
            acted_ms: now.into(),
            requests: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            sockets: AtomicUsize::new(0),
        }
    }
}

pub(crate) fn now_ms() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_millis() as u64
}

impl Tally {
    pub fn asked(&self) {
        self.requests.fetch_add(1, Relaxed);
        self.asked_ms.store(now_ms(), Relaxed);
    }

    pub fn acted(&self) {
        let now = now_ms();
        self.asked_ms.store(now, Relaxed);
        self.acted_ms.store(now, Relaxed);
    }

    pub fn came_in(&self, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Relaxed);
    }

    pub fn went_out(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Relaxed);
    }

    pub fn read(&self) -> Activity {
        let now = now_ms();
        let since =
            |moment: &AtomicU64| Duration::from_millis(now.saturating_sub(moment.load(Relaxed)));
        Activity {
            since_asked: since(&self.asked_ms),
            since_acted: since(&self.acted_ms),
            requests: self.requests.load(Relaxed),
            bytes_in: self.bytes_in.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
            open: self.open.load(Relaxed),
            sockets: self.sockets.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_puts_down_its_layout_is_nobody_at_work() {
        assert!(is_by_itself("/lab/api/workspaces/default"));
        assert!(is_by_itself("/s/k3v9/lab/api/workspaces/auto-x"));
        assert!(!is_by_itself("/api/contents/Untitled.ipynb"));
        assert!(!is_by_itself("/api/sessions"));
        assert!(is_by_itself("/ajax-api/2.0/mlflow/runs/search"));
        assert!(!is_by_itself("/ajax-api/2.0/mlflow/runs/delete"));
        let curves = "/experiment/defaultExperimentId/data/plugin/timeseries/timeSeries";
        assert!(is_by_itself(curves));
    }
}
