//! Real components for tests: a throw-away PostgreSQL, a small Slurm, the real `berth serve`, and waiting with
//! deadlines.
//!
//! Tests run against the programs that users run. So this crate starts these programs and gives every test its own
//! database, port and directory. It leaves nothing behind, even if the test process is killed. A test that needs a
//! missing program fails; no test is skipped silently.
//!
//! This crate is a dev-dependency only and depends on no other crate of the workspace, so that every crate can use it.

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
