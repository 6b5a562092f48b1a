//! Whether the database answers, keeps what it acknowledges, has the shape this version needs, and agrees with the
//! clock.

use std::time::Duration;

use berth_app::clock::{Clock, SystemClock};
use berth_server::config::{Config, Database};
use berth_store::{SchemaGap, Store, audit, settings};
use jiff::{SignedDuration, Timestamp};

use super::Finding;
use crate::installation;
use crate::when;

const SUBJECT: &str = "database";
/// A database that takes longer than this to answer is as good as gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// Two clocks of one installation may differ by this much.
const CLOCKS_APART: SignedDuration = SignedDuration::from_secs(5);
/// No Berth is older than this, so no clock that is right shows an earlier time.
const EARLIEST: i64 = 1_767_225_600;

pub async fn look(config: &Config) -> Vec<Finding> {
    let now = SystemClock.now();
    if let Database::Sqlite(path) = &config.database
        && !path.exists()
    {
        let found = format!("{} is made on the first start", path.display());
        return [vec![Finding::ok(SUBJECT, found)], clock(now, None)].concat();
    }
    let opened = tokio::time::timeout(PATIENCE, installation::connect_store(config));
    let store = match opened.await {
        Ok(Ok(store)) => store,
        Ok(Err(error)) => {
            let found = format!("{} does not open: {error:#}", config.database);
            return vec![Finding::fail(
                SUBJECT,
                found,
                "correct `database`, or start the database",
            )];
        }
        Err(_) => {
            let found = format!("{} does not answer", config.database);
            return vec![Finding::fail(
                SUBJECT,
                found,
                "correct `database`, or start the database",
            )];
        }
    };
    let mut findings = vec![Finding::ok(SUBJECT, format!("{} answers", config.database))];
    findings.extend(durability(&store).await);
    let (shape, last_entry) = shape(&store).await;
    findings.extend(shape);
    findings.extend(clock(now, last_entry));
    store.close().await;
    findings
}

async fn durability(store: &Store) -> Vec<Finding> {
    const SUBJECT: &str = "durability";
    let read = match settings::read(store).await {
        Ok(read) => read,
        Err(error) => {
            let advice = "look at the database's own log; if a server is busy, try again";
            return vec![Finding::warn(
                SUBJECT,
                format!("its settings cannot be read: {error}"),
                advice,
            )];
        }
    };
    let wrong = read.iter().filter(|setting| !setting.good).map(|setting| {
        let found = format!("{} is {}", setting.name, setting.is);
        let advice = format!(
            "set it to {}: without it a crash can undo what was promised",
            setting.wanted
        );
        Finding::fail(SUBJECT, found, advice)
    });
    let wrong: Vec<Finding> = wrong.collect();
    if !wrong.is_empty() {
        return wrong;
    }
    let all: Vec<String> = read
        .iter()
        .map(|setting| format!("{} {}", setting.name, setting.is))
        .collect();
    vec![Finding::ok(SUBJECT, all.join(", "))]
}

/// Whether this version can read what is there; and if so, who administers it and when it last changed.
async fn shape(store: &Store) -> (Vec<Finding>, Option<Timestamp>) {
    const SUBJECT: &str = "schema";
    match read(store).await {
        Ok((gap, has_admin, last_entry)) => {
            let mut findings = vec![schema(SUBJECT, &gap)];
            findings.push(if has_admin {
                Finding::ok("admins", "someone can administer this server")
            } else {
                Finding::warn(
                    "admins",
                    "nobody can administer this server yet",
                    "run: berth admin create LOGIN",
                )
            });
            (findings, last_entry)
        }
        Err(error) => {
            let found = format!("this version cannot read what is there: {error}");
            let advice = "start `berth serve` once, which brings an older database up to date; \
                          a newer one needs a newer Berth";
            (vec![Finding::fail(SUBJECT, found, advice)], None)
        }
    }
}

fn schema(subject: &'static str, gap: &SchemaGap) -> Finding {
    if !gap.unknown.is_empty() {
        return Finding::fail(
            subject,
            format!(
                "a newer Berth has changed this database ({} steps)",
                gap.unknown.len()
            ),
            "run that version or a later one; an older one must not write here",
        );
    }
    if !gap.pending.is_empty() {
        return Finding::warn(
            subject,
            format!(
                "{} steps are to be taken: {}",
                gap.pending.len(),
                gap.pending.join(", ")
            ),
            "`berth serve` takes them when it starts; make a backup first",
        );
    }
    Finding::ok(subject, "it is the one this version is written for")
}

async fn read(store: &Store) -> berth_store::Result<(SchemaGap, bool, Option<Timestamp>)> {
    let gap = store.schema_gap().await?;
    let has_admin = installation::has_admin(store).await?;
    let mut reader = store.read().await?;
    let last = audit::last(&mut reader).await?;
    Ok((gap, has_admin, last.map(|chained| chained.entry.at)))
}

/// A clock that went back would order the record wrongly and start reservations late.
fn clock(now: Timestamp, last_entry: Option<Timestamp>) -> Vec<Finding> {
    const SUBJECT: &str = "clock";
    let advice = "set this machine's clock, and keep it with NTP";
    vec![if now.as_second() < EARLIEST {
        Finding::fail(SUBJECT, format!("it says {now}, which is long ago"), advice)
    } else if let Some(last) = last_entry
        && last > now + CLOCKS_APART
    {
        let behind = when::duration(last.duration_since(now));
        Finding::warn(
            SUBJECT,
            format!("it is {behind} behind the last change in the database"),
            advice,
        )
    } else {
        Finding::ok(SUBJECT, format!("it says {}", now.strftime("%F %T UTC")))
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::Level;

    #[test]
    fn a_clock_that_went_back_is_noticed() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-11-15T10:00:00Z");
        let level = |now, last| clock(now, last)[0].level;
        assert_eq!(level(now, None), Level::Ok);
        assert_eq!(level(now, Some(at("2026-11-15T10:00:03Z"))), Level::Ok);
        assert_eq!(level(now, Some(at("2026-11-15T11:00:00Z"))), Level::Warn);
        assert_eq!(level(at("1970-01-01T00:10:00Z"), None), Level::Fail);
    }
}
