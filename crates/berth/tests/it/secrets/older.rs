//! A database as an earlier version left it: with environment variables in clear.

use berth_testkit::wait;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

use crate::support::SOON;
use crate::support::ground::Ground;

/// The first version with sealed variables.
const SEALED_SINCE: u32 = 40;

/// Takes the migration back, and puts the variable into all workloads.
pub async fn put_in_clear(ground: &Ground, secret: &str) {
    let variables = serde_json::json!({ "WANDB_API_KEY": secret });
    let ask = match ground.database {
        None => format!("json_set(ask, '$.program.environment', json('{variables}'))"),
        Some(_) => {
            format!("jsonb_set(ask::jsonb, '{{program,environment}}', '{variables}')::text")
        }
    };
    for statement in [
        format!("UPDATE workload SET ask = {ask}"),
        "DROP TABLE workload_variables".to_owned(),
        format!("DELETE FROM _sqlx_migrations WHERE version = {SEALED_SINCE}"),
    ] {
        execute(ground, &statement).await;
    }
}

/// Removes what an update has left behind in the file, as the documentation says.
pub async fn vacuum(ground: &Ground) {
    execute(ground, "VACUUM").await;
}

/// Waits until nothing is left to seal.
pub async fn until_sealed(ground: &Ground) {
    wait::until("older variables to be sealed", SOON, async || {
        unsealed(ground).await == 0
    })
    .await;
}

const UNSEALED: &str = "SELECT count(*) FROM workload_variables WHERE sealed IS NULL";

async fn unsealed(ground: &Ground) -> i64 {
    match ground.database {
        None => {
            let mut conn = SqliteConnection::connect(&ground.url).await.expect("it");
            let counted = sqlx::query_scalar(UNSEALED).fetch_one(&mut conn).await;
            conn.close().await.expect("closed");
            counted.expect("a count")
        }
        Some(_) => {
            let mut conn = PgConnection::connect(&ground.url).await.expect("it");
            let counted = sqlx::query_scalar(UNSEALED).fetch_one(&mut conn).await;
            counted.expect("a count")
        }
    }
}

/// Closes its connection: the files of SQLite stay as they are from then on.
async fn execute(ground: &Ground, statement: &str) {
    let query = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
    match ground.database {
        None => {
            let mut conn = SqliteConnection::connect(&ground.url).await.expect("it");
            query.execute(&mut conn).await.expect(statement);
            conn.close().await.expect("closed");
        }
        Some(_) => {
            let mut conn = PgConnection::connect(&ground.url).await.expect("it");
            query.execute(&mut conn).await.expect(statement);
        }
    }
}
