//! The only statements of this crate that are built at run time.
//!
//! Everywhere else a statement is a literal, so that no value can become part of one. Here the tables are not known at
//! compile time, since a later migration adds more. The inserted parts are only names, read from the two schemas that
//! Berth's own migrations made, and quoted. Values are bound, as everywhere. That is what `AssertSqlSafe` asserts.

use sqlx::AssertSqlSafe;

use super::schema::{Column, Kind, Table};
use super::tree::Extra;

pub(super) type Sql = AssertSqlSafe<String>;

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn joined(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join(", ")
}

/// Locks all the tables at once against other writers.
pub(super) fn lock(tables: &[Table]) -> Sql {
    let names = joined(tables.iter().map(|table| quoted(&table.name)));
    AssertSqlSafe(format!("LOCK TABLE {names} IN EXCLUSIVE MODE"))
}

impl Table {
    pub fn quoted_name(&self) -> String {
        quoted(&self.name)
    }

    pub fn count(&self) -> Sql {
        AssertSqlSafe(format!("SELECT count(*) FROM {}", quoted(&self.name)))
    }

    pub fn clear(&self) -> Sql {
        AssertSqlSafe(format!("DELETE FROM {}", quoted(&self.name)))
    }

    pub fn analyse(&self) -> Sql {
        AssertSqlSafe(format!("ANALYZE {}", quoted(&self.name)))
    }

    /// SQLite's rows with `depth` ancestors; all rows of a table that does not refer to itself.
    pub fn rows_at(&self, depth: usize) -> Sql {
        let columns = joined(self.columns.iter().map(|column| {
            let name = quoted(&column.name);
            format!("r0.{name} AS {name}")
        }));
        let table = quoted(&self.name);
        let mut sql = format!("SELECT {columns} FROM {table} AS r0");
        if let Some(itself) = &self.itself {
            let (column, to) = (quoted(&itself.column), quoted(&itself.to));
            for above in 1..=depth {
                // CROSS keeps SQLite from reversing the join: upwards is by key, downwards may have no index.
                let below = above - 1;
                sql += &format!(
                    " CROSS JOIN {table} AS r{above} ON r{above}.{to} = r{below}.{column}"
                );
            }
            sql += &format!(" WHERE r{depth}.{column} IS NULL");
        }
        AssertSqlSafe(sql)
    }

    /// PostgreSQL's insert of many rows at once: one array per column.
    pub fn insert(&self, extras: &[Extra]) -> Sql {
        let own = self
            .columns
            .iter()
            .map(|column| (column.name.as_str(), column.kind, ""));
        let extra = extras
            .iter()
            .map(|extra| (extra.column, Kind::Text, extra.cast));
        let columns: Vec<_> = own.chain(extra).collect();
        let names = joined(columns.iter().map(|(name, ..)| quoted(name)));
        let arrays = joined(
            (1..)
                .zip(&columns)
                .map(|(n, (_, kind, _))| format!("${n}::{}[]", kind.type_name())),
        );
        let values = joined(
            columns
                .iter()
                .map(|(name, _, cast)| format!("v.{}{cast}", quoted(name))),
        );
        AssertSqlSafe(format!(
            "INSERT INTO {} ({names}) SELECT {values} FROM unnest({arrays}) AS v ({names})",
            quoted(&self.name)
        ))
    }

    /// All rows in SQLite's order: by key, or by all columns where there is no key.
    pub fn sqlite_in_order(&self) -> Sql {
        self.in_order(|column| quoted(&column.name))
    }

    /// All rows of PostgreSQL in SQLite's order.
    pub fn postgres_in_order(&self) -> Sql {
        self.in_order(|column| {
            let name = quoted(&column.name);
            // SQLite compares bytes, whatever the collation of the target, and it puts NULL first.
            let collation = match column.kind {
                Kind::Text => " COLLATE \"C\"",
                _ => "",
            };
            let nulls = if self.key.is_empty() {
                " NULLS FIRST"
            } else {
                ""
            };
            format!("{name}{collation}{nulls}")
        })
    }

    fn in_order(&self, term: impl Fn(&Column) -> String) -> Sql {
        let columns = joined(self.columns.iter().map(|column| quoted(&column.name)));
        let order = if self.key.is_empty() {
            &self.columns
        } else {
            &self.key
        };
        let order = joined(order.iter().map(term));
        AssertSqlSafe(format!(
            "SELECT {columns} FROM {} ORDER BY {order}",
            quoted(&self.name)
        ))
    }

    /// Sets PostgreSQL's counter past every copied number, and past `$3`, the last one ever used.
    pub fn set_counter(&self, column: &Column) -> Sql {
        AssertSqlSafe(format!(
            "SELECT setval(pg_get_serial_sequence($1, $2), greatest(max({}), $3)) FROM {}",
            quoted(&column.name),
            quoted(&self.name)
        ))
    }
}
