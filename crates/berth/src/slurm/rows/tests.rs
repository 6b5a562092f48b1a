use serde_json::json;

use super::samples::{array, over, run, waiting};
use super::*;

fn now() -> Timestamp {
    "2026-11-16T09:10:00Z".parse().unwrap()
}

fn one(workload: Workload) -> JobRow {
    let mut rows = jobs(&[workload], now());
    assert_eq!(rows.len(), 1, "{rows:#?}");
    rows.remove(0)
}

#[test]
fn what_waits_says_what_for_and_until_when() {
    let row = one(waiting());
    assert_eq!(
        (row.state, row.reason.as_str()),
        (JobState::Pending, "Resources")
    );
    assert_eq!(row.shown_id(), "7");
    assert_eq!((row.nodes, row.cpus, row.memory_mib), (2, 8, 8192));
    assert_eq!(row.tres_per_node.as_deref(), Some("gres:gpu:A100:2"));
    assert_eq!(row.time_limit, TimeLimit::Minutes(90));
    let moment = |at: Option<Timestamp>| at.map(|at| at.to_string());
    assert_eq!(moment(row.start).as_deref(), Some("2026-11-16T12:00:00Z"));
    assert_eq!(moment(row.end).as_deref(), Some("2026-11-16T13:30:00Z"));
    assert_eq!(
        (row.user.as_str(), row.partition.as_str()),
        ("ada", "torino")
    );
    assert_eq!(row.account.as_deref(), Some("vision"));
    assert_eq!(row.qos.as_deref(), Some("urgent"));
}

#[test]
fn every_reason_to_wait_has_slurms_word() {
    for (code, word) in [
        ("no_room", "Resources"),
        ("quota", "QOSMaxGRESPerUser"),
        ("quota_idle", "QOSGrpGRES"),
        ("budget", "AssocGrpGRESMinutes"),
        ("not_before", "BeginTime"),
        ("dependency", "Dependency"),
        ("dependency_never", "DependencyNeverSatisfied"),
        ("never", "BadConstraints"),
        ("no_seats", "Licenses"),
        ("no_backend", "PartitionDown"),
        ("planning", "None"),
    ] {
        let mut workload = waiting();
        workload.waits.as_mut().unwrap().code = code.to_owned();
        assert_eq!(one(workload).reason, word, "{code}");
    }
    let mut held = waiting();
    held.state = State::Held;
    assert_eq!(one(held).reason, "JobHeldUser");
}

#[test]
fn what_runs_says_where_and_for_how_long() {
    let mut running = over("RUNNING", run(0, json!({"state": "running"})));
    running.ended_at = None;
    let row = one(running);
    assert_eq!(
        (row.state, row.reason.as_str()),
        (JobState::Running, "None")
    );
    assert_eq!(row.node_list, ["gpu-01", "gpu-02"]);
    assert_eq!((row.nodes, row.time_used_s), (2, 600));
    assert_eq!(
        row.tres_alloc.as_deref(),
        Some("cpu=8,mem=16G,node=2,billing=8,gres/gpu=4")
    );
}

#[test]
fn an_array_is_a_row_for_each_task_that_began_and_one_for_the_rest() {
    let rows = jobs(&[array()], now());
    let shown: Vec<_> = rows
        .iter()
        .map(|row| (row.shown_id(), row.state, row.reason.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("7_0".to_owned(), JobState::Completed, "None"),
            ("7_1".to_owned(), JobState::Running, "None"),
            ("7_[2-3%2]".to_owned(), JobState::Pending, "Resources"),
        ]
    );
    let mut full = array();
    full.counts.running = 2;
    assert_eq!(jobs(&[full], now())[2].reason, "JobArrayTaskLimit");
}

#[test]
fn a_task_that_has_to_begin_again_is_not_shown_twice() {
    let preempted = json!({
        "state": "ended", "outcome": "preempted", "ended_at": "2026-11-16T09:05:00Z",
    });
    let mut again = waiting();
    again.runs = vec![run(0, preempted)];
    assert_eq!(one(again).state, JobState::Pending);
}

#[test]
fn how_a_job_ended_is_told_in_slurms_words() {
    let failed = json!({"failed": {"exit_code": 3}});
    for (state, outcome, wanted, code) in [
        ("COMPLETED", json!("completed"), JobState::Completed, 0),
        ("FAILED", failed, JobState::Failed, 3),
        ("FAILED", json!("timed_out"), JobState::Timeout, 0),
        ("FAILED", json!("node_failed"), JobState::NodeFail, 0),
        ("CANCELLED", json!("cancelled"), JobState::Cancelled, 0),
    ] {
        let ended = json!({
            "state": "ended", "outcome": outcome, "ended_at": "2026-11-16T09:30:00Z",
        });
        let rows = accounting(&[over(state, run(0, ended))], now());
        assert_eq!(
            (rows[0].state, rows[0].exit_code),
            (wanted, code),
            "{state}"
        );
        assert_eq!((rows[0].elapsed_s, rows[0].alloc_cpus), (1800, 8));
        assert_eq!(rows[0].node_list, ["gpu-01", "gpu-02"]);
    }
}

#[test]
fn what_was_cancelled_before_it_began_has_a_row_too() {
    let mut never = over("CANCELLED", run(0, json!({"state": "running"})));
    never.runs.clear();
    let rows = accounting(&[never], now());
    assert_eq!((rows[0].state, rows[0].start), (JobState::Cancelled, None));
    assert!(rows[0].end.is_some());
    let mut stops = array();
    stops.state = State::Cancelled;
    stops.waiting = Tasks::none();
    let rows = jobs(&[stops], now());
    assert_eq!(rows[2].shown_id(), "7_[2-3%2]");
    assert_eq!(rows[2].state, JobState::Cancelled);
}

#[test]
fn those_that_are_waited_for_are_named() {
    let mut first = waiting();
    first.number = 3;
    let mut after = waiting();
    after.id = WorkloadId(uuid::Uuid::from_u128(1));
    after.after = vec![berth_model::workload::After {
        workload: first.id,
        only_if: OnlyIf::Failed,
    }];
    let rows = jobs(&[after, first], now());
    assert_eq!(
        rows[0].dependency.as_deref(),
        Some("afternotok:3(unfulfilled)")
    );
}
