//! Simulation: replays workload traces through the real engine.
//!
//! [`trace`] reads past demand ([`swf`] and [`openb`] from public files, and Berth's own history). [`crowd`], [`kueue`]
//! and [`patience`] generate load. [`policy`] reads a candidate policy for a queue. [`world`] replays a trace:
//! workloads arrive, wait, run and end, around reservations. [`outcome`] computes the figures; [`compare()`] does so
//! for several policies and [`page`] draws them. [`replay`] is the machine of the published tables; [`random`] gives
//! the same numbers at every run.
//!
//! This crate must not read files or the wall clock, and must not plan: the engine makes every decision.

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
