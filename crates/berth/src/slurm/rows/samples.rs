//! Workloads to try things on.

use berth_api::workloads::{Run, Workload};
use serde_json::{Value, json};

const UNIQUE: &str = "01kc3v9xwbe8rv5w2n9q3m7t4h";

fn with(mut all: Value, changes: Value) -> Value {
    for (key, value) in changes.as_object().unwrap() {
        all[key] = value.clone();
    }
    all
}

fn workload(changes: Value) -> Workload {
    let id = |kind: &str| format!("{kind}_{UNIQUE}");
    let all = json!({
        "id": id("job"), "number": 7, "version": 1,
        "site": {"id": id("sit"), "name": "torino", "title": "Torino"},
        "owner": {"id": id("per"), "login": "ada", "display_name": "Ada"},
        "project": {"id": id("prj"), "name": "vision", "title": "Vision"},
        "title": "train", "class": "guaranteed", "level": "urgent", "state": "WAITING",
        "wishes": [{
            "tasks": 2, "limit": "PT90M",
            "task": {
                "cores_milli": 4000, "memory_mib": 8192,
                "gpus": {"count": 2, "where": ["gpu_model=A100"]},
            },
        }],
        "requeue": true, "waiting": "0", "counts": {"running": 0, "completed": 0, "failed": 0},
        "cancelled": 0, "runs": [], "since": "2026-11-16T08:00:00Z",
    });
    serde_json::from_value(with(all, changes)).unwrap()
}

/// On two nodes since nine o'clock.
pub fn run(task: u32, state: Value) -> Run {
    let node = |name: &str| {
        let resource = json!({"id": format!("res_{UNIQUE}"), "name": name, "type": "node"});
        json!({"node": resource, "cores_milli": 4000, "memory_mib": 8192, "gpus": []})
    };
    let all = json!({
        "id": format!("run_{UNIQUE}"), "task": task, "attempt": 1, "wish": 0,
        "nodes": [node("gpu-02"), node("gpu-01"), node("gpu-01")],
        "began": "2026-11-16T09:00:00Z", "until": "2026-11-16T10:30:00Z", "until_by": "limit",
    });
    serde_json::from_value(with(all, state)).unwrap()
}

pub fn waiting() -> Workload {
    workload(json!({
        "waits": {"code": "no_room", "words": "there is no room", "forecast": "2026-11-16T12:00:00Z"},
    }))
}

pub fn over(state: &str, run: Run) -> Workload {
    let ended = workload(json!({
        "state": state, "waiting": "", "ended_at": "2026-11-16T09:30:00Z",
    }));
    Workload {
        runs: vec![run],
        ..ended
    }
}

/// Of its four tasks one is over, one runs and two wait; two may run at once.
pub fn array() -> Workload {
    let array = workload(json!({
        "state": "RUNNING", "array": {"tasks": "0-3", "at_once": 2}, "waiting": "2-3",
        "counts": {"running": 1, "completed": 1, "failed": 0},
    }));
    let over = json!({
        "state": "ended", "outcome": "completed", "ended_at": "2026-11-16T09:30:00Z",
    });
    Workload {
        runs: vec![run(1, json!({"state": "running"})), run(0, over)],
        ..array
    }
}
