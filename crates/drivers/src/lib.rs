//! Hands on the world: what runs workloads, behind one small trait.
//!
//! A [`backend::Backend`] is told to start and to stop, and says what it sees. [`simulated`] is one that runs nothing:
//! from a seed it says what would have happened, so that a demo lives and a test can make anything fail.
//!
//! This crate must not see the store, decide who gets what, or read the wall clock: moments come in as arguments.

pub mod backend;
pub mod simulated;
