//! Jobs as `squeue --json` prints them, by the schema v0.0.38 of Slurm's own API.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::View;
use crate::hostlist::compress;
use crate::row::{JobRow, Member};

pub(super) fn document(rows: &[JobRow], view: &View<'_>) -> String {
    let jobs: Vec<Value> = rows.iter().map(|row| job(row, view)).collect();
    crate::json_text(&json!({
        "meta": crate::json_meta(),
        "errors": [],
        "jobs": jobs,
    }))
}

fn second(moment: Option<Timestamp>) -> i64 {
    moment.map_or(0, Timestamp::as_second)
}

fn job(row: &JobRow, view: &View<'_>) -> Value {
    let (array, task, tasks) = match &row.member {
        None => (0, Value::Null, String::new()),
        Some(Member::Task { array, index }) => (*array, json!(index), String::new()),
        Some(Member::Waiting { array, tasks }) => (*array, Value::Null, tasks.to_string()),
    };
    let most_at_once = match &row.member {
        Some(Member::Waiting { tasks, .. }) => tasks.limit.unwrap_or(0),
        _ => 0,
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let memory = |is_per_cpu: bool| {
        let is_said = row.is_memory_per_cpu == is_per_cpu && row.memory_mib > 0;
        is_said.then_some(row.memory_mib)
    };
    json!({
        "account": text(&row.account),
        "accrue_time": second(row.eligible),
        "array_job_id": array,
        "array_task_id": task,
        "array_max_tasks": most_at_once,
        "array_task_string": tasks,
        "batch_flag": true,
        "batch_host": row.node_list.first().cloned().unwrap_or_default(),
        "cluster": view.cluster,
        "command": text(&row.command),
        "comment": text(&row.comment),
        "cpus": row.cpus,
        "cpus_per_task": row.cpus_per_task,
        "current_working_directory": row.work_dir,
        "deadline": second(row.deadline),
        "dependency": text(&row.dependency),
        "eligible_time": second(row.eligible),
        "end_time": second(row.end),
        "excluded_nodes": compress(&row.excluded_nodes),
        "exit_code": row.exit_code,
        "features": text(&row.features),
        "group_id": row.gid,
        "group_name": row.group,
        "job_id": row.id,
        "job_state": row.state.long(),
        "max_nodes": row.max_nodes,
        "memory_per_cpu": memory(true),
        "memory_per_node": memory(false),
        "name": row.name,
        "nice": row.nice,
        "node_count": row.nodes,
        "nodes": compress(&row.node_list),
        "partition": row.partition,
        "preempt_time": second(row.preempted),
        "priority": row.priority,
        "qos": text(&row.qos),
        "requeue": row.requeue,
        "required_nodes": compress(&row.required_nodes),
        "restart_cnt": row.restarts,
        "resv_name": text(&row.reservation),
        "standard_error": row.stderr,
        "standard_input": row.stdin,
        "standard_output": row.stdout,
        "start_time": second(row.start),
        "state_description": "",
        "state_reason": row.reason,
        "submit_time": second(Some(row.submitted)),
        "tasks": row.tasks,
        "time_limit": row.time_limit.seconds().map(|seconds| seconds / 60),
        "tres_alloc_str": text(&row.tres_alloc),
        "tres_per_job": text(&row.tres_per_job),
        "tres_per_node": text(&row.tres_per_node),
        "tres_per_task": text(&row.tres_per_task),
        "user_id": row.uid,
        "user_name": row.user,
    })
}
