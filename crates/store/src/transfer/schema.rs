//! The tables and columns to copy: SQLite's, with the types that PostgreSQL gives them.
//!
//! The SQLite schema decides, since it is the smaller one: PostgreSQL derives its other columns and tables from it.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;

use super::error::{Error, Result};

/// SQLite's own form of the tree (PostgreSQL uses codes), SQLite's space reserve, and the list of migrations.
const NOT_CARRIED: [&str; 3] = ["resource_line", "reserve", "_sqlx_migrations"];

#[derive(Debug)]
pub(super) struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// The primary key's columns, in order. Empty for a table without one.
    pub key: Vec<Column>,
    /// How rows of this table refer to other rows of it, if they do.
    pub itself: Option<SelfReference>,
    refers_to: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub name: String,
    pub kind: Kind,
    /// Whether PostgreSQL numbers this column. Its counter must then be set past the copied numbers.
    pub is_identity: bool,
}

/// The few kinds of values that both databases have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Bytes,
    Id,
    Int,
    Text,
}

/// `column` of a row holds the value of column `to` of its parent row.
#[derive(Debug)]
pub(super) struct SelfReference {
    pub column: String,
    pub to: String,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Bool, Kind::Bytes, Kind::Id, Kind::Int, Kind::Text];

    /// The type's name in PostgreSQL, in statements and in the catalogue.
    pub fn type_name(self) -> &'static str {
        match self {
            Kind::Bool => "boolean",
            Kind::Bytes => "bytea",
            Kind::Id => "uuid",
            Kind::Int => "bigint",
            Kind::Text => "text",
        }
    }
}

/// The tables to copy, each after the tables it refers to.
pub(super) async fn common(
    source: &mut SqliteConnection,
    target: &mut PgConnection,
) -> Result<Vec<Table>> {
    refuse_other_versions(source, target).await?;
    let names: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )
    .fetch_all(&mut *source)
    .await?;
    let mut tables = BTreeMap::new();
    for name in names {
        if !NOT_CARRIED.contains(&name.as_str()) {
            let table = read_table(source, target, &name).await?;
            tables.insert(name, table);
        }
    }
    in_order(tables)
}

async fn refuse_other_versions(
    source: &mut SqliteConnection,
    target: &mut PgConnection,
) -> Result<()> {
    let (source_is, target_is) = (
        sqlite_version(source).await?,
        postgres_version(target).await?,
    );
    if source_is.is_some() && source_is == target_is {
        return Ok(());
    }
    let named = |version: Option<i64>| version.map_or("none".to_owned(), |v| v.to_string());
    Err(Error::Versions {
        source_is: named(source_is),
        target_is: named(target_is),
    })
}

/// The last migration of the source. `None` in a database that is not Berth's.
async fn sqlite_version(source: &mut SqliteConnection) -> Result<Option<i64>> {
    let is_ours: bool = sqlx::query_scalar(
        "SELECT count(*) > 0 FROM sqlite_master WHERE name = '_sqlx_migrations'",
    )
    .fetch_one(&mut *source)
    .await?;
    if !is_ours {
        return Ok(None);
    }
    Ok(
        sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
            .fetch_one(source)
            .await?,
    )
}

async fn postgres_version(target: &mut PgConnection) -> Result<Option<i64>> {
    let is_ours: bool = sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL")
        .fetch_one(&mut *target)
        .await?;
    if !is_ours {
        return Ok(None);
    }
    Ok(
        sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
            .fetch_one(target)
            .await?,
    )
}

async fn read_table(
    source: &mut SqliteConnection,
    target: &mut PgConnection,
    name: &str,
) -> Result<Table> {
    // `pragma_table_info` leaves generated columns out, and so does the copy: each side computes its own.
    let ours: Vec<(String, i64)> =
        sqlx::query_as("SELECT name, pk FROM pragma_table_info($1) ORDER BY cid")
            .bind(name)
            .fetch_all(&mut *source)
            .await?;
    let theirs: Vec<(String, String, bool)> = sqlx::query_as(
        "SELECT column_name::text, data_type::text, is_identity = 'YES' FROM information_schema.columns
         WHERE table_schema = current_schema() AND table_name = $1",
    )
    .bind(name)
    .fetch_all(target)
    .await?;
    let (mut columns, mut key) = (Vec::new(), Vec::new());
    for (column, place_in_key) in ours {
        let Some((_, type_name, is_identity)) = theirs.iter().find(|(name, ..)| *name == column)
        else {
            return Err(Error::Schema(format!(
                "PostgreSQL has no `{name}.{column}`"
            )));
        };
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| kind.type_name() == type_name)
            .ok_or_else(|| {
                Error::Schema(format!(
                    "`{name}.{column}` is {type_name}, which SQLite has not"
                ))
            })?;
        let column = Column {
            name: column,
            kind,
            is_identity: *is_identity,
        };
        if place_in_key > 0 {
            key.push((place_in_key, column.clone()));
        }
        columns.push(column);
    }
    key.sort_by_key(|(place, _)| *place);
    let (refers_to, itself) = read_references(source, name).await?;
    Ok(Table {
        name: name.to_owned(),
        columns,
        key: key.into_iter().map(|(_, column)| column).collect(),
        itself,
        refers_to,
    })
}

async fn read_references(
    source: &mut SqliteConnection,
    name: &str,
) -> Result<(BTreeSet<String>, Option<SelfReference>)> {
    let references: Vec<(String, String, String)> = sqlx::query_as(
        r#"SELECT "table", "from", coalesce("to", '') FROM pragma_foreign_key_list($1)"#,
    )
    .bind(name)
    .fetch_all(source)
    .await?;
    let (mut refers_to, mut itself) = (BTreeSet::new(), None);
    for (table, column, to) in references {
        if table != name {
            refers_to.insert(table);
        } else if itself.replace(SelfReference { column, to }).is_some() {
            // The order of the rows would no longer depend on one depth.
            return Err(Error::Schema(format!(
                "`{name}` refers to itself in two ways"
            )));
        }
    }
    Ok((refers_to, itself))
}

/// Orders each table after the tables it refers to; among equals by name, so that two moves do the same.
fn in_order(mut waiting: BTreeMap<String, Table>) -> Result<Vec<Table>> {
    let mut ordered = Vec::new();
    while !waiting.is_empty() {
        let ready = waiting
            .iter()
            .find(|(_, table)| {
                !table
                    .refers_to
                    .iter()
                    .any(|other| waiting.contains_key(other))
            })
            .map(|(name, _)| name.clone());
        let Some(table) = ready.and_then(|name| waiting.remove(&name)) else {
            let names: Vec<String> = waiting.into_keys().collect();
            return Err(Error::Schema(format!(
                "these tables refer to each other in a circle: {}",
                names.join(", ")
            )));
        };
        ordered.push(table);
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, refers_to: &[&str]) -> (String, Table) {
        let table = Table {
            name: name.to_owned(),
            columns: Vec::new(),
            key: Vec::new(),
            itself: None,
            refers_to: refers_to.iter().map(|&other| other.to_owned()).collect(),
        };
        (name.to_owned(), table)
    }

    #[test]
    fn what_is_referred_to_comes_first() {
        let tables = [
            table("claim", &["resource", "site"]),
            table("person", &[]),
            table("resource", &["site"]),
            table("site", &[]),
        ];
        let ordered = in_order(tables.into()).unwrap();
        let names: Vec<&str> = ordered.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["person", "site", "resource", "claim"]);
    }

    #[test]
    fn a_circle_is_refused() {
        let tables = [table("a", &["b"]), table("b", &["a"]), table("c", &[])];
        let error = in_order(tables.into()).unwrap_err().to_string();
        assert!(error.ends_with("a, b"), "{error}");
    }
}
