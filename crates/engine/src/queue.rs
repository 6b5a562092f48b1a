//! Who of those who wait gets what, and when.
//!
//! [`planner`] is the queue itself. It asks [`share`] whose turn it is and [`quota`] whether they may, and [`ground`] whether there
//! is room: the nodes with their time ahead, each a [`track`], on top of what [`crate::fleet`] says of one moment.

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

/// A moment or a length in microseconds: a plan compares millions of them.
pub type Micros = i64;
