//! What the world stands on: a database of either kind, gone when dropped.

use std::path::PathBuf;

use berth_store::Engine;
use berth_testkit::postgres::Database;
use berth_testkit::server::{BerthServer, Launch};
use tempfile::TempDir;

#[derive(Debug)]
pub struct Ground {
    pub url: String,
    pub database: Option<Database>,
    directory: TempDir,
}

impl Ground {
    pub async fn new(engine: Engine) -> Self {
        let directory = TempDir::new().expect("a directory");
        let (url, database) = match engine {
            Engine::Sqlite => {
                let file = directory.path().join("berth.sqlite");
                (format!("sqlite:{}", file.display()), None)
            }
            Engine::Postgres => {
                let database = Database::fresh().await;
                (database.url.clone(), Some(database))
            }
        };
        Self {
            url,
            database,
            directory,
        }
    }

    pub fn sqlite_file(&self) -> PathBuf {
        self.directory.path().join("berth.sqlite")
    }

    /// How the real server is started here; `more` are lines of its configuration.
    pub fn launch(&self, more: &str) -> Launch {
        let config = format!(
            "listen = \"127.0.0.1:{{port}}\"\ndata_dir = \"{{directory}}\"\ndatabase = \"{}\"\n{more}\n",
            self.url
        );
        Launch::new(env!("CARGO_BIN_EXE_berth"), config)
    }

    /// The real server, which asks nobody to slow down.
    pub async fn serve(&self) -> BerthServer {
        let started = self.launch("rate_limit_per_s = 0").start().await;
        started.expect("the server starts")
    }
}
