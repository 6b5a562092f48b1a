//! Berth's decisions, as pure functions of a snapshot and "now".
//!
//! Who may do what ([`rights`], [`sight`]); what may stand side by side on the timeline ([`tree`], [`rule`],
//! [`container`], [`yielding`]); what is free ([`free`]) and in service ([`status`]); how a maintenance window is laid ([`maintenance`]);
//! what makes a site what a file declares ([`plan`]).
//! [`timeline`] is the rule once more as a small in-memory state, against which the databases are checked,
//! and [`sweep`] looks over any finished set of claims for a broken promise.
//!
//! This crate must not do I/O, read a clock, draw random numbers or be async: the same question always gets
//! the same answer, so that every answer can be tested and every failure replayed.

pub mod container;
pub mod free;
pub mod maintenance;
pub mod plan;
pub mod rights;
pub mod rule;
pub mod sight;
pub mod status;
pub mod sweep;
pub mod timeline;
pub mod tree;
pub mod yielding;

#[cfg(test)]
mod fixture;

pub use rule::Refusal;
pub use timeline::Timeline;
pub use tree::{Tree, TreeError};
