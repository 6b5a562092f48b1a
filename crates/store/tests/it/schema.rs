//! Both databases have the same tables and columns, but for the few that carry the claim rule on one of them.

use std::collections::BTreeSet;

use sqlx::{Connection, PgConnection, SqliteConnection};

use crate::support::Home;

/// How PostgreSQL keeps the tree and the rule: codes, number lines, ranges.
const ONLY_ON_POSTGRES: &[(&str, &str)] = &[
    ("claim", "during"),
    ("claim", "holds"),
    ("claim", "lane"),
    ("claim", "nr"),
    ("resource", "next_branch"),
    ("resource", "parent_subtree"),
    ("resource", "subtree"),
    ("site", "next_branch"),
    ("site", "number"),
];

/// What SQLite keeps free in its own file; how it keeps the tree, every pair of a resource and one above it.
const ONLY_ON_SQLITE: &[(&str, &str)] = &[
    ("reserve", "fill"),
    ("resource_line", "above"),
    ("resource_line", "below"),
];

type Columns = BTreeSet<(String, String)>;

fn only_on_the_first(first: &Columns, second: &Columns) -> Vec<(String, String)> {
    first.difference(second).cloned().collect()
}

fn named(columns: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(table, column): &(&str, &str)| (table.to_string(), column.to_string());
    columns.iter().map(owned).collect()
}

async fn of_sqlite() -> Columns {
    let home = Home::sqlite().await;
    let mut conn = SqliteConnection::connect(&home.url)
        .await
        .expect("a connection");
    // The extended form, because the plain one leaves out generated columns.
    let columns: Vec<(String, String)> = sqlx::query_as(
        "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c
         WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND t.name <> '_sqlx_migrations'",
    )
    .fetch_all(&mut conn)
    .await
    .expect("columns");
    columns.into_iter().collect()
}

async fn of_postgres() -> Columns {
    let home = Home::postgres().await;
    let mut conn = PgConnection::connect(&home.url)
        .await
        .expect("a connection");
    let columns: Vec<(String, String)> = sqlx::query_as(
        "SELECT table_name::text, column_name::text FROM information_schema.columns
         WHERE table_schema = 'public' AND table_name <> '_sqlx_migrations'",
    )
    .fetch_all(&mut conn)
    .await
    .expect("columns");
    columns.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_databases_have_the_same_tables_and_columns() {
    let (sqlite, postgres) = (of_sqlite().await, of_postgres().await);
    assert!(sqlite.len() > 100, "found only {} columns", sqlite.len());
    assert_eq!(
        only_on_the_first(&postgres, &sqlite),
        named(ONLY_ON_POSTGRES)
    );
    assert_eq!(only_on_the_first(&sqlite, &postgres), named(ONLY_ON_SQLITE));
}
