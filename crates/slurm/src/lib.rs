//! The commands that people's fingers know: what Slurm's programs are asked, and exactly what they answer.
//!
//! Command lines, scripts and variables become plain types; plain rows become the text that `squeue`, `sinfo` and
//! `sacct` print. Nothing here reads a file, a clock or a socket, and nothing knows of Berth: what the rows say and what
//! becomes of a request is decided elsewhere. Measured against the real programs in `tests/it/real.rs`.

// A job in JSON has more fields than a macro expands to by default.
#![recursion_limit = "256"]

pub mod amount;
pub mod argv;
pub mod array;
pub mod dependency;
pub mod duration;
pub mod environment;
mod error;
pub mod hostlist;
pub mod job_id;
pub mod layout;
pub mod moment;
pub mod pattern;
pub mod preset;
mod row;
pub mod sacct;
pub mod sbatch;
pub mod scancel;
pub mod signal;
pub mod sinfo;
pub mod squeue;
pub mod state;

pub use error::UsageError;
pub use row::{JobRow, Member};
pub use sacct::AccountingRow;
pub use sinfo::{NodeRow, PartitionRow};

/// The version of Slurm whose ways these are.
pub const SLURM_VERSION: &str = "22.05.8";

/// The line above a long list: when it was true.
fn heading(now: jiff::Timestamp, zone: &jiff::tz::TimeZone) -> String {
    let local = now.to_zoned(zone.clone());
    local.strftime("%a %b %d %H:%M:%S %Y\n").to_string()
}

/// What stands at the top of every document in JSON, so that programs know its schema.
fn json_meta() -> serde_json::Value {
    serde_json::json!({
        "plugin": { "type": "openapi/v0.0.38", "name": "Slurm OpenAPI v0.0.38" },
        "Slurm": { "version": { "major": 22, "minor": 5, "micro": 8 }, "release": SLURM_VERSION },
    })
}

fn json_text(document: &serde_json::Value) -> String {
    format!("{document:#}\n")
}
