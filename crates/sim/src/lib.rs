//! A clock, a world and a trace: replays workloads through the real engine.
//!
//! [`trace`] reads what people once asked for ([`swf`] and [`openb`] from public files, and Berth's own history), and [`crowd`],
//! [`kueue`] and [`patience`] make queues up; [`policy`] reads how a queue would be run; [`world`] lets workloads come, wait, run and end, around reservations, and
//! [`outcome`] says what came of it; [`compare()`] does so for several policies and [`page`] draws it. [`replay`] is the machine of the
//! published tables; [`random`] draws the same numbers at every run.
//!
//! This crate must not read files or the wall clock, and must not plan: whatever is decided, the engine decides.

mod compare;
pub mod crowd;
#[cfg(test)]
mod fixture;
pub mod kueue;
pub mod openb;
pub mod outcome;
pub mod page;
pub mod patience;
pub mod policy;
pub mod random;
pub mod replay;
mod reserve;
mod show;
pub mod swf;
pub mod trace;
pub mod world;

pub use compare::{Comparison, Figure, Incomparable, POLICIES_MAX, Tried, compare};

/// A trace that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Unreadable {
    pub line: usize,
    pub what: String,
}
