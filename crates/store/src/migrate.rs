//! Migrations: embedded, forward only, the same numbers on both databases.

use std::collections::BTreeSet;

use sqlx::migrate::Migrator;

use crate::error::Result;
use crate::sql::query;
use crate::store::{Backend, Store};

static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");

pub(crate) async fn run(store: &Store) -> Result<()> {
    match &store.backend {
        Backend::Sqlite(sqlite) => SQLITE.run(&mut *sqlite.writer_connection().await?).await?,
        // sqlx takes an advisory lock: of several servers that start at once, one migrates and the others wait.
        Backend::Postgres(pool) => POSTGRES.run(pool).await?,
    }
    Ok(())
}

/// How a database's schema differs from the one that this version needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemaGap {
    /// Migrations that `berth serve` will run when it starts.
    pub pending: Vec<String>,
    /// Migrations that only a newer Berth knows.
    pub unknown: Vec<i64>,
}

impl Store {
    /// Compares the migrations in the database with those that this version knows. Changes nothing.
    pub async fn schema_gap(&self) -> Result<SchemaGap> {
        let known = match &self.backend {
            Backend::Sqlite(_) => &SQLITE,
            Backend::Postgres(_) => &POSTGRES,
        };
        let mut reader = self.read().await?;
        let taken = query("SELECT version FROM _sqlx_migrations WHERE success")
            .map(&mut reader, |row| row.get::<i64>("version"))
            .await?;
        let taken: BTreeSet<i64> = taken.into_iter().collect();
        let pending = known.iter().filter(|step| !taken.contains(&step.version));
        let pending = pending.map(|step| format!("{:04} {}", step.version, step.description));
        let is_known = |version: &i64| known.iter().any(|step| step.version == *version);
        Ok(SchemaGap {
            pending: pending.collect(),
            unknown: taken
                .into_iter()
                .filter(|version| !is_known(version))
                .collect(),
        })
    }
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

    #[tokio::test]
    async fn what_a_database_lacks_or_has_too_much_is_told() {
        let directory = tempfile::TempDir::new().unwrap();
        let url = format!("sqlite:{}", directory.path().join("b.sqlite").display());
        let store = Store::open(&url, 1).await.unwrap();
        assert_eq!(store.schema_gap().await.unwrap(), SchemaGap::default());
        let Backend::Sqlite(sqlite) = &store.backend else {
            panic!("opened as SQLite")
        };
        let mut writer = sqlite.writer_connection().await.unwrap();
        let last = "UPDATE _sqlx_migrations SET version = 9999 \
                    WHERE version = (SELECT max(version) FROM _sqlx_migrations)";
        sqlx::query(last).execute(&mut *writer).await.unwrap();
        drop(writer);
        let gap = store.schema_gap().await.unwrap();
        let last = SQLITE.iter().map(|step| step.version).max().unwrap();
        assert_eq!(gap.pending.len(), 1);
        assert!(gap.pending[0].starts_with(&format!("{last:04} ")));
        assert_eq!(gap.unknown, [9999]);
    }
}
