//! Berth's decisions, as pure functions of a snapshot and "now".
//!
//! Who may do what ([`rights`], [`sight`]); what may stand side by side on the timeline ([`tree`], [`rule`],
//! [`container`], [`yielding`]); what is free ([`free`]) and in service ([`status`]); how a maintenance window is laid
//! ([`maintenance`]); when the instances of a series are ([`recurrence`]) and
//! what stands in their way ([`room`]); what the policies make of a booking ([`policy`]).
//! [`busy`] keeps what is taken small and current; on it rest which resources a booking gets ([`placement`]), who moves
//! for it ([`arrange`]), when it could be had ([`when`]) and what else could ([`alternatives`]);
//! [`equivalence`] says which resources are as good as each other. [`plan`] is what makes a
//! site what a file declares, [`notify`] says who is told of what happened, and [`usage`] how much of what there was to
//! have was had; [`counts`] is how many resources a site has and how many are free,
//! and [`summary`] what is taken of each, step by step. [`fleet`] is what the nodes have left for the queue's workloads, and which of it each gets;
//! [`queue`] is who of those who wait gets what, and when.
//! [`timeline`] is the rule once more as a small in-memory state, against which the databases are checked,
//! and [`sweep`] looks over any finished set of claims for a broken promise.
//!
//! This crate must not do I/O, read a clock, draw random numbers or be async: the same question always gets
//! the same answer, so that every answer can be tested and every failure replayed.

pub mod alternatives;
pub mod arrange;
pub mod busy;
pub mod container;
pub mod counts;
pub mod equivalence;
pub mod fleet;
pub mod free;
pub mod maintenance;
pub mod notify;
pub mod placement;
pub mod plan;
pub mod policy;
pub mod queue;
pub mod recurrence;
pub mod rights;
pub mod room;
pub mod rule;
pub mod session;
pub mod sight;
pub mod status;
pub mod summary;
pub mod sweep;
pub mod timeline;
pub mod tree;
pub mod usage;
pub mod when;
pub mod yielding;

#[cfg(test)]
mod fixture;

pub use rule::Refusal;
pub use timeline::Timeline;
pub use tree::{Tree, TreeError};
