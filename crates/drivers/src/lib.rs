//! Backends: they run workloads, behind one small trait.
//!
//! A [`backend::Backend`] starts and stops runs, and reports their state. [`simulated`] runs nothing: from a seed it
//! derives what would have happened, for demos and for tests that need any failure. [`local`] runs workloads as
//! processes of this machine, each in a sandbox. [`split`] combines two backends, each with nodes of its own.
//!
//! This crate must not access the store or decide who gets which resources. Callers pass the time as an argument; only
//! processes that outlive the server read a clock.

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
