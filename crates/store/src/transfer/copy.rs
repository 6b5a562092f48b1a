//! Streams one table's rows out of SQLite and inserts them into PostgreSQL in batches.

use futures::TryStreamExt as _;
use sqlx::Postgres;
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::query::Query;
use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use super::schema::{Kind, Table};
use super::tree::{Extra, Tree, extras};
use super::{Progress, Step};
use crate::error::Result;
use crate::sql::Row;

/// Rows per insert: enough that the round trip does not matter, few enough to hold in memory.
const BATCH_ROWS: usize = 500;

pub(super) async fn table(
    source: &mut SqliteConnection,
    target: &mut PgConnection,
    table: &Table,
    tree: &Tree,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<()> {
    let rows_total: i64 = sqlx::query_scalar(table.count())
        .fetch_one(&mut *source)
        .await?;
    let mut report = |rows: u64| {
        progress(Progress {
            step: Step::Copying,
            table: table.name.clone(),
            rows,
            rows_total: rows_total.unsigned_abs(),
        });
    };
    report(0);
    // Rows from migrations exist in the source too, and may have changed there.
    sqlx::query(table.clear()).execute(&mut *target).await?;
    let mut done = 0;
    // Rows that refer to other rows of their table come level by level, so that the rows they refer to exist.
    for depth in 0.. {
        let before = done;
        let mut batch = Batch::new(table);
        let mut rows = sqlx::query(table.rows_at(depth)).fetch(&mut *source);
        while let Some(row) = rows.try_next().await? {
            batch.push(&Row::Sqlite(row), tree)?;
            if batch.rows == BATCH_ROWS {
                done += batch.insert(target).await?;
                report(done);
            }
        }
        done += batch.insert(target).await?;
        if table.itself.is_none() || done == before {
            break;
        }
    }
    report(done);
    set_counters(source, target, table).await?;
    // The target's planner has no statistics for these rows, so it would plan the checks that follow and the first
    // bookings badly.
    sqlx::query(table.analyse()).execute(target).await?;
    Ok(())
}

/// A number is never reused, not even one of a deleted row.
async fn set_counters(
    source: &mut SqliteConnection,
    target: &mut PgConnection,
    table: &Table,
) -> Result<()> {
    for column in table.columns.iter().filter(|column| column.is_identity) {
        let last: Option<i64> =
            sqlx::query_scalar("SELECT seq FROM sqlite_sequence WHERE name = $1")
                .bind(&table.name)
                .fetch_optional(&mut *source)
                .await?;
        sqlx::query(table.set_counter(column))
            .bind(table.quoted_name())
            .bind(&column.name)
            .bind(last)
            .execute(&mut *target)
            .await?;
    }
    Ok(())
}

/// A batch of rows, column by column, as PostgreSQL takes them.
struct Batch<'t> {
    table: &'t Table,
    extras: &'static [Extra],
    columns: Vec<Values>,
    extra_columns: Vec<Vec<Option<String>>>,
    rows: usize,
}

enum Values {
    Bools(Vec<Option<bool>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Ids(Vec<Option<Uuid>>),
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
}

impl<'t> Batch<'t> {
    fn new(table: &'t Table) -> Self {
        let extras = extras(&table.name);
        Self {
            table,
            extras,
            columns: table.columns.iter().map(|c| Values::of(c.kind)).collect(),
            extra_columns: extras.iter().map(|_| Vec::new()).collect(),
            rows: 0,
        }
    }

    fn push(&mut self, row: &Row, tree: &Tree) -> Result<()> {
        for (column, values) in self.table.columns.iter().zip(&mut self.columns) {
            values.push(row, &column.name)?;
        }
        for (extra, values) in self.extras.iter().zip(&mut self.extra_columns) {
            values.push((extra.value)(tree, row)?);
        }
        self.rows += 1;
        Ok(())
    }

    /// Inserts the batch and empties it. Returns its number of rows.
    async fn insert(&mut self, target: &mut PgConnection) -> Result<u64> {
        let full = std::mem::replace(self, Batch::new(self.table));
        if full.rows == 0 {
            return Ok(0);
        }
        let mut query = sqlx::query(self.table.insert(self.extras));
        for values in full.columns {
            query = values.bind(query);
        }
        for values in full.extra_columns {
            query = query.bind(values);
        }
        Ok(query.execute(target).await?.rows_affected())
    }
}

impl Values {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Bool => Values::Bools(Vec::new()),
            Kind::Bytes => Values::Bytes(Vec::new()),
            Kind::Id => Values::Ids(Vec::new()),
            Kind::Int => Values::Ints(Vec::new()),
            Kind::Text => Values::Texts(Vec::new()),
        }
    }

    fn push(&mut self, row: &Row, column: &str) -> Result<()> {
        match self {
            Values::Bools(values) => values.push(row.get(column)?),
            Values::Bytes(values) => values.push(row.get(column)?),
            Values::Ids(values) => values.push(row.get(column)?),
            Values::Ints(values) => values.push(row.get(column)?),
            Values::Texts(values) => values.push(row.get(column)?),
        }
        Ok(())
    }

    fn bind(self, query: Query<'_, Postgres, PgArguments>) -> Query<'_, Postgres, PgArguments> {
        match self {
            Values::Bools(values) => query.bind(values),
            Values::Bytes(values) => query.bind(values),
            Values::Ids(values) => query.bind(values),
            Values::Ints(values) => query.bind(values),
            Values::Texts(values) => query.bind(values),
        }
    }
}
