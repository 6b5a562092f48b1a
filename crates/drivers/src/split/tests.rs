//! Two simulated worlds show which backend was asked: `here` every run fails half-way, `elsewhere` every run succeeds.

use berth_model::workload::{Counts, Outcome, Run, RunPiece, RunState, State, Tasks, Workload};
use berth_model::{PersonId, RunId, SiteId, WorkloadId};
use futures::executor::block_on;
use jiff::SignedDuration;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::simulated::{Simulated, World};

const BEGAN: Timestamp = Timestamp::UNIX_EPOCH;

fn at(seconds: i64) -> Timestamp {
    BEGAN + SignedDuration::from_secs(seconds)
}

fn node(number: u128) -> ResourceId {
    ResourceId(Uuid::from_u128(number))
}

fn workload() -> Workload {
    let ask = json!({
        "title": "train", "class": "guaranteed", "level": null, "seats": [], "inside": null,
        "not_before": null, "deadline": null, "after": [], "array": null, "requeue": true,
        "program": {"command": ["sleep", "10m"]},
        "wishes": [{"task": {"cores_milli": 1000, "memory_mib": 1}, "limit": "PT1H"}],
    });
    Workload {
        id: WorkloadId(Uuid::nil()),
        site: SiteId(Uuid::nil()),
        number: 1,
        owner: PersonId(Uuid::nil()),
        project: None,
        ask: serde_json::from_value(ask).unwrap(),
        state: State::Running,
        reason: None,
        waiting: Tasks::none(),
        counts: Counts::default(),
        since: BEGAN,
        ended_at: None,
        version: 1,
    }
}

fn run(number: u128, nodes: &[u128]) -> Run {
    let piece = |number: &u128| RunPiece {
        node: node(*number),
        cores_milli: 1000,
        memory_mib: 1,
        gpus: Vec::new(),
    };
    Run {
        id: RunId(Uuid::from_u128(number)),
        workload: WorkloadId(Uuid::nil()),
        site: SiteId(Uuid::nil()),
        task: 0,
        attempt: 1,
        wish: 0,
        inside: None,
        kept_from: None,
        lent_by: None,
        machine: None,
        pieces: nodes.iter().map(piece).collect(),
        claims: Vec::new(),
        state: RunState::Running,
        began: BEGAN,
        until: at(3600),
        supervisor_until: None,
        ended_at: None,
        said: None,
        version: 1,
    }
}

fn grant() -> Grant {
    Grant {
        has_neighbours: false,
        has_hub: false,
        package_index: None,
        person: PersonId(Uuid::nil()),
        login: "ada".to_owned(),
        site: "here".to_owned(),
        project: None,
        nodes: Vec::new(),
        gpus: Vec::new(),
        environment: Default::default(),
        mounts: Vec::new(),
    }
}

/// The backend `here` runs node 1.
fn split(elsewhere: Option<World>) -> Split {
    let failing = World {
        failing: 1.0,
        ..World::calm(1)
    };
    let elsewhere = elsewhere.map(|world| Arc::new(Simulated::new(world)) as Arc<dyn Backend>);
    let split = Split::new(Arc::new(Simulated::new(failing)), elsewhere);
    split.take(node(1));
    split
}

#[test]
fn each_run_is_looked_at_where_its_node_belongs_and_the_order_is_kept() {
    let split = split(Some(World::calm(1)));
    let workload = workload();
    let runs = [run(1, &[2]), run(2, &[1]), run(3, &[2]), run(4, &[1, 1])];
    let jobs = runs.each_ref().map(|run| Job {
        workload: &workload,
        run,
    });
    let signs = block_on(split.look(&jobs, at(3000))).unwrap();
    let well = Sign::Ended {
        at: at(600),
        outcome: Outcome::Completed,
        said: None,
    };
    let failed = Sign::Ended {
        at: at(300),
        outcome: Outcome::Failed { exit_code: 1 },
        said: None,
    };
    assert_eq!(signs, [well.clone(), failed.clone(), well, failed]);
    assert_eq!(split.next(&jobs, BEGAN), Some(at(300)));
    assert_eq!(split.next(&jobs[..1], BEGAN), Some(at(600)));
    assert_eq!(split.next(&[], BEGAN), None);
    assert!(split.can_cut());
}

#[test]
fn each_of_the_two_has_its_own_fence() {
    let split = split(Some(World::calm(1)));
    let (workload, grant) = (workload(), grant());
    let (here, there) = (run(1, &[1]), run(2, &[2]));
    let start = |run, fence| {
        let job = Job {
            workload: &workload,
            run,
        };
        block_on(split.start(job, &grant, Fence(fence), BEGAN))
    };
    assert_eq!(start(&here, 5), Ok(()));
    assert_eq!(start(&there, 4), Ok(()), "nobody told it of a newer one");
    assert_eq!(start(&here, 4), Err(Trouble::Fenced));
}

#[test]
fn what_nobody_runs_is_refused_and_so_is_what_stands_on_both() {
    let (workload, grant) = (workload(), grant());
    let start = |split: &Split, run: &Run| {
        let job = Job {
            workload: &workload,
            run,
        };
        match block_on(split.start(job, &grant, Fence(1), BEGAN)) {
            Err(Trouble::Refused(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let alone = split(None);
    assert!(start(&alone, &run(1, &[2])).contains("nothing runs work on the node"));
    let both = split(Some(World::calm(1)));
    assert!(start(&both, &run(1, &[1, 2])).contains("the same backend"));
    // A run that began on a node that `here` no longer has is still found.
    let begun = run(1, &[2]);
    let jobs = [Job {
        workload: &workload,
        run: &begun,
    }];
    let signs = block_on(alone.look(&jobs, at(10))).unwrap();
    assert_eq!(signs, [Sign::Running]);
    assert!(!alone.can_cut());
}
