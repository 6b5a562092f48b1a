//! How the server, its controllers and its database are.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HealthReport {
    /// Berth's version.
    pub version: String,
    /// The server's clock.
    pub now: Timestamp,
    pub started_at: Timestamp,
    pub uptime_s: u64,
    pub database: DatabaseHealth,
    pub controllers: Vec<ControllerHealth>,
    /// The number of the newest event.
    pub event_head: u64,
    /// For how long the oldest row has waited for its number; 0 when none does.
    pub sequencer_lag_s: f64,
    /// Why the boundary of a run does not hold on this server's machine; null where it does, or where the server runs no
    /// work itself.
    pub weak_boundary: Option<WeakBoundary>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WeakBoundary {
    /// Runs have no sandbox.
    NoSandbox,
    /// Runs have the server's own user.
    ServerUser,
    NoSandboxServerUser,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DatabaseHealth {
    /// `sqlite` or `postgres`.
    pub engine: String,
    pub engine_version: String,
    pub size_bytes: u64,
    /// The last step its schema took.
    pub schema_step: i64,
    /// Steps that this version of Berth would take when it starts.
    pub schema_pending: Vec<String>,
    /// The disk of an SQLite file; null where the server does not know.
    pub disk: Option<DiskHealth>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiskHealth {
    pub free_bytes: u64,
    pub total_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ControllerHealth {
    pub name: String,
    /// Which server last ran it; null if none ever did.
    pub holder: Option<String>,
    /// Until when that server has it to itself, by the database's clock. A controller that rests between rounds lets
    /// it run out meanwhile. Null once it was given back.
    pub until: Option<Timestamp>,
    /// Rises with each new holder.
    pub fence: Option<u64>,
    /// How long it rests at most between two rounds.
    pub pause_s: f64,
    /// How long ago its last round ended on the server that answers; null if it never ran here.
    pub last_round_s: Option<f64>,
    /// How long ago the server that answers left it to another, because a round did not end in its time; null once a round
    /// ended again.
    pub gave_up_s: Option<f64>,
    /// For how long something has been due that it did not do yet.
    pub lag_s: f64,
}
