//! Throw-away PostgreSQL for tests: a [`Server`] is a whole cluster, a [`Database`] one test's own.
//!
//! Most tests want only `Database::fresh()`. Its server is the one `BERTH_TEST_POSTGRES` names (the address
//! of an admin database; `scripts/with-postgres` starts one and sets it), or else one started at the first
//! need and kept until the test process ends.
//!
//! The server is as durable as a real one: `fsync` and `synchronous_commit` stay on, because tests read
//! these live settings and measure with them. It listens on a Unix socket in its own directory only.

mod address;
mod database;
mod server;

pub use address::Address;
pub use database::Database;
pub use server::Server;

/// Names the admin database of a running server that tests may use.
pub const SERVER_VARIABLE: &str = "BERTH_TEST_POSTGRES";
