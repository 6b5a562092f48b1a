//! The version and the size of the database.

use crate::error::Result;
use crate::sql::{Conn, either, query};

/// The database's version, and its size in bytes.
pub async fn database(conn: &mut Conn) -> Result<(String, u64)> {
    let row = either(
        "SELECT sqlite_version() AS version, page_count * page_size AS size
         FROM pragma_page_count(), pragma_page_size()",
        "SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS size",
    )
    .one(conn)
    .await?;
    Ok((row.get("version")?, row.count("size")?))
}

/// The number of the last migration.
pub async fn schema_step(conn: &mut Conn) -> Result<i64> {
    let row = query("SELECT max(version) AS step FROM _sqlx_migrations WHERE success")
        .one(conn)
        .await?;
    row.get("step")
}
