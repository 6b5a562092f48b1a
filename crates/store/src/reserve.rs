//! Reserved space inside SQLite's own files, so that the server can write when the disk is full.
//!
//! A spare file that the server removes when the disk is full would help the first writer, which is the program that
//! filled the disk. So the reserve is in the database file, as free pages, and in SQLite's log, which SQLite overwrites
//! from its beginning. No other program can take it. On PostgreSQL all of this does nothing.

use crate::error::Result;
use crate::sql::{Conn, either};
use crate::store::{Engine, Store};

/// SQLite restarts its log at this size: its own limit of 1000 pages, plus one transaction.
const LOG_BYTES: u64 = 8 << 20;
/// The reserve is filled in parts of this size, so that other writers get turns in between.
const PART_BYTES: u64 = 1 << 20;

/// The bytes to write until the reserve is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Missing {
    /// Growth of the database file.
    pub file_bytes: u64,
    /// Growth of the log.
    pub log_bytes: u64,
}

impl Missing {
    pub fn is_nothing(&self) -> bool {
        *self == Missing::default()
    }
}

impl Store {
    /// How much of a reserve of `bytes` is missing. The log is new whenever the database is opened.
    pub async fn missing_reserve(&self, bytes: u64, is_new_log: bool) -> Result<Missing> {
        if self.engine() == Engine::Postgres || bytes == 0 {
            return Ok(Missing::default());
        }
        if is_new_log {
            // An earlier server may have stopped while it filled the reserve.
            self.empty().await?;
        }
        let mut reader = self.read().await?;
        let file_bytes = bytes.saturating_sub(free_bytes(&mut reader).await?);
        Ok(Missing {
            file_bytes,
            log_bytes: if is_new_log { LOG_BYTES } else { 0 },
        })
    }

    /// Writes the missing bytes to disk. If it stops midway, it leaves rows that the next server removes.
    pub async fn fill_reserve(&self, missing: Missing) -> Result<()> {
        if missing.is_nothing() {
            return Ok(());
        }
        // One transaction, because the log grows by the size of one transaction.
        let mut left = missing.file_bytes;
        if missing.log_bytes > 0 {
            self.fill(missing.log_bytes).await?;
            left = left.saturating_sub(missing.log_bytes);
        }
        while left > 0 {
            let part = left.min(PART_BYTES);
            self.fill(part).await?;
            left -= part;
        }
        self.empty().await
    }

    /// SQLite keeps the pages of deleted rows, and uses them before it takes more disk space.
    async fn empty(&self) -> Result<()> {
        let mut tx = self.begin().await?;
        either("DELETE FROM reserve", "SELECT NULL")
            .execute(&mut tx)
            .await?;
        tx.commit().await
    }

    async fn fill(&self, bytes: u64) -> Result<()> {
        let mut tx = self.begin().await?;
        either(
            "INSERT INTO reserve (fill) VALUES (zeroblob($1))",
            "SELECT NULL",
        )
        .bind(bytes)
        .execute(&mut tx)
        .await?;
        tx.commit().await
    }
}

/// Bytes of the free pages in the database file.
async fn free_bytes(conn: &mut Conn) -> Result<u64> {
    let row = either(
        "SELECT freelist_count * page_size AS n FROM pragma_freelist_count, pragma_page_size",
        "SELECT NULL",
    )
    .one(conn)
    .await?;
    row.count("n")
}
