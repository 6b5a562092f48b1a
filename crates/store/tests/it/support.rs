//! What the store's tests share: a database of its own for each test, on either engine, and a lab to claim things in.
//!
//! A test body is written once and takes a [`Home`]; [`on_both`] makes two tests of it, so that a failure says which
//! database it happened on.

pub mod definition;
pub mod lab;
pub mod random;

use std::sync::atomic::{AtomicU64, Ordering};

use berth_store::{Conn, Engine, Error, Reader, Refused, Result, Store};
use berth_testkit::postgres::Database;
use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use tempfile::TempDir;
use uuid::Uuid;

/// Enough for the tests that write from many tasks at once.
const CONNECTIONS_MAX: u32 = 40;

/// A store in a database of its own, gone with this value.
pub struct Home {
    pub store: Store,
    pub url: String,
    _place: Place,
}

/// Where the database is; kept only so that it lasts as long as the test.
enum Place {
    Directory(#[expect(dead_code, reason = "held for its drop")] TempDir),
    Database(#[expect(dead_code, reason = "held for its drop")] Database),
}

impl Home {
    pub async fn sqlite() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let url = format!("sqlite:{}/berth.db", directory.path().display());
        Self::at(url, Place::Directory(directory)).await
    }

    pub async fn postgres() -> Self {
        let database = Database::fresh().await;
        Self::at(database.url.clone(), Place::Database(database)).await
    }

    async fn at(url: String, place: Place) -> Self {
        let store = Store::open(&url, CONNECTIONS_MAX)
            .await
            .expect("the store opens");
        Self {
            store,
            url,
            _place: place,
        }
    }

    pub async fn read(&self) -> Reader {
        self.store.read().await.expect("a connection to read")
    }

    /// Runs SQL beside the store, on a connection of its own: for what no function of the store would ever do.
    pub async fn raw(&self, sql: &str) -> Result<u64> {
        let sql = AssertSqlSafe(sql.to_owned());
        Ok(match self.store.engine() {
            Engine::Sqlite => {
                let mut conn = SqliteConnection::connect(&self.url).await?;
                let done = sqlx::raw_sql(sql).execute(&mut conn).await;
                conn.close().await?;
                done?.rows_affected()
            }
            Engine::Postgres => {
                let mut conn = PgConnection::connect(&self.url).await?;
                let done = sqlx::raw_sql(sql).execute(&mut conn).await;
                conn.close().await?;
                done?.rows_affected()
            }
        })
    }
}

/// Whether, on this PostgreSQL, someone waits for a lock that someone else holds.
pub async fn someone_waits(home: &Home) -> bool {
    let mut conn = PgConnection::connect(&home.url).await.expect("an onlooker");
    sqlx::query_scalar(
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    )
    .fetch_one(&mut conn)
    .await
    .expect("an answer")
}

/// Makes of each named `async fn test(home: &Home)` one test on SQLite and one on PostgreSQL.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test(&crate::support::Home::sqlite().await).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test(&crate::support::Home::postgres().await).await;
            })*
        }
    };
}
pub(crate) use on_both;

/// Runs `body` in one transaction, which stands if it succeeds and never happened if it does not.
pub async fn transact<T>(
    store: &Store,
    body: impl AsyncFnOnce(&mut Conn) -> Result<T>,
) -> Result<T> {
    let mut tx = store.begin().await?;
    let value = body(&mut tx).await?;
    tx.commit().await?;
    Ok(value)
}

/// What the database refused it for; anything but an answer or a refusal fails the test.
#[track_caller]
pub fn refusal<T>(result: Result<T>) -> Option<Refused> {
    match result {
        Ok(_) => None,
        Err(Error::Refused(refused)) => Some(refused),
        Err(error) => panic!("neither done nor refused: {error:?}"),
    }
}

/// An id that no other call in this process gives, later ones sorting after earlier ones.
pub fn fresh_id() -> Uuid {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    uuid::Builder::from_unix_timestamp_millis(number, &[0; 10]).into_uuid()
}

/// A moment, so many hours into the lab's time.
pub fn hour(hour: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + hour * 3600).expect("a moment in range")
}

/// A size that `make test` keeps modest and a proof raises: `BERTH_PROOF_CASES` names it.
pub fn cases(modest: u32) -> u32 {
    match std::env::var("BERTH_PROOF_CASES") {
        Ok(text) => text.parse().expect("BERTH_PROOF_CASES is a number"),
        Err(_) => modest,
    }
}

/// Where chance begins: a new place each time, or the one `BERTH_PROOF_SEED` names to see a failure again.
pub fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    match std::env::var("BERTH_PROOF_SEED") {
        Ok(text) => text.parse().expect("BERTH_PROOF_SEED is a number"),
        Err(_) => RandomState::new().hash_one(()),
    }
}
