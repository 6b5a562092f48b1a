//! A clock, a world and a trace: replays workloads through the real engine.
//!
//! [`swf`] and [`openb`] read public traces, and [`crowd`], [`kueue`] and [`patience`] make queues up; [`replay`] lets jobs come, wait, run and
//! end, around reservations; [`random`] draws the same numbers at every run.
//!
//! This crate must not read files or the wall clock, and must not plan: whatever is decided, the engine decides.

pub mod crowd;
pub mod kueue;
pub mod openb;
pub mod patience;
pub mod random;
pub mod replay;
pub mod swf;

/// A trace that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Unreadable {
    pub line: usize,
    pub what: String,
}
