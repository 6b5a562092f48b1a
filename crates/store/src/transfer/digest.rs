//! A table's row count and hash. They are the same on both databases when the rows are the same.

use futures::TryStreamExt as _;
use futures::stream::BoxStream;
use sha2::{Digest as _, Sha256};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use super::schema::{Column, Kind, Table};
use crate::error::Result;
use crate::sql::{Row, hex};

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Digest {
    pub rows: u64,
    /// Over every copied column of every row, in the order of the primary key.
    pub sha256: String,
}

pub(super) async fn of_sqlite(source: &mut SqliteConnection, table: &Table) -> Result<Digest> {
    let rows = sqlx::query(table.sqlite_in_order()).fetch(source);
    of_rows(table, Box::pin(rows.map_ok(Row::Sqlite))).await
}

pub(super) async fn of_postgres(target: &mut PgConnection, table: &Table) -> Result<Digest> {
    let rows = sqlx::query(table.postgres_in_order()).fetch(target);
    of_rows(table, Box::pin(rows.map_ok(Row::Postgres))).await
}

async fn of_rows(
    table: &Table,
    mut rows: BoxStream<'_, std::result::Result<Row, sqlx::Error>>,
) -> Result<Digest> {
    let mut hasher = Sha256::new();
    let mut count = 0;
    while let Some(row) = rows.try_next().await? {
        for column in &table.columns {
            let bytes = canonical(&row, column)?;
            // The length before each value keeps two different rows from giving the same bytes. Absent differs from
            // empty.
            let length = bytes.as_ref().map_or(u64::MAX, |bytes| bytes.len() as u64);
            hasher.update(length.to_be_bytes());
            hasher.update(bytes.unwrap_or_default());
        }
        count += 1;
    }
    Ok(Digest {
        rows: count,
        sha256: hex(&hasher.finalize()),
    })
}

/// A value as bytes that do not depend on the database.
fn canonical(row: &Row, column: &Column) -> Result<Option<Vec<u8>>> {
    let name = column.name.as_str();
    Ok(match column.kind {
        Kind::Bool => row.get::<Option<bool>>(name)?.map(|v| vec![u8::from(v)]),
        Kind::Bytes => row.get(name)?,
        Kind::Id => row
            .get::<Option<Uuid>>(name)?
            .map(|v| v.as_bytes().to_vec()),
        Kind::Int => row
            .get::<Option<i64>>(name)?
            .map(|v| v.to_be_bytes().to_vec()),
        Kind::Text => row.get::<Option<String>>(name)?.map(String::into_bytes),
    })
}
