//! Copies everything from SQLite to PostgreSQL: the engine of `berth db move`.
//!
//! A lab begins with a file and grows into a server. The move copies all data, with history, secrets and the audit
//! chain, in one transaction of the target. If anything fails, the target stays empty and the source was only read.
//! Before the commit, the move reads both sides back in the same order and compares them by count and hash.
//!
//! The tables and columns come from the two schemas, so a table of a later migration needs no change here; a test
//! checks this for every migration. Only the tree's codes are made during the copy (see [`tree`]), because SQLite has
//! none. The rules of the target stay on during the copy: a source that breaks the claim rule cannot be copied.
//!
//! This must not change any data: no clean-up, no conversion, no numbering of rows without a number.

mod copy;
mod digest;
mod error;
mod schema;
mod statements;
mod tree;

use sqlx::postgres::{PgConnection, PgPool};
use sqlx::sqlite::SqliteConnection;

use crate::sqlite::{Sqlite, Turn};
use crate::store::{Backend, Store};

pub use digest::Digest;
pub use error::{Difference, Error, Result};
use schema::Table;
use tree::Tree;

/// How long to wait for a running server to release the target's tables.
const LOCK_WAIT: &str = "SET LOCAL lock_timeout = '5s'";

/// The progress of the move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub step: Step,
    pub table: String,
    /// Rows of this table done up to now.
    pub rows: u64,
    pub rows_total: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Copying,
    Checking,
}

/// The copied tables, each verified to be the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    pub tables: Vec<Carried>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Carried {
    pub table: String,
    #[serde(flatten)]
    pub digest: Digest,
}

impl Report {
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|carried| carried.digest.rows).sum()
    }
}

/// Moves everything from the SQLite store `from` into the empty PostgreSQL store `to`, or nothing at all.
pub async fn run(
    from: &Store,
    to: &Store,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Report> {
    let (sqlite, pool) = engines(from, to)?;
    let mut turn = hold_source(sqlite).await?;
    let mut target = pool.begin().await?;
    match carry(turn.connection(), &mut target, progress).await {
        Ok(report) => {
            target.commit().await?;
            Ok(report)
        }
        Err(error) => {
            // An explicit rollback, so that the target's locks are gone when the caller gets the error. If even this
            // fails, the connection is lost and the server rolls back by itself.
            target.rollback().await.ok();
            Err(error)
        }
    }
}

async fn carry(
    source: &mut SqliteConnection,
    target: &mut PgConnection,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Report> {
    let tables = schema::common(source, target).await?;
    hold_target(target, &tables).await?;
    refuse_unless_empty(target).await?;
    let tree = Tree::plan(source, target).await?;
    for table in &tables {
        copy::table(source, target, table, &tree, progress)
            .await
            .map_err(|source| Error::Table {
                table: table.name.clone(),
                source,
            })?;
    }
    // The tree's constraints are deferred to the commit. Check them now, while the move can still report the fault.
    sqlx::query("SET CONSTRAINTS ALL IMMEDIATE")
        .execute(&mut *target)
        .await?;
    compare(source, target, &tables, progress).await
}

/// Reads both stores and compares them, table by table. The error names the tables that differ.
pub async fn verify(
    from: &Store,
    to: &Store,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Report> {
    let (sqlite, pool) = engines(from, to)?;
    let mut turn = hold_source(sqlite).await?;
    let source = turn.connection();
    let mut target = pool.begin().await?;
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .execute(&mut *target)
        .await?;
    let tables = schema::common(source, &mut target).await?;
    compare(source, &mut target, &tables, progress).await
}

fn engines<'a>(from: &'a Store, to: &'a Store) -> Result<(&'a Sqlite, &'a PgPool)> {
    match (&from.backend, &to.backend) {
        (Backend::Sqlite(sqlite), Backend::Postgres(pool)) => Ok((sqlite, pool)),
        _ => Err(Error::Engines),
    }
}

/// Takes the source's write lock. The move writes nothing with it; it only keeps other writers out.
async fn hold_source(sqlite: &Sqlite) -> Result<Turn> {
    sqlite.turn().await.map_err(|error| match error {
        crate::Error::Retry => Error::SourceInUse,
        other => Error::Store(other),
    })
}

/// Keeps every other writer out of the target until the commit.
async fn hold_target(target: &mut PgConnection, tables: &[Table]) -> Result<()> {
    // A server may limit how long statements take; a move takes as long as its data needs.
    for setting in [
        LOCK_WAIT,
        "SET LOCAL statement_timeout = 0",
        "SET LOCAL idle_in_transaction_session_timeout = 0",
    ] {
        sqlx::query(setting).execute(&mut *target).await?;
    }
    match sqlx::query(statements::lock(tables))
        .execute(&mut *target)
        .await
    {
        Ok(_) => Ok(()),
        // lock_not_available
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("55P03") => {
            Err(Error::TargetInUse)
        }
        Err(error) => Err(error.into()),
    }
}

/// An empty store may hold rows from migrations and from a server that only started; the copy replaces those. A target
/// with people, sites or a past is a store in use.
async fn refuse_unless_empty(target: &mut PgConnection) -> Result<()> {
    let (people, sites, events, audit): (bool, bool, bool, bool) = sqlx::query_as(
        "SELECT EXISTS (SELECT 1 FROM person), EXISTS (SELECT 1 FROM site), EXISTS (SELECT 1 FROM event),
             EXISTS (SELECT 1 FROM audit_entry)",
    )
    .fetch_one(target)
    .await?;
    for (exists, what) in [
        (people, "people"),
        (sites, "sites"),
        (events, "events"),
        (audit, "audit entries"),
    ] {
        if exists {
            return Err(Error::TargetNotEmpty(what));
        }
    }
    Ok(())
}

async fn compare(
    source: &mut SqliteConnection,
    target: &mut PgConnection,
    tables: &[Table],
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Report> {
    let mut carried = Vec::new();
    let mut differences = Vec::new();
    for table in tables {
        let (ours, copied) = tokio::try_join!(
            digest::of_sqlite(&mut *source, table),
            digest::of_postgres(&mut *target, table),
        )?;
        progress(Progress {
            step: Step::Checking,
            table: table.name.clone(),
            rows: copied.rows,
            rows_total: ours.rows,
        });
        if ours == copied {
            carried.push(Carried {
                table: table.name.clone(),
                digest: ours,
            });
        } else {
            differences.push(Difference {
                table: table.name.clone(),
                source: ours,
                copy: copied,
            });
        }
    }
    if differences.is_empty() {
        Ok(Report { tables: carried })
    } else {
        Err(Error::Differs(differences))
    }
}
