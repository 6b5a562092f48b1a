//! The store: one database, used through readers and transactions.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Executor};

use crate::error::{Error, Result};
use crate::migrate;
use crate::sql::{Conn, Inner};
use crate::sqlite::Sqlite;

/// How often a transaction is tried if it conflicts with others, before the caller gets the error.
const ATTEMPTS_MAX: u32 = 8;

/// Settings of every PostgreSQL session, whatever the server's own defaults. The claim rule's triggers need this
/// isolation. Each statement gets one generic plan: Berth's statements look rows up by key or by range of an index, so
/// a plan for particular values would be the same, and making it costs more than running it.
const SESSION: &str = "SET default_transaction_isolation = 'read committed'; SET plan_cache_mode = force_generic_plan";

/// A connection unused for longer than this is tested before use.
const RESTED: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) backend: Backend,
}

#[derive(Debug, Clone)]
pub(crate) enum Backend {
    Sqlite(Sqlite),
    Postgres(PgPool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

/// A read-only connection.
#[derive(Debug)]
pub struct Reader(Conn);

/// A transaction. If it is dropped without [`Tx::commit`], it is undone.
#[derive(Debug)]
pub struct Tx(Conn);

impl Store {
    /// Opens the database named by `url` (`sqlite:PATH` or `postgres://…`) and migrates its schema.
    pub async fn open(url: &str, connections_max: u32) -> Result<Self> {
        let store = Self::connect(url, connections_max).await?;
        migrate::run(&store).await?;
        Ok(store)
    }

    /// Opens the database without migrating it, to inspect its state.
    pub async fn connect(url: &str, connections_max: u32) -> Result<Self> {
        let backend = if let Some(path) = url.strip_prefix("sqlite:") {
            Backend::Sqlite(Sqlite::open(path).await?)
        } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Backend::Postgres(open_postgres(url, connections_max).await?)
        } else {
            return Err(Error::Open(
                "a database is `sqlite:PATH` or `postgres://USER@HOST/NAME`".into(),
            ));
        };
        Ok(Self { backend })
    }

    pub fn engine(&self) -> Engine {
        match &self.backend {
            Backend::Sqlite(_) => Engine::Sqlite,
            Backend::Postgres(_) => Engine::Postgres,
        }
    }

    pub async fn read(&self) -> Result<Reader> {
        Ok(Reader(Conn(match &self.backend {
            Backend::Sqlite(sqlite) => Inner::SqliteRead(sqlite.readers.acquire().await?),
            Backend::Postgres(pool) => Inner::PostgresRead(pool.acquire().await?),
        })))
    }

    pub async fn begin(&self) -> Result<Tx> {
        Ok(Tx(Conn(match &self.backend {
            Backend::Sqlite(sqlite) => Inner::SqliteWrite(sqlite.turn().await?),
            Backend::Postgres(pool) => Inner::PostgresWrite(pool.begin().await?),
        })))
    }

    /// Whether to retry a transaction that failed with `error`, after `attempt` earlier failures. Waits a little,
    /// longer each time, so that two conflicting transactions do not conflict again.
    pub async fn should_retry(&self, error: &Error, attempt: u32) -> bool {
        let again = matches!(error, Error::Retry) && attempt + 1 < ATTEMPTS_MAX;
        if again {
            tokio::time::sleep(Duration::from_millis(1 << attempt)).await;
        }
        again
    }

    pub async fn close(&self) {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.close().await,
            Backend::Postgres(pool) => pool.close().await,
        }
    }
}

async fn open_postgres(url: &str, connections_max: u32) -> Result<PgPool> {
    let options: PgConnectOptions = url.parse().map_err(|_| {
        Error::Open(
            "the PostgreSQL address is malformed; write postgres://USER:PASSWORD@HOST:5432/NAME"
                .into(),
        )
    })?;
    let options = options
        .application_name("berth")
        .statement_cache_capacity(500)
        .disable_statement_logging();
    PgPoolOptions::new()
        .max_connections(connections_max)
        .acquire_timeout(Duration::from_secs(10))
        .after_connect(|conn, _| {
            Box::pin(async move {
                conn.execute(SESSION).await?;
                Ok(())
            })
        })
        // A connection in constant use proves that it works; only an idle one is tested.
        .test_before_acquire(false)
        .before_acquire(|conn, known| {
            Box::pin(async move {
                if known.idle_for >= RESTED {
                    conn.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_with(options)
        .await
        .map_err(|error| {
            Error::Open(format!(
                "cannot reach PostgreSQL: {error}. Is it running, and may this user connect?"
            ))
        })
}

impl Tx {
    pub async fn commit(self) -> Result<()> {
        match self.0.0 {
            Inner::SqliteWrite(turn) => turn.commit().await,
            Inner::PostgresWrite(tx) => Ok(tx.commit().await?),
            Inner::SqliteRead(_) | Inner::PostgresRead(_) => Ok(()),
        }
    }

    /// Undoes the transaction, and returns once everything it read is committed and durable. Callers that report a
    /// refusal need this. Dropping the transaction undoes it too, but does not wait.
    pub async fn withdraw(self) -> Result<()> {
        match self.0.0 {
            Inner::SqliteWrite(turn) => turn.withdraw().await,
            // It read only committed data.
            Inner::PostgresWrite(_) | Inner::SqliteRead(_) | Inner::PostgresRead(_) => Ok(()),
        }
    }
}

impl Deref for Tx {
    type Target = Conn;
    fn deref(&self) -> &Conn {
        &self.0
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.0
    }
}

impl Deref for Reader {
    type Target = Conn;
    fn deref(&self) -> &Conn {
        &self.0
    }
}

impl DerefMut for Reader {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.0
    }
}
