//! The commands that people's fingers know: what Slurm's programs are asked, and exactly what they answer.
//!
//! Command lines, scripts and variables become plain types; plain rows become the text that `squeue`, `sinfo` and
//! `sacct` print. Nothing here reads a file, a clock or a socket, and nothing knows of Berth: what the rows say and what
//! becomes of a request is decided elsewhere. Measured against the real programs in `tests/real.rs`.

pub mod amount;
pub mod argv;
pub mod array;
pub mod dependency;
pub mod duration;
mod error;
pub mod hostlist;
pub mod job_id;
pub mod moment;
pub mod pattern;
pub mod sbatch;
pub mod signal;

pub use error::UsageError;
