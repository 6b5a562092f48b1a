//! Migrations: embedded, forward only, the same numbers on both databases.

use sqlx::migrate::Migrator;

use crate::error::Result;
use crate::store::{Backend, Store};

static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");

pub(crate) async fn run(store: &Store) -> Result<()> {
    match &store.backend {
        Backend::Sqlite(sqlite) => SQLITE.run(&mut *sqlite.writer_connection().await?).await?,
        // sqlx takes an advisory lock, so that of several servers starting at once one migrates and the others wait.
        Backend::Postgres(pool) => POSTGRES.run(pool).await?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_databases_take_the_same_steps() {
        let steps = |migrator: &Migrator| -> Vec<_> {
            migrator
                .iter()
                .map(|step| (step.version, step.description.to_string()))
                .collect()
        };
        assert_eq!(steps(&SQLITE), steps(&POSTGRES));
    }
}
