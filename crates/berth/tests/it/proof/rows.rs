//! Rows of either database as JSON: each database writes its rows as one text, and serde reads them into types.

use anyhow::{Context, Result, bail};
use berth_model::{
    Amount, Claim, ClaimId, Firmness, Holder, ReservationId, ResourceId, SiteId, Span, Standing,
    Take, WindowId, WorkloadId,
};
use futures::TryStreamExt;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use uuid::Uuid;

/// Which columns of which table, in which order.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub name: &'static str,
    /// Columns that hold identifiers, which SQLite keeps as bytes.
    pub ids: &'static [&'static str],
    pub columns: &'static [&'static str],
    pub order: &'static str,
}

impl Table {
    fn sqlite(self) -> String {
        let ids = self
            .ids
            .iter()
            .map(|id| format!("'{id}', nullif(lower(hex({id})), '')"));
        let columns = self.columns.iter().map(|name| format!("'{name}', {name}"));
        let pairs: Vec<String> = ids.chain(columns).collect();
        let Table { name, order, .. } = self;
        format!(
            "SELECT json_object({}) FROM {name} ORDER BY {order}",
            pairs.join(", ")
        )
    }

    fn postgres(self) -> String {
        let columns: Vec<&str> = self.ids.iter().chain(self.columns).copied().collect();
        let Table { name, order, .. } = self;
        format!(
            "SELECT row_to_json(t)::text FROM (SELECT {} FROM {name} ORDER BY {order}) t",
            columns.join(", ")
        )
    }
}

/// A connection that only ever looks.
pub enum Reader {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Reader {
    pub async fn connect(url: &str) -> Result<Self> {
        Ok(if url.starts_with("sqlite:") {
            Self::Sqlite(SqliteConnection::connect(url).await?)
        } else {
            Self::Postgres(PgConnection::connect(url).await?)
        })
    }

    /// Reads a table row by row, so that a big one need not fit into memory as it is stored.
    pub async fn each<T: DeserializeOwned>(
        &mut self,
        table: Table,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let mut read = |text: String| -> Result<()> {
            let row = serde_json::from_str(&text)
                .with_context(|| format!("a row of {} reads {text}", table.name))?;
            take(row)
        };
        match self {
            Self::Sqlite(connection) => {
                let mut rows = sqlx::query_scalar(AssertSqlSafe(table.sqlite())).fetch(connection);
                while let Some(text) = rows.try_next().await? {
                    read(text)?;
                }
            }
            Self::Postgres(connection) => {
                let mut rows =
                    sqlx::query_scalar(AssertSqlSafe(table.postgres())).fetch(connection);
                while let Some(text) = rows.try_next().await? {
                    read(text)?;
                }
            }
        }
        Ok(())
    }
}

#[derive(Debug, Deserialize)]
pub struct ResourceRow {
    pub id: Uuid,
    pub parent: Option<Uuid>,
    pub capacity: Option<u64>,
    pub status: String,
}

#[derive(Debug, Deserialize)]
pub struct ClaimRow {
    id: Uuid,
    site: Uuid,
    resource: Uuid,
    container: Option<Uuid>,
    holder: Uuid,
    starts: i64,
    ends: i64,
    amount: Option<u64>,
    grace_us: Option<i64>,
    holder_kind: String,
    standing: Standing,
}

impl ClaimRow {
    pub fn claim(self) -> Result<Claim> {
        Ok(Claim {
            id: ClaimId(self.id),
            site: SiteId(self.site),
            resource: ResourceId(self.resource),
            span: span(self.starts, self.ends)?,
            take: match self.amount {
                Some(amount) => Take::Amount(Amount::new(amount)?),
                None => Take::Exclusive,
            },
            firmness: match self.grace_us {
                Some(grace) => Firmness::Yielding {
                    grace: SignedDuration::from_micros(grace),
                },
                None => Firmness::Firm,
            },
            container: self.container.map(ClaimId),
            holder: match self.holder_kind.as_str() {
                "reservation" => Holder::Reservation(ReservationId(self.holder)),
                "maintenance" => Holder::Maintenance(WindowId(self.holder)),
                "workload" => Holder::Workload(WorkloadId(self.holder)),
                other => bail!("a claim is held by `{other}`"),
            },
            standing: self.standing,
        })
    }
}

#[derive(Debug, Deserialize)]
pub struct ReservationRow {
    pub id: Uuid,
    pub series: Option<Uuid>,
    pub title: String,
    pub state: String,
    pub starts: i64,
    pub ends: i64,
    pub items: String,
    pub version: u64,
}

#[derive(Debug, Deserialize)]
pub struct SeriesRow {
    pub id: Uuid,
}

#[derive(Debug, Deserialize)]
pub struct HistoryRow {
    pub reservation: Uuid,
    pub from_state: Option<String>,
    pub to_state: String,
    pub starts: i64,
    pub ends: i64,
}

#[derive(Debug, Deserialize)]
pub struct AuditRow {
    pub at: i64,
    pub actor_kind: String,
    pub action: String,
    pub subject: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// What the audit log says of a moved resource.
#[derive(Debug, Deserialize)]
pub struct Moved {
    pub parent: Option<ResourceId>,
}

#[derive(Debug, Deserialize)]
pub struct EventRow {
    pub number: Option<u64>,
    pub kind: String,
    pub subject: String,
}

#[derive(Debug, Deserialize)]
pub struct KeyRow {
    pub key: String,
    pub subject: String,
}

#[derive(Debug, Deserialize)]
pub struct HeadRow {
    pub name: String,
    pub number: u64,
}

pub fn span(starts: i64, ends: i64) -> Result<Span> {
    Ok(Span::new(
        Timestamp::from_microsecond(starts)?,
        Timestamp::from_microsecond(ends)?,
    )?)
}
