//! The application: the store, a clock, the vault, and the wake-ups of the controllers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use berth_drivers::backend::Backend;
use berth_drivers::local::machine::WeakBoundary;
use berth_store::Store;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use crate::accounts::Hasher;
use crate::clock::Clock;
use crate::desk::Boards;
use crate::environments::Shelving;
use crate::events::Tail;
use crate::health::Rounds;
use crate::policies::KeptPolicies;
use crate::queue::{Batches, Crowd, Queues, SeenAttempts};
use crate::refusals::Tally;
use crate::sessions::{Addresses, Asking, AtLocalhost, Culling, Pulse};
use crate::vault::Vault;

/// The settings that the use cases need. The application does not know the other settings of a server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Wrong passwords for one login from one network within [`Settings::LOCK_OUT`]. After that, this network is locked
    /// out of the account for the rest of that time.
    pub sign_in_attempts_max: u64,
    /// The limit for one login from all networks together.
    pub sign_in_attempts_login_max: u64,
    /// The limit for one network and all logins together.
    pub sign_in_attempts_network_max: u64,
    pub session_idle: SignedDuration,
    pub session_absolute: SignedDuration,
    pub password_min_length: usize,
    /// How far back a disconnected listener can resume.
    pub event_retention: SignedDuration,
    /// How long after its end a run's folder is kept, and how long the end of its log.
    pub run_retention: SignedDuration,
    pub log_retention: SignedDuration,
    /// The most disk space for all of a person's own environments. None means no limit.
    pub environments_bytes_max: Option<u64>,
    /// The public addresses of sessions.
    pub addresses: Arc<dyn Addresses>,
    pub culling: Culling,
    /// How long a pass of a controller may take before this server leaves the controller to another.
    pub round_limit: Duration,
    /// Why the boundary of a run does not hold on this server's machine. None if it holds, or if nothing runs there.
    pub weak_boundary: Option<WeakBoundary>,
    /// The package index for environments. None means the installer's default.
    pub package_index: Option<String>,
}

impl Settings {
    pub const LOCK_OUT: SignedDuration = SignedDuration::from_mins(15);
    pub const ROUND_LIMIT: Duration = Duration::from_secs(120);
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sign_in_attempts_max: 10,
            sign_in_attempts_login_max: 50,
            sign_in_attempts_network_max: 200,
            session_idle: SignedDuration::from_hours(12),
            session_absolute: SignedDuration::from_hours(30 * 24),
            password_min_length: 12,
            event_retention: SignedDuration::from_hours(400 * 24),
            run_retention: SignedDuration::from_hours(14 * 24),
            log_retention: SignedDuration::from_hours(365 * 24),
            environments_bytes_max: None,
            addresses: Arc::new(AtLocalhost),
            culling: Culling::default(),
            round_limit: Self::ROUND_LIMIT,
            weak_boundary: None,
            package_index: None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct App(Arc<Parts>);

#[derive(Debug)]
pub struct Parts {
    pub store: Store,
    pub settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) vault: Vault,
    /// Notified after every commit with rows that need numbers.
    pub(crate) written: Notify,
    /// Notified when something is due before the next regular poll.
    pub(crate) planned: Notify,
    /// Notified when events were numbered that this server's tail has not read.
    pub(crate) tail_stale: Notify,
    pub tail: Tail,
    /// Notified when there is new work for the queue.
    pub(crate) submitted: Arc<Notify>,
    /// Notified when a run on this server's machine has another deadline, or has to stop.
    pub(crate) to_pass_on: Notify,
    /// Notified when a run that builds an environment may have ended.
    pub(crate) run_ended: Notify,
    pub(crate) boards: Boards,
    pub(crate) queues: Queues,
    /// The submissions that wait while a transaction writes earlier ones.
    pub(crate) batches: Batches,
    pub(crate) crowd: Crowd,
    /// Runs the workloads. None means that they wait.
    pub(crate) backend: Option<Arc<dyn Backend>>,
    /// The last observation of the running sessions.
    pub(crate) pulse: Pulse,
    pub(crate) asking: Asking,
    pub(crate) seen_attempts: SeenAttempts,
    pub(crate) shelving: Shelving,
    pub(crate) policies: KeptPolicies,
    pub(crate) refusals: Tally,
    pub(crate) rounds: Rounds,
    /// From the monotonic clock, because a demo lets the app's clock run fast.
    pub(crate) started: Instant,
    pub(crate) hasher: Hasher,
}

impl App {
    pub fn new(store: Store, clock: Arc<dyn Clock>, vault: Vault, settings: Settings) -> Self {
        Self::with_backend(store, clock, vault, settings, None)
    }

    /// Creates the application with a backend that runs workloads.
    pub fn with_backend(
        store: Store,
        clock: Arc<dyn Clock>,
        vault: Vault,
        settings: Settings,
        backend: Option<Arc<dyn Backend>>,
    ) -> Self {
        Self(Arc::new(Parts {
            store,
            settings,
            clock,
            vault,
            written: Notify::new(),
            planned: Notify::new(),
            tail_stale: Notify::new(),
            tail: Tail::default(),
            submitted: Arc::default(),
            to_pass_on: Notify::new(),
            run_ended: Notify::new(),
            boards: Boards::default(),
            queues: Queues::default(),
            batches: Batches::default(),
            crowd: Crowd::default(),
            backend,
            pulse: Pulse::default(),
            asking: Asking::default(),
            seen_attempts: SeenAttempts::default(),
            shelving: Shelving::default(),
            policies: KeptPolicies::default(),
            refusals: Tally::default(),
            rounds: Rounds::default(),
            started: Instant::now(),
            hasher: Hasher::default(),
        }))
    }

    /// Now, in the precision that is stored.
    pub fn now(&self) -> Timestamp {
        berth_model::span::micros(self.clock.now())
    }
}

impl std::ops::Deref for App {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}
