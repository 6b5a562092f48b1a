//! Leases: of several servers on one database, one at a time runs each controller.
//!
//! The database's own clock decides, so the servers need not agree on the time. Each new holder gets a higher fence. A
//! controller's transaction checks its fence first, so a server that was paused past its lease changes nothing.

use berth_model::Name;
use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::sql::{Conn, either, query};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub name: Name,
    pub holder: String,
    pub fence: u64,
}

/// Takes the lease, or renews it if this holder has it. `None` if another server holds it.
pub async fn acquire(
    conn: &mut Conn,
    name: &Name,
    holder: &str,
    ttl_s: u32,
) -> Result<Option<Lease>> {
    let row = either(
        "INSERT INTO lease (name, holder, fence, until)
         VALUES ($1, $2, 1, CAST(unixepoch('subsec') * 1000000 AS INTEGER) + $3)
         ON CONFLICT (name) DO UPDATE SET
             fence = CASE WHEN lease.holder = excluded.holder THEN lease.fence ELSE lease.fence + 1 END,
             holder = excluded.holder, until = excluded.until
         WHERE lease.holder = excluded.holder OR lease.until < CAST(unixepoch('subsec') * 1000000 AS INTEGER)
         RETURNING fence",
        "INSERT INTO lease (name, holder, fence, until)
         VALUES ($1, $2, 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + $3)
         ON CONFLICT (name) DO UPDATE SET
             fence = CASE WHEN lease.holder = excluded.holder THEN lease.fence ELSE lease.fence + 1 END,
             holder = excluded.holder, until = excluded.until
         WHERE lease.holder = excluded.holder OR lease.until < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
         RETURNING fence",
    )
    .bind(name.as_str())
    .bind(holder)
    .bind(i64::from(ttl_s) * 1_000_000)
    .optional(conn)
    .await?;
    row.map(|row| {
        Ok(Lease {
            name: name.clone(),
            holder: holder.to_owned(),
            fence: row.count("fence")?,
        })
    })
    .transpose()
}

/// Checks, inside the transaction that is about to act, that no other server has taken the lease.
pub async fn check(conn: &mut Conn, lease: &Lease) -> Result<()> {
    let row = either(
        "SELECT fence FROM lease WHERE name = $1 AND holder = $2 AND fence = $3",
        "SELECT fence FROM lease WHERE name = $1 AND holder = $2 AND fence = $3 FOR SHARE",
    )
    .bind(lease.name.as_str())
    .bind(lease.holder.as_str())
    .bind(lease.fence)
    .optional(conn)
    .await?;
    row.map(|_| ()).ok_or(Error::LeaseLost)
}

/// Releases the lease, so that the next server need not wait for it to expire.
pub async fn give_back(conn: &mut Conn, lease: &Lease) -> Result<()> {
    query("UPDATE lease SET until = 0 WHERE name = $1 AND holder = $2 AND fence = $3")
        .bind(lease.name.as_str())
        .bind(lease.holder.as_str())
        .bind(lease.fence)
        .execute(conn)
        .await?;
    Ok(())
}

/// The last state of a lease. An expired lease has no holder until a server takes it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub name: String,
    pub holder: String,
    pub fence: u64,
    /// By the database's clock. `None` once it was released.
    pub until: Option<Timestamp>,
}

/// Every lease, by name, expired and released ones included.
pub async fn all(conn: &mut Conn) -> Result<Vec<Held>> {
    query("SELECT name, holder, fence, nullif(until, 0) AS until FROM lease ORDER BY name")
        .map(conn, |row| {
            Ok(Held {
                name: row.get("name")?,
                holder: row.get("holder")?,
                fence: row.count("fence")?,
                until: row.optional_moment("until")?,
            })
        })
        .await
}
