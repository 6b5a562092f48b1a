//! One query interface for both databases.
//!
//! Both use nearly the same SQL, and Berth stores only types that both have: 64-bit integers, texts, bytes, UUIDs and
//! booleans; instants are microseconds in an integer. So a statement is written once with `$1` placeholders. Only where
//! the two differ (locks, lists, the claim rule's own columns) does [`either`] give both texts. Statements are
//! `'static`: no value can ever become part of one. A test prepares every statement of this crate on both databases.

use futures::TryStreamExt as _;
use jiff::Timestamp;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query as SqlxQuery;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Decode, PgConnection, Postgres, Row as _, Sqlite, SqliteConnection, Type};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::sqlite::Turn;

/// A connection to either database, inside a transaction or not.
#[derive(Debug)]
pub struct Conn(pub(crate) Inner);

#[derive(Debug)]
pub(crate) enum Inner {
    SqliteRead(PoolConnection<Sqlite>),
    SqliteWrite(Turn),
    PostgresRead(PoolConnection<Postgres>),
    PostgresWrite(sqlx::Transaction<'static, Postgres>),
}

pub(crate) enum Raw<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

impl Conn {
    pub(crate) fn raw(&mut self) -> Raw<'_> {
        match &mut self.0 {
            Inner::SqliteRead(conn) => Raw::Sqlite(conn),
            Inner::SqliteWrite(turn) => Raw::Sqlite(turn.connection()),
            Inner::PostgresRead(conn) => Raw::Postgres(conn),
            Inner::PostgresWrite(tx) => Raw::Postgres(tx),
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.0, Inner::PostgresRead(_) | Inner::PostgresWrite(_))
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Id(Option<Uuid>),
    Bool(bool),
    Ids(Vec<Uuid>),
    Ints(Vec<Option<i64>>),
    Texts(Vec<String>),
    Blobs(Vec<Vec<u8>>),
}

macro_rules! values {
    ($($from:ty => $variant:ident, $convert:expr;)*) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                let convert: fn($from) -> _ = $convert;
                Value::$variant(convert(value))
            }
        }
    )*};
}

values! {
    i64 => Int, |v| Some(v);
    Option<i64> => Int, |v| v;
    u64 => Int, |v| Some(v as i64);
    Timestamp => Int, |v| Some(v.as_microsecond());
    Option<Timestamp> => Int, |v| v.map(|v| v.as_microsecond());
    &str => Text, |v| Some(v.to_owned());
    String => Text, |v| Some(v);
    Option<&str> => Text, |v| v.map(str::to_owned);
    Option<String> => Text, |v| v;
    Vec<u8> => Bytes, |v| Some(v);
    &[u8] => Bytes, |v| Some(v.to_vec());
    Uuid => Id, |v| Some(v);
    Option<Uuid> => Id, |v| v;
    bool => Bool, |v| v;
    Vec<Uuid> => Ids, |v| v;
    Vec<i64> => Ints, |v| v.into_iter().map(Some).collect();
    Vec<Option<i64>> => Ints, |v| v;
    Vec<String> => Texts, |v| v;
    Vec<Vec<u8>> => Blobs, |v| v;
}

/// A statement with its bound values.
#[must_use]
pub(crate) struct Query {
    sqlite: &'static str,
    postgres: &'static str,
    values: Vec<Value>,
}

/// A statement with the same text on both databases.
pub(crate) fn query(sql: &'static str) -> Query {
    either(sql, sql)
}

/// A statement with a text per database. Lists: `= ANY($1)` on PostgreSQL, `json_each($1)` on SQLite.
pub(crate) fn either(sqlite: &'static str, postgres: &'static str) -> Query {
    Query {
        sqlite,
        postgres,
        values: Vec::new(),
    }
}

impl Query {
    pub fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    fn sqlite(self) -> SqlxQuery<'static, Sqlite, SqliteArguments> {
        self.values
            .into_iter()
            .fold(sqlx::query(self.sqlite), |query, value| match value {
                Value::Int(v) => query.bind(v),
                Value::Text(v) => query.bind(v),
                Value::Bytes(v) => query.bind(v),
                Value::Id(v) => query.bind(v),
                Value::Bool(v) => query.bind(v),
                Value::Ids(v) => {
                    query.bind(json_list(v.iter().map(|id| format!("\"{}\"", id.simple()))))
                }
                Value::Ints(v) => query.bind(json_list(
                    v.iter().map(|n| n.map_or("null".into(), |n| n.to_string())),
                )),
                Value::Texts(v) => query.bind(serde_json::Value::from(v).to_string()),
                Value::Blobs(v) => query.bind(json_list(
                    v.iter().map(|bytes| format!("\"{}\"", hex(bytes))),
                )),
            })
    }

    fn postgres(self) -> SqlxQuery<'static, Postgres, PgArguments> {
        self.values
            .into_iter()
            .fold(sqlx::query(self.postgres), |query, value| match value {
                Value::Int(v) => query.bind(v),
                Value::Text(v) => query.bind(v),
                Value::Bytes(v) => query.bind(v),
                Value::Id(v) => query.bind(v),
                Value::Bool(v) => query.bind(v),
                Value::Ids(v) => query.bind(v),
                Value::Ints(v) => query.bind(v),
                Value::Texts(v) => query.bind(v),
                Value::Blobs(v) => query.bind(v),
            })
    }

    /// Runs the statement and returns the number of affected rows.
    pub async fn execute(self, conn: &mut Conn) -> Result<u64> {
        Ok(match conn.raw() {
            Raw::Sqlite(conn) => self.sqlite().execute(conn).await?.rows_affected(),
            Raw::Postgres(conn) => self.postgres().execute(conn).await?.rows_affected(),
        })
    }

    pub async fn all(self, conn: &mut Conn) -> Result<Vec<Row>> {
        Ok(match conn.raw() {
            Raw::Sqlite(conn) => self
                .sqlite()
                .fetch_all(conn)
                .await?
                .into_iter()
                .map(Row::Sqlite)
                .collect(),
            Raw::Postgres(conn) => self
                .postgres()
                .fetch_all(conn)
                .await?
                .into_iter()
                .map(Row::Postgres)
                .collect(),
        })
    }

    pub async fn optional(self, conn: &mut Conn) -> Result<Option<Row>> {
        Ok(match conn.raw() {
            Raw::Sqlite(conn) => self.sqlite().fetch_optional(conn).await?.map(Row::Sqlite),
            Raw::Postgres(conn) => self
                .postgres()
                .fetch_optional(conn)
                .await?
                .map(Row::Postgres),
        })
    }

    pub async fn one(self, conn: &mut Conn) -> Result<Row> {
        self.optional(conn)
            .await?
            .ok_or_else(|| Error::Corrupt("a row that must exist is missing".into()))
    }

    /// Streams rows, for results that are too long to hold in memory.
    pub async fn each(
        self,
        conn: &mut Conn,
        mut read: impl FnMut(&Row) -> Result<()> + Send,
    ) -> Result<()> {
        match conn.raw() {
            Raw::Sqlite(conn) => {
                let mut rows = self.sqlite().fetch(conn);
                while let Some(row) = rows.try_next().await? {
                    read(&Row::Sqlite(row))?;
                }
            }
            Raw::Postgres(conn) => {
                let mut rows = self.postgres().fetch(conn);
                while let Some(row) = rows.try_next().await? {
                    read(&Row::Postgres(row))?;
                }
            }
        }
        Ok(())
    }

    /// All rows, each converted by `read`.
    pub async fn map<T>(self, conn: &mut Conn, read: impl Fn(&Row) -> Result<T>) -> Result<Vec<T>> {
        self.all(conn).await?.iter().map(read).collect()
    }
}

fn json_list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.map(digit).collect()
}

pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

pub(crate) trait Column:
    for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>
{
}
impl<T> Column for T where
    T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>
{
}

impl Row {
    pub fn get<T: Column>(&self, column: &str) -> Result<T> {
        Ok(match self {
            Row::Sqlite(row) => row.try_get(column)?,
            Row::Postgres(row) => row.try_get(column)?,
        })
    }

    pub fn moment(&self, column: &str) -> Result<Timestamp> {
        moment(self.get(column)?)
    }

    pub fn optional_moment(&self, column: &str) -> Result<Option<Timestamp>> {
        self.get::<Option<i64>>(column)?.map(moment).transpose()
    }

    /// Reads a text column with one of Berth's words, names or identifiers.
    pub fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(&self, column: &str) -> Result<T> {
        self.get::<String>(column)?
            .parse()
            .map_err(|error| Error::Corrupt(format!("{column}: {error}")))
    }

    pub fn optional_parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        column: &str,
    ) -> Result<Option<T>> {
        let text: Option<String> = self.get(column)?;
        text.map(|text| {
            text.parse()
                .map_err(|error| Error::Corrupt(format!("{column}: {error}")))
        })
        .transpose()
    }

    /// Reads a text column with JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self, column: &str) -> Result<T> {
        let text: String = self.get(column)?;
        serde_json::from_str(&text).map_err(|error| Error::Corrupt(format!("{column}: {error}")))
    }

    pub fn count(&self, column: &str) -> Result<u64> {
        let value: i64 = self.get(column)?;
        u64::try_from(value).map_err(|_| Error::Corrupt(format!("{column} is negative: {value}")))
    }
}

pub(crate) fn moment(micros: i64) -> Result<Timestamp> {
    Timestamp::from_microsecond(micros).map_err(|error| Error::Corrupt(error.to_string()))
}

/// JSON for a text column. Berth's own types always serialise; if one did not, the database would refuse the empty
/// text.
pub(crate) fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
