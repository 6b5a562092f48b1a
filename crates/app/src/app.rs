//! The application: the store, a clock, the vault, and the bells that wake controllers.

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

/// How sign-in behaves; everything else about a server is not the application's business.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Wrong passwords for one login from one network within [`Settings::LOCK_OUT`], before that network is locked out of
    /// the account for the rest of that time.
    pub sign_in_attempts_max: u64,
    /// The same for one login from all networks together.
    pub sign_in_attempts_login_max: u64,
    /// The same for one network and all logins together.
    pub sign_in_attempts_network_max: u64,
    pub session_idle: SignedDuration,
    pub session_absolute: SignedDuration,
    pub password_min_length: usize,
    /// How far back a listener that was away can resume.
    pub event_retention: SignedDuration,
    /// How long after its end a run's folder is kept, and how long the end of its log.
    pub run_retention: SignedDuration,
    pub log_retention: SignedDuration,
    /// What a person's own environments may take together, if there is a limit.
    pub environments_bytes_max: Option<u64>,
    /// Where sessions are found from outside.
    pub addresses: Arc<dyn Addresses>,
    pub culling: Culling,
    /// How long a controller's round may take before this server leaves the controller to another.
    pub round_limit: Duration,
    /// Why the boundary of a run does not hold on this server's machine; none where it does, or nothing runs there.
    pub weak_boundary: Option<WeakBoundary>,
    /// Where packages of environments are taken from; from where the installer takes them by itself, if none.
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
    /// Rung after every commit that left rows to be numbered.
    pub(crate) written: Notify,
    /// Rung when something falls due before the next regular look.
    pub(crate) planned: Notify,
    /// Rung when events were numbered that this server's tail has not read.
    pub(crate) tail_stale: Notify,
    pub tail: Tail,
    /// Rung when there is something new for the queue.
    pub(crate) submitted: Arc<Notify>,
    /// Rung when a run on this server's machine has another deadline, or has to stop.
    pub(crate) to_pass_on: Notify,
    /// Rung when what makes an environment may have ended.
    pub(crate) run_ended: Notify,
    pub(crate) boards: Boards,
    pub(crate) queues: Queues,
    /// What is submitted while something is being written.
    pub(crate) batches: Batches,
    pub(crate) crowd: Crowd,
    /// What runs workloads; none, and they wait.
    pub(crate) backend: Option<Arc<dyn Backend>>,
    /// What was last seen of the sessions that run.
    pub(crate) pulse: Pulse,
    pub(crate) asking: Asking,
    pub(crate) seen_attempts: SeenAttempts,
    pub(crate) shelving: Shelving,
    pub(crate) policies: KeptPolicies,
    pub(crate) refusals: Tally,
    pub(crate) rounds: Rounds,
    /// Not by the clock of the world, which a demo lets run fast.
    pub(crate) started: Instant,
    pub(crate) hasher: Hasher,
}

impl App {
    pub fn new(store: Store, clock: Arc<dyn Clock>, vault: Vault, settings: Settings) -> Self {
        Self::with_backend(store, clock, vault, settings, None)
    }

    /// The same, with something that runs workloads.
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
