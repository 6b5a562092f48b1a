//! SQLite's backend: one writer with group commit, and concurrent readers.
//!
//! Transactions take turns on one connection. A finished one releases its savepoint and, if others wait, leaves the
//! commit to the last of them. One flush to disk then makes all of them durable, and only then does any of them report
//! success. When nobody waits, the transaction commits at once, so a lone caller has no delay.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous};
use sqlx::{ConnectOptions, SqliteConnection};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

use crate::error::{Error, Result};

/// The most transactions that share one commit. With more, the first would wait long for the last.
const BATCH_MAX: usize = 64;
const READERS: u32 = 8;

#[derive(Debug, Clone)]
pub(crate) struct Sqlite {
    pub readers: SqlitePool,
    writer: Arc<Mutex<Writer>>,
    waiting: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Writer {
    connection: SqliteConnection,
    shared: Shared,
    /// Whether a turn was dropped midway; the next one first undoes its changes.
    abandoned: bool,
    /// Finished turns that wait for the commit.
    finished: Vec<oneshot::Sender<bool>>,
}

/// The state of the transaction that the turns share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shared {
    Closed,
    /// BEGIN was sent, but its caller may have been dropped before the answer.
    Opening,
    Open,
}

/// One transaction's turn on the writer.
#[derive(Debug)]
pub(crate) struct Turn {
    writer: Option<OwnedMutexGuard<Writer>>,
    sqlite: Sqlite,
}

impl Sqlite {
    pub async fn open(path: &str) -> Result<Self> {
        let options = SqliteConnectOptions::from_str(&format!("sqlite:{path}"))
            .map_err(|error| {
                Error::Open(format!("`{path}` is not a path for a database: {error}"))
            })?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(10))
            .statement_cache_capacity(500)
            // Rows pass from SQLite's own thread in batches of this size; a calendar has thousands.
            .row_buffer_size(2000)
            .pragma("cache_size", "-65536")
            .pragma("mmap_size", "8589934592")
            .disable_statement_logging();
        let connection = options.connect().await.map_err(|error| {
            Error::Open(format!("cannot open the database `{path}`: {error}. Does its folder exist, and may Berth write there?"))
        })?;
        let readers = PoolOptions::new()
            .max_connections(READERS)
            .min_connections(1)
            .acquire_timeout(Duration::from_secs(10))
            .test_before_acquire(false)
            .connect_lazy_with(options.read_only(true));
        let writer = Writer {
            connection,
            shared: Shared::Closed,
            abandoned: false,
            finished: Vec::new(),
        };
        Ok(Self {
            readers,
            writer: Arc::new(Mutex::new(writer)),
            waiting: Arc::default(),
        })
    }

    pub async fn turn(&self) -> Result<Turn> {
        let mut place = Place {
            sqlite: self,
            left: false,
        };
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let writer = self.writer.clone().lock_owned().await;
        place.left = true;
        drop(place);
        let mut turn = Turn {
            writer: Some(writer),
            sqlite: self.clone(),
        };
        turn.writer().start().await?;
        Ok(turn)
    }

    /// The bare connection, outside any transaction: for migrations and settings.
    pub async fn writer_connection(
        &self,
    ) -> Result<impl std::ops::DerefMut<Target = SqliteConnection>> {
        let mut writer = self.writer.clone().lock_owned().await;
        writer.clean().await?;
        writer.commit().await;
        Ok(OwnedMutexGuard::map(writer, |writer| {
            &mut writer.connection
        }))
    }

    /// Commits the finished turns, unless a waiting turn will do it.
    async fn flush(&self) {
        let mut writer = self.writer.clone().lock_owned().await;
        if writer.clean().await.is_ok() && self.waiting.load(Ordering::SeqCst) == 0 {
            writer.commit().await;
        }
    }

    fn flush_soon(&self) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let sqlite = self.clone();
            runtime.spawn(async move { sqlite.flush().await });
        }
    }

    pub async fn close(&self) {
        self.flush().await;
        self.readers.close().await;
    }
}

impl Writer {
    async fn start(&mut self) -> Result<()> {
        self.clean().await?;
        if self.shared != Shared::Open {
            self.shared = Shared::Opening;
            self.begin().await?;
            self.shared = Shared::Open;
        }
        // Set before the savepoint exists, so that even a turn dropped during this very statement is cleaned up.
        self.abandoned = true;
        self.say("SAVEPOINT turn").await?;
        Ok(())
    }

    async fn say(&mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        sqlx::query(statement).execute(&mut self.connection).await?;
        Ok(())
    }

    /// Opens the shared transaction. Returns whether there was none. SQLite runs a statement even if its caller was
    /// dropped, so only SQLite knows the state, and it refuses a BEGIN inside another.
    async fn begin(&mut self) -> Result<bool> {
        match self.say("BEGIN IMMEDIATE").await {
            Ok(()) => Ok(true),
            // "Already in a transaction" has no code of its own, unlike all other errors of BEGIN.
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("1") => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Undoes the changes of a turn that was dropped midway.
    async fn clean(&mut self) -> Result<()> {
        if !self.abandoned {
            return Ok(());
        }
        if self.say("ROLLBACK TO turn").await.is_ok() {
            self.say("RELEASE turn").await?;
        } else if self.begin().await? {
            // SQLite undid the whole transaction, not only the savepoint, as it does when the disk is full.
            self.tell(false);
        }
        self.abandoned = false;
        Ok(())
    }

    /// Makes all finished turns durable, and notifies them whether it worked.
    async fn commit(&mut self) {
        let durable = match self.shared {
            Shared::Closed => return,
            // No turn can have finished in a transaction without an answer to BEGIN.
            Shared::Opening => {
                self.say("ROLLBACK").await.ok();
                false
            }
            Shared::Open => match self.say("COMMIT").await {
                Ok(()) => true,
                Err(error) => {
                    tracing::error!(error = %error, "SQLite could not commit; {} transactions are refused", self.finished.len());
                    self.say("ROLLBACK").await.ok();
                    false
                }
            },
        };
        self.shared = Shared::Closed;
        self.tell(durable);
    }

    fn tell(&mut self, durable: bool) {
        for waiter in self.finished.drain(..) {
            waiter.send(durable).ok();
        }
    }
}

impl Turn {
    fn writer(&mut self) -> &mut Writer {
        match &mut self.writer {
            Some(writer) => writer,
            // Only the end of a turn takes the writer away, and it consumes the turn.
            None => unreachable!("a turn has its writer until it ends"),
        }
    }

    pub fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.writer().connection
    }

    pub async fn commit(mut self) -> Result<()> {
        let writer = self.writer();
        writer.say("RELEASE turn").await?;
        writer.abandoned = false;
        if self.share_the_commit().await {
            Ok(())
        } else {
            Err(Error::Open(
                "the disk did not take the change; see the server's log".into(),
            ))
        }
    }

    /// Undoes the turn, and returns once everything it read is durable. A turn reads changes of finished turns that are
    /// not committed yet. A refusal that depends on them must not reach its caller before they are durable.
    pub async fn withdraw(mut self) -> Result<()> {
        let writer = self.writer();
        writer.clean().await?;
        if writer.finished.is_empty() || self.share_the_commit().await {
            Ok(())
        } else {
            Err(Error::Retry)
        }
    }

    /// Waits for the commit of all finished turns, or starts it if no other turn will. Returns whether it worked. If
    /// the server stops in between, it has reported nothing as done.
    async fn share_the_commit(mut self) -> bool {
        let (tell, durable) = oneshot::channel();
        let Some(mut writer) = self.writer.take() else {
            return false;
        };
        writer.finished.push(tell);
        if self.sqlite.waiting.load(Ordering::SeqCst) == 0 || writer.finished.len() >= BATCH_MAX {
            // In a task of its own: a caller that is dropped must not interrupt a commit.
            tokio::spawn(async move { writer.commit().await });
        } else {
            drop(writer);
        }
        durable.await.unwrap_or(false)
    }
}

impl Drop for Turn {
    /// The next turn undoes a turn that ends without commit. This starts a flush, so that it happens even if no other
    /// turn comes.
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            self.sqlite.flush_soon();
        }
    }
}

/// A turn that waits for the writer. Others may have left their commit to it, so it starts a flush if it is dropped.
struct Place<'a> {
    sqlite: &'a Sqlite,
    left: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.sqlite.waiting.fetch_sub(1, Ordering::SeqCst);
        if !self.left {
            self.sqlite.flush_soon();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database with a table, in a file that cannot grow any more.
    async fn full(directory: &tempfile::TempDir) -> Sqlite {
        let path = directory.path().join("full.db").display().to_string();
        let sqlite = Sqlite::open(&path).await.unwrap();
        let mut bare = sqlite.writer_connection().await.unwrap();
        for statement in [
            "CREATE TABLE t (x BLOB)",
            "INSERT INTO t VALUES (zeroblob(100))",
            "PRAGMA max_page_count = 2",
        ] {
            sqlx::query(statement).execute(&mut *bare).await.unwrap();
        }
        drop(bare);
        sqlite
    }

    async fn insert(turn: &mut Turn, bytes: i64) -> Result<()> {
        let insert = sqlx::query("INSERT INTO t VALUES (zeroblob($1))").bind(bytes);
        insert.execute(turn.connection()).await?;
        Ok(())
    }

    async fn count(sqlite: &Sqlite) -> i64 {
        let count = sqlx::query_scalar("SELECT count(*) FROM t");
        count.fetch_one(&sqlite.readers).await.unwrap()
    }

    /// When the disk is full, SQLite undoes the whole transaction, not only the statement that found no room. Every
    /// turn that shares it must get an error, and the next turn must get a correct result.
    #[tokio::test]
    async fn a_full_disk_is_told_to_everyone_it_concerns() {
        let directory = tempfile::TempDir::new().unwrap();
        let sqlite = full(&directory).await;

        let write = |bytes| {
            let sqlite = sqlite.clone();
            async move {
                let mut turn = sqlite.turn().await?;
                insert(&mut turn, bytes).await?;
                turn.commit().await
            }
        };
        let mut first = sqlite.turn().await.unwrap();
        insert(&mut first, 100).await.unwrap();
        let (second, third) = (tokio::spawn(write(100_000)), tokio::spawn(write(100)));
        while sqlite.waiting.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        assert!(first.commit().await.is_err(), "it went with the second");
        assert!(second.await.unwrap().is_err(), "there is no room");
        third.await.unwrap().unwrap();
        assert_eq!(count(&sqlite).await, 2, "what was there, and the third");
    }
}
