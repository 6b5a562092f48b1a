//! What a running server says of itself, as findings.

use berth_api::health::{ControllerHealth, HealthReport};
use jiff::SignedDuration;

use super::Finding;
use super::files::disk_finding;
use crate::when::duration;

/// What waits longer than this for its number, readers miss.
const SEQUENCER_LATE_S: f64 = 10.0;
/// How much later than its pause a controller may be before it is worth a look.
const LATE_S: f64 = 30.0;
const MIB: f64 = (1 << 20) as f64;

pub fn findings(report: &HealthReport) -> Vec<Finding> {
    let mut found = vec![
        Finding::ok(
            "server",
            format!(
                "Berth {} has been running for {}",
                report.version,
                duration(SignedDuration::from_secs(
                    i64::try_from(report.uptime_s).unwrap_or(i64::MAX)
                ))
            ),
        ),
        database(report),
    ];
    if let Some(disk) = report.database.disk {
        found.push(disk_finding(disk.free_bytes, "its data directory"));
    }
    let lag = report.sequencer_lag_s;
    found.push(if lag > SEQUENCER_LATE_S {
        Finding::fail(
            "events",
            format!("the oldest row has waited {lag:.0} s for its number"),
            "look at the server's log for the controller `sequencer`",
        )
    } else {
        Finding::ok(
            "events",
            format!("{} are numbered, and none waits", report.event_head),
        )
    });
    found.extend(report.controllers.iter().map(controller));
    found
}

fn database(report: &HealthReport) -> Finding {
    let database = &report.database;
    let words = format!(
        "{} {}, {:.1} MiB, schema step {}",
        database.engine,
        database.engine_version,
        database.size_bytes as f64 / MIB,
        database.schema_step,
    );
    if database.schema_pending.is_empty() {
        Finding::ok("database", words)
    } else {
        let pending = database.schema_pending.join(", ");
        Finding::warn(
            "database",
            format!("{words}; still to come: {pending}"),
            "restart the server, which brings its schema up to date",
        )
    }
}

fn controller(one: &ControllerHealth) -> Finding {
    const SUBJECT: &str = "controller";
    let name = &one.name;
    let by = one.holder.as_deref().unwrap_or("nobody");
    let late = one.lag_s > one.pause_s + LATE_S;
    let stale = one
        .last_round_s
        .is_some_and(|ago| ago > 2.0 * one.pause_s + LATE_S);
    let ago = one
        .last_round_s
        .map_or_else(|| "elsewhere".to_owned(), |ago| format!("{ago:.0} s ago"));
    if one.holder.is_none() {
        let advice = "start a server; each runs all controllers that no other does";
        Finding::fail(SUBJECT, format!("`{name}` was never run"), advice)
    } else if let Some(ago) = one.gave_up_s {
        let found = format!(
            "`{name}`: a round did not end in its time {ago:.0} s ago, and this server left it to another"
        );
        let advice = "look at this server's log and at its machine's disks; restart it if another server runs the controller";
        Finding::fail(SUBJECT, found, advice)
    } else if late {
        let found = format!(
            "`{name}`, run by {by}, is {:.0} s behind with something due",
            one.lag_s
        );
        Finding::fail(SUBJECT, found, "look at that server's log")
    } else if stale {
        let found = format!("`{name}` had its last round here {ago}");
        let advice = "another server may run it now; if there is none, look at the log";
        Finding::warn(SUBJECT, found, advice)
    } else {
        Finding::ok(
            SUBJECT,
            format!("`{name}` is run by {by}, last round {ago}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;
    use serde_json::{Value, json};

    fn report(controller: Value) -> HealthReport {
        let mut one = json!({
            "name": "reservations", "holder": "this machine", "until": null, "fence": 1,
            "pause_s": 1.0, "last_round_s": 0.4, "lag_s": 0.0,
        });
        for (key, value) in controller.as_object().unwrap() {
            one[key] = value.clone();
        }
        serde_json::from_value(json!({
            "version": "0.1.0", "now": "2026-11-16T08:00:00Z", "started_at": "2026-11-16T06:00:00Z", "uptime_s": 7200,
            "database": {"engine": "sqlite", "engine_version": "3.50.2", "size_bytes": 3_145_728, "schema_step": 14,
                "schema_pending": [], "disk": {"free_bytes": 1_000, "total_bytes": 2_000}},
            "controllers": [one], "event_head": 7, "sequencer_lag_s": 0.0,
        }))
        .unwrap()
    }

    #[test]
    fn what_is_wrong_is_told_with_what_to_do() {
        let last = |controller| {
            let found = findings(&report(controller)).pop().unwrap();
            (found.level, found.found)
        };
        assert_eq!(last(json!({})).0, Level::Ok);
        assert_eq!(last(json!({"lag_s": 40.0})).0, Level::Fail);
        let gave_up = last(json!({"gave_up_s": 7.0}));
        assert_eq!(gave_up.0, Level::Fail);
        assert!(gave_up.1.contains("left it to another"), "{gave_up:?}");
        assert_eq!(last(json!({"last_round_s": 60.0})).0, Level::Warn);
        assert_eq!(last(json!({"last_round_s": null})).0, Level::Ok);
        let never = last(json!({"holder": null}));
        assert_eq!(never, (Level::Fail, "`reservations` was never run".into()));
        let all = findings(&report(json!({})));
        assert!(all[0].found.ends_with("running for 2 h"), "{all:?}");
        assert!(all[1].found.contains("3.0 MiB, schema step 14"), "{all:?}");
        assert_eq!(all[2].level, Level::Fail, "the disk is full");
    }
}
