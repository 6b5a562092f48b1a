//! The database's live settings that Berth's guarantees depend on, read back rather than assumed.

use crate::error::Result;
use crate::sql::{Conn, Raw, Row, either};
use crate::store::{Engine, Store};

/// One setting: its value, and the value it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    pub is: String,
    pub wanted: &'static str,
    pub good: bool,
}

/// The settings that durability and the claim rule depend on, as the writing connection has them.
pub async fn read(store: &Store) -> Result<Vec<Setting>> {
    let mut tx = store.begin().await?;
    match store.engine() {
        Engine::Sqlite => {
            let journal = pragma(&mut tx, "PRAGMA journal_mode").await?;
            let synchronous = pragma(&mut tx, "PRAGMA synchronous").await?;
            let keys = pragma(&mut tx, "PRAGMA foreign_keys").await?;
            let version = either("SELECT sqlite_version() AS v", "SELECT NULL")
                .one(&mut tx)
                .await?;
            Ok(vec![
                setting("journal_mode", journal, "wal", |is| is == "wal"),
                setting("synchronous", synchronous, "2 (FULL)", |is| is == "2"),
                setting("foreign_keys", keys, "1", |is| is == "1"),
                // `unixepoch('subsec')`, which times the leases, needs this version.
                setting("sqlite_version", text(&version)?, "3.42 or later", |is| {
                    at_least(is, (3, 42))
                }),
            ])
        }
        Engine::Postgres => {
            let mut settings = Vec::new();
            for (name, wanted) in [
                ("fsync", "on"),
                ("synchronous_commit", "on"),
                ("full_page_writes", "on"),
            ] {
                let row = either("SELECT NULL", "SELECT current_setting($1) AS v")
                    .bind(name)
                    .one(&mut tx)
                    .await?;
                // `remote_apply` and the like guarantee more than `on`; only these two guarantee less.
                settings.push(setting(name, text(&row)?, wanted, |is| {
                    is != "off" && is != "local"
                }));
            }
            let row = either(
                "SELECT NULL",
                "SELECT current_setting('server_version') AS v",
            )
            .one(&mut tx)
            .await?;
            settings.push(setting(
                "server_version",
                text(&row)?,
                "14 or later",
                |is| at_least(is, (14, 0)),
            ));
            let row = either(
                "SELECT NULL",
                "SELECT current_setting('transaction_isolation') AS v",
            )
            .one(&mut tx)
            .await?;
            settings.push(setting(
                "transaction_isolation",
                text(&row)?,
                "read committed",
                |is| is == "read committed",
            ));
            Ok(settings)
        }
    }
}

fn text(row: &Row) -> Result<String> {
    row.get("v")
}

fn setting(
    name: &'static str,
    is: String,
    wanted: &'static str,
    good: impl Fn(&str) -> bool,
) -> Setting {
    let good = good(&is);
    Setting {
        name,
        is,
        wanted,
        good,
    }
}

fn at_least(version: &str, wanted: (u32, u32)) -> bool {
    let mut parts = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= wanted
}

/// A pragma's result column has its own name and type, so it is read by position.
async fn pragma(conn: &mut Conn, sql: &'static str) -> Result<String> {
    use sqlx::Row as _;
    Ok(match conn.raw() {
        Raw::Sqlite(conn) => {
            let row = sqlx::query(sql).fetch_one(conn).await?;
            row.try_get::<String, _>(0)
                .or_else(|_| row.try_get::<i64, _>(0).map(|number| number.to_string()))?
        }
        Raw::Postgres(_) => String::new(),
    })
}
