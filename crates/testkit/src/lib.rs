//! Real components for tests: a throw-away PostgreSQL, a small Slurm, the real `berth serve`, and honest waiting.
//!
//! Tests run against the programs users run, so this crate starts them, gives every test a place of
//! its own (database, port, directory) and leaves nothing behind, even when the test process is killed.
//! What a test needs and does not find fails the test; nothing is skipped in silence.
//!
//! This crate is a dev-dependency only and depends on no other room, so that every room can use it.

pub mod lossy;
pub mod naive;
pub mod port;
pub mod postgres;
pub mod process;
pub mod repository;
pub mod server;
pub mod slurm;
pub mod tool;
pub mod wait;
