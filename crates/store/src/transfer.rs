//! Carrying everything from SQLite to PostgreSQL: the engine of `berth db move`.
//!
//! A lab begins with a file and grows into a server. The move takes all of it along, history, secrets and the audit
//! chain included, in one transaction of the target: whatever goes wrong, the target is as empty as before and the
//! source was only read. Before the commit both sides are read back in the same order and compared by count and hash.
//!
//! Which tables and columns there are is read from the two schemas, so a later migration's table is carried without a
//! word here; a test holds every migration to that. Only the tree's codes are made up on the way (see [`tree`]),
//! because SQLite has none. The rules of the target stay on while it is filled: a source that breaks the claim rule
//! cannot arrive.
//!
//! This must not change anything on the way: no clean-up, no conversion, no numbering of what has no number yet.

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

/// How long we wait for a running server to let go of the target's tables.
const LOCK_WAIT: &str = "SET LOCAL lock_timeout = '5s'";

/// How far the move is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub step: Step,
    pub table: String,
    /// Rows of this table done so far.
    pub rows: u64,
    pub rows_total: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Copying,
    Checking,
}

/// What was carried, table by table, each found the same on both sides.
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
            // Said aloud, so that the target's locks are gone when the caller hears of it. If even this fails, the
            // connection is lost and the server undoes it by itself.
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
    // The tree's own rules wait for the commit; hear them now, while we can still say what is wrong.
    sqlx::query("SET CONSTRAINTS ALL IMMEDIATE")
        .execute(&mut *target)
        .await?;
    compare(source, target, &tables, progress).await
}

/// Reads both stores and compares them, table by table; the error names those that differ.
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

/// Takes the source's write lock. We write nothing with it; it is there so that nobody else does until we are done.
async fn hold_source(sqlite: &Sqlite) -> Result<Turn> {
    sqlite.turn().await.map_err(|error| match error {
        crate::Error::Retry => Error::SourceInUse,
        other => Error::Store(other),
    })
}

/// Keeps every other writer out of the target until the commit.
async fn hold_target(target: &mut PgConnection, tables: &[Table]) -> Result<()> {
    // A server may cut off what takes long; a move takes as long as there is to carry.
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

/// An empty store may hold what migrations put there and what a server that was only started left behind, and the
/// copy replaces those. Whoever has people, sites or a past has a store of their own.
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
