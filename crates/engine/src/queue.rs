//! The queue of a site: which waiting workload gets which nodes, and when.
//!
//! [`planner`] is the queue itself. It asks [`share`] which account is next, [`quota`] whether the account may hold
//! more, and [`ground`] whether there is room. The ground has one [`track`] (timeline) for each node. It builds on
//! [`crate::fleet`], which knows one moment only.

pub mod calibration;
#[cfg(test)]
mod fixture;
pub mod ground;
pub mod history;
mod lines;
pub mod planner;
mod profile;
pub mod quota;
pub mod seats;
pub mod share;
pub mod track;
mod turns;

/// A moment or a length in microseconds. A plan compares millions of them.
pub type Micros = i64;
