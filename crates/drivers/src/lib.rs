//! Hands on the world: what runs workloads, behind one small trait.
//!
//! A [`backend::Backend`] is told to start and to stop, and says what it sees. [`simulated`] is one that runs nothing:
//! from a seed it says what would have happened, so that a demo lives and a test can make anything fail. [`local`] runs
//! things as processes of this machine, each in a sandbox. [`split`] is two of them, each with nodes of its own.
//!
//! This crate must not see the store or decide who gets what. Moments come in as arguments; only what outlives the
//! server reads a clock.

pub mod backend;
mod beneath;
pub mod door;
pub mod environments;
pub mod local;
pub mod records;
pub mod simulated;
pub mod split;
pub mod supervisors;
mod turns;
