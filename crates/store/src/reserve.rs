//! Space inside SQLite's own files, so that the server can write when the disk is full.
//!
//! A file beside the database that is removed when the disk is full helps whoever writes first, which is the program that
//! filled the disk. So the space is taken into the database's file, as pages that hold nothing, and into its log, which
//! SQLite writes again from its beginning. Nobody else can have it. On PostgreSQL all of this does nothing.

use crate::error::Result;
use crate::sql::{Conn, either};
use crate::store::{Engine, Store};

/// The log grows to this size before its beginning is written again: SQLite's own limit of 1000 pages, and a transaction.
const LOG_BYTES: u64 = 8 << 20;
/// Others write between two parts of this size.
const PART_BYTES: u64 = 1 << 20;

/// What has to be written so that the reserve is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Missing {
    /// By how much the database's file has to grow.
    pub file_bytes: u64,
    /// By how much the log may grow.
    pub log_bytes: u64,
}

impl Missing {
    pub fn is_nothing(&self) -> bool {
        *self == Missing::default()
    }
}

impl Store {
    /// What is missing of a reserve of so many bytes. The log is new whenever the database is opened.
    pub async fn missing_reserve(&self, bytes: u64, is_new_log: bool) -> Result<Missing> {
        if self.engine() == Engine::Postgres || bytes == 0 {
            return Ok(Missing::default());
        }
        if is_new_log {
            // A server before this one may have been cut off while it filled.
            self.empty().await?;
        }
        let mut reader = self.read().await?;
        let file_bytes = bytes.saturating_sub(free_bytes(&mut reader).await?);
        Ok(Missing {
            file_bytes,
            log_bytes: if is_new_log { LOG_BYTES } else { 0 },
        })
    }

    /// Takes what is missing from the disk. Cut off anywhere, it leaves rows that the next server removes.
    pub async fn fill_reserve(&self, missing: Missing) -> Result<()> {
        if missing.is_nothing() {
            return Ok(());
        }
        // One transaction, for the log grows by what is written at once.
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

    /// SQLite keeps the pages of what is deleted, and uses them before it asks the disk for more.
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

/// The space of the pages in the database's file that hold nothing.
async fn free_bytes(conn: &mut Conn) -> Result<u64> {
    let row = either(
        "SELECT freelist_count * page_size AS n FROM pragma_freelist_count, pragma_page_size",
        "SELECT NULL",
    )
    .one(conn)
    .await?;
    row.count("n")
}
