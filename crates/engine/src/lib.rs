//! Berth's decisions, as pure functions of a snapshot and "now".
//!
//! - Permissions: [`rights`] decides who may do what, [`sight`] what a caller may see.
//! - The claim rule: [`rule`] with [`tree`], [`container`] and [`yielding`] decides which claims may coexist on the
//!   timeline.
//! - Availability: [`free`] finds free time, [`status`] resources in service, and [`maintenance`] lays out a
//!   maintenance window.
//! - Series: [`recurrence`] computes the instances, [`room`] the claims in their way.
//! - Policies: [`policy`] judges a booking.
//! - Search: [`busy`] is a small, current index of the occupied time. From it [`placement`] chooses resources,
//!   [`arrange`] moves bookings to make room, [`when`] finds the earliest times and [`alternatives`] finds other
//!   offers. [`equivalence`] finds interchangeable resources.
//! - Operation: [`plan`] turns a site into the state that a file declares. [`notify`] decides who is notified of an
//!   event.
//! - Reports: [`usage`] measures how much of the available time was used, [`counts`] counts resources and free
//!   resources, and [`summary`] sums the occupied amounts by time step.
//! - Scheduling: [`fleet`] places the queue's workloads on the nodes, and [`queue`] decides which waiting jobs start,
//!   and when.
//! - Verification: [`timeline`] is the claim rule as a small in-memory state, used to check the databases. [`sweep`]
//!   searches any finished set of claims for violations.
//!
//! This crate must not do I/O, read a clock, draw random numbers or be async. The same question always gets the same
//! answer, so that every answer can be tested and every failure replayed.

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
