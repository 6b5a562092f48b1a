//! Runs a command with a throw-away PostgreSQL, and passes it the address in `BERTH_TEST_POSTGRES`.
//!
//! `scripts/with-postgres make test` starts one server for all the test processes of a run, instead of one each.

use std::env;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use berth_testkit::postgres::{SERVER_VARIABLE, Server};

fn main() -> Result<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    let program = arguments
        .next()
        .context("usage: with-postgres COMMAND [ARGUMENT...]")?;
    let server = Server::start()?;
    let status = Command::new(&program)
        .args(arguments)
        .env(SERVER_VARIABLE, server.address().to_string())
        .status()
        .with_context(|| format!("could not run {}", program.display()))?;
    // A command that a signal ended has no exit code, but it has failed.
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, Into::into))
}
