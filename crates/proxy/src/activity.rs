//! What happens on a route, counted for whoever ends idle sessions.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

/// Where open pages send something by themselves, whether or not anybody is there: JupyterLab puts down its layout every ten
/// seconds, and the pages of MLflow and TensorBoard look for news by a method that others change things with.
const BY_ITSELF: [&str; 6] = [
    "/lab/api/workspaces/",
    "/mlflow/runs/search",
    "/mlflow/logged-models/search",
    "/mlflow/traces/search",
    "/mlflow/traces/metrics",
    "/data/plugin/",
];

/// Whether what is sent to this path is an open page's own doing, and nobody's work.
pub(crate) fn is_by_itself(path: &str) -> bool {
    BY_ITSELF.iter().any(|place| path.contains(place))
}

/// A route's counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// Since a visitor last asked for anything. An open page may do so by itself.
    pub since_asked: Duration,
    /// Since a visitor last sent something: a request that may change something, a part of its body, a message on a
    /// WebSocket. An open page that only looks does not, nor does a socket that is merely kept alive.
    pub since_acted: Duration,
    pub requests: u64,
    /// Bodies and messages from visitors to the app.
    pub bytes_in: u64,
    /// Bodies and messages from the app to visitors.
    pub bytes_out: u64,
    /// Requests and sockets that are open now.
    pub open: usize,
    /// The sockets among them.
    pub sockets: usize,
}

/// The counts themselves. Moments are milliseconds since this program first looked.
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
