//! The health of the installation, for monitoring.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use berth_drivers::local::machine::WeakBoundary;
use berth_engine::rights::Action;
use berth_store::{Engine, closures, events, leases, reservations, sequencer};
use jiff::{SignedDuration, Timestamp};

use crate::App;
use crate::caller::Caller;
use crate::controllers::{CONTROLLERS, Controller};
use crate::error::Result;

#[derive(Debug, Clone, Copy)]
pub struct Health {
    /// How long the oldest row has waited for its number. Zero if none waits.
    pub sequencer_lag: SignedDuration,
}

/// The full report on a server and its database.
#[derive(Debug, Clone)]
pub struct HealthReport {
    pub version: &'static str,
    pub now: Timestamp,
    pub started_at: Timestamp,
    pub engine: &'static str,
    pub engine_version: String,
    pub size_bytes: u64,
    /// The last schema migration that was applied, and the migrations that this version would still apply.
    pub schema_step: i64,
    pub schema_pending: Vec<String>,
    pub sequencer_lag: SignedDuration,
    pub event_head: u64,
    pub controllers: Vec<ControllerHealth>,
    /// Why the boundary of a run does not hold on this server's machine.
    pub weak_boundary: Option<WeakBoundary>,
}

#[derive(Debug, Clone)]
pub struct ControllerHealth {
    pub name: &'static str,
    /// The longest pause between two passes.
    pub pause: SignedDuration,
    pub lease: Option<leases::Held>,
    /// When its last pass on this server ended.
    pub last_round: Option<Timestamp>,
    /// When this server gave it up because a pass exceeded the time limit. None after a later pass ended.
    pub gave_up: Option<Timestamp>,
    /// How long its oldest overdue work has been due.
    pub lag: SignedDuration,
}

/// How the passes of each controller of this server ended.
#[derive(Debug, Default)]
pub(crate) struct Rounds(Mutex<HashMap<&'static str, Round>>);

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    ended: Option<Timestamp>,
    gave_up: Option<Timestamp>,
}

impl Rounds {
    pub fn ended(&self, name: &'static str, at: Timestamp) {
        let round = Round {
            ended: Some(at),
            gave_up: None,
        };
        self.all().insert(name, round);
    }

    pub fn given_up(&self, name: &'static str, at: Timestamp) {
        self.all().entry(name).or_default().gave_up = Some(at);
    }

    fn last(&self, name: &str) -> Round {
        self.all().get(name).copied().unwrap_or_default()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<&'static str, Round>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl App {
    /// Runs a query that only an up-to-date database can answer.
    pub async fn health(&self) -> Result<Health> {
        let mut reader = self.store.read().await?;
        let waiting = sequencer::waiting_since(&mut reader).await?;
        Ok(Health {
            sequencer_lag: self.since(waiting),
        })
    }

    /// The name of the database engine.
    pub fn store_name(&self) -> &'static str {
        match self.store.engine() {
            Engine::Sqlite => "sqlite",
            Engine::Postgres => "postgres",
        }
    }

    /// The health of the server, its controllers and its database.
    pub async fn health_report(&self, caller: &Caller) -> Result<HealthReport> {
        caller.may(Action::SeeHealth, false, "server")?;
        let gap = self.store.schema_gap().await?;
        let mut reader = self.store.read().await?;
        let (engine_version, size_bytes) = berth_store::health::database(&mut reader).await?;
        let schema_step = berth_store::health::schema_step(&mut reader).await?;
        let held = leases::all(&mut reader).await?;
        let waiting = sequencer::waiting_since(&mut reader).await?;
        let due = reservations::next_due(&mut reader).await?;
        let calendar = closures::next_due(&mut reader).await?;
        let event_head = events::last_number(&mut reader).await?;
        let lag = |name: &str| {
            self.since(match name {
                "sequencer" => waiting,
                "reservations" => due,
                "closures" => calendar,
                _ => None,
            })
        };
        let controller = |of: &Controller| ControllerHealth {
            name: of.name,
            pause: SignedDuration::try_from(of.pause).unwrap_or(SignedDuration::MAX),
            lease: held.iter().find(|held| held.name == of.name).cloned(),
            last_round: self.rounds.last(of.name).ended,
            gave_up: self.rounds.last(of.name).gave_up,
            lag: lag(of.name),
        };
        Ok(HealthReport {
            version: env!("CARGO_PKG_VERSION"),
            now: self.now(),
            started_at: self.started_at(),
            engine: self.store_name(),
            engine_version,
            size_bytes,
            schema_step,
            schema_pending: gap.pending,
            sequencer_lag: self.since(waiting),
            event_head,
            weak_boundary: self.settings.weak_boundary,
            controllers: CONTROLLERS.iter().map(controller).collect(),
        })
    }

    /// The start of this server on the app's clock.
    fn started_at(&self) -> Timestamp {
        let running = SignedDuration::try_from(self.started.elapsed()).unwrap_or_default();
        self.now() - running
    }

    fn since(&self, at: Option<Timestamp>) -> SignedDuration {
        let waited = at.map(|at| self.now().duration_since(at));
        waited.unwrap_or_default().max(SignedDuration::ZERO)
    }
}
