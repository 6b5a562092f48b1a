//! SQLite's side: one writer with group commit, and readers beside it.
//!
//! Transactions take turns on one connection. A finished one releases its savepoint and, if others wait, leaves the
//! commit to the last of them: one flush to disk then makes all of them durable, and only then does any of them
//! report success. When nobody waits, it commits at once, so a lone caller pays for nobody.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::pool::PoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous};
use sqlx::{ConnectOptions, SqliteConnection};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};

use crate::error::{Error, Result};

/// The most transactions that share one commit. Past this the first would wait long for the last.
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
    /// Whether BEGIN was said and COMMIT not yet.
    open: bool,
    /// Whether a turn was dropped half-way; the next one first undoes what it did.
    abandoned: bool,
    /// Those who finished and wait for the commit.
    finished: Vec<oneshot::Sender<bool>>,
}

/// One transaction's time on the writer.
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
            .pragma("cache_size", "-65536")
            .pragma("mmap_size", "268435456")
            .disable_statement_logging();
        let connection = options.connect().await.map_err(|error| {
            Error::Open(format!("cannot open the database `{path}`: {error}. Does its folder exist, and may Berth write there?"))
        })?;
        let readers = PoolOptions::new()
            .max_connections(READERS)
            .min_connections(1)
            .acquire_timeout(Duration::from_secs(10))
            .connect_lazy_with(options.read_only(true));
        let writer = Writer {
            connection,
            open: false,
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

    /// Commits for those who finished, unless someone waits who will do it.
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
        if !self.open {
            sqlx::query("BEGIN IMMEDIATE")
                .execute(&mut self.connection)
                .await?;
            self.open = true;
        }
        // Set before the savepoint exists, so that even a turn dropped during this very statement is cleaned up.
        self.abandoned = true;
        sqlx::query("SAVEPOINT turn")
            .execute(&mut self.connection)
            .await?;
        Ok(())
    }

    async fn clean(&mut self) -> Result<()> {
        if self.abandoned {
            if self.open {
                // The savepoint may be missing if its own statement was cut off; then there is nothing to undo.
                if sqlx::query("ROLLBACK TO turn")
                    .execute(&mut self.connection)
                    .await
                    .is_ok()
                {
                    sqlx::query("RELEASE turn")
                        .execute(&mut self.connection)
                        .await?;
                }
            }
            self.abandoned = false;
        }
        Ok(())
    }

    /// Makes everything finished so far durable, and tells those who wait whether it worked.
    async fn commit(&mut self) {
        if !self.open {
            return;
        }
        let durable = match sqlx::query("COMMIT").execute(&mut self.connection).await {
            Ok(_) => true,
            Err(error) => {
                tracing::error!(error = %error, "SQLite could not commit; {} transactions are refused", self.finished.len());
                sqlx::query("ROLLBACK")
                    .execute(&mut self.connection)
                    .await
                    .ok();
                false
            }
        };
        self.open = false;
        for waiter in self.finished.drain(..) {
            waiter.send(durable).ok();
        }
    }
}

impl Turn {
    fn writer(&mut self) -> &mut Writer {
        match &mut self.writer {
            Some(writer) => writer,
            // Only `commit` takes the writer away, and it consumes the turn.
            None => unreachable!("a turn has its writer until it ends"),
        }
    }

    pub fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.writer().connection
    }

    pub async fn commit(mut self) -> Result<()> {
        let (tell, durable) = oneshot::channel();
        let writer = self.writer();
        sqlx::query("RELEASE turn")
            .execute(&mut writer.connection)
            .await?;
        writer.abandoned = false;
        writer.finished.push(tell);
        let Some(mut writer) = self.writer.take() else {
            return Ok(());
        };
        if self.sqlite.waiting.load(Ordering::SeqCst) == 0 || writer.finished.len() >= BATCH_MAX {
            // In a task of its own: a caller who goes away must not cut a commit in two.
            tokio::spawn(async move { writer.commit().await });
        } else {
            drop(writer);
        }
        match durable.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Open(
                "the disk did not take the change; see the server's log".into(),
            )),
            Err(_) => Err(Error::Open(
                "the server is stopping; nothing was promised".into(),
            )),
        }
    }
}

impl Drop for Turn {
    /// A turn that ends without commit is undone by whoever comes next; this makes sure that someone does.
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            self.sqlite.flush_soon();
        }
    }
}

/// Someone who waits for the writer. Others may have left their commit to them, so giving up is not silent.
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
