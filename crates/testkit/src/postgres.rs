//! Throw-away PostgreSQL for tests: a [`Server`] is a whole cluster, and a [`Database`] belongs to one test.
//!
//! Most tests need only `Database::fresh()`. It uses the server in `BERTH_TEST_POSTGRES` (the address of an admin
//! database; `scripts/with-postgres` starts a server and sets it). Otherwise the first call starts a server, which runs
//! until the test process ends.
//!
//! The server is as durable as a real one: `fsync` and `synchronous_commit` stay on, because tests read these live
//! settings and measure with them. It listens only on a Unix socket in its own directory.

mod address;
mod database;
mod server;

pub use address::Address;
pub use database::Database;
pub use server::Server;

/// The variable with the admin database of a running server that tests may use.
pub const SERVER_VARIABLE: &str = "BERTH_TEST_POSTGRES";
