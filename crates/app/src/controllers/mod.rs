//! Controllers: small loops that do the work for which time or an event calls.
//!
//! A wake-up or a timer starts each pass. A controller takes no input and is safe to kill at any instruction: it reads
//! the work that is due and acts in its own transactions. If several servers share a database, the server with a
//! controller's lease runs it. Every transaction checks the fence of the lease first, so a server that was delayed too
//! long changes nothing.

mod attempts;
mod by_hand;
mod closures;
mod environments;
mod lease;
mod notifier;
mod queue;
mod records;
mod refusals;
mod reservations;
mod sequencer;
mod sessions;
mod supervisors;
mod sweeper;
mod variables;
mod waitlist;

use std::sync::Arc;
use std::time::Duration;

use berth_store::Engine;
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::App;
use crate::clock::random;
use crate::closures::Fetch;
use lease::Keeper;

pub use by_hand::ByHand;

/// A leased controller, and the longest pause between two of its passes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Controller {
    pub name: &'static str,
    pub pause: Duration,
}

const SEQUENCER: Controller = controller("sequencer", sequencer::LOOK_EVERY);
const RESERVATIONS: Controller =
    controller("reservations", reservations::LOOK_EVERY.unsigned_abs());
const WAITLIST: Controller = controller("waitlist", waitlist::LOOK_EVERY);
const NOTIFIER: Controller = controller("notifier", notifier::LOOK_EVERY);
const QUEUE: Controller = controller("queue", queue::LOOK_EVERY);
const SESSIONS: Controller = controller("sessions", sessions::LOOK_EVERY);
const SWEEPER: Controller = controller("sweeper", sweeper::SWEEP_EVERY);
const CLOSURES: Controller = controller("closures", closures::LOOK_EVERY);
const ENVIRONMENTS: Controller = controller("environments", environments::LOOK_EVERY);

/// All controllers, for the health check.
pub(crate) const CONTROLLERS: &[Controller] = &[
    SEQUENCER,
    RESERVATIONS,
    WAITLIST,
    NOTIFIER,
    QUEUE,
    SESSIONS,
    SWEEPER,
    CLOSURES,
    ENVIRONMENTS,
];

const fn controller(name: &'static str, pause: Duration) -> Controller {
    Controller { name, pause }
}

/// Starts all controllers of one server. They run until `stop` and then give their leases back.
pub fn start(app: &App, fetch: Arc<dyn Fetch>, stop: &CancellationToken) -> JoinSet<()> {
    let server = server_name(app);
    let mut tasks = JoinSet::new();
    let keeper = |of: Controller| Keeper::new(app, of.name, &server);
    tasks.spawn(sequencer::run(app.clone(), keeper(SEQUENCER), stop.clone()));
    tasks.spawn(reservations::run(
        app.clone(),
        keeper(RESERVATIONS),
        stop.clone(),
    ));
    tasks.spawn(waitlist::run(app.clone(), keeper(WAITLIST), stop.clone()));
    tasks.spawn(notifier::run(app.clone(), keeper(NOTIFIER), stop.clone()));
    tasks.spawn(queue::run(app.clone(), keeper(QUEUE), stop.clone()));
    tasks.spawn(sessions::run(app.clone(), keeper(SESSIONS), stop.clone()));
    tasks.spawn(sweeper::run(app.clone(), keeper(SWEEPER), stop.clone()));
    tasks.spawn(closures::run(
        app.clone(),
        keeper(CLOSURES),
        fetch,
        stop.clone(),
    ));
    tasks.spawn(environments::run(
        app.clone(),
        keeper(ENVIRONMENTS),
        stop.clone(),
    ));
    tasks.spawn(sequencer::follow(app.clone(), stop.clone()));
    tasks.spawn(supervisors::run(app.clone(), stop.clone()));
    tasks.spawn(attempts::run(app.clone(), stop.clone()));
    tasks.spawn(refusals::run(app.clone(), stop.clone()));
    tasks.spawn(records::run(app.clone(), stop.clone()));
    tasks.spawn(variables::run(app.clone(), stop.clone()));
    tasks.spawn(read_boards(app.clone(), stop.clone()));
    tasks
}

/// Reads all boards ahead, so that the first search is as fast as the later ones.
async fn read_boards(app: App, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        read = app.read_boards() => if let Err(error) = read {
            tracing::warn!(%error, "a site could not be read ahead; it will be when somebody asks");
        },
    }
}

/// The name of this process in a lease.
fn server_name(app: &App) -> String {
    match app.store.engine() {
        // Only one process serves an SQLite file, so the previous holder of its leases no longer runs.
        Engine::Sqlite => "this machine".to_owned(),
        Engine::Postgres => random::<8>()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    }
}

impl App {
    /// Wakes the controller of reservations if `at` is before its next poll.
    pub(crate) fn falls_due(&self, at: Timestamp) {
        if at <= self.now() + reservations::LOOK_EVERY {
            self.planned.notify_one();
        }
    }
}
