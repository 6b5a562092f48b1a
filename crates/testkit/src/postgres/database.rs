//! One empty database for one test, removed when the test is over.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use anyhow::{Context, Result};

use super::{Address, SERVER_VARIABLE, Server};

/// An empty database for one test. It is dropped with this value, even if clients are still connected.
#[derive(Debug)]
pub struct Database {
    /// The URL to connect to.
    pub url: String,
    name: String,
    server: Address,
}

impl Database {
    /// An empty database on the server that the tests share.
    ///
    /// # Panics
    /// When there is no PostgreSQL: a test that needs one must not pass without.
    pub async fn fresh() -> Self {
        tokio::task::spawn_blocking(|| shared_server().and_then(Self::on))
            .await
            .expect("making a database does not panic")
            .expect("a PostgreSQL for the tests (`scripts/setup test` installs what is missing)")
    }

    /// An empty database on the server at this address.
    pub fn on(server: Address) -> Result<Self> {
        // A fresh random state for each call, because several test processes share one server.
        let name = format!(
            "berth_test_{:016x}",
            RandomState::new().hash_one(std::process::id())
        );
        // `template0` is unchanged, and nobody is ever connected to it.
        server.execute(&format!("CREATE DATABASE {name} TEMPLATE template0"))?;
        Ok(Self {
            url: server.database(&name).to_string(),
            name,
            server,
        })
    }

    /// Runs SQL independently of the code under test, and returns the output without decoration.
    pub fn execute(&self, statement: &str) -> Result<String> {
        self.server.database(&self.name).execute(statement)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // If a crash test has stopped the server, this fails. That is fine: the database goes with the server.
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        self.server.execute(&statement).ok();
    }
}

/// The server in `BERTH_TEST_POSTGRES`, or one for this process.
fn shared_server() -> Result<Address> {
    // Never dropped: the server ends with the process (see `Server`).
    static OWN: OnceLock<Result<Server, String>> = OnceLock::new();

    if let Some(url) = env::var_os(SERVER_VARIABLE).filter(|url| !url.is_empty()) {
        let url = url
            .to_str()
            .with_context(|| format!("{SERVER_VARIABLE} is not text"))?;
        return url
            .parse()
            .with_context(|| format!("{SERVER_VARIABLE} is wrong"));
    }
    match OWN.get_or_init(|| Server::start().map_err(|error| format!("{error:#}"))) {
        Ok(server) => Ok(server.address()),
        Err(error) => Err(anyhow::Error::msg(error.clone())),
    }
}
