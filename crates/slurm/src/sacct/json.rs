//! Jobs as `sacct --json` prints them, by the schema v0.0.38 of Slurm's own API for what is over.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::AccountingRow;
use crate::duration::TimeLimit;
use crate::hostlist::compress;
use crate::row::Member;

pub(super) fn document(rows: &[AccountingRow]) -> String {
    let jobs: Vec<Value> = rows.iter().map(job).collect();
    crate::json_text(&json!({
        "meta": crate::json_meta(),
        "errors": [],
        "jobs": jobs,
    }))
}

fn job(row: &AccountingRow) -> Value {
    let second = |moment: Option<Timestamp>| moment.map_or(0, Timestamp::as_second);
    let (array, index, waiting, at_once) = match &row.member {
        None => (0, None, None, 0),
        Some(Member::Task { array, index }) => (*array, Some(*index), None, 0),
        Some(Member::Waiting { array, tasks }) => {
            let at_once = tasks.limit.unwrap_or(0);
            (*array, None, Some(tasks.to_string()), at_once)
        }
    };
    let status = match (row.exit_code, row.exit_signal) {
        (0, 0) => "SUCCESS",
        (_, 0) => "ERROR",
        _ => "SIGNALED",
    };
    let minutes = match row.time_limit {
        Some(TimeLimit::Minutes(minutes)) => Some(minutes),
        _ => None,
    };
    json!({
        "account": row.account,
        "allocation_nodes": row.node_list.len(),
        "array": {
            "job_id": array,
            "limits": { "max": { "running": { "tasks": at_once } } },
            "task": waiting,
            "task_id": index,
        },
        "association": { "account": row.account, "cluster": row.cluster, "user": row.user },
        "cluster": row.cluster,
        "comment": { "job": row.comment },
        "constraints": row.constraints.clone().unwrap_or_default(),
        "exit_code": {
            "status": status,
            "return_code": row.exit_code,
            "signal": { "signal_id": row.exit_signal },
        },
        "group": row.group,
        "job_id": row.id,
        "name": row.name,
        "nodes": compress(&row.node_list),
        "partition": row.partition,
        "priority": row.priority,
        "qos": row.qos,
        "required": { "CPUs": row.req_cpus, "memory": row.req_memory_mib },
        "reservation": { "name": row.reservation },
        "state": { "current": row.state.long(), "reason": row.reason },
        "steps": [],
        "time": {
            "elapsed": row.elapsed_s,
            "eligible": second(row.eligible),
            "end": second(row.end),
            "limit": minutes,
            "start": second(row.start),
            "submission": row.submitted.as_second(),
            "total": { "seconds": row.cpu_used_s },
        },
        "user": row.user,
        "working_directory": row.work_dir,
    })
}
